"""Citations `[path:12-34]` in an answer: found, checked, and handed to the surfaces.

A citation is right when the file has the lines, they were sent, they are as they were sent, and
they show what its sentence names: "`Flask.__call__` [app.py:779-809]" looks right, and is wrong
where these lines are another function's; `claims` has the rule. While the answer is written, a
wrong one is moved to the one place that shows it; where there is none it is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from codeqa.chat.claims import CODE_SPAN, Shown
from codeqa.chat.values import Citation
from codeqa.code.tools import Toolbox
from codeqa.errors import CodeQAError
from codeqa.repositories.files import Files
from codeqa.store import Tables
from codeqa.text.markdown import CITATION, CODE_LOCATION
from codeqa.types import Chunk

FENCE = re.compile(r"[> ]*(`{3,}|~{3,})([^`]*)$")
LONG = 2_000
"""Characters before a citation that are read for what it is about."""
NOTHING_MOVED: Mapping[tuple[str, int, int], str] = {}
UNSENT = "these lines were not part of what was retrieved"


@dataclass(frozen=True)
class CitedCode:
    """Looks paths, lines and symbols up for one answer; each file is read once."""

    files: Files
    tables: Tables
    chunks: Sequence[Chunk] = ()
    """What was sent."""
    _read: dict[str, list[str] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, toolbox: Toolbox, chunks: Sequence[Chunk]) -> CitedCode:
        """Raises IndexMissingError and the like."""
        return cls(toolbox.files, toolbox.tables(), chunks)

    def path_of(self, written: str) -> str:
        """The one indexed file that `written`, a path or the end of one, means; '' for none.

        What was sent goes before the rest of the repository.
        """
        written, catalogue = written.removeprefix("./").lstrip("/"), self.tables.catalogue()
        if written in catalogue.paths or not written:
            return written
        sent = dict.fromkeys(chunk.path for chunk in self.chunks)
        for known in (sent, catalogue.by_file_name.get(written.rpartition("/")[2], ())):
            ending = [path for path in known if path.endswith("/" + written)]
            if ending:
                return ending[0] if len(ending) == 1 else ""
        return ""

    def lines(self, path: str) -> list[str] | None:
        """The lines of `path` as they are now; None when it is no readable indexed file."""
        if path not in self._read:
            try:
                text = self.files.read(path).text
            except CodeQAError:  # one file that cannot be read must not cost the whole answer
                self._read[path] = None
            else:
                self._read[path] = text.removesuffix("\n").split("\n")
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

    @cached_property
    def shown(self) -> Shown:
        return Shown(self.lines, self.tables, self.chunks)


def find_citations(text: str) -> list[Citation]:
    """Distinct citations in the prose of `text`, in order; code is no prose."""
    found: dict[Citation, None] = {}
    fence = ""
    """The run of marks that opened the block, '' outside of one."""
    for line in text.split("\n"):
        fence, inside = next_fence(fence, line)
        if not inside:
            found |= {one: None for one, _, as_code in _of_line(line) if not as_code}
    return list(found)


def _of_line(line: str) -> Iterator[tuple[Citation, str, bool]]:
    """Each citation of a line of prose, what stands before it, and whether it is written as code,
    which may be something else: `localhost:8080`."""
    places = []
    bare = CODE_SPAN.sub(lambda span: " " * len(span[0]), line)
    for span in CODE_SPAN.finditer(line):
        start = span.start()
        if match := CODE_LOCATION.fullmatch(span[2].strip()):
            places.append((start, match.groups(), True))
    places += [(match.start(), match.groups(), False) for match in CITATION.finditer(bare)]
    for at, (path, first, last), as_code in sorted(places):
        cited = Citation(path, int(first), int(last or first))
        yield cited, line[max(0, at - LONG) : at], as_code


def verify(citation: Citation, said: str, spans: Sequence[Citation], code: CitedCode) -> Citation:
    """`citation` with the verdict: the file has the lines, they show what `said` before them names,
    and lie in one of `spans`, which were shown."""
    path, start, end = citation.path, citation.start, citation.end
    lines = code.lines(path)
    problem, exists = "", False
    if not 1 <= start <= end:
        problem = "these are no lines"
    elif lines is None:
        problem = "no indexed file has this path"
    elif end > len(lines):
        problem = f"the file now has {len(lines)} lines"
    elif wrong := code.shown.better(citation, said)[0]:
        problem = wrong
    else:
        exists = True
        if not any(s.path == path and s.start <= start and end <= s.end for s in spans):
            problem = UNSENT
        elif code.has_changed(path, start, end):
            problem = "the file has changed since it was read"
    return replace(citation, verified=not problem, exists=exists, problem=problem)


class CitationChecker:
    """Checks the citations of an answer while it is written, line by line. `spans` are the lines
    that were shown, `moved` is what the model wrote for those that were moved, `found` is every
    citation once; where it stands twice, what is wrong is told.
    """

    def __init__(
        self,
        spans: Iterable[Citation],
        code: CitedCode,
        moved: Mapping[tuple[str, int, int], str] = NOTHING_MOVED,
    ) -> None:
        self.found: dict[tuple[str, int, int], Citation] = {}
        self._spans, self._code, self._moved = list(spans), code, moved
        self._line, self._fence = "", ""

    def feed(self, text: str) -> list[Citation]:
        """Those in the lines that `text` ends, if they are new or what is known of them is."""
        told: list[Citation] = []
        *lines, rest = text.split("\n")
        for line in lines:
            told += self._check(self._line + line)
            self._line = ""
        self._line += rest
        return told

    def _check(self, line: str) -> Iterator[Citation]:
        self._fence, inside = next_fence(self._fence, line)
        for citation, said, as_code in () if inside else _of_line(line):
            if as_code and self._code.lines(citation.path) is None:
                continue
            key = (citation.path, citation.start, citation.end)
            citation = replace(citation, moved=self._moved.get(key, ""))
            checked = verify(citation, said, self._spans, self._code)
            before = self.found.get(key)
            if before is None or (before.verified and not checked.verified):
                self.found[key] = checked
                yield checked


def verify_all(
    text: str,
    spans: Iterable[Citation],
    code: CitedCode,
    moved: Mapping[tuple[str, int, int], str] = NOTHING_MOVED,
) -> list[Citation]:
    """Every citation of `text`, as `CitationChecker` finds them."""
    checker = CitationChecker(spans, code, moved)
    checker.feed(f"{text}\n")
    return list(checker.found.values())


def next_fence(fence: str, line: str) -> tuple[str, bool]:
    """The run of marks that the block around the next line was opened by, '' for none, and whether
    `line` itself belongs to a block."""
    mark = FENCE.match(line)
    if mark and not fence:
        return mark[1], True
    if mark and mark[1].startswith(fence) and not mark[2].strip():
        return "", True
    return fence, bool(fence)


# The shapes in which models cite, made one while the answer arrives: `[path:12-34]`.
#
# The model is asked for that form and for the numbers or Ids of chunks, and writes what it has seen
# elsewhere as well: `app.py:12`, `app.py#L3-L9`, `[f.py:L1-L2, g.py:3-4]`, `[1]`.
# To a reader `[Chunk 2]` says nothing, and it means another chunk in the next turn. A citation
# whose lines do not speak of the symbol before it is led to that symbol's definition.

LONGEST = 200
"""Characters that may wait for the end of what has begun: five chunks by Id."""

_NUMBERS = (
    r"chunks?[ #]{0,2}\d{1,3}(?!\w)(?:(?:, ?| and | & )#?\d{1,3}(?!\w)){0,8}|ctx_[0-9a-f]{8}(?!\w)"
)
"""Chunks by number or Id, as prose has them: "Chunks 2 and 3 show it"."""
_LINES = r"[:#]\s?L?(\d{1,7})(?:\s?[-–—]\s?L?(\d{1,7}))?"
_SQUARE = rf"\[((?:[^\[\]\n`]|\[[^\[\]\n`]*\]){{1,{LONGEST}}})\]"  # [app/[id]/page.tsx:1-2]
_SHAPES = re.compile(
    rf"{CODE_SPAN.pattern}|(?<![\w\])]){_SQUARE}(?![(\[])"
    rf"|\(((?:chunks?|ctx_|id: ?ctx_)[^()\n]{{1,80}})\)|(?<![\w\[(])({_NUMBERS})"
    rf"|(?<![\w/.:@`-])(?P<path>[\w.@+/-]*\w\.[A-Za-z]\w{{0,9}}){_LINES}(?![\w:]|\.\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    rf"{CODE_SPAN.pattern}|\[\d{{1,3}}\](?![(\[])|(?<!\w){_NUMBERS}", re.IGNORECASE
)
THEN = "[code shown then]"
_CHUNK = re.compile(r"(?:chunks?[ #]*|#)?(\d{1,3})|(?:id: ?)?(ctx_[0-9a-f]{8})", re.IGNORECASE)
_PLACE = re.compile(rf"(.+?){_LINES}")
_RANGE = re.compile(r"L?(\d{1,7})(?:\s?[-–—]\s?L?(\d{1,7}))?", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_CLOSED = re.compile(rf"{CODE_SPAN.pattern}|{_SQUARE}|\([^()]*\)")
_OPENS = re.compile(r"[\[(`]|(?<!\w)chunks?(?:[ #\d,&]|\band\b)*\S*$", re.IGNORECASE)


def without_numbers(answer: str) -> str:
    """`answer` of an earlier turn without numbers of chunks: now they mean others."""
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
        self._told = 0
        """How much of it has been decided."""
        self._fence = ""
        self._written = ""
        """What was made of the part that has been decided."""
        self.moved: list[Citation] = []
        """Places that took the place of what the model wrote; for the caller to take."""

    def feed(self, text: str) -> str:
        """What can be told of the answer after `text`, beyond what was told before."""
        told = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line += line
            told += [self.close(), "\n"]
            self._fence, _ = next_fence(self._fence, self._line)
            self._line, self._told, self._written = "", 0, ""
        self._line += rest
        told.append(self._decide(self._told + _decidable(self._line[self._told :])))
        return "".join(told)

    def close(self) -> str:
        """What still waited when the answer, or a line of it, ends."""
        return self._decide(len(self._line))

    def _decide(self, end: int) -> str:
        """The line up to `end`, rewritten; only what follows the part that was told before."""
        made, at = "", self._told
        if not next_fence(self._fence, self._line)[1]:
            for match in _SHAPES.finditer(self._line, at, end):
                made += self._line[at : match.start()]
                made += self._cited(match, self._written + made)
                at = match.end()
        made += self._line[at:end]
        self._told = end
        self._written += made
        return made

    def _cited(self, match: re.Match[str], said: str) -> str:
        """The citations that `match` stands for, as `said` before them asks for; else `match`."""
        _, code, square, round_, prose, path, *lines = match.groups()
        if path:
            return self._place(said, path, *lines) or match[0]
        if code:
            one = _PLACE.fullmatch(code.strip())
            return (self._place(said, *one.groups()) if one else "") or match[0]
        listed = ", ".join(dict.fromkeys(self._listed(square or round_ or prose, said)))
        return (f"({listed})" if round_ and listed else listed) or match[0]

    def _listed(self, inner: str, said: str) -> list[str]:
        """The places in brackets; [] unless each part is one."""
        found, path = [], ""
        for part in _APART.split(inner):
            place, lines = "", _RANGE.fullmatch(part) if path else None
            if lines:
                place = self._place(said, path, *lines.groups())
            elif chunk := _CHUNK.fullmatch(part):
                place = self._chunks.get((chunk[1] or chunk[2]).lower(), "")
            elif one := _PLACE.fullmatch(part):
                path = one[1]
                place = self._place(said, *one.groups())
            if not place:
                return []
            found.append(place)
        return found

    def _place(self, said: str, written: str, first: str, last: str | None = None) -> str:
        """`[path:first-last]`, or the definition that `said` names, where these lines have nothing
        to do with it; '' where no file is called like what is `written`."""
        code, path = self._code, self._code.path_of(written.strip())
        if not path:
            return ""
        start, end = int(first), int(last or first)
        _, place = code.shown.better(Citation(path, start, end), said[-LONG:])
        if place:
            self.moved.append(replace(place, moved=f"{path}:{start}-{end}"))
            path, start, end = place.path, place.start, place.end
        lines = f"{start}-{end}" if start != end or (last and not place) else f"{start}"
        return f"[{path}:{lines}]"


def _decidable(waiting: str) -> int:
    """How much of `waiting` is changed by nothing that follows: what stands before its last word,
    or before the word in which brackets or code begin that have not ended."""
    near = max(0, len(waiting) - LONGEST)
    bare = _CLOSED.sub(lambda closed: "x" * len(closed[0]), waiting)
    opened = _OPENS.search(bare, near)
    end = opened.start() if opened else len(bare)
    end = max(bare.rfind(" ", 0, end), bare.rfind("\t", 0, end)) + 1
    return end if end >= near else len(waiting)
