"""Tools that follow edges to their end: what a change may break, what inherits, the way of calls
from one definition to another."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from codeqa.code import usages
from codeqa.code.calls import Call, callers
from codeqa.code.calls import callees as calls_of
from codeqa.code.inheritance import heirs_at, overrides, types_called, with_all_methods
from codeqa.code.relations import is_test
from codeqa.code.surroundings import CANDIDATES
from codeqa.code.tools.declaration import Toolbox
from codeqa.code.tools.edges import ALL_CALLS, UNSEEN
from codeqa.code.tools.finding import MOST_DEFINITIONS, Name, definitions, no_definition
from codeqa.code.tools.results import Edge, Place, ToolResult, list_result
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.tokens import last_word
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Unit

MOST_FOLLOWED = 400
"""Definitions that are gone on from: a hub of a code base is reached from all of it."""
SECONDS = 5.0
"""Time after which nothing more is followed."""
MOST_REACHED = 200
"""Definitions that are told; all are counted."""
AT_LEAST = "at least "
OVERRIDING = (
    "Some of these name the method of a base or interface, which one of these overrides, or hand a "
    "function on that is called later. "
)
BY_NAME_ALONE = "Of some of these calls only the name is the same; no sure way is known. "
EdgeStep = tuple[Unit, str, int]
"""What an edge leads to, and the file and line in which the edge is written."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A definition that edges lead to, and the last edge of the shortest way there."""

    unit: Unit
    level: int
    """Edges from the beginning."""
    through: Unit | None
    """The definition at the other end of that edge; None where it lies outside of the index."""
    path: str
    line: int


def impact(box: Toolbox, name: Name) -> ToolResult:
    """What a change of a definition may break: all that calls, uses or inherits it, directly and
    through others, and the tests among that."""
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_DEFINITIONS]
    if not roots:
        return no_definition(tables, name)
    doubtful = 0

    def users(unit: Unit) -> list[EdgeStep]:
        nonlocal doubtful
        if is_test(unit) and unit not in roots:
            return []
        # Through a base at first alone: a framework calls nearly everything so in the end.
        found = callers(tables, unit, alone=unit not in roots)
        doubtful += found.doubtful
        return [(one.caller, one.caller.path, one.line) for one in found.calls]

    reached, cut = follow_edges(roots, users)
    code = [one for one in reached if not is_test(one.unit)]
    tests = [one for one in reached if is_test(one.unit)]
    direct = sum(one.level == 1 for one in code)
    summary = f"a change of {name} may break {AT_LEAST * bool(cut)}"
    summary += f"{counted(len(code), 'definition')}"
    summary += f" and {counted(len(tests), 'test')}"
    known = f"{direct:,} directly, {len(code) - direct:,} through these. "
    if doubtful:
        known += f"{counted(doubtful, 'place')} with only the name the same did not count. "
    known += f"{_several(tables, roots)}{cut}{UNSEEN}"
    return _told(summary, known, [*code, *tests])


def call_path(box: Toolbox, start: Name, end: Name) -> ToolResult:
    """The shortest way of calls from one function to another, each call with its line; where none
    is sure, one with calls of which only the name is the same."""
    tables = box.tables()
    begins, ends = definitions(tables, start), definitions(tables, end)
    if not begins or not ends:
        return no_definition(tables, end if begins else start)
    begins = [unit for unit in begins if unit not in ends] or begins
    wanted = {unit.id for unit in ends}

    @cache
    def called(unit: Unit) -> list[Call]:
        return calls_of(tables, unit, ALL_CALLS)

    def steps(indirect: bool, by_name: bool, unit: Unit) -> list[EdgeStep]:
        calls = [(o.called, unit.path, o.line) for o in called(unit) if o.sure or by_name]
        if not indirect:
            return calls
        run = [(o, path, n) for base, path, n in calls for o in overrides(tables, base)]
        return [*calls, *run, *_handed_on(tables, unit)]

    ways = (
        (partial(steps, False, False), ""),
        (partial(steps, True, False), OVERRIDING),
        (partial(steps, True, True), BY_NAME_ALONE),
    )
    looked = ""
    for step, doubt in ways:
        reached, cut = follow_edges(begins, step, wanted)
        looked = f"{start} leads to {counted(len(reached), 'definition')}. {cut}"
        found = {one.unit.id: one for one in reached}
        way = [reached[-1]] if reached and reached[-1].unit.id in wanted else []
        while way and way[0].level > 1 and way[0].through:
            way.insert(0, found[way[0].through.id])
        if way:
            known = doubt or "No shorter one is known; others of equal length may be. "
            summary = f"{start} leads to {end} in {counted(len(way), 'call')}"
            return _told(summary, f"{known}{UNSEEN}", way, downwards=True)
    nothing = f"no way of calls from {start} to {end} was found"
    known = f"{looked}{UNSEEN}"
    return ToolResult(summary=nothing, text=f"{nothing}. {known}", completeness=known)


def _handed_on(tables: Tables, unit: Unit) -> list[EdgeStep]:
    """The functions of its file that `unit` hands on, for others to call."""
    places = [one for one in tables.references_in(unit.path) if one.unit_id == unit.id]
    lines = {one.target: one.line for one in reversed(places) if one.kind == "use" and one.target}
    return [(one, one.path, lines[one.id]) for one in tables.by_ids(list(lines)) if one.is_method]


def subclasses(tables: Tables, name: str) -> ToolResult:
    """What inherits or implements a class, directly or through others; of one that is defined
    elsewhere what names it as its base."""
    roots = [unit for unit in definitions(tables, name) if unit.kind in CLASS_KINDS]

    by_name = homeless = 0

    def heirs(unit: Unit) -> list[EdgeStep]:
        nonlocal by_name, homeless
        if unit.language == "rust" and unit.kind != "trait":
            return []  # of its name another crate may have a trait
        sites = [one.reference for one in usages(tables, unit, CANDIDATES).references]
        places = [one for one in sites if one.kind == "inherits"]
        if len(types_called(tables, unit.name)) == 1:
            # Re-exports are not all followed, and nothing else here is called so.
            named = tables.references_named(unit.name, CANDIDATES)
            more = [one for one in named if one.kind == "inherits" and one not in places]
            by_name, places = by_name + len(more), [*places, *more]
        homeless += sum(not one.unit_id for one in places)
        return heirs_at(tables, places)

    first: list[EdgeStep] = []
    if not roots:
        places = tables.references_named(last_word(name), CANDIDATES)
        first = heirs_at(tables, [place for place in places if place.kind == "inherits"])
        if not first:
            return no_definition(tables, name)
    reached, cut = follow_edges(roots or [one for one, _, _ in first], heirs)
    outside = [Reached(unit, 1, None, path, line) for unit, path, line in first]
    found = {one.unit.id: one for one in (*outside, *reached)}
    for unit in roots:
        for one in with_all_methods(tables, unit):
            found.setdefault(one.id, Reached(one, 1, unit, one.path, one.start_line))
    direct = sum(one.level == 1 for one in found.values())
    known = (
        f"{direct:,} directly, {len(found) - direct:,} through these. "
        if roots
        else f"{name} is not defined here: what names it as its base, and what inherits from that. "
    )
    if any(unit.language == "go" for unit in roots):
        known += "A type that has all methods of the interface is taken to implement it. "
    if by_name:
        known += f"Of {counted(by_name, 'place')} only the name is the same. "
    if homeless:
        known += f"{counted(homeless, 'place')} outside of any definition did not count. "
    known += f"{_several(tables, roots)}{cut}"
    known += "Classes that are made while the program runs are not seen."
    kinds = ("subclass or implementation", "subclasses or implementations")
    summary = f"{name} has {AT_LEAST * bool(cut)}{counted(len(found), *kinds)}"
    return _told(summary, known, list(found.values()), outside=name)


def follow_edges(
    roots: Sequence[Unit], step: Callable[[Unit], Iterable[EdgeStep]], wanted: Collection[str] = ()
) -> tuple[list[Reached], str]:
    """All that `step` leads to from `roots`, the nearest first, each definition once, until one of
    the ids `wanted` is reached; and, as a sentence, where it was cut off."""
    # One function of several with a name may be the way's end, another its beginning.
    seen, found = {unit.id for unit in roots}.difference(wanted), list[Reached]()
    waiting = deque((unit, 0) for unit in roots)
    until = time.monotonic() + SECONDS
    followed = 0
    while waiting:
        if followed == MOST_FOLLOWED or time.monotonic() > until:
            told = f"Only the nearest {followed:,} were followed further: there may be more. "
            return found, told
        unit, level = waiting.popleft()
        followed += 1
        for one, path, line in step(unit):
            if one.id not in seen:
                seen.add(one.id)
                found.append(Reached(one, level + 1, unit, path, line))
                waiting.append((one, level + 1))
                if one.id in wanted:
                    return found, ""
    return found, ""


def _several(tables: Tables, roots: Sequence[Unit]) -> str:
    """Which definitions are meant, where it is not one; and where not all was looked at."""
    named = ", ".join(f"{unit.qualified_name} [{unit.location}]" for unit in roots)
    told = f"{len(roots):,} definitions are meant: {named}. " if len(roots) > 1 else ""
    if any(len(tables.references_named(unit.name, CANDIDATES)) == CANDIDATES for unit in roots):
        told += f"Only the first {CANDIDATES:,} places of that name were looked at. "
    return told


def _told(
    summary: str,
    known: str,
    reached: Sequence[Reached],
    *,
    outside: str = "",
    downwards: bool = False,
) -> ToolResult:
    """`reached` as places and edges; `downwards` where the edges lead away from the beginning."""
    units = {one.unit.id: one.unit for one in reached}
    units |= {one.through.id: one.through for one in reached if one.through}
    several = Counter(unit.qualified_name for unit in units.values())

    def called(unit: Unit | None) -> str:
        if unit is None:
            return outside
        if unit.kind in TEXT_KINDS:
            return unit.path
        name = unit.qualified_name
        return f"{name} ({unit.path})" if several[unit.qualified_name] > 1 else name

    places, parts, edges = list[Place](), list[str](), list[Edge]()
    for one in reached[:MOST_REACHED]:
        start, end = called(one.unit), called(one.through)
        if downwards:
            start, end = end, start
        edges.append(Edge(start=start, end=end, label=f"line {one.line}" if downwards else ""))
        note = f"calls {end}" if downwards else f"through {end}" if one.level > 1 else ""
        place = Place(
            path=one.path, start_line=one.line, end_line=one.line, name=start, note=note,
            kind="test" if is_test(one.unit) else one.unit.kind,
        )  # fmt: skip
        places.append(place)
        indent = "" if downwards else "  " * (one.level - 1)
        parts.append(f"{indent}{place.location} {start}{note and f', {note}'}")
    left = len(reached) - len(parts)
    return list_result(summary, parts, "Ask for one of them.", left=left, completeness=known,
                       places=tuple(places), edges=tuple(edges))  # fmt: skip
