"""Tools that read: literal text, and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from codeqa.code.tools.search import Pattern, constants
from codeqa.code.tools.tool import (
    LONGEST_LINE,
    Place,
    Toolbox,
    ToolResult,
    by_file,
    fitting,
    joined_results,
    list_result,
    numbered,
)
from codeqa.code.usages import language_name
from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.search.channels import near_path
from codeqa.search.mentions import resolve_mentions, smallest_around
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.types import Unit, encloses

FIRST_LINES = 150
"""Lines of a file that is opened whole; of a longer one its outline comes first."""
MOST_LINES = 400
"""Lines of a file that are opened at once."""
MOST_MATCHES = 100
LONGEST_OUTLINE = 140
"""Characters of one line of an outline."""
_PLACE = re.compile(r"(.+?)(?::([0-9]{1,9}(?:-[0-9]{1,9})?))?")
Lines = Annotated[
    str, Field(pattern=r"^([0-9]{1,9}(-[0-9]{1,9})?)?$", description="Such as 120-180, or 120.")
]


def grep(
    box: Toolbox,
    pattern: Annotated[str, Field(min_length=1, description="The text, or expression.")],
    path: Pattern = "",
    regex: Annotated[bool, Field(description="Read as a regular expression (RE2).")] = False,
) -> ToolResult:
    """Every line that holds a text or matches a regular expression, counted, each with the
    function or class around it. For messages, settings and literal text."""
    found = box.files.find_lines(pattern, box.files_in(path), regex=regex)
    places: list[Place] = []
    parts: list[tuple[str, str]] = []
    for file, lines in found.lines.items():
        wanted = lines[: MOST_MATCHES - len(places)]
        units = box.tables().in_file(file) if wanted else []
        defined = [unit for unit in units if unit.is_definition]
        before = None
        for n, line in wanted:
            around = smallest_around(defined, n)
            name = around.qualified_name if around else ""
            where = f" [{name} {around.start_line}-{around.end_line}]" if around else ""
            parts.append((file, f"{n}{where * (around != before)}: {line.strip()[:LONGEST_LINE]}"))
            before = around
            places.append(
                Place(path=file, start_line=n, end_line=n, text=line, name=name,
                      language=language_name(file))
            )  # fmt: skip
    where = f"{len(found.lines):,} of " if found.lines else ""
    summary = f"grep “{pattern}”: {counted(found.total, 'line')} in {where}{found.searched}"
    hint = "Narrow it with `path` or a longer pattern."
    left = found.total - len(parts)
    return list_result(summary, by_file(parts), hint, left=left, told=places)


def open_file(
    box: Toolbox,
    path: Annotated[
        str,
        Field(
            description="A file; its name or the end of its path is enough. Several places at "
            "once: src/a.py:10-40, src/b.py:7."
        ),
    ],
    lines: Lines = "",
) -> ToolResult:
    """Lines of files as they are now, at most 400 of each. Without lines a short file comes whole,
    of a long one what it defines and where."""
    found = [one for one in map(_PLACE.fullmatch, map(str.strip, path.split(","))) if one]
    if found and path not in box.tables().catalogue().paths:
        asked = [(one[1], one[2] or lines) for one in found]
        if len(asked) > 1:
            return joined_results([_opened(box, *one) for one in asked])
        path, lines = asked[0]
    file = box.files.read(one_file(box.tables(), path))
    code = file.text.split("\n")
    code = code[:-1] if code[-1:] == [""] else code
    if not lines and len(code) > FIRST_LINES and (told := _outline(box.tables(), file.path, code)):
        return told
    first, last = line_span(lines or f"1-{FIRST_LINES}", len(code))
    shown = code[first - 1 : last]
    parts = numbered(shown, first)
    summary = f"read {file.path} {first}-{last} of {counted(len(code), 'line')}"
    if file.changed:
        summary += " (changed since it was indexed)"
    _, fits = fitting(parts)
    place = Place(path=file.path, start_line=first, end_line=first + fits - 1,
                  text="\n".join(shown[:fits]), language=file.language)  # fmt: skip
    hint = f"Ask for lines {first}-… in parts."
    places = (place,) if fits else ()
    return list_result(summary, parts, hint, total=len(code), places=places)


def _opened(box: Toolbox, path: str, lines: str) -> ToolResult:
    """`open_file`, or why that cannot be done."""
    try:
        return open_file(box, path, lines)
    except CodeQAError as error:
        return ToolResult(summary=f"{path}: {error.message}", text=f"{path}: {error}")


def _outline(tables: Tables, path: str, code: Sequence[str]) -> ToolResult | None:
    """What a file defines: constants, classes and functions with lines, signature and the first
    line of documentation; None for one that defines nothing."""
    units = defined_in(tables, path)
    parts = [f"{n:>4} {line[:LONGEST_OUTLINE]}" for n, line in constants(code)]
    for unit in units:
        depth = depth_of(unit)
        signature = " ".join(unit.signature.split()) or unit.qualified_name or unit.kind
        doc = next((line.strip() for line in unit.doc_comment.split("\n") if line.strip()), "")
        about = f"  {doc}" if doc else ""
        lines = f"{unit.start_line:>4}-{unit.end_line}"
        parts.append(f"{lines} {'  ' * depth}{signature}{about}"[:LONGEST_OUTLINE])
    summary = f"outline of {path}, {counted(len(code), 'line')}; open what you need with `lines`"
    places = tuple(map(Place.of, units))
    return list_result(summary, parts, "", total=len(places), places=places) if units else None


def defined_in(tables: Tables, path: str) -> list[Unit]:
    """What a file defines, by line: of what lies in functions nothing, and its sections or other
    parts where it defines nothing."""
    units = sorted(tables.in_file(path), key=lambda one: (one.start_line, -one.end_line))
    defined = [u for u in units if u.is_definition]
    methods = [u for u in units if u.is_method]
    inner = {u.id for u in units for m in methods if m is not u and encloses(m, u)}
    return [u for u in defined if u.id not in inner] or units


def depth_of(unit: Unit) -> int:
    """How many classes it lies in."""
    return len(re.split(r"\.|::", unit.class_name)) if unit.class_name else 0


def one_file(tables: Tables, path: str) -> str:
    """The one indexed file that `path`, its name or its end, means.

    Raises NotFoundError when there is none, UsageError when there are several.
    """
    path = tables.plain_path(path.removeprefix("@"))
    mentions, _ = resolve_mentions(tables, [path])
    files = [file for mention in mentions for file in mention.files]
    if not files:
        hint = near_path(tables, path) or "list_all(files) shows what there is."
        raise NotFoundError(f"No indexed file is called {path!r}.", hint)
    if len(files) > 1 and path not in files:
        named = ", ".join(files[:5])
        raise UsageError(f"Several files are called {path!r}.", f"Give more of the path: {named}.")
    return path if path in files else files[0]


def line_span(lines: str, count: int) -> tuple[int, int]:
    """First and last line that `lines` asks for, of a file that has `count`, at most MOST_LINES.

    Raises NotFoundError where the file has none of them, UsageError where they go backwards.
    """
    start, _, end = lines.partition("-")
    first = int(start or 1)
    last = int(end or start or count)
    if last < first:
        raise UsageError(f"The lines {lines} go backwards.", f"Ask for {last}-{first}.")
    if not 1 <= first <= max(count, 1):
        there = counted(count, "line")
        raise NotFoundError(f"There are no lines {lines}.", f"The file has {there}.")
    return first, min(last, count, first + MOST_LINES - 1)
