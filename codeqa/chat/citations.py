"""Citations `[path:12-34]` in an answer: found, checked, and handed to the surfaces.

Models also write a place as code, `path:12-34`. That is a citation when such a file is
indexed, and any code (`localhost:8080`) when there is none.

The model is asked to refer to chunks by number or Id, but to a reader `[Chunk 2]`, `(Chunk 2)` or
`[ctx_3f9a01bc]` says nothing. They become citations of their lines while the answer arrives: those
can be followed, and mean the same in a later turn, whose block numbers other chunks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from codeqa.text.citation_format import CITATION, CODE_LOCATION, ShownLines
from codeqa.types import Chunk

LONGEST_NAME = 80
"""Characters in brackets that may wait for their end: five chunks by Id."""

_ONE = r"(?:chunks?[ #]*\d{1,3}|(?:id: ?)?ctx_[0-9a-f]{8})"
_MORE = rf"(?: ?(?:[,;&/]|\band\b) ?(?:{_ONE}|#?\d{{1,3}}))*"
_NAMES = re.compile(rf"\[({_ONE}{_MORE})\]|\(({_ONE}{_MORE})\)", re.IGNORECASE)
_NAME = re.compile(r"ctx_[0-9a-f]{8}|\d+", re.IGNORECASE)
_BEGINNINGS = ("chunk", "ctx_", "id:")
_GOES_ON = re.compile(r"[\w ,;&/#:]*")
"""What may follow a bracket as long as it may still become names."""

_FENCE = re.compile(r"[> ]*(`{3,}|~{3,})([^`]*)$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation found in a text, with what checking it gave."""

    path: str
    start: int
    end: int
    name: str = ""
    verified: bool = False
    exists: bool = False
    """The file has these lines, whether or not they were shown."""
    problem: str = ""


def find_citations(text: str) -> list[Citation]:
    """Distinct citations in the prose of `text`, in order; code is no prose."""
    lines = (_CODE_SPAN.sub(" ", line) for line in _prose_lines(text))
    return _citations(place for line in lines for place in CITATION.findall(line))


def _code_locations(text: str) -> list[Citation]:
    """Distinct code spans in the prose of `text` that have the form of a place, in order."""
    spans = (span[0] for line in _prose_lines(text) for span in _CODE_SPAN.finditer(line))
    matches = (CODE_LOCATION.fullmatch(span.strip("`").strip()) for span in spans)
    return _citations(match.groups() for match in matches if match)


def _citations(places: Iterable[Sequence[str]]) -> list[Citation]:
    """Path, first and last line as citations, each once."""
    made = (Citation(path, int(start), int(end or start)) for path, start, end in places)
    return list(dict.fromkeys(made))


def verify(
    citation: Citation, spans: Sequence[ShownLines], line_count: Callable[[str], int | None]
) -> Citation:
    """`citation` with the verdict: inside a span that was shown, and the file has the lines.

    `line_count` gives the lines of an indexed file as it is now, None when there is none.
    """
    start, end = citation.start, citation.end
    lines = line_count(citation.path)
    exists = lines is not None and 1 <= start <= end <= lines
    inside = [s for s in spans if s.path == citation.path and s.start <= start and end <= s.end]
    if exists and inside:
        name = min(inside, key=lambda span: span.end - span.start).name
        return replace(citation, name=name, verified=True, exists=True)
    if exists:
        problem = "these lines were not part of what was retrieved"
    elif not 1 <= start <= end:
        problem = "these are no lines"
    elif lines is None:
        problem = "no indexed file has this path"
    else:
        problem = f"the file now has {lines} lines"
    return replace(citation, exists=exists, problem=problem)


def verify_all(
    text: str, spans: Iterable[ShownLines], line_count: Callable[[str], int | None]
) -> list[Citation]:
    """Every citation of `text`, checked; each file is counted once."""
    known, count = list(spans), cache(line_count)
    places = (place for place in _code_locations(text) if count(place.path) is not None)
    found = dict.fromkeys([*find_citations(text), *places])
    return [verify(citation, known, count) for citation in found]


def _prose_lines(text: str) -> Iterator[str]:
    """Lines outside fenced blocks."""
    fence = ""
    """The run of marks that opened the block, '' outside of one."""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence:
            yield line


class ChunkNames:
    """The names of `chunks`, the block's in its order, in an answer that comes in pieces.

    Names of chunks that are not in the block stay as they are.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._places: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            place = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
            if find_citations(place):  # a path may hold what would end it early
                self._places[str(number)] = self._places[chunk.id] = place
        self._held = ""

    def feed(self, text: str) -> str:
        """The answer as far as it can be told after `text`; a name that has begun waits."""
        text = self._held + text
        end = _begin_of_name(text)
        self._held = text[end:]
        return _NAMES.sub(self._cited, text[:end])

    def close(self) -> str:
        """What still waited when the answer ends."""
        rest, self._held = self._held, ""
        return rest

    def _cited(self, match: re.Match[str]) -> str:
        names = _NAME.findall(match[1] or match[2])
        places = [self._places.get(name.lower(), "") for name in names]
        if not all(places) or len(match[0]) > LONGEST_NAME:
            return match[0]
        listed = ", ".join(dict.fromkeys(places))
        return listed if match[1] else f"({listed})"


def _begin_of_name(text: str) -> int:
    """Where in `text` a name begins that what follows may complete; its length for nowhere."""
    at = max(text.rfind("["), text.rfind("("))
    begun = text[at + 1 :].lower()
    named = any(begun.startswith(one) or one.startswith(begun) for one in _BEGINNINGS)
    waits = at >= 0 and len(begun) < LONGEST_NAME and named and _GOES_ON.fullmatch(begun)
    return at if waits else len(text)
