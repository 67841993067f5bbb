"""The tool for one name: its definition, and what follows from references to it: where it is used,
what calls it and what it calls, what a change may break, what inherits, the way of calls from one
definition to another."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from codeqa.code.calls import Call, is_test
from codeqa.code.calls import callees as calls_of
from codeqa.code.calls import callers as callers_of
from codeqa.code.tools.search import MOST_MEANT, Name, definitions, no_definition, symbol_definition
from codeqa.code.tools.tool import (
    Edge,
    Place,
    Toolbox,
    ToolResult,
    by_file,
    joined_results,
    list_result,
)
from codeqa.code.usages import (
    CANDIDATES,
    LIKELY,
    SURENESS,
    UsageSite,
    heirs_at,
    meant_at,
    overrides,
    sureness,
    types_called,
    usages,
    with_all_methods,
)
from codeqa.errors import UsageError
from codeqa.languages import language_called
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text import counted, some_of
from codeqa.text.tokens import last_word
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Unit

MOST_REFERENCES = 50
MOST_USES = 200
"""Places where what stands in a line is used, told one by one."""
MOST_ALSO = 12
"""Further lines told of one function."""
LONGEST_CALL = 100
ALL_CALLS = 1_000
MOST_FOLLOWED = 400
"""Definitions that are gone on from: a hub of a code base is reached from all of it."""
SECONDS = 5.0
"""Time after which nothing more is followed."""
MOST_REACHED = 200
"""Definitions that are told; all are counted."""
AT_LEAST = "at least "
UNSEEN = "Calls by a computed name (reflection, a table of functions) are not seen."
OVERRIDING = (
    "Some of these name the method of a base or interface, which one of these overrides, or hand a "
    "function on that is called later. "
)
BY_NAME_ALONE = "Of some of these calls only the name is the same; no sure way is known. "


def symbol(
    box: Toolbox,
    name: Name,
    want: Annotated[
        str,
        Field(
            description="definition, callers, references, callees (two deep), subclasses, impact "
            "(what a change may break), or `path to NAME` (the calls that lead there)."
        ),
    ] = "definition",
) -> ToolResult:
    """Look up a function, class or constant by name: its code, what it calls, who calls it and the
    constants it uses. It tells apart what has the same name, where grep finds every line with the
    same letters. Several names at once, `a, b`, are cheaper than opening files."""
    if len(names := [one for one in map(str.strip, name.split(",")) if one]) > 1:
        return joined_results([symbol(box, one, want) for one in names])
    kind, _, end = " ".join(want.split()).partition(" to ")
    if kind == "path" and end:
        return _call_path(box, name, end)
    if want not in _WANTS:
        known = ", ".join(_WANTS)
        raise UsageError(f"`want` cannot be {want!r}.", f"It is {known} or `path to NAME`.")
    return _WANTS[want](box, name)


# In one piece, for each sentence about the places stands on the same counts.
def _references(box: Toolbox, name: str, kind: str = "") -> ToolResult:
    """Every place that calls, uses, imports or inherits a definition, by the functions that they
    are in, each with its first line and the numbers of further ones; marked where it is only likely
    or possible. Of calls those in tests and merely possible ones are counted, not told singly."""
    tables = box.tables()
    units = definitions(tables, name)
    named = tables.references(name=[last_word(name.removesuffix("()"))], limit=CANDIDATES)
    every = _meant(tables, units)
    if not units:  # of what is defined elsewhere no more is known than its name
        owner = name.removesuffix("()").rpartition(".")[0]
        every = {UsageSite(one, 0.0): "" for one in named if owner in ("", one.receiver)}
    found = {site: owner for site, owner in every.items() if kind in ("", site.reference.kind)}
    if not units and not found:
        return no_definition(tables, name)
    groups = use_places(tables, list(found), kind)
    possible = SURENESS[-1][1]
    sure = [p for p, in_test in groups if not (in_test or possible in p.note)] if kind else []
    told = sure or [place for place, _ in groups]
    parts = by_file(
        (p.path, f"{p.start_line}{p.name and f' in {p.name}'}{p.note and f', {p.note}'}: {p.text}")
        for p in told[:MOST_REFERENCES]
    )
    levels = Counter(sureness(site.confidence) for site in found)
    several = len(levels) > 1
    told_of = [(how, levels[how]) for _, how in SURENESS if levels[how]]
    by_level = ", ".join(f"{n:,} {how}" if several else f"all {how}" for how, n in told_of)
    if levels[possible]:
        by_level += " (only the name is the same)"
    known = [f"{by_level[0].upper()}{by_level[1:]}."] if by_level else []
    if in_tests := sum(place.times for place, in_test in groups if in_test):
        known.append(f"{in_tests:,} of these in tests.")
    if not units:
        known.append(f"{name} is not defined here.")
    if len({(one.path, one.qualified_name) for one in units}) > 1:  # overloads are one
        meant = Counter(found.values())
        units.sort(key=lambda unit: -meant[unit.id])
        first = units[:MOST_MEANT]
        each = ", ".join(f"{one.qualified_name} [{one.place}] {meant[one.id]:,}" for one in first)
        if len(units) > MOST_MEANT:
            each += ", the others fewer or none"
        if meant[""]:
            each += f"; {meant['']:,} may mean any of them"
        known.append(f"{len(units):,} definitions have this name: {each}.")
    if others := len(every) - len(found):
        known.append(f"Of another kind, such as imports: {counted(others, 'place')}.")
    if (further := len(named) - len(every)) > 0:
        known.append(f"{counted(further, 'further place')} of that name may mean something else.")
    if len(named) == CANDIDATES:
        known.append(f"Only the first {CANDIDATES:,} places of that name were looked at.")
    places = [place for place, _ in groups[:MOST_REFERENCES]]
    last = units[0].qualified_name if len(units) == 1 else last_word(name)
    surer = (place for place in places if possible not in place.note)
    edges = dict.fromkeys((place.name or place.path, last) for place in surer)
    done = f"is {'called' if kind else 'referred to'} in {AT_LEAST * (len(named) == CANDIDATES)}"
    return list_result(
        f"{name} {done}{counted(len(found), 'place')}",
        parts,
        "grep finds all lines that hold the name.",
        total=len(found),
        left=len(told) - len(parts),
        places=tuple(places),
        edges=tuple(Edge(start=start, end=end) for start, end in edges),
        completeness=" ".join([*known, UNSEEN]),
    )


def _meant(tables: Tables, units: Iterable[Unit]) -> dict[UsageSite, str]:
    """The places, surest first, each with the id of the definition that it surest means: one that
    may mean several of them is one place, and with '' where it means none of them surer."""
    once: dict[tuple[str, int, int], tuple[UsageSite, str]] = {}
    for unit in units:
        for site in usages(tables, unit):
            at = (site.reference.path, site.reference.line, site.reference.column)
            best, _ = once.get(at, (site, ""))
            if at not in once or site.confidence > best.confidence:
                once[at] = (site, unit.id)
            elif site.confidence == best.confidence:
                once[at] = (best, "")
    return dict(sorted(once.values(), key=lambda one: -one[0].confidence))


def use_places(
    tables: Tables, sites: Sequence[UsageSite], kind: str = ""
) -> list[tuple[Place, bool]]:
    """`sites`, which were asked for by `kind`, by the definition that they are in and how sure they
    are, each with whether it is in a test: what is at least likely first, source before tests."""
    ids = [site.reference.unit_id for site in sites]
    around = {unit.id: unit for unit in tables.by_ids(ids)}

    def in_test(site: UsageSite) -> bool:
        unit = around.get(site.reference.unit_id)
        return is_test(unit) if unit else role_of(site.reference.path) == "test"

    groups: dict[tuple[str, str, str, str], list[UsageSite]] = {}
    for site in sites:
        one = site.reference
        key = (one.path, one.unit_id, one.kind, f"{sureness(site.confidence)} {site.through}")
        groups.setdefault(key, []).append(site)

    def order(held: Sequence[UsageSite]) -> tuple[bool, bool, float]:
        return held[0].confidence < LIKELY, in_test(held[0]), -held[0].confidence

    ordered = sorted(groups.values(), key=order)
    return [
        (_place(held, around.get(held[0].reference.unit_id), kind), in_test(held[0]))
        for held in ordered
    ]


def _place(sites: Sequence[UsageSite], around: Unit | None, asked: str) -> Place:
    """The first of `sites`, which are in one definition, with the lines of the others."""
    line, *others = sorted({site.reference.line for site in sites})
    kind, sure = sites[0].reference.kind, sureness(sites[0].confidence)
    also = some_of(list(map(str, others)), MOST_ALSO)
    through = sites[0].through and f"through {sites[0].through}"
    told = (kind if kind != asked else "", through, sure if sure != SURENESS[0][1] else "",
            also and f"also {'lines' if len(others) > 1 else 'line'} {also}")  # fmt: skip
    return Place(
        path=sites[0].reference.path,
        start_line=line,
        end_line=line,
        text=_code(around, line).strip() if around else "",
        name=around.qualified_name if around else "",
        kind=kind,
        note=", ".join(filter(None, told)),
        times=len(sites),
    )


def _code(unit: Unit, line: int) -> str:
    """A line of `unit` by its number in the file, '' for one that it does not have."""
    code, at = unit.source_code.split("\n"), line - unit.start_line
    return code[at] if 0 <= at < len(code) else ""


class NameReport(BaseModel, frozen=True):
    """What a name in a line of a file means, and where that is used."""

    definitions: tuple[Place, ...]
    """The likeliest first, `text` the first line of the signature; `note` where it is unsure."""
    uses: tuple[Place, ...]
    """Each line once, the surest first, source before tests."""
    total: int
    """Lines where it is used, told or not."""


def name_at(box: Toolbox, path: str, line: int, name: str) -> NameReport:
    """What somebody who reads the `line` of a file and asks what `name` is wants to see."""
    tables = box.tables()
    meant = meant_at(tables, path, line, name)[:MOST_MEANT]
    sites = {(o.reference.path, o.reference.line): o for o in _meant(tables, [u for u, _ in meant])}
    told = list(sites.values())[:MOST_USES]
    around = {one.id: one for one in tables.by_ids([site.reference.unit_id for site in told])}
    definitions = [
        Place.of(
            unit,
            text=unit.signature.strip().partition("\n")[0],
            note=sureness(sure) * (sureness(sure) != SURENESS[0][1]),
        )
        for unit, sure in meant
    ]
    uses = [_place([site], around.get(site.reference.unit_id), "") for site in told]
    return NameReport(definitions=tuple(definitions), uses=tuple(uses), total=len(sites))


class Step(NamedTuple):
    """A definition that edges lead to, and the last edge of the shortest way there."""

    unit: Unit
    path: str
    """With `line`, where that edge is written."""
    line: int
    note: str = ""
    level: int = 0
    """Edges from the beginning."""
    through: Unit | None = None
    """The definition at the other end of that edge."""


def _callees(box: Toolbox, name: str) -> ToolResult:
    """What a function surely calls in this repository, in the order of its text, each with the line
    of the call, and below it the names of what that one calls. Calls into libraries are left out.
    """
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_MEANT]
    if not roots:
        return no_definition(tables, name)
    parts, reached, doubtful = list[str](), list[Step](), 0
    for root in roots:
        parts.append(f"{root.qualified_name or root.name} [{root.place}]")
        for one in calls_of(tables, root, ALL_CALLS):
            if not one.sure:
                doubtful += 1
                continue
            reached.append(Step(one.called, root.path, one.line, through=root))
            code = _code(root, one.line).strip()[:LONGEST_CALL]
            parts.append(f"  {one.called.qualified_name} [{one.called.place}]  {one.line}: {code}")
            if then := [o.called.qualified_name for o in calls_of(tables, one.called) if o.sure]:
                parts.append(f"    → {', '.join(then)}")
    known = f"Of {counted(doubtful, 'call')} only the name is the same." if doubtful else ""
    return list_result(
        f"{name} calls {counted(len(reached), 'function')}", parts, "Ask for one of them.",
        total=len(reached), completeness=known,
        places=tuple(_step_place(one) for one in reached),
        edges=tuple(Edge(start=name, end=one.unit.qualified_name) for one in reached),
    )  # fmt: skip


def _impact(box: Toolbox, name: str) -> ToolResult:
    """What a change of a definition may break: all that calls, uses or inherits it, directly and
    through others, and the tests among that."""
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_MEANT]
    if not roots:
        return no_definition(tables, name)
    doubtful = 0

    def users(unit: Unit) -> list[Step]:
        nonlocal doubtful
        if is_test(unit) and unit not in roots:
            return []
        # Through a base at first alone: a framework calls nearly everything so in the end.
        calls, left = callers_of(tables, unit, alone=unit not in roots)
        doubtful += left
        return [Step(one.caller, one.caller.path, one.line, one.note) for one in calls]

    reached, cut = follow(roots, users)
    code = [one for one in reached if not is_test(one.unit)]
    tests = [one for one in reached if is_test(one.unit)]
    direct = sum(one.level == 1 for one in code)
    known = f"{direct:,} directly, {len(code) - direct:,} through these. {cut}"
    if doubtful:
        places = counted(doubtful, "place")
        known += f"Not counted: {places} that only have the same name; `references` lists them. "
    summary = f"a change of {name} may break {AT_LEAST if cut else ''}"
    summary += f"{counted(len(code), 'definition')} and {counted(len(tests), 'test')}"
    return _told(summary, f"{known}{_several(tables, roots)}{UNSEEN}", roots, [*code, *tests])


def _call_path(box: Toolbox, start: str, end: str) -> ToolResult:
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

    def steps(indirect: bool, by_name: bool, unit: Unit) -> list[Step]:
        calls = [Step(o.called, unit.path, o.line) for o in called(unit) if o.sure or by_name]
        if not indirect:
            return calls
        run = [one._replace(unit=unit) for one in calls for unit in overrides(tables, one.unit)]
        return [*calls, *run, *_handed_on(tables, unit)]

    for indirect, by_name, doubt in (
        (False, False, "No shorter one is known; others of equal length may be. "),
        (True, False, OVERRIDING),
        (True, True, BY_NAME_ALONE),
    ):
        reached, cut = follow(begins, partial(steps, indirect, by_name), wanted)
        known = f"{start} leads to {counted(len(reached), 'definition')}. {cut}"
        found = {one.unit.id: one for one in reached}
        way = [reached[-1]] if reached and reached[-1].unit.id in wanted else []
        while way and way[0].level > 1 and way[0].through:
            way.insert(0, found[way[0].through.id])
        if way:
            summary = f"{start} leads to {end} in {counted(len(way), 'call')}"
            return _told(summary, f"{doubt}{UNSEEN}", (), way, is_way=True)
    nothing = f"no way of calls from {start} to {end} was found"
    known += UNSEEN
    return ToolResult(summary=nothing, text=f"{nothing}. {known}", completeness=known)


def _handed_on(tables: Tables, unit: Unit) -> list[Step]:
    """The functions of its file that `unit` hands on, for others to call."""
    places = [one for one in tables.references(path=[unit.path]) if one.unit_id == unit.id]
    lines = {one.target: one.line for one in reversed(places) if one.kind == "use" and one.target}
    return [
        Step(one, one.path, lines[one.id]) for one in tables.by_ids(list(lines)) if one.is_method
    ]


def _subclasses(box: Toolbox, name: str) -> ToolResult:
    """What inherits or implements a class, directly or through others; of one that is defined
    elsewhere what names it as its base."""
    tables = box.tables()
    outside = Unit("", "", "class", last_word(name), name, "", 0, 0)
    here = [unit for unit in definitions(tables, name) if unit.kind in CLASS_KINDS]
    roots = here or [outside]
    by_name = 0

    def heirs(unit: Unit) -> list[Step]:
        nonlocal by_name
        if language_called(unit.language).implemented_for and unit.kind != "trait":
            return []  # of its name another crate may have a trait
        sites = usages(tables, unit) if unit.path else ()
        places = [one.reference for one in sites if one.reference.kind == "inherits"]
        if unit is outside or len(types_called(tables, unit.name)) == 1:
            # Re-exports are not all followed, and nothing else here is called so.
            named = tables.references(name=[unit.name], limit=CANDIDATES)
            more = [one for one in named if one.kind == "inherits" and one not in places]
            by_name, places = by_name + len(more), [*places, *more]
        having = [Step(one, one.path, one.start_line) for one in with_all_methods(tables, unit)]
        return [*(Step(*one) for one in heirs_at(tables, places)), *having]

    reached, cut = follow(roots, heirs)
    if not here and not reached:
        return no_definition(tables, name)
    direct = sum(one.level == 1 for one in reached)
    known = f"{direct:,} directly, {len(reached) - direct:,} through these. "
    if not here:
        known = f"{name} is not defined here: what names it as base, and what inherits from that. "
    if any(language_called(unit.language).implicit_interfaces for unit in here):
        known += "A type that has all methods of the interface is taken to implement it. "
    if by_name and here:
        known += f"Of {counted(by_name, 'place')} only the name is the same. "
    known += f"{_several(tables, roots)}{cut}"
    known += "Classes that are made while the program runs are not seen."
    kinds = ("subclass or implementation", "subclasses or implementations")
    summary = f"{name} has {AT_LEAST if cut else ''}{counted(len(reached), *kinds)}"
    return _told(summary, known, here, reached)


def follow(
    roots: Sequence[Unit], step: Callable[[Unit], Iterable[Step]], wanted: Collection[str] = ()
) -> tuple[list[Step], str]:
    """All that `step` leads to from `roots`, the nearest first, each definition once, until one of
    the ids `wanted` is reached; and, as a sentence, where it was cut off."""
    # One function of several with a name may be the way's end, another its beginning.
    seen, found = {unit.id for unit in roots}.difference(wanted), list[Step]()
    waiting = deque((unit, 1) for unit in roots)
    until = time.monotonic() + SECONDS
    followed = 0
    while waiting:
        unit, level = waiting.popleft()
        if followed == MOST_FOLLOWED or time.monotonic() > until:
            cut = f"Only the nearest {followed:,} were followed further: there may be more. "
            return found, cut
        followed += 1
        for one in step(unit):
            if one.unit.id not in seen:
                seen.add(one.unit.id)
                found.append(one._replace(level=level, through=unit))
                waiting.append((one.unit, level + 1))
                if one.unit.id in wanted:
                    return found, ""
    return found, ""


def _several(tables: Tables, roots: Sequence[Unit]) -> str:
    """Which definitions are meant, where it is not one; and where not all was looked at."""
    named = ", ".join(f"{unit.qualified_name} [{unit.place}]" for unit in roots)
    told = f"{len(roots):,} definitions are meant: {named}. " if len(roots) > 1 else ""
    places = (tables.references(name=[unit.name], limit=CANDIDATES) for unit in roots)
    if any(len(found) == CANDIDATES for found in places):
        told += f"Only the first {CANDIDATES:,} places of that name were looked at. "
    return told


def _step_place(step: Step) -> Place:
    """The line of an edge, by what it leads to."""
    one, through = step.unit, step.through or step.unit
    inside = [u for u in (one, through) if u.path == step.path and _code(u, step.line)]
    return Place(
        path=step.path, start_line=step.line, end_line=step.line, name=one.qualified_name,
        text=_code(inside[0], step.line) if inside else "", language=one.language,
        kind="test" if is_test(one) else one.kind,
    )  # fmt: skip


def _told(
    summary: str, known: str, roots: Sequence[Unit], reached: Sequence[Step], is_way: bool = False
) -> ToolResult:
    """`reached`, below `roots`, as places and as edges to where they began; those of a way of calls
    lead on from there."""
    units = {unit.id: unit for one in reached for unit in (one.unit, one.through) if unit}
    several = Counter(unit.qualified_name for unit in units.values())

    def called(unit: Unit) -> str:
        name = unit.path if unit.kind in TEXT_KINDS else unit.qualified_name
        return f"{name} ({unit.path})" if several[name] > 1 else name

    places, edges = list[Place](), list[Edge]()
    parts = [f"{unit.qualified_name or unit.name} [{unit.place}]" for unit in roots]
    for step in reached[:MOST_REACHED]:
        one, through = step.unit, step.through or step.unit
        start, end = called(one), called(through)
        note = ", ".join(filter(None, (step.note, f"through {end}" if step.level > 1 else "")))
        place = _step_place(step)
        told = f"{'  ' * step.level}{start} [{one.place}]  {step.line}: {place.text.strip()}"
        if is_way:
            start, end, note = end, start, f"calls {start}"
        parts.append(f"{told}{note and f'  ({note})'}")
        edges.append(Edge(start=start, end=end, label=f"line {step.line}" if is_way else ""))
        places.append(place.model_copy(update={"name": start, "note": note}))
    left = len(reached) - len(places)
    return list_result(
        summary, parts, "Ask for one of them.", total=len(reached), left=left,
        completeness=known.strip(), places=tuple(places), edges=tuple(edges),
    )  # fmt: skip


_WANTS: dict[str, Callable[[Toolbox, str], ToolResult]] = {
    "definition": symbol_definition,
    "callers": partial(_references, kind="call"),
    "references": _references,
    "callees": _callees,
    "subclasses": _subclasses,
    "impact": _impact,
}
