"""Citations `[path:12-34]` in an answer: find them, bring them into one form, and check them.

A citation is struck only when it is certainly wrong: its file does not exist, the file does not
have its lines, or no line of the file was sent or shown in the conversation. The sentence before it
is not judged: of 30 citations that a check of words changed or struck, none was wrong
(docs/search-quality.md).
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
from codeqa.chat.values import Span
from codeqa.errors import CodeQAError
from codeqa.repositories.files import Files
from codeqa.search.mentions import looks_like_path
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.markdown import CITATION, CODE_LOCATION
from codeqa.types import Chunk

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
FENCE = re.compile(r"[> ]*(`{3,}|~{3,})([^`]*)$")
UNSENT = "no line of this file was sent or shown in this conversation"

_SPAN_IN_OUTPUT = re.compile(
    r"--- (\S[^\n]*?) \(lines \d|\[((?:[^\[\]\n,]|\[[^\[\]\n]*\])+):\d+(?:-\d+)?\]"
    r"|([^\s\[\]()`'\",:]+):\d"
)
"""A span in the output of tools: the head of a definition, `[path:12-34]` or `path:12`."""


@dataclass(frozen=True)
class CitedCode:
    """The files that one answer may cite; each is read once."""

    files: Files
    tables: Tables
    chunks: Sequence[Chunk] = ()
    """The chunks that were sent."""
    shown_files: Callable[[], Iterable[str]] = tuple
    """Returns the paths of further files whose lines the conversation has shown. It is called at
    most once, for the first file without a chunk."""
    _read: dict[str, list[str] | None] = field(default_factory=dict)

    def path_of(self, written: str) -> str:
        """Return the indexed file for `written`, a path or the end of one; '' for none or several.

        Files that were sent go before others.
        """
        path = self.tables.plain_path(written)
        if self.is_indexed(path):
            return path
        paths = self._ending(path)
        return paths[0] if len(paths) == 1 else ""

    def is_missing(self, written: str) -> bool:
        """Return whether `written` is certainly a path, but of no indexed file."""
        path = self.tables.plain_path(written)
        if not looks_like_path(path) or re.search(r"\s|://", written):
            return False
        return not self.is_indexed(path) and not self._ending(path)

    def is_indexed(self, path: str) -> bool:
        """Return whether this is the path of an indexed file."""
        return path in self.tables.catalogue().paths

    def _ending(self, end: str) -> list[str]:
        """Return the sent files whose path ends with `end`, or else all indexed ones."""
        same_name = self.tables.catalogue().by_file_name.get(end.rpartition("/")[2], ())
        sent = dict.fromkeys(chunk.path for chunk in self.chunks)
        paths = [path for path in sent if path.endswith("/" + end)]
        return paths or [path for path in same_name if path.endswith("/" + end)]

    def lines(self, path: str) -> list[str] | None:
        """Return the current lines of `path`; None if it is not a readable indexed file."""
        if path not in self._read:
            self._read[path] = None
            with suppress(CodeQAError):  # an unreadable file must not spoil the answer
                self._read[path] = self.files.read(path).text.removesuffix("\n").split("\n")
        return self._read[path]

    def has_changed(self, path: str, start: int, end: int) -> bool:
        """Return whether these lines differ from those that were sent."""
        current = (self.lines(path) or [])[start - 1 : end]
        for chunk in self.chunks:
            if chunk.holds(path, start, end):
                first = start - chunk.start_line
                if chunk.content.split("\n")[first : first + end - start + 1] != current:
                    return True
        return False

    def updated(self, citation: Citation) -> Citation:
        """Return a citation of an earlier answer with `changed` as of now."""
        start, end = citation.start, citation.end
        changed = citation.verified and self.has_changed(citation.path, start, end)
        return replace(citation, changed=changed)

    def was_shown(self, path: str) -> bool:
        """Return whether the conversation has shown a line of the file."""
        return any(chunk.path == path for chunk in self.chunks) or path in self._shown

    @cached_property
    def _shown(self) -> frozenset[str]:
        return frozenset(self.shown_files())


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share a line."""
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def files_in(text: str) -> Iterator[str]:
    """Yield the paths of the spans in `text`, a message or a tool's output."""
    for match in _SPAN_IN_OUTPUT.finditer(text):
        yield match[1] or match[2] or match[3]


def files_in_messages(messages: Iterable[SentMessage]) -> Iterator[str]:
    """Yield the paths of the spans in messages, except in those that the model wrote."""
    for message in messages:
        if message.role != "assistant":
            for part in message.parts:
                yield from files_in(part or "")


def files_shown(turn: TurnRecord) -> Iterator[str]:
    """Yield the paths of files whose lines an earlier turn has shown.

    They are in its chunks, its right citations, and its messages to the model.
    """
    yield from (chunk.path for chunk in turn.chunks)
    yield from (citation.path for citation in turn.citations if citation.verified)
    yield from files_in_messages(turn.messages)


def find_citations(text: str) -> list[Citation]:
    """Return the distinct citations in the prose of `text`, in order; code blocks do not count."""
    citations: dict[Citation, None] = {}
    fence = ""
    """The marks that opened the current block, '' outside of one."""
    for line in text.split("\n"):
        fence, inside = next_fence(fence, line)
        if not inside:
            citations |= {citation: None for citation, as_code in _of_line(line) if not as_code}
    return list(citations)


def _of_line(line: str) -> list[tuple[Citation, bool]]:
    """Return the citations of a line of prose, and whether each is written as code.

    Code that looks like a citation may be something else: `localhost:8080`.
    """
    without_code = CODE_SPAN.sub(lambda code: " " * len(code[0]), line)
    matches = [(match.start(), match.groups(), False) for match in CITATION.finditer(without_code)]
    for code in CODE_SPAN.finditer(line):
        if match := CODE_LOCATION.fullmatch(code[2].strip()):
            matches += [(code.start(), match.groups(), True)]
    return [
        (Citation(path, int(first), int(last or first)), as_code)
        for _, (path, first, last), as_code in sorted(matches)
    ]


def verify(cited: Citation, code: CitedCode) -> Citation:
    """Return `cited` with the result of checking it against `code`."""
    path, start, end = cited.path, cited.start, cited.end
    lines, problem = code.lines(path), ""
    count = len(lines or ())
    if not 1 <= start <= end:
        problem = "these line numbers are not possible"
    elif any(chunk.holds(path, start, end) for chunk in code.chunks):
        pass  # it was right when it was written, even if the file has changed since
    elif not code.is_indexed(path):
        problem = "no indexed file has this path"
    elif lines is not None and start > count:
        problem = f"the file has only {counted(count, 'line')}"
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
    """Checks the citations of an answer line by line, while it is written."""

    def __init__(self, code: CitedCode) -> None:
        self.checked: dict[Citation, Citation] = {}
        """Each citation as it was found → the same with its verdict."""
        self._code = code
        self._line, self._fence = "", ""

    def feed(self, text: str) -> list[Citation]:
        """Return the new citations in the lines that `text` completes, checked."""
        new_citations: list[Citation] = []
        *lines, rest = text.split("\n")
        for line in lines:
            new_citations += self._check(self._line + line)
            self._line = ""
        self._line += rest
        return new_citations

    def _check(self, line: str) -> Iterator[Citation]:
        self._fence, inside = next_fence(self._fence, line)
        if inside:
            return
        for citation, as_code in _of_line(line):
            is_missing = not as_code and self._code.is_missing(citation.path)
            is_citation = is_missing or self._code.is_indexed(citation.path)
            if is_citation and citation not in self.checked:
                self.checked[citation] = verify(citation, self._code)
                yield self.checked[citation]


def verify_all(text: str, code: CitedCode) -> list[Citation]:
    """Return all citations of `text`, checked by a `CitationChecker`."""
    checker = CitationChecker(code)
    checker.feed(f"{text}\n")
    return list(checker.checked.values())


def next_fence(fence: str, line: str) -> tuple[str, bool]:
    """Return the marks of the code block that goes on after `line`, and whether `line` is in one.

    `fence` are the marks of the block that goes on before `line`; '' stands for no block.
    """
    mark = FENCE.match(line)
    if mark and not fence:
        return mark[1], True
    if mark and mark[1].startswith(fence) and not mark[2].strip():
        return "", True
    return fence, bool(fence)


# Models cite in many forms; while the answer arrives, all become `[path:12-34]`.
#
# The model is asked for that form, or for numbers or Ids of chunks, but also writes forms that it
# has seen elsewhere: `app.py:12`, `app.py#L3-L9`, `[f.py:L1-L2, g.py:3-4]`, `[1]`,
# `【F:a.py†L1-L2】`, `(a.py, lines 1-2)` and links `[name](a.py#L1-L2)`. Users do not know what
# `[Chunk 2]` is, and in the next turn it means another chunk.

MOST_HELD = 300
"""Most characters that are held back until a citation is complete, such as a link."""

_NUMBERS = (
    r"chunks?[ #]{0,2}\d{1,3}(?!\w)(?:(?:, ?| and | & )#?\d{1,3}(?!\w)){0,8}|ctx_[0-9a-f]{8}(?!\w)"
)
"""Numbers or Ids of chunks in prose: "Chunks 2 and 3 show it"."""
_LINE = r"L?(\d{1,7})(?:[:C]\d{1,5})?"
"""A line, maybe with a column, which is left out: `16`, `L16`, `16:5`, `L16C5`."""
_LINES = rf"{_LINE}(?:\s?[-–—]\s?{_LINE})?"
_SQUARE = rf"\[((?:[^\[\]\n`]|\[[^\[\]\n`]*\]){{1,{MOST_HELD}}})\]"  # [app/[id]/page.tsx:1-2]
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
SHOWN_THEN = "[code shown then]"
_CHUNK = re.compile(r"(?:chunks?[ #]*|#)?(\d{1,3})|(?:id: ?)?(ctx_[0-9a-f]{8})", re.IGNORECASE)
_PLACE = re.compile(rf"(.+?)[:#]\s?{_LINES}", re.IGNORECASE)
_RANGE = re.compile(rf"(?:lines?\s+)?{_LINES}", re.IGNORECASE)
_IN_WORDS = re.compile(r",?\s+lines?\s+(?=\d)", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_CLOSED = re.compile(rf"{CODE_SPAN.pattern}|{_SQUARE}|\([^()]*\)|【[^【】\n]*】")
_OPENS = re.compile(r"[\[(`【]|(?<!\w)chunks?(?:[ #\d,&]|\band\b)*\S*$", re.IGNORECASE)


def without_numbers(answer: str) -> str:
    """Return the answer of an earlier turn without numbers of chunks: they mean others now."""
    lines, fence = [], ""
    for line in answer.split("\n"):
        fence, inside = next_fence(fence, line)
        if not inside:
            line = _NUMBERED.sub(lambda match: match[0] if match[1] else SHOWN_THEN, line)
        lines.append(line)
    return "\n".join(lines)


class CitationWriter:
    """Rewrites the citations of an answer that arrives in pieces.

    Text that may still become a citation is held back, so the pieces make no difference. What is
    not certainly a citation stays as it is.
    """

    def __init__(self, chunks: Sequence[Chunk], code: CitedCode) -> None:
        self._code = code
        self._chunks: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            citation = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
            if find_citations(citation):  # some paths contain characters that would end it early
                self._chunks[str(number)] = self._chunks[chunk.id] = citation
        self._line = ""
        """The line that is being written, as the model wrote it."""
        self._decided = 0
        """Number of its characters that have been returned."""
        self._fence = ""

    def feed(self, text: str) -> str:
        """Return the next part of the rewritten answer, as far as it is certain after `text`."""
        parts = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line += line
            parts += [self.close(), "\n"]
            self._fence, _ = next_fence(self._fence, self._line)
            self._line, self._decided = "", 0
        self._line += rest
        parts.append(self._decide(self._decided + _decidable(self._line[self._decided :])))
        return "".join(parts)

    def close(self) -> str:
        """Return the text held back, at the end of the answer or of a line."""
        return self._decide(len(self._line))

    def _decide(self, end: int) -> str:
        """Return the line from the end of the last call to `end`, rewritten."""
        text, position = "", self._decided
        if not next_fence(self._fence, self._line)[1]:
            for match in _SHAPES.finditer(self._line, position, end):
                text += self._line[position : match.start()] + (self._cited(match) or match[0])
                position = match.end()
        text += self._line[position:end]
        self._decided = end
        return text

    def _cited(self, match: re.Match[str]) -> str:
        """Return the citations that `match` stands for; '' if it is none."""
        _, code, label, address, square, round_, prose, marked, *lines = match.groups()
        if code is not None:
            location = _PLACE.fullmatch(code.strip())
            return self._cite(*location.groups()) if location else ""
        if label:
            return "" if match[0].startswith("!") else self._linked(label, unquote(address))
        if marked:
            return self._cite(marked, *lines[:2])
        if path := match["path"]:
            return self._cite(path, *lines[3:])
        listed = ", ".join(dict.fromkeys(self._listed(square or round_ or prose)))
        return f"({listed})" if round_ and listed else listed

    def _linked(self, label: str, address: str) -> str:
        """Return a link into the repository as its label and a citation.

        A label that only names the span is left out.
        """
        location = _PLACE.fullmatch(address)
        citation = self._cite(*location.groups()) if location else ""
        text = label.strip("` ")
        label_location = _PLACE.fullmatch(text)
        name = self._code.tables.plain_path(label_location[1] if label_location else text)
        is_span = _RANGE.fullmatch(text) or f"/{name}:" in f"/{citation}".replace("[", "/")
        return f"{label} {citation}" if citation and not is_span else citation

    def _listed(self, inner: str) -> list[str]:
        """Return the citations in brackets; [] unless each part is one."""
        citations, path = [], ""
        for part in _APART.split(_IN_WORDS.sub(":", inner)):
            citation, lines = "", _RANGE.fullmatch(part) if path else None
            if lines:
                citation = self._cite(path, *lines.groups())
            elif chunk := _CHUNK.fullmatch(part):
                citation = self._chunks.get((chunk[1] or chunk[2]).lower(), "")
            elif location := _PLACE.fullmatch(part):
                path = location[1]
                citation = self._cite(*location.groups())
            if not citation:
                return []
            citations.append(citation)
        return citations

    def _cite(self, written: str, first: str, last: str | None = None) -> str:
        """Return `[path:first-last]`; '' if `written` is the path of no file."""
        path = self._code.path_of(written)
        return f"[{path}:{first}{f'-{last}' if last else ''}]" if path else ""


def _decidable(waiting: str) -> int:
    """Return how many characters of `waiting` nothing that follows can change.

    That is the text before its last word, or before an open bracket or open code.
    """
    near = max(0, len(waiting) - MOST_HELD)
    bare = _CLOSED.sub(lambda closed: "x" * len(closed[0]), waiting)
    opened = _OPENS.search(bare, near)
    end = opened.start() if opened else len(bare)
    end = max(bare.rfind(" ", 0, end), bare.rfind("\t", 0, end)) + 1
    return end if end >= near else len(waiting)
