"""Citations `[path:12-34]` in an answer: found, checked, and handed to the surfaces.

A citation is right when the file has the lines, they were sent, they are as they were sent, and
they speak of what stands before it: "`Flask.__call__` [app.py:779-809]" looks right, and is wrong
where these lines are another function's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from codeqa.errors import CodeQAError
from codeqa.repositories.files import Files
from codeqa.search.mentions import definitions_called
from codeqa.store import Tables
from codeqa.text.citation_format import CITATION, CODE_LOCATION
from codeqa.types import Chunk, Unit

FENCE = re.compile(r"[> ]*(`{3,}|~{3,})([^`]*)$")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*(?:\([^()`]*\))?!?")
"""What is called by its name, as in `Flask.route()`."""
VALUES = frozenset(
    {"none", "true", "false", "null", "nil", "undefined", "self", "this", "cls", "super"}
    | {"int", "str", "bool", "float", "list", "dict", "set"}
)
"""Written as code in any sentence; they name nothing of the repository."""
_SENTENCE_ENDS = re.compile(r"[.!?;]\s+(?=[A-Z`*(\[])|\s[-–—]\s|^\s*(?:[-*+]|\d+[.)])\s")
LONG = 2_000
"""Characters of a line beyond which it is not read anew for each citation."""
UNSENT = "these lines were not part of what was retrieved"


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation found in a text, with what checking it gave."""

    path: str
    start: int
    end: int
    verified: bool = False
    exists: bool = False
    """The file has these lines, whether or not they were shown."""
    problem: str = ""
    changed: bool = False
    """It was right, and these lines are not what was sent any more; looked at when shown again."""


@dataclass(frozen=True)
class CitedCode:
    """Looks paths, lines and symbols up for one answer; each file is read once."""

    files: Files
    tables: Tables
    chunks: Sequence[Chunk] = ()
    """What was sent."""
    _read: dict[str, list[str] | None] = field(default_factory=dict)
    _found: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _sent(self) -> list[str]:
        return list(dict.fromkeys(chunk.path for chunk in self.chunks))

    def path_of(self, written: str) -> str:
        """The one indexed file that `written`, a path or the end of one, means; '' for none.

        What was sent goes before the rest of the repository.
        """
        if written not in self._found:
            self._found[written] = self._path_of(written.removeprefix("./").lstrip("/"))
        return self._found[written]

    def _path_of(self, written: str) -> str:
        catalogue = self.tables.catalogue()
        if written in catalogue.paths or not written:
            return written
        for known in (self._sent, catalogue.by_file_name.get(written.rpartition("/")[2], ())):
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

    def speaks_of(self, path: str, start: int, end: int, symbols: Sequence[str]) -> bool:
        """Whether one of `symbols` stands in these lines, or is the definition around them."""
        lines = self.lines(path) or []
        text = "\n".join(lines[start - 1 : end])
        last = {re.split(r"\W+", symbol)[-1] for symbol in symbols} - {""}
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in last):
            return True
        around = (
            part
            for unit in self.tables.in_file(path)
            if unit.start_line <= end and start <= unit.end_line
            for part in re.split(r"\W+", unit.qualified_name)
        )
        return not last.isdisjoint(around)

    def definition(self, symbol: str) -> Unit | None:
        """The one definition that `symbol` names, with its owners where they are written; None
        where there is none, or several."""
        called = definitions_called(self.tables, symbol)
        return called[0] if len(called) == 1 else None


def find_citations(text: str) -> list[Citation]:
    """Distinct citations in the prose of `text`, in order; code is no prose."""
    found = (
        one for line in _prose_lines(text) for one, _, as_code in _of_line(line) if not as_code
    )
    return list(dict.fromkeys(found))


def _of_line(line: str) -> Iterator[tuple[Citation, tuple[str, ...], bool]]:
    """Each citation of a line of prose, the symbols before it in its sentence, and whether it is
    written as code, which may be something else: `localhost:8080`."""
    places = []
    bare = CODE_SPAN.sub(lambda span: " " * len(span[0]), line)
    for span in CODE_SPAN.finditer(line):
        start = span.start()
        if match := CODE_LOCATION.fullmatch(span[2].strip()):
            places.append((start, match.groups(), True))
    places += [(match.start(), match.groups(), False) for match in CITATION.finditer(bare)]
    before = 0
    for at, (path, first, last), as_code in sorted(places):
        cited = Citation(path, int(first), int(last or first))
        yield cited, symbols_before(line[max(before, at - LONG) : at]), as_code
        before = before if as_code else at


def symbols_before(said: str) -> tuple[str, ...]:
    """The symbols that the last sentence of `said` names as code, since its last citation."""
    ends = [match.end() for match in _SENTENCE_ENDS.finditer(said)]
    cited = [match.end() for match in CITATION.finditer(said)]
    said = said[max([0, *ends, *cited]) :]
    names = (span[2].strip() for span in CODE_SPAN.finditer(said))
    return tuple(
        re.sub(r"\(.*|!$", "", name)
        for name in names
        if SYMBOL.fullmatch(name) and name.lower() not in VALUES and len(name) > 1
    )


def verify(citation: Citation, symbols: Sequence[str], spans: Sequence[Citation], code: CitedCode
           ) -> Citation:  # fmt: skip
    """`citation` with the verdict: the file has the lines, they speak of one of `symbols`, and lie
    in one of `spans`, which were shown."""
    path, start, end = citation.path, citation.start, citation.end
    lines = code.lines(path)
    exists = lines is not None and 1 <= start <= end <= len(lines)
    if not exists:
        if not 1 <= start <= end:
            problem = "these are no lines"
        elif lines is None:
            problem = "no indexed file has this path"
        else:
            problem = f"the file now has {len(lines)} lines"
        return replace(citation, problem=problem)
    named = [symbol for symbol in symbols if not code.path_of(symbol)]
    if named and not code.speaks_of(path, start, end, named):
        return replace(citation, problem=f"`{named[-1]}` does not stand in these lines")
    if not any(s.path == path and s.start <= start and end <= s.end for s in spans):
        return replace(citation, exists=True, problem=UNSENT)
    if code.has_changed(path, start, end):
        return replace(citation, exists=True, problem="the file has changed since it was read")
    return replace(citation, verified=True, exists=True)


class CitationChecker:
    """Checks the citations of an answer while it is written. `spans` are the lines that were shown,
    `found` is every citation once; where it stands twice, what is wrong is told."""

    def __init__(self, spans: Iterable[Citation], code: CitedCode) -> None:
        self.found: dict[tuple[str, int, int], Citation] = {}
        self._spans, self._code = list(spans), code
        self._line, self._fence = "", ""
        self._looked = 0
        """Citations of the line in progress that have been checked."""
        self._due = 0
        """Length of that line from which on it is read again."""

    def feed(self, text: str) -> list[Citation]:
        """Those that `text` completes, and those of which it makes something else known."""
        told: list[Citation] = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line, self._looked = self._line + line, 0
            told += self._check()
            self._fence, _ = next_fence(self._fence, self._line)
            self._line, self._looked, self._due = "", 0, 0
        self._line += rest
        if ("]" in rest or "`" in rest) and len(self._line) >= self._due:
            told += self._check()
            if len(self._line) > LONG:  # a model that repeats itself may never end it
                self._due = len(self._line) * 5 // 4
        return told

    def _check(self) -> list[Citation]:
        """What is new in the line so far."""
        told: list[Citation] = []
        if next_fence(self._fence, self._line)[1]:
            return told
        for citation, symbols, as_code in islice(_of_line(self._line), self._looked, None):
            self._looked += 1
            if as_code and self._code.lines(citation.path) is None:
                continue
            checked = verify(citation, symbols, self._spans, self._code)
            before = self.found.get(key := (citation.path, citation.start, citation.end))
            if before is None or (before.verified and not checked.verified):
                self.found[key] = checked
                told.append(checked)
        return told


def verify_all(text: str, spans: Iterable[Citation], code: CitedCode) -> list[Citation]:
    """Every citation of `text`, as `CitationChecker` finds them."""
    checker = CitationChecker(spans, code)
    checker.feed(f"{text}\n")
    return list(checker.found.values())


def _prose_lines(text: str) -> Iterator[str]:
    """Lines outside fenced blocks."""
    fence = ""
    """The run of marks that opened the block, '' outside of one."""
    for line in text.split("\n"):
        fence, inside = next_fence(fence, line)
        if not inside:
            yield line


def next_fence(fence: str, line: str) -> tuple[str, bool]:
    """The run of marks that the block around the next line was opened by, '' for none, and whether
    `line` itself belongs to a block."""
    mark = FENCE.match(line)
    if mark and not fence:
        return mark[1], True
    if mark and mark[1].startswith(fence) and not mark[2].strip():
        return "", True
    return fence, bool(fence)
