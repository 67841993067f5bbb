"""Find the lines that declare a constant: assignments, macros, members of enums and lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_OPENS = re.compile(r"\b(?:enum|const|var|bitflags!|NS_ENUM|NS_OPTIONS)\b(?!.*;)")
MOST_LINES_ABOVE = 400
"""Lines of a list that are read upwards to the line that begins it."""
LONGEST_LINE = 2_000
"""Characters of a line that are looked at."""


def declaring_pattern(name: str) -> str:
    """Return an expression, also of RE2, for lines that may declare `name`."""
    return rf"{_surely(name)}|{_in_a_list(name)}"


def _surely(name: str) -> str:
    # Up to five words before it (const, export, a type) and an owner; a macro; a key of an object
    # and a member of an enum on one line.
    return (
        rf"(?:^|[{{;])[ \t]*(?:[\w.:<>?\[\]*&-]+[ \t*&]+){{0,5}}(?:[\w$]+\.)*{name}\b"
        rf"[^=(\n;]{{0,80}}=(?:[^=>]|$)"
        rf"|^[ \t]*#[ \t]*define[ \t]+{name}\b|\bdefine\(['\"]{name}['\"]"
        rf"|\{{(?:[^\n]{{0,200}}[ \t,])?{name}:[^:]"
        rf"|\benum\b[^;{{]{{0,200}}\{{(?:[^\n]{{0,200}}[ \t,{{])?{name}[ \t]*(?:[,=({{}};]|$)"
    )


def _in_a_list(name: str) -> str:
    # A member of an enum or of constants, perhaps with others before it.
    return (
        rf"^[ \t]*(?:case[ \t]+)?(?:\w[^\n]{{0,200}},[ \t]*)?{name}[ \t]*"
        rf"(?:[=:,;({{]|//|/\*|\r?$)"
    )


def declaring_lines(lines: Sequence[str], name: str) -> Iterator[int]:
    """Yield the numbers of the `lines` that declare the constant `name`."""
    if not name.isidentifier():
        return
    sure, may = re.compile(_surely(name)), re.compile(_in_a_list(name))
    for number, whole_line in enumerate(lines, 1):
        line = whole_line[:LONGEST_LINE]
        if name not in line:
            continue
        if sure.search(line) or (may.match(line) and _OPENS.search(_opening(lines, number))):
            yield number


def _opening(lines: Sequence[str], number: int) -> str:
    """Return the nearest line above line `number` that is less indented, "" for none."""
    indent = indent_of(lines[number - 1])
    for line in reversed(lines[max(0, number - 1 - MOST_LINES_ABOVE) : number - 1]):
        if line.strip() not in ("", "{") and indent_of(line) < indent:
            return line
    return ""


def indent_of(line: str) -> int:
    """Return how many blanks `line` begins with."""
    return len(line) - len(line.lstrip())
