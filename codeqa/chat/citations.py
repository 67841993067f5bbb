"""Citations `[path:12-34]` in an answer: found, brought into one form, and checked.

Only what is certain is said of one. It is struck when its file does not exist, when the file does
not have its lines, or when no line of the file was sent or shown in the conversation. What the
sentence before it says is not judged: of 30 citations that a check of words had changed or struck,
none was wrong (docs/search-quality.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import unquote

from codeqa.chat.events import Citation
from codeqa.chat.record import SentMessage, TurnRecord
from codeqa.chat.values import Place
from codeqa.errors import CodeQAError
from codeqa.repositories.files import Files
from codeqa.search.mentions import looks_like_path
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.markdown import CITATION, CODE_LOCATION
from codeqa.types import Chunk

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
FENCE = re.compile(r"[> ]*(`{3,}|~{3,})([^`]*)$")
UNSENT = "nothing of this file was sent or shown in this conversation"

_SHOWN_PLACE = re.compile(
    r"--- (\S[^\n]*?) \(lines \d|\[((?:[^\[\]\n,]|\[[^\[\]\n]*\])+):\d+(?:-\d+)?\]"
    r"|([^\s\[\]()`'\",:]+):\d"
)
"""A place in what tools print: the head of a definition, `[path:12-34]` or `path:12`."""


@dataclass(frozen=True)
class CitedCode:
    """Looks paths and lines up for the citations of one answer; each file is read once."""

    files: Files
    tables: Tables
    chunks: Sequence[Chunk] = ()
    """The code that was sent."""
    shown: Callable[[], Iterable[str]] = tuple
    """Paths of further files that the conversation has shown lines of; asked once, for a file of no
    chunk."""
    _read: dict[str, list[str] | None] = field(default_factory=dict)

    def path_of(self, written: str) -> str:
        """Return the one indexed file that `written`, a path or the end of one, means; '' for none
        and for several. Files that were sent go before the others."""
        path = self.tables.plain_path(written)
        found = [path] if self.is_indexed(path) else self._ending(path)
        return found[0] if len(found) == 1 else ""

    def is_missing(self, written: str) -> bool:
        """Whether `written` is a path for sure, and no indexed file is called so."""
        path = self.tables.plain_path(written)
        plain = looks_like_path(path) and not re.search(r"\s|://", written)
        return plain and not self.is_indexed(path) and not self._ending(path)

    def is_indexed(self, path: str) -> bool:
        return path in self.tables.catalogue().paths

    def _ending(self, end: str) -> list[str]:
        """The files that were sent whose path ends with `end`, or else all indexed ones."""
        named = self.tables.catalogue().by_file_name.get(end.rpartition("/")[2], ())
        sent = dict.fromkeys(chunk.path for chunk in self.chunks)
        paths = [path for path in sent if path.endswith("/" + end)]
        return paths or [path for path in named if path.endswith("/" + end)]

    def lines(self, path: str) -> list[str] | None:
        """Return the lines of `path` as they are now; None when it is no readable indexed file."""
        if path not in self._read:
            self._read[path] = None
            with suppress(CodeQAError):  # one that cannot be read must not cost the whole answer
                self._read[path] = self.files.read(path).text.removesuffix("\n").split("\n")
        return self._read[path]

    def has_changed(self, path: str, start: int, end: int) -> bool:
        """Whether these lines differ from what was sent of them."""
        now = (self.lines(path) or [])[start - 1 : end]
        sent = (
            chunk.content.split("\n")[start - chunk.start_line : end - chunk.start_line + 1]
            for chunk in self.chunks
            if chunk.holds(path, start, end)
        )
        return any(then != now for then in sent)

    def was_shown(self, path: str) -> bool:
        """Whether the conversation has shown a line of the file."""
        return any(chunk.path == path for chunk in self.chunks) or path in self._shown

    @cached_property
    def _shown(self) -> frozenset[str]:
        return frozenset(self.shown())


def overlap(one: Place, other: Place) -> bool:
    """Whether two places share a line."""
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def files_in(text: str) -> Iterator[str]:
    """Yield the paths of the places that `text`, a message or what a tool printed, names."""
    for match in _SHOWN_PLACE.finditer(text):
        yield match[1] or match[2] or match[3]


def files_told(messages: Iterable[SentMessage]) -> Iterator[str]:
    """Yield the paths of the places that a model was told of; what it wrote itself shows
    nothing."""
    for message in messages:
        if message.role != "assistant":
            for part in message.parts:
                yield from files_in(part or "")


def files_shown(turn: TurnRecord) -> Iterator[str]:
    """Yield the paths of the files that an earlier turn has shown lines of: in its code, in right
    citations, and in what was told to the model beside the code."""
    yield from (chunk.path for chunk in turn.chunks)
    yield from (one.path for one in turn.citations if one.verified)
    yield from files_told(turn.messages)


def find_citations(text: str) -> list[Citation]:
    """Return the distinct citations in the prose of `text`, in order; code is no prose."""
    found: dict[Citation, None] = {}
    fence = ""
    """The run of marks that opened the block, '' outside of one."""
    for line in text.split("\n"):
        fence, inside = next_fence(fence, line)
        if not inside:
            found |= {one: None for one, as_code in _of_line(line) if not as_code}
    return list(found)


def _of_line(line: str) -> list[tuple[Citation, bool]]:
    """Return each citation of a line of prose, and whether it is written as code, which may be
    something else: `localhost:8080`."""
    places = []
    bare = CODE_SPAN.sub(lambda span: " " * len(span[0]), line)
    for span in CODE_SPAN.finditer(line):
        if match := CODE_LOCATION.fullmatch(span[2].strip()):
            places.append((span.start(), match.groups(), True))
    places += [(match.start(), match.groups(), False) for match in CITATION.finditer(bare)]
    return [
        (Citation(path, int(first), int(last or first)), as_code)
        for _, (path, first, last), as_code in sorted(places)
    ]


def verify(cited: Citation, code: CitedCode) -> Citation:
    """Return `cited` with the verdict: whether the file has the lines, and they were shown."""
    path, start, end = cited.path, cited.start, cited.end
    lines, problem = code.lines(path), ""
    count = len(lines or ())
    if not 1 <= start <= end:
        problem = "these are no lines"
    elif any(chunk.holds(path, start, end) for chunk in code.chunks):
        pass  # right when it was written, whatever became of the file since
    elif not code.is_indexed(path):
        problem = "no indexed file has this path"
    elif lines is not None and start > count:
        problem = f"the file has {counted(count, 'line')}"
    elif not code.was_shown(path):
        problem = UNSENT
    return replace(
        cited,
        verified=not problem,
        exists=1 <= start <= min(end, count),
        problem=problem,
        changed=not problem and code.has_changed(path, start, end),
    )


class CitationChecker:
    """Checks the citations of an answer while it is written, line by line. `found` holds each of
    them once."""

    def __init__(self, code: CitedCode) -> None:
        self.found: dict[Citation, Citation] = {}
        self._code = code
        self._line, self._fence = "", ""

    def feed(self, text: str) -> list[Citation]:
        """Return the new ones in the lines that `text` ends."""
        checked: list[Citation] = []
        *lines, rest = text.split("\n")
        for line in lines:
            checked += self._check(self._line + line)
            self._line = ""
        self._line += rest
        return checked

    def _check(self, line: str) -> Iterator[Citation]:
        self._fence, inside = next_fence(self._fence, line)
        for cited, as_code in () if inside else _of_line(line):
            missing = not as_code and self._code.is_missing(cited.path)
            is_citation = missing or self._code.is_indexed(cited.path)
            if is_citation and cited not in self.found:
                self.found[cited] = verify(cited, self._code)
                yield self.found[cited]


def verify_all(text: str, code: CitedCode) -> list[Citation]:
    """Return every citation of `text`, as `CitationChecker` finds them."""
    checker = CitationChecker(code)
    checker.feed(f"{text}\n")
    return list(checker.found.values())


def next_fence(fence: str, line: str) -> tuple[str, bool]:
    """Return the run of marks that the block around the next line was opened by, '' for none, and
    whether `line` itself belongs to a block."""
    mark = FENCE.match(line)
    if mark and not fence:
        return mark[1], True
    if mark and mark[1].startswith(fence) and not mark[2].strip():
        return "", True
    return fence, bool(fence)


# The shapes in which models cite, made one while the answer arrives: `[path:12-34]`.
#
# The model is asked for that form and for the numbers or Ids of chunks, and writes what it has seen
# elsewhere as well: `app.py:12`, `app.py#L3-L9`, `[f.py:L1-L2, g.py:3-4]`, `[1]`,
# `【F:a.py†L1-L2】`, `(a.py, lines 1-2)` and links `[name](a.py#L1-L2)`. To a reader `[Chunk 2]`
# says nothing, and it means another chunk in the next turn.

LONGEST = 300
"""Characters that may wait for the end of what has begun: a link with its address."""

_NUMBERS = (
    r"chunks?[ #]{0,2}\d{1,3}(?!\w)(?:(?:, ?| and | & )#?\d{1,3}(?!\w)){0,8}|ctx_[0-9a-f]{8}(?!\w)"
)
"""Chunks by number or Id, as prose has them: "Chunks 2 and 3 show it"."""
_LINE = r"L?(\d{1,7})(?:[:C]\d{1,5})?"
"""A line, and a column behind it that is left out: `16`, `L16`, `16:5`, `L16C5`."""
_LINES = rf"{_LINE}(?:\s?[-–—]\s?{_LINE})?"
_SQUARE = rf"\[((?:[^\[\]\n`]|\[[^\[\]\n`]*\]){{1,{LONGEST}}})\]"  # [app/[id]/page.tsx:1-2]
_LINK = (
    r"!?\[(?P<label>(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,200})\]"
    r"\((?P<address>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)(?: +\"[^\"\n]*\")?\)"
)
_SHAPES = re.compile(
    rf"{CODE_SPAN.pattern}|{_LINK}|(?<![\w\])]){_SQUARE}(?![(\[])"
    r"|\(((?:chunks?|ctx_|id: ?ctx_)[^()\n]{1,80}|[^()\s,]+,?\s+lines?\s+\d[\d\s,–—-]{0,40})\)"
    rf"|(?<![\w\[(])({_NUMBERS})"
    rf"|【(?:F:)?(?P<marked>[^【】†\n]{{1,200}})†{_LINES}】"
    rf"|(?<![\w/\\.:@`-])(?P<path>[\w.@+/\\-]*\w\.[A-Za-z]\w{{0,9}})[:#]{_LINES}(?![\w:]|\.\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    rf"{CODE_SPAN.pattern}|\[\d{{1,3}}\](?![(\[])|(?<!\w){_NUMBERS}", re.IGNORECASE
)
THEN = "[code shown then]"
_CHUNK = re.compile(r"(?:chunks?[ #]*|#)?(\d{1,3})|(?:id: ?)?(ctx_[0-9a-f]{8})", re.IGNORECASE)
_PLACE = re.compile(rf"(.+?)[:#]\s?{_LINES}", re.IGNORECASE)
_RANGE = re.compile(rf"(?:lines?\s+)?{_LINES}", re.IGNORECASE)
_IN_WORDS = re.compile(r",?\s+lines?\s+(?=\d)", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_CLOSED = re.compile(rf"{CODE_SPAN.pattern}|{_SQUARE}|\([^()]*\)|【[^【】\n]*】")
_OPENS = re.compile(r"[\[(`【]|(?<!\w)chunks?(?:[ #\d,&]|\band\b)*\S*$", re.IGNORECASE)


def without_numbers(answer: str) -> str:
    """Return `answer`, of an earlier turn, without numbers of chunks: now they mean others."""
    told, fence = [], ""
    for line in answer.split("\n"):
        fence, inside = next_fence(fence, line)
        told.append(line if inside else _NUMBERED.sub(lambda m: m[0] if m[1] else THEN, line))
    return "\n".join(told)


class CitationWriter:
    """Rewrites the answer that is fed to it piece by piece; what may still become a citation waits.

    How an answer is cut into pieces changes nothing. What cannot be told for sure stays as it is.
    """

    def __init__(self, chunks: Sequence[Chunk], code: CitedCode) -> None:
        self._code = code
        self._chunks: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            place = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
            if find_citations(place):  # a path may hold what would end it early
                self._chunks[str(number)] = self._chunks[chunk.id] = place
        self._line = ""
        """The line that is being written, as the model wrote it."""
        self._decided = 0
        """How much of it has been decided."""
        self._fence = ""

    def feed(self, text: str) -> str:
        """Return what can be told of the answer after `text`, beyond what was told before."""
        told = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line += line
            told += [self.close(), "\n"]
            self._fence, _ = next_fence(self._fence, self._line)
            self._line, self._decided = "", 0
        self._line += rest
        told.append(self._decide(self._decided + _decidable(self._line[self._decided :])))
        return "".join(told)

    def close(self) -> str:
        """Return what still waited when the answer, or a line of it, ends."""
        return self._decide(len(self._line))

    def _decide(self, end: int) -> str:
        """Return the line up to `end`, rewritten, from where the last call ended."""
        made, at = "", self._decided
        if not next_fence(self._fence, self._line)[1]:
            for match in _SHAPES.finditer(self._line, at, end):
                made += self._line[at : match.start()] + (self._cited(match) or match[0])
                at = match.end()
        made += self._line[at:end]
        self._decided = end
        return made

    def _cited(self, match: re.Match[str]) -> str:
        """Return the citations that `match` stands for; '' where it is none."""
        _, code, label, address, square, round_, prose, marked, *lines = match.groups()
        if code is not None:
            one = _PLACE.fullmatch(code.strip())
            return self._place(*one.groups()) if one else ""
        if label:
            return "" if match[0].startswith("!") else self._linked(label, unquote(address))
        if marked:
            return self._place(marked, *lines[:2])
        if path := match["path"]:
            return self._place(path, *lines[3:])
        listed = ", ".join(dict.fromkeys(self._listed(square or round_ or prose)))
        return f"({listed})" if round_ and listed else listed

    def _linked(self, label: str, address: str) -> str:
        """Return a link into the repository as a citation behind its text, which is left out where
        it is the place itself."""
        one = _PLACE.fullmatch(address)
        place = self._place(*one.groups()) if one else ""
        text = label.strip("` ")
        named = _PLACE.fullmatch(text)
        name = self._code.tables.plain_path(named[1] if named else text)
        is_place = _RANGE.fullmatch(text) or f"/{place}".replace("[", "/").find(f"/{name}:") >= 0
        return f"{label} {place}" if place and not is_place else place

    def _listed(self, inner: str) -> list[str]:
        """Return the places in brackets; [] unless each part is one."""
        places, path = [], ""
        for part in _APART.split(_IN_WORDS.sub(":", inner)):
            place, lines = "", _RANGE.fullmatch(part) if path else None
            if lines:
                place = self._place(path, *lines.groups())
            elif chunk := _CHUNK.fullmatch(part):
                place = self._chunks.get((chunk[1] or chunk[2]).lower(), "")
            elif one := _PLACE.fullmatch(part):
                path = one[1]
                place = self._place(*one.groups())
            if not place:
                return []
            places.append(place)
        return places

    def _place(self, written: str, first: str, last: str | None = None) -> str:
        """Return `[path:first-last]`; '' where no file is called like what is `written`."""
        path = self._code.path_of(written)
        return f"[{path}:{first}{f'-{last}' if last else ''}]" if path else ""


def _decidable(waiting: str) -> int:
    """Return how much of `waiting` is changed by nothing that follows: what stands before its last
    word, or before the word in which brackets or code begin that have not ended."""
    near = max(0, len(waiting) - LONGEST)
    bare = _CLOSED.sub(lambda closed: "x" * len(closed[0]), waiting)
    opened = _OPENS.search(bare, near)
    end = opened.start() if opened else len(bare)
    end = max(bare.rfind(" ", 0, end), bare.rfind("\t", 0, end)) + 1
    return end if end >= near else len(waiting)
