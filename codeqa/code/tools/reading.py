"""The tools that read literal text and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from codeqa.code.names import language_name
from codeqa.code.tools.search import Pattern, constants
from codeqa.code.tools.tool import (
    LONGEST_LINE,
    CodeSpan,
    Toolbox,
    ToolResult,
    by_file,
    fitting,
    joined_results,
    list_result,
    numbered,
)
from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.search.channels import near_path
from codeqa.search.mentions import resolve_mentions, smallest_around
from codeqa.store import PLACE, Tables
from codeqa.text import counted
from codeqa.types import Unit, encloses

FIRST_LINES = 150
"""Lines of a file up to which it is opened whole; of a longer one its outline comes first."""
MOST_LINES = 400
"""Lines of a file that are opened at once."""
MOST_MATCHES = 100
LONGEST_OUTLINE = 140
"""Characters of one line of an outline."""
_LINES = re.compile(
    r"(?:[\[(#\s]|lines?|l)*(\d{1,9})(?:\.0)?"
    r"(?:((?:[-–—:,\s]|\.\.+|to|through|lines?|l)+?)(\d{1,9})?(?:\.0|-1|end|none)?)?[\])\s]*",
    re.IGNORECASE,
)


def read_lines(written: object) -> str:
    """Return lines as agents write them (17, L17-L20, [17, 20], 17:20, 17-) as 17, 17-20 or 17-.

    What is none is returned as it is.
    """
    text = " ".join(str(written).split())
    if not (match := _LINES.fullmatch(text)):
        return text
    first, between, last = match.groups("")
    return f"{first}-{last}" if last or between.strip() else first


Lines = Annotated[
    str,
    BeforeValidator(read_lines),
    Field(pattern=r"^([0-9]{1,9}(-[0-9]{0,9})?)?$", description="Such as 120-180, or 120."),
]


def grep(
    box: Toolbox,
    pattern: Annotated[str, Field(min_length=1, description="The text, or expression.")],
    path: Pattern = "",
    regex: Annotated[bool, Field(description="Read as a regular expression (RE2).")] = False,
) -> ToolResult:
    """Find every line that holds a text or matches a regular expression.

    Lines are counted, each with the function or class around it. For messages, settings and literal
    text.
    """
    matches = box.files.find_lines(pattern, box.files_in(path), regex=regex)
    places: list[CodeSpan] = []
    parts: list[tuple[str, str]] = []
    for file, lines in matches.lines.items():
        if len(places) == MOST_MATCHES:
            break
        units = [unit for unit in box.tables().in_file(file) if unit.is_definition]
        before = None
        for n, line in lines[: MOST_MATCHES - len(places)]:
            around, name, title = smallest_around(units, n), "", ""
            if around:
                name = around.qualified_name
                if around != before:
                    title = f" [{name} {around.start_line}-{around.end_line}]"
            before = around
            parts.append((file, f"{n}{title}: {line.strip()[:LONGEST_LINE]}"))
            places.append(
                CodeSpan(path=file, start_line=n, end_line=n, text=line, name=name,
                      language=language_name(file))
            )  # fmt: skip
    note = "" if regex or matches.total else _as_expression(box, pattern, path)
    files = f"{len(matches.lines):,} of " if matches.lines else ""
    summary = (
        f"grep “{pattern}”: {counted(matches.total, 'line')} in {files}{matches.searched}{note}"
    )
    hint = "Narrow it with `path` or a longer pattern."
    left = matches.total - len(parts)
    return list_result(summary, by_file(parts), hint, left=left, items=places)


def _as_expression(box: Toolbox, pattern: str, path: str) -> str:
    """Return how many lines `pattern`, which no file holds as text, matches as an expression."""
    expression = pattern.replace(r"\|", "|")  # the form of grep's basic expressions
    if expression == re.escape(pattern):
        return ""
    try:
        matches = box.files.find_lines(expression, box.files_in(path), regex=True)
    except UsageError:
        return ""
    lines = counted(matches.total, "line matches", "lines match")
    return f"; {lines} the regular expression {expression} (regex)" if matches.total else ""


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
    """Read lines of files as they are now, at most 400 of each.

    Without lines a short file comes whole, of a long one what it defines and where.
    """
    spans = [place(part.strip(), lines) for part in path.split(",") if part.strip()]
    if spans and path not in box.tables().catalogue().paths:
        if len(spans) > 1:
            return joined_results([_opened(box, *span) for span in spans])
        path, lines = spans[0]
    file = box.files.read(one_file(box.tables(), path))
    code = file.text.split("\n")
    if code[-1] == "":
        code.pop()
    if not lines and len(code) > FIRST_LINES:
        outline = _outline(box.tables(), file.path, code)
        if outline:
            return outline
    first, last = line_span(lines or f"1-{FIRST_LINES}", len(code))
    parts = numbered(code[first - 1 : last], first)
    summary = f"read {file.path} {first}-{last} of {counted(len(code), 'line')}"
    if file.changed:
        summary += " (changed since it was indexed)"
    _, fitted = fitting(parts)
    places: tuple[CodeSpan, ...] = ()
    if fitted:
        last = first + fitted - 1
        text = "\n".join(code[first - 1 : last])
        places = (CodeSpan(path=file.path, start_line=first, end_line=last, text=text,
                        language=file.language),)  # fmt: skip
    hint = f"Ask for lines {first}-… in parts."
    return list_result(summary, parts, hint, total=len(code), places=places)


def _opened(box: Toolbox, path: str, lines: str) -> ToolResult:
    """Return the result of `open_file`, or its error as a result."""
    try:
        return open_file(box, path, lines)
    except CodeQAError as error:
        return ToolResult(summary=f"{path}: {error.message}", text=f"{path}: {error}")


def _outline(tables: Tables, path: str, code: Sequence[str]) -> ToolResult | None:
    """Return the constants of a file and its definitions with the first line of documentation."""
    units = defined_in(tables, path)
    if not units:
        return None
    parts = [f"{n:>4} {line[:LONGEST_OUTLINE]}" for n, line in constants(code)]
    for unit in units:
        signature = " ".join(unit.signature.split()) or unit.qualified_name or unit.kind
        line = f"{unit.start_line:>4}-{unit.end_line} {'  ' * depth_of(unit)}{signature}"
        doc = unit.doc_comment.strip().split("\n")[0].strip()
        if doc:
            line += f"  {doc}"
        parts.append(line[:LONGEST_OUTLINE])
    summary = f"outline of {path}, {counted(len(code), 'line')}; open what you need with `lines`"
    places = tuple(map(CodeSpan.of, units))
    return list_result(summary, parts, "", total=len(places), places=places)


def defined_in(tables: Tables, path: str) -> list[Unit]:
    """Return the definitions of a file outside functions, by line, else its other units."""
    units = sorted(tables.in_file(path), key=lambda unit: (unit.start_line, -unit.end_line))
    methods = [unit for unit in units if unit.is_method]
    outer = []
    for unit in units:
        inside = any(method is not unit and encloses(method, unit) for method in methods)
        if unit.is_definition and not inside:
            outer.append(unit)
    return outer or units


def depth_of(unit: Unit) -> int:
    """Return the number of classes around it."""
    return len(re.split(r"\.|::", unit.class_name)) if unit.class_name else 0


def one_file(tables: Tables, path: str) -> str:
    """Return the one file with this path, name or end. Raises NotFoundError, UsageError."""
    path = tables.plain_path(path.removeprefix("@"))
    mentions, _ = resolve_mentions(tables, [path])
    files: list[str] = []
    for mention in mentions:
        files += mention.files
    if not files:
        hint = near_path(tables, path) or "list_all(files) lists all files."
        raise NotFoundError(f"No indexed file is called {path!r}.", hint)
    if len(files) > 1 and path not in files:
        paths = ", ".join(files[:5])
        raise UsageError(f"Several files are called {path!r}.", f"Give more of the path: {paths}.")
    return path if path in files else files[0]


def place(path: str, lines: str = "") -> tuple[str, str]:
    """Return a path, and the lines written after it (`a.py:17-20`, `a.py#L17`) or `lines`."""
    match = PLACE.fullmatch(path)
    return (match[1], read_lines(match[2])) if match and match[2] else (path, lines)


def line_span(lines: str, count: int) -> tuple[int, int]:
    """Return first and last of `lines` in a file of `count`. Raises NotFoundError, UsageError."""
    start, dash, end = lines.partition("-")
    first = max(int(start or 1), len(dash))  # some count from zero
    last = int(end or ("" if dash else start) or count)
    if end and last < first:
        raise UsageError(f"The lines {lines} go backwards.", f"Ask for {last}-{first}.")
    if not 1 <= first <= max(count, 1):
        there = counted(count, "line")
        raise NotFoundError(f"There are no lines {lines}.", f"The file has {there}.")
    return first, min(last, count, first + MOST_LINES - 1)
