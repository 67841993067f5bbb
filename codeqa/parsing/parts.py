"""A part of a document: its lines and the path of headings that leads to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_TITLE = 120
"""Characters of a heading that are kept in names."""

_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `first`..`last` (1-based, inclusive) below `titles`, outermost first."""

    first: int
    last: int
    titles: tuple[str, ...] = ()
    language: str = ""
    """The part's own language, where it differs from the file's."""
    lines: tuple[str, ...] | None = None
    """What the part reads as, where that is not the file's own lines (notebooks)."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: the line that its part begins on, its depth from 1, its text."""

    line: int
    level: int
    title: str


def parts_below(headings: Sequence[Heading], lines: list[str]) -> list[Part]:
    """One part for what stands before the first heading and one from each to the next.

    A heading with nothing below it but a deeper heading joins that heading's part, so that
    no part is a bare title.
    """
    parts: list[Part] = []
    if not headings or headings[0].line > 1:
        parts.append(Part(1, headings[0].line - 1 if headings else len(lines)))
    stack: list[Heading] = []
    begin = 0
    for number, heading in enumerate(headings):
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        begin = begin or heading.line
        following = headings[number + 1] if number + 1 < len(headings) else None
        last = following.line - 1 if following else len(lines)
        if following and following.level > heading.level and _is_bare(lines, heading.line, last):
            continue
        parts.append(Part(begin, last, tuple(entry.title for entry in stack if entry.title)))
        begin = 0
    return parts


def _is_bare(lines: list[str], first: int, last: int) -> bool:
    """Whether the lines hold a title, its adornments and blanks only."""
    written = [line for line in lines[first - 1 : last] if any(map(str.isalnum, line))]
    return len(written) <= 1


def clean_title(text: str) -> str:
    """`text` on one line, at most `MAX_TITLE` characters."""
    return _BLANKS.sub(" ", text).strip()[:MAX_TITLE].rstrip()
