"""Tools that find code: by meaning, by name, by what it calls and what calls it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from codeqa.errors import CodeQAError
from codeqa.search.mentions import resolve_mentions
from codeqa.search.resolve import nearest_names
from codeqa.store import Tables
from codeqa.symbols import UsageSite, usages
from codeqa.symbols.callees import callees as calls_of
from codeqa.symbols.surroundings import CANDIDATES, language_name
from codeqa.tools.declaration import Toolbox
from codeqa.tools.reading import constants
from codeqa.tools.results import Place, ToolResult, by_file, counted, list_text
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
MOST_REFERENCES = 50
MOST_DEPTH = 3
BREADTH = 12
"""Calls followed from one definition: a tree that is read rather than measured."""
LIKELY, CERTAIN = 0.6, 0.9
"""Confidence from which a reference is called so; below, it is possible."""
_IMPORT = re.compile(r"(?:import|from|use|using|require|package|#include|const \w+ = require)\b")
NOTHING = "No relevant code found."
_Step = tuple[Unit, Unit, int]
"""What a call leads to, the unit that holds it, and its line."""

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
Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH, description="Levels that are followed, 1 to 3.")]


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
    told, shown = list_text("", parts, len(parts), "Ask for fewer.", "\n\n")
    rest = [hit.unit for hit in (*hits[shown:], *also)]
    names = ", ".join(f"{unit.qualified_name or unit.kind} [{unit.location}]" for unit in rest)
    text = f"{told}\n\nAlso found: {names}" if rest else told or NOTHING
    return ToolResult(summary=summary, text=text, total=len(places), places=tuple(places[:shown]))


def find_definition(box: Toolbox, name: Name) -> ToolResult:
    """Where a function, class or constant is defined, with its code and the constants of its file
    that it uses. Exact: use it when the name is known."""
    units = _definitions(box.tables(), name)
    if not units:
        return _assigned(box, name) or _no_definition(box.tables(), name)
    places = [_shown(unit) for unit in units]
    summary = f"{name} has {counted(len(units), 'definition')}"
    parts = [
        f"--- {p.location} {p.kind} {p.name}{' (' + p.note + ')' if p.note else ''} ---\n"
        f"{p.text}{_values(box, p)}"
        for p in places
    ]
    text, shown = list_text(summary, parts, len(parts), "Put its owner before the name.", "\n\n")
    return ToolResult(summary=summary, text=text, total=len(units), places=tuple(places[:shown]))


def find_references(box: Toolbox, name: Name) -> ToolResult:
    """Every place that calls, uses, imports or inherits a definition, surest first, source before
    tests, each with its line; marked where it is only likely or possible. Says how many there
    are in all."""
    tables = box.tables()
    units = _definitions(tables, name)[:MOST_DEFINITIONS]
    if not units:
        return _no_definition(tables, name)
    # A place that may mean several of them is told once, for the one that it surest means.
    once: dict[tuple[str, int, int], UsageSite] = {}
    for unit in units:
        for site in usages(tables, unit, CANDIDATES).references:
            at = (site.reference.path, site.reference.line, site.reference.column)
            once[at] = max(site, once.get(at, site), key=lambda one: one.confidence)
    total, sites = len(once), list(once.values())
    if len(units) > 1:  # those of one are in order
        sites.sort(key=lambda site: -site.confidence)
    sites = sites[:MOST_REFERENCES]
    around = {unit.id: unit for unit in tables.by_ids([s.reference.unit_id for s in sites])}
    places = [_place(site, around.get(site.reference.unit_id)) for site in sites]
    parts = by_file(
        (p.path, f"{p.start_line} {p.note.removesuffix(', certain')}"
                 f"{' in ' + p.name if p.name else ''}: {p.text}")
        for p in places
    )  # fmt: skip
    summary = f"{name} is referred to in {counted(total, 'place')}"
    text, shown = list_text(summary, parts, total, "Use grep for all lines that hold the name.")
    return ToolResult(summary=summary, text=text, total=total, places=tuple(places[:shown]))


def callers(box: Toolbox, name: Name, depth: Depth = 1) -> ToolResult:
    """The functions that surely call a function, each with the line of its call, and with a depth
    those that call them, as a tree. Tests, and calls that may mean another of that name, are
    counted and not listed."""
    tables = box.tables()
    tests: set[str] = set()
    possible: Counter[str] = Counter()

    def who_calls(unit: Unit) -> list[_Step]:
        every = usages(tables, unit, limit=4 * BREADTH).references
        sites = [site for site in every if _is_sure_call(site)]
        unsure = sum(s.confidence < LIKELY and s.reference.kind == "call" for s in every)
        possible[unit.qualified_name] += unsure
        inside = {one.id: one for one in tables.by_ids([s.reference.unit_id for s in sites])}
        first: dict[str, _Step] = {}
        for site in sites:
            around = inside.get(site.reference.unit_id)
            if around and around.role == "test" != unit.role:
                tests.add(around.id)
            elif around:
                first.setdefault(around.id, (around, around, site.reference.line))
        return list(first.values())

    found = _tree(tables, name, depth, who_calls, "called by", "caller")
    told = f"\nAnd by {counted(len(tests), 'test')}." if tests else ""
    if unsure := ", ".join(f"{number:,} of {one}" for one, number in possible.items() if number):
        told += f"\nPossible calls, which find_references lists: {unsure}."
    return found.model_copy(update={"text": found.text + told})


def callees(box: Toolbox, name: Name, depth: Depth = 1) -> ToolResult:
    """What a function calls in this repository, in the order of its text, each with the line of the
    call, and with a depth what those call, as a tree. Calls into libraries are left out."""
    tables = box.tables()

    def what_it_calls(unit: Unit) -> list[_Step]:
        return [(call.unit, unit, call.line) for call in calls_of(tables, unit, BREADTH)]

    return _tree(tables, name, depth, what_it_calls, "calls", "callee")


def _definitions(tables: Tables, name: str) -> list[Unit]:
    """The definitions that `name` stands for, those in source first."""
    mentions, _ = resolve_mentions(tables, [name.removeprefix("@").removesuffix("()")])
    ids = [id_ for mention in mentions for id_ in mention.units]
    units = {unit.id: unit for unit in tables.by_ids(ids)}
    return sorted((units[i] for i in ids if i in units), key=lambda one: one.role != "source")


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
    places: list[Place] = []
    for path, number in [(path, n) for path, held in found.lines.items() for n, _ in held]:
        if len(places) < MOST_DEFINITIONS:
            lines = box.files.read(path).text.split("\n")[number - 1 : number + AFTER_VALUE]
            last = number + len(lines) - 1
            places.append(
                Place(path=path, start_line=number, end_line=last, text="\n".join(lines),
                      language=language_name(path), name=name, kind="value")
            )  # fmt: skip
    parts = [f"--- {p.location} ---\n{p.text}" for p in places]
    summary = f"{name} is given a value in {counted(found.total, 'place')}"
    text, shown = list_text(summary, parts, found.total, "Use grep for all.", "\n\n")
    return (
        ToolResult(summary=summary, text=text, total=found.total, places=tuple(places[:shown]))
        if places
        else None
    )


def _no_definition(tables: Tables, name: str) -> ToolResult:
    summary = f"nothing here is called {name}"
    near = ", ".join(nearest_names(tables, re.split(r"\W+", name)[-1]))
    instead = f"The nearest name is {near}." if near else "grep finds all lines with a text."
    text = f"{summary}. {instead}"
    return ToolResult(summary=summary, text=text, unknown=name)


def _shown(unit: Unit, note: str = "") -> Place:
    """`unit` as a place, of a long one the beginning, of a file's head what is no import."""
    lines = unit.source_code.split("\n")[:LONGEST_CODE]
    if unit.kind == "module":
        imports = next((n for n, line in enumerate(lines) if n and _IMPORT.match(line)), len(lines))
        lines = lines[: imports if any(map(str.strip, lines[:imports])) else len(lines)]
    last = unit.start_line + len(lines) - 1
    return Place(
        path=unit.path,
        start_line=unit.start_line,
        end_line=last,
        text="\n".join(lines),
        language=unit.language,
        name=unit.qualified_name or unit.name,
        kind=unit.kind,
        note=note
        if last == unit.end_line
        else f"{note or 'cut'}; the rest is open_file lines {last + 1}-{unit.end_line}",
    )


def _place(site: UsageSite, around: Unit | None) -> Place:
    line = site.reference.line
    code = around.source_code.split("\n") if around else []
    at = line - around.start_line if around else -1
    how = "certain" if site.confidence >= CERTAIN else "possible"
    how = "likely" if LIKELY <= site.confidence < CERTAIN else how
    return Place(
        path=site.reference.path,
        start_line=line,
        end_line=line,
        text=code[at].strip() if 0 <= at < len(code) else "",
        name=around.qualified_name if around else "",
        kind=site.reference.kind,
        note=f"{site.reference.kind}, {how}",
    )


def _is_sure_call(site: UsageSite) -> bool:
    return (
        site.reference.kind != "import"
        and site.confidence >= LIKELY
        and bool(site.reference.unit_id)
    )


def _tree(
    tables: Tables,
    name: str,
    depth: int,
    follow: Callable[[Unit], Sequence[_Step]],
    verb: str,
    noun: str,
) -> ToolResult:
    """What `follow` leads to from the definitions of `name`, `depth` levels deep, each once."""
    roots = _definitions(tables, name)[:MOST_DEFINITIONS]
    if not roots:
        return _no_definition(tables, name)
    seen = {unit.id for unit in roots}
    lines: list[str] = []
    places: list[Place] = []
    # A stack and no recursion: what comes next is what was put there last.
    waiting = [(unit, unit, 0, 0) for unit in reversed(roots)]
    while waiting:
        unit, holder, line, level = waiting.pop()
        told = f"{'  ' * level}{unit.qualified_name or unit.name} [{unit.location}]"
        if level:
            call = holder.source_code.split("\n")[line - holder.start_line]
            told += f"  {line}: {call.strip()}"
            places.append(
                Place(path=holder.path, start_line=line, end_line=line, text=call,
                      language=holder.language, name=unit.qualified_name, kind=unit.kind)
            )  # fmt: skip
        lines.append(told)
        if level < depth:
            found = [step for step in follow(unit) if step[0].id not in seen][:BREADTH]
            seen.update(one.id for one, *_ in found)
            waiting += [(*step, level + 1) for step in reversed(found)]
    summary = f"{name} {verb} {counted(len(places), 'function')}"
    text, _ = list_text(summary, lines, len(lines), f"Ask for the {noun}s of one of them.")
    return ToolResult(summary=summary, text=text, total=len(places), places=tuple(places))
