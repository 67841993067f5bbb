"""Tools that find code: by meaning and by name."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from codeqa.code.surroundings import language_name
from codeqa.code.tools.declaration import Toolbox
from codeqa.code.tools.reading import constants
from codeqa.code.tools.results import Place, ToolResult, bare_place, fitting, list_result
from codeqa.errors import CodeQAError
from codeqa.search.mentions import resolve_mentions
from codeqa.search.resolve import nearest_names
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.types import Unit

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
MOST_DEFINITIONS = 5
"""Definitions of one name that are followed; which of them is meant, an owner before it says."""
_IMPORT = re.compile(r"(?:import|from|use|using|require|package|#include|const \w+ = require)\b")
NOTHING = "No relevant code found."

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
    names = ", ".join(f"{unit.qualified_name or unit.kind} [{unit.location}]" for unit in rest)
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
    for path, number in at[:MOST_DEFINITIONS]:
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
