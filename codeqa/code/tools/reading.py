"""Tools that find and read: code by meaning and by name, literal text, files, what they define."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from codeqa.code.descriptions import overview_of
from codeqa.code.tools.tool import (
    Place,
    Toolbox,
    ToolResult,
    bare_place,
    by_file,
    fitting,
    list_result,
)
from codeqa.code.usages import language_name
from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.search.channels import nearest_names
from codeqa.search.mentions import resolve_mentions
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.markdown import CITATION
from codeqa.types import TEXT_KINDS, Unit, encloses

MOST_HITS = 20
NEAR_BEST = 0.75
"""Part of the best score from which a hit is shown with its code: a weak one costs more than it
tells."""
ALSO = 5
"""Further hits that are named."""
LONGEST_CODE = 50
"""Lines of one hit; the rest is a call of `open_file` away."""
MOST_VALUES, LONGEST_VALUE = 8, 80
"""Constants told behind a definition, and characters of each."""
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
AFTER_VALUE = 3
"""Lines behind that of a value, where what it stands for is often told."""
MOST_VALUED = 5
"""Places where one name is given a value that are shown."""
_IMPORT = re.compile(r"(?:import|from|use|using|require|package|#include|const \w+ = require)\b")
NOTHING = "No relevant code found."
FIRST_LINES = 150
"""Lines that are opened where none are named: enough to see what to ask for."""
MOST_LINES = 400
"""Lines of a file that are opened at once."""
MOST_FILES = 80
"""Files that are named; of more, folders with counts."""
MOST_MATCHES = 100
LONGEST_OUTLINE = 140
"""Characters of one line of an outline."""
_CONSTANT = re.compile(
    r"(?:(?:export|pub|static|public|private|final|const|val|let)\s+)*[A-Z][A-Z0-9_]{2,}\b[^=(]{0,60}="
)
LONGEST_LINE = 300
"""Characters shown of one line; what is longer is data."""

Query = Annotated[str, Field(description="What to look for: words, names or a question.")]
PathFilter = Annotated[
    str, Field(description="Only paths that begin so (src/flask/) or match this pattern (**/*.go).")
]
Name = Annotated[
    str,
    Field(
        description="A function, method or class, with owners where needed: Flask.dispatch_request."
    ),
]
File = Annotated[str, Field(description="A file of the repository; its name or end is enough.")]
Pattern = Annotated[
    str, Field(description="A glob (src/**/*.py) or the beginning of paths (src/).")
]
Lines = Annotated[
    str,
    Field(
        pattern=r"^([0-9]{1,9}(-[0-9]{1,9})?)?$", description="As 120-180, or 120; all for nothing."
    ),
]


def search_code(
    box: Toolbox,
    query: Query,
    k: Annotated[int, Field(ge=1, le=MOST_HITS, description="How many results.")] = 3,
    path: PathFilter = "",
) -> ToolResult:
    """Search the repository for code relevant to a query. Returns the most relevant definitions and
    sections with their code, and further ones by name. Best for questions in words."""
    found = box.search.search(query, top=k + ALSO, path=path).units
    best = max((hit.score for hit in found), default=0.0) or 1.0
    hits = [hit for hit in found[:k] if hit.score >= NEAR_BEST * best]
    also = [hit for hit in found if hit not in hits]
    places = [_shown(hit.unit, f"relevance: {hit.score / best:.2f}") for hit in hits]
    parts = [
        f"--- {p.path} (lines {p.start_line}-{p.end_line}, {p.note}) ---\n{p.text}" for p in places
    ]
    summary = f"searched “{query}”: {counted(len(places), 'hit')}"
    told, shown = fitting(parts, "\n\n")
    rest = [hit.unit for hit in (*hits[shown:], *also)]
    names = ", ".join(f"{unit.qualified_name or unit.kind} [{unit.place}]" for unit in rest)
    text = f"{told}\n\nAlso found: {names}" if rest else told or NOTHING
    return ToolResult(summary=summary, text=text, total=len(places), places=tuple(places[:shown]))


def find_definition(box: Toolbox, name: Name) -> ToolResult:
    """Where a function, class or constant is defined, with its code and the constants of its file
    that it uses. Exact: use it when the name is known."""
    units = definitions(box.tables(), name)
    if not units:
        return _assigned(box, name) or no_definition(box.tables(), name)
    places = [_shown(unit) for unit in units]
    summary = f"{name} has {counted(len(units), 'definition')}"
    parts = [
        f"--- {p.location} {p.kind} {p.name}{' (' + p.note + ')' if p.note else ''} ---\n"
        f"{p.text}{_values(box, p)}"
        for p in places
    ]
    return list_result(summary, parts, "Put its owner before the name.", apart="\n\n", told=places)


def definitions(tables: Tables, name: str) -> list[Unit]:
    """The definitions that `name` stands for: those in source first, signatures without code last,
    and members of classes behind what has no owner."""
    mentions, _ = resolve_mentions(tables, [name.removeprefix("@").removesuffix("()")])
    ids = [id_ for mention in mentions for id_ in mention.units]
    units = {unit.id: unit for unit in tables.by_ids(ids)}
    found = [units[identity] for identity in ids if identity in units]
    return sorted(found, key=lambda u: (u.role != "source", u.is_stub, bool(u.class_name)))


def _values(box: Toolbox, place: Place) -> str:
    """The constants of the file that `place` uses, with their values, as a closing line."""
    used = set(_CAPITALS.findall(place.text))
    try:
        text = box.files.read(place.path).text if used else ""
    except CodeQAError:
        return ""
    lines = [
        f"{line[:LONGEST_VALUE]} [line {number}]"
        for number, line in constants(text)
        if used.intersection(_CAPITALS.findall(line.split("=")[0]))
        and not place.start_line <= number <= place.end_line
    ]
    return "\nUses: " + "; ".join(lines[:MOST_VALUES]) if lines else ""


def _assigned(box: Toolbox, name: str) -> ToolResult | None:
    """Where a constant or variable of that name is given its value, with the lines after it."""
    if not name.isidentifier():
        return None
    # A word or four before it: const, export, a type.
    pattern = rf"^[ \t]*(?:[\w.]+[ \t]+){{0,4}}{name}\b[^=(\n]{{0,80}}=(?:[^=]|$)"
    found = box.files.find_lines(pattern, box.files.matching(), regex=True)
    if not found.lines:
        return None
    places: list[Place] = []
    at = [(path, number) for path, held in found.lines.items() for number, _ in held]
    for path, number in at[:MOST_VALUED]:
        lines = box.files.read(path).text.split("\n")[number - 1 : number + AFTER_VALUE]
        last = number + len(lines) - 1
        places.append(
            Place(path=path, start_line=number, end_line=last, text="\n".join(lines),
                  language=language_name(path), name=name, kind="value")
        )  # fmt: skip
    parts = [f"--- {p.location} ---\n{p.text}" for p in places]
    summary = f"{name} is given a value in {counted(found.total, 'place')}"
    left = found.total - len(parts)
    return list_result(summary, parts, "Use grep for all.", left=left, apart="\n\n", told=places)


def no_definition(tables: Tables, name: str) -> ToolResult:
    """That nothing is called so, and what is called nearly so."""
    summary = f"nothing here is called {name}"
    near = ", ".join(nearest_names(tables, re.split(r"\W+", name)[-1]))
    instead = (
        f"The nearest name is {near}." if near else "No name is near it; grep looks for it as text."
    )
    text = f"{summary}. {instead}"
    return ToolResult(summary=summary, text=text, unknown=name, completeness=instead)


def _shown(unit: Unit, note: str = "") -> Place:
    """`unit` as a place, of a long one the beginning, of a file's head what is no import."""
    lines = unit.source_code.split("\n")[:LONGEST_CODE]
    if unit.kind == "module":
        imports = next((n for n, line in enumerate(lines) if n and _IMPORT.match(line)), len(lines))
        lines = lines[: imports if any(map(str.strip, lines[:imports])) else len(lines)]
    last = unit.start_line + len(lines) - 1
    if last < unit.end_line:
        note = f"{note or 'cut'}; the rest is open_file lines {last + 1}-{unit.end_line}"
    shown = {"end_line": last, "text": "\n".join(lines), "note": note}
    return bare_place(unit).model_copy(update=shown)


def grep(
    box: Toolbox,
    pattern: Annotated[str, Field(min_length=1, description="The text, or regular expression.")],
    path: Pattern = "",
    regex: Annotated[bool, Field(description="Read it as a regular expression (RE2).")] = False,
    ignore_case: Annotated[bool, Field(description="Small and capital letters alike.")] = False,
) -> ToolResult:
    """Every line of the indexed files that holds a text or matches a regular expression, counted,
    each with the definition around it and that one's lines. Exact where search_code guesses: for
    names, messages, TODOs, constants."""
    found = box.files.find_lines(
        pattern, box.files.matching(path), regex=regex, ignore_case=ignore_case
    )
    places: list[Place] = []
    parts: list[tuple[str, str]] = []
    for file, lines in found.lines.items():
        wanted = lines[: MOST_MATCHES - len(places)]
        units = box.tables().in_file(file) if wanted else []
        before = None
        for n, line in wanted:
            around = _around(units, n)
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


def open_file(box: Toolbox, path: File, lines: Lines = "") -> ToolResult:
    """Lines of a file as they are now, numbered; without `lines` its first 150. At most 400."""
    file = box.files.read(one_file(box.tables(), path))
    code = file.text.split("\n")
    code = code[:-1] if code[-1:] == [""] else code
    first, last = line_span(lines or f"1-{FIRST_LINES}", len(code))
    shown = code[first - 1 : last]
    parts = [f"{n}\t{line[:LONGEST_LINE]}".rstrip() for n, line in enumerate(shown, first)]
    summary = f"read {file.path} {first}-{last} of {counted(len(code), 'line')}"
    if file.changed:
        summary += " (changed since it was indexed)"
    _, fits = fitting(parts)
    place = Place(path=file.path, start_line=first, end_line=first + fits - 1,
                  text="\n".join(shown[:fits]), language=file.language)  # fmt: skip
    hint = f"Ask for lines {first}-… in parts."
    places = (place,) if fits else ()
    return list_result(summary, parts, hint, total=len(code), places=places)


def outline(box: Toolbox, path: File) -> ToolResult:
    """What a file defines: constants, classes and functions with lines, signature and the first
    line of documentation. The way to see a long file before opening parts of it."""
    found = one_file(box.tables(), path)
    units = sorted(box.tables().in_file(found), key=lambda one: (one.start_line, -one.end_line))
    defined = [u for u in units if u.kind not in TEXT_KINDS and (u.kind != "module" or u.signature)]
    methods = [u for u in units if u.is_method]
    inner = {u.id for u in units for m in methods if m is not u and encloses(m, u)}
    defined = [u for u in defined if u.id not in inner]
    text = box.files.read(found).text
    parts = [f"{n:>4} {line[:LONGEST_OUTLINE]}" for n, line in constants(text)]
    places = []
    for unit in defined or units:
        depth = len(re.split(r"\.|::", unit.class_name)) if unit.class_name else 0
        signature = " ".join(unit.signature.split()) or unit.qualified_name or unit.kind
        doc = next((line.strip() for line in unit.doc_comment.split("\n") if line.strip()), "")
        about = f"  {doc}" if doc else ""
        lines = f"{unit.start_line:>4}-{unit.end_line}"
        parts.append(f"{lines} {'  ' * depth}{signature}{about}"[:LONGEST_OUTLINE])
        places.append(bare_place(unit))
    thing = "definition" if defined else "section"
    summary = f"outline of {found}: {counted(len(places), thing)}"
    hint = "Open the rest with open_file."
    return list_result(summary, parts, hint, total=len(places), places=tuple(places))


def overview(box: Toolbox) -> ToolResult:
    """What this repository is, for a first look: README, folders with what they are for and import,
    the definitions that most files use, where it starts."""
    tables = box.tables()
    told = overview_of(tables)
    places = tuple(
        bare_place(unit)
        for path, first, last in CITATION.findall(told)
        for unit in tables.in_file(path)
        if (unit.start_line, unit.end_line) == (int(first), int(last or first))
    )
    text, _ = fitting((told or "Nothing here says what it is.").split("\n"))
    summary = f"overview of {tables.location.name}"
    return ToolResult(summary=summary, text=text, total=len(places), places=places)


def list_files(box: Toolbox, pattern: Pattern = "") -> ToolResult:
    """The indexed files whose path matches a pattern; of many their folders with counts."""
    records = box.files.matching(pattern)
    parts = [record.path for record in records]
    if len(records) > MOST_FILES:
        folders = Counter(record.path.rpartition("/")[0] + "/" for record in records)
        parts = [f"{folder} {counted(number, 'file')}" for folder, number in folders.items()]
    summary = f"{counted(len(records), 'file')}{' in ' + pattern if pattern else ''}"
    paths = tuple(record.path for record in records[:MOST_MATCHES])
    return list_result(summary, parts, "Narrow the pattern.", total=len(records), paths=paths)


def constants(text: str) -> list[tuple[int, str]]:
    """Number and text of the lines that give a value to a name in capitals at top level."""
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if _CONSTANT.match(line)]


def _around(units: Sequence[Unit], line: int) -> Unit | None:
    """The smallest definition around a line."""
    inside = [u for u in units if u.start_line <= line <= u.end_line and u.kind not in TEXT_KINDS]
    inside = [unit for unit in inside if unit.kind != "module" or unit.signature]
    return min(inside, key=lambda u: u.end_line - u.start_line, default=None)


def one_file(tables: Tables, path: str) -> str:
    """The one indexed file that `path`, its name or its end, means.

    Raises NotFoundError when there is none, UsageError when there are several.
    """
    mentions, _ = resolve_mentions(tables, [path.removeprefix("@").strip()])
    files = [file for mention in mentions for file in mention.files]
    if not files:
        raise NotFoundError(
            f"No indexed file is called {path!r}.", "list_files shows what there is."
        )
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
