"""Citations `[path:12-34]` in an answer: found, checked, and handed to the surfaces.

Models also write a place as code, `path:12-34`. That is a citation when such a file is
indexed, and any code (`localhost:8080`) when there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from codeqa.text.citation_format import CITATION, CODE_LOCATION, ShownLines

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

    def as_dict(self) -> dict[str, Any]:
        """The form in which the last event carries it."""
        return asdict(self)


def find_places(text: str) -> list[Citation]:
    """Distinct code spans in the prose of `text` that have the form of a place, in order."""
    found: dict[Citation, None] = {}
    for line in _prose_lines(text):
        for span in _CODE_SPAN.finditer(line):
            if place := CODE_LOCATION.fullmatch(span[0].strip("`").strip()):
                path, start, end = place.groups()
                found[Citation(path, int(start), int(end or start))] = None
    return list(found)


def find_citations(text: str) -> list[Citation]:
    """Distinct citations in the prose of `text`, in order; code is no prose."""
    found: dict[Citation, None] = {}
    for line in _prose_lines(text):
        for path, start, end in CITATION.findall(_CODE_SPAN.sub(" ", line)):
            found[Citation(path, int(start), int(end or start))] = None
    return list(found)


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
    places = (place for place in find_places(text) if count(place.path) is not None)
    found = dict.fromkeys([*find_citations(text), *places])
    return [verify(citation, known, count) for citation in found]


def fence_after(line: str, fence: str) -> str:
    """The run of marks that opened the fenced block which `line` leaves open, '' for none.

    `fence` is what was open before the line.
    """
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    closed = found[1].startswith(fence) and not found[2].strip()
    return "" if closed else fence


def _prose_lines(text: str) -> Iterator[str]:
    """Lines outside fenced blocks."""
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if not before and not fence:
            yield line
