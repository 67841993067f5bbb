"""The tool for one name.

It shows the definition, or what references say about it: uses, callers, callees, subclasses, what a
change may break, and the calls that lead from one definition to another.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
"""Places listed that use the definition of a name in a line."""
MOST_ALSO = 12
"""Further lines that are named for one function."""
LONGEST_CALL = 100
ALL_CALLS = 1_000
MOST_FOLLOWED = 400
"""Definitions whose edges are followed: a hub of a code base is reached from all of it."""
SECONDS = 5.0
"""Time after which nothing more is followed."""
MOST_REACHED = 200
"""Definitions that are listed; all are counted."""
CERTAIN, POSSIBLE = SURENESS[0][1], SURENESS[-1][1]
AT_LEAST = "at least "
UNSEEN = "Calls by a computed name (reflection, a table of functions) are not seen."
OVERRIDING = (
    "Some of these calls name a method of a base class or interface that another method overrides, "
    "or pass on a function that is called later. "
)
BY_NAME_ALONE = "Some of these calls match by name only; no certain path was found. "


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
    """Look up a function, class or constant by name.

    Gives its code, what it calls, who calls it and the constants it uses. It tells apart what has
    the same name, where grep finds every line with the same letters. Several names at once, `a, b`,
    are cheaper than opening files.
    """
    names = list(filter(None, map(str.strip, name.split(","))))
    if len(names) > 1:
        return joined_results([symbol(box, part, want) for part in names])
    kind, _, end = " ".join(want.split()).partition(" to ")
    if kind == "path" and end:
        return _call_path(box, name, end)
    if want not in _WANTS:
        choices = ", ".join(_WANTS)
        raise UsageError(f"`want` cannot be {want!r}.", f"Use {choices} or `path to NAME`.")
    return _WANTS[want](box, name)


def _references(box: Toolbox, name: str, kind: str = "") -> ToolResult:
    """Return the places that call, use, import or inherit a definition, by the function around.

    A function has its first line and the numbers of further ones, marked where a use is not
    certain. For a `kind` (`call`) those in tests and the possible ones are counted, not listed.
    """
    tables = box.tables()
    units = definitions(tables, name)
    plain_name = name.removesuffix("()")
    references = tables.references(name=[last_word(plain_name)], limit=CANDIDATES)
    meanings = _meanings(tables, units)
    if not units:  # of what is defined elsewhere no more is known than its name
        owner = plain_name.rpartition(".")[0]
        meanings = {
            UsageSite(place, 0.0): "" for place in references if owner in ("", place.receiver)
        }
    sites = [site for site in meanings if kind in ("", site.reference.kind)]
    if not units and not sites:
        return no_definition(tables, name)
    groups = use_places(tables, sites, kind)
    shown_places = _listed(groups, kind)
    parts = by_file((place.path, _use_line(place)) for place in shown_places[:MOST_REFERENCES])
    sentences = _how_sure(sites, groups)
    if not units:
        sentences.append(f"{name} is not defined here.")
    if len({(unit.path, unit.qualified_name) for unit in units}) > 1:  # overloads are one
        sentences.append(_shares(units, Counter(meanings[site] for site in sites)))
    if others := len(meanings) - len(sites):
        places = counted(others, "place")
        sentences.append(f"Not counted: {places} of another kind, such as imports.")
    if (further := len(references) - len(meanings)) > 0:
        places = counted(further, "further place")
        sentences.append(f"{places} of that name may mean something else.")
    verb = "called" if kind else "referred to"
    at_least = ""
    if len(references) == CANDIDATES:
        at_least = AT_LEAST
        sentences.append(f"Only the first {CANDIDATES:,} places of that name were looked at.")
    first = [place for place, _ in groups[:MOST_REFERENCES]]
    end = units[0].qualified_name if len(units) == 1 else last_word(name)
    return list_result(
        f"{name} is {verb} in {at_least}{counted(len(sites), 'place')}", parts,
        "grep finds all lines that hold the name.", total=len(sites),
        left=len(shown_places) - len(parts), places=tuple(first), edges=_edges_to(end, first),
        completeness=" ".join([*sentences, UNSEEN]),
    )  # fmt: skip


def _listed(groups: Iterable[tuple[Place, bool]], kind: str) -> list[Place]:
    """Return the places to list: for a `kind` those outside tests that are at least likely."""
    places, surer = list[Place](), list[Place]()
    for place, in_test in groups:
        places.append(place)
        if kind and not in_test and POSSIBLE not in place.note:
            surer.append(place)
    return surer or places


def _use_line(place: Place) -> str:
    text = str(place.start_line)
    if place.name:
        text += f" in {place.name}"
    if place.note:
        text += f", {place.note}"
    return f"{text}: {place.text}"


def _how_sure(sites: Iterable[UsageSite], groups: Iterable[tuple[Place, bool]]) -> list[str]:
    """Return sentences that count the places of each level of sureness, and those in tests."""
    sentences: list[str] = []
    levels = Counter(sureness(site.confidence) for site in sites)
    numbers = [f"{levels[word]:,} {word}" for _, word in SURENESS if levels[word]]
    if len(levels) == 1:
        numbers = [f"all {next(iter(levels))}"]
    if levels:
        text = ", ".join(numbers)
        by_name = " (only the name is the same)" if levels[POSSIBLE] else ""
        sentences.append(f"{text[0].upper()}{text[1:]}{by_name}.")
    in_tests = sum(place.times for place, in_test in groups if in_test)
    if in_tests:
        sentences.append(f"{in_tests:,} of these in tests.")
    return sentences


def _shares(units: Sequence[Unit], numbers: Mapping[str, int]) -> str:
    """Say how many of the places mean each of `units`; `numbers` are by the unit's id."""
    first = sorted(units, key=lambda unit: -numbers[unit.id])[:MOST_MEANT]
    shares = [f"{unit.qualified_name} [{unit.place}] {numbers[unit.id]:,}" for unit in first]
    text = ", ".join(shares)
    if len(units) > MOST_MEANT:
        text += ", the others fewer or none"
    if numbers[""]:
        text += f"; {numbers['']:,} may mean any of them"
    return f"{len(units):,} definitions have this name: {text}."


def _edges_to(end: str, places: Iterable[Place]) -> tuple[Edge, ...]:
    """Return an edge to `end` from each definition with a use that is at least likely."""
    starts = [place.name or place.path for place in places if POSSIBLE not in place.note]
    return tuple(Edge(start=start, end=end) for start in dict.fromkeys(starts))


def _meanings(tables: Tables, units: Iterable[Unit]) -> dict[UsageSite, str]:
    """Return the places that use one of `units`, the surest first, with the id of that unit.

    A place that may mean several of them comes once, with '' if it means none of them surest.
    """
    once: dict[tuple[str, int, int], tuple[UsageSite, str]] = {}
    for unit in units:
        for site in usages(tables, unit):
            position = (site.reference.path, site.reference.line, site.reference.column)
            best, _ = once.get(position, (site, ""))
            if position not in once or site.confidence > best.confidence:
                once[position] = (site, unit.id)
            elif site.confidence == best.confidence:
                once[position] = (best, "")
    return dict(sorted(once.values(), key=lambda pair: -pair[0].confidence))


def use_places(
    tables: Tables, sites: Sequence[UsageSite], kind: str = ""
) -> list[tuple[Place, bool]]:
    """Group `sites` by the definition around them and by how sure they are.

    Return each group as a place, with whether it is in a test: what is at least likely first, then
    source before tests. `kind` is the one that was asked for, which the notes need not name.
    """
    around = _units_around(tables, sites)
    groups: dict[tuple[str, str, str, str], list[UsageSite]] = {}
    for site in sites:
        reference, level = site.reference, sureness(site.confidence)
        key = (reference.path, reference.unit_id, reference.kind, f"{level} {site.through}")
        groups.setdefault(key, []).append(site)
    ranked_places: list[tuple[tuple[bool, bool, float], Place]] = []
    for group in groups.values():
        first, confidence = group[0].reference, group[0].confidence
        unit = around.get(first.unit_id)
        in_test = is_test(unit) if unit else role_of(first.path) == "test"
        rank = (confidence < LIKELY, in_test, -confidence)
        ranked_places.append((rank, _use_place(group, unit, kind)))
    ranked_places.sort(key=lambda pair: pair[0])
    return [(place, in_test) for (_, in_test, _), place in ranked_places]


def _units_around(tables: Tables, sites: Iterable[UsageSite]) -> dict[str, Unit]:
    """Return id → unit of the units that the places are in."""
    units = tables.by_ids([site.reference.unit_id for site in sites])
    return {unit.id: unit for unit in units}


def _use_place(sites: Sequence[UsageSite], around: Unit | None, kind: str = "") -> Place:
    """Return the first of `sites`, which are in one definition, with the lines of the others."""
    first = sites[0].reference
    line, *others = sorted({site.reference.line for site in sites})
    notes = [] if first.kind == kind else [first.kind]
    if sites[0].through:
        notes.append(f"through {sites[0].through}")
    notes.append(_doubt(sites[0].confidence))
    if others:
        lines = some_of(list(map(str, others)), MOST_ALSO)
        notes.append(f"also {'lines' if len(others) > 1 else 'line'} {lines}")
    return Place(
        path=first.path,
        start_line=line,
        end_line=line,
        text=_code(around, line).strip() if around else "",
        name=around.qualified_name if around else "",
        kind=first.kind,
        note=", ".join(filter(None, notes)),
        times=len(sites),
    )


def _doubt(confidence: float) -> str:
    """Return `confidence` as a word, '' when it is certain."""
    word = sureness(confidence)
    return "" if word == CERTAIN else word


def _code(unit: Unit, line: int) -> str:
    """Return a line of `unit` by its number in the file, '' when it does not have that line."""
    lines, index = unit.source_code.split("\n"), line - unit.start_line
    return lines[index] if 0 <= index < len(lines) else ""


class NameReport(BaseModel, frozen=True):
    """The meanings of a name in a line of a file, and where they are used."""

    definitions: tuple[Place, ...]
    """The likeliest first, `text` the first line of the signature; `note` where it is unsure."""
    uses: tuple[Place, ...]
    """Each line once, the surest first, source before tests."""
    total: int
    """Lines where it is used, listed or not."""


def name_at(box: Toolbox, path: str, line: int, name: str) -> NameReport:
    """Return what `name` in a line of a file means, and where that is used."""
    tables = box.tables()
    meant = meant_at(tables, path, line, name)[:MOST_MEANT]
    definitions: list[Place] = []
    for unit, confidence in meant:
        head = unit.signature.strip().partition("\n")[0]
        definitions.append(Place.of(unit, text=head, note=_doubt(confidence)))
    sites: dict[tuple[str, int], UsageSite] = {}
    for site in _meanings(tables, [unit for unit, _ in meant]):
        sites[site.reference.path, site.reference.line] = site
    first = list(sites.values())[:MOST_USES]
    around = _units_around(tables, first)
    uses = [_use_place([site], around.get(site.reference.unit_id)) for site in first]
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
    """Return what a function surely calls in this repository, in the order of its text.

    Each callee has the line of the call and the names of what it calls itself. Calls into libraries
    are left out.
    """
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_MEANT]
    if not roots:
        return no_definition(tables, name)
    parts, steps, doubtful = list[str](), list[Step](), 0
    for root in roots:
        parts.append(f"{root.qualified_name or root.name} [{root.place}]")
        for call in calls_of(tables, root, ALL_CALLS):
            if not call.sure:
                doubtful += 1
                continue
            unit, code = call.called, _code(root, call.line).strip()[:LONGEST_CALL]
            steps.append(Step(unit, root.path, call.line, through=root))
            parts.append(f"  {unit.qualified_name} [{unit.place}]  {call.line}: {code}")
            names = [inner.called.qualified_name for inner in calls_of(tables, unit) if inner.sure]
            if names:
                parts.append(f"    → {', '.join(names)}")
    doubt = f"Not listed: {counted(doubtful, 'call')} with only the same name." if doubtful else ""
    edges = [Edge(start=name, end=step.unit.qualified_name) for step in steps]
    return list_result(
        f"{name} calls {counted(len(steps), 'function')}", parts, "Ask for one of them.",
        total=len(steps), completeness=doubt, places=tuple(map(_step_place, steps)),
        edges=tuple(edges),
    )  # fmt: skip


def _impact(box: Toolbox, name: str) -> ToolResult:
    """Return what a change of a definition may break, and the tests among that.

    That is all that calls, uses or inherits it, directly or through others.
    """
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
        return [Step(call.caller, call.caller.path, call.line, call.note) for call in calls]

    steps, cut = follow(roots, users)
    code, tests = list[Step](), list[Step]()
    for step in steps:
        (tests if is_test(step.unit) else code).append(step)
    doubt = f"{_levels(code)}{cut}"
    if doubtful:
        places = counted(doubtful, "place")
        doubt += f"Not counted: {places} that only have the same name; `references` lists them. "
    summary = f"a change of {name} may break {AT_LEAST if cut else ''}"
    summary += f"{counted(len(code), 'definition')} and {counted(len(tests), 'test')}"
    return _steps_result(summary, f"{doubt}{_several(tables, roots)}{UNSEEN}", roots, code + tests)


def _levels(steps: Sequence[Step]) -> str:
    direct = sum(step.level == 1 for step in steps)
    return f"{direct:,} directly, {len(steps) - direct:,} through these. "


def _call_path(box: Toolbox, start: str, end: str) -> ToolResult:
    """Return the shortest way of calls from one function to another, each call with its line.

    Where no way is sure, it has calls of which only the name is the same.
    """
    tables = box.tables()
    begins, ends = definitions(tables, start), definitions(tables, end)
    if not begins or not ends:
        return no_definition(tables, end if begins else start)
    begins = [unit for unit in begins if unit not in ends] or begins
    targets = {unit.id for unit in ends}

    @cache
    def calls_from(unit: Unit) -> list[Call]:
        return calls_of(tables, unit, ALL_CALLS)

    def next_steps(indirect: bool, by_name: bool, unit: Unit) -> list[Step]:
        calls = [call for call in calls_from(unit) if call.sure or by_name]
        direct = [Step(call.called, unit.path, call.line) for call in calls]
        if not indirect:
            return direct
        overriding: list[Step] = []
        for step in direct:
            overriding += [step._replace(unit=method) for method in overrides(tables, step.unit)]
        return direct + overriding + _handed_on(tables, unit)

    for indirect, by_name, doubt in (
        (False, False, "There may be other paths of the same length. "),
        (True, False, OVERRIDING),
        (True, True, BY_NAME_ALONE),
    ):
        steps, cut = follow(begins, partial(next_steps, indirect, by_name), targets)
        way = _way(steps, targets)
        if way:
            summary = f"{start} leads to {end} in {counted(len(way), 'call')}"
            return _steps_result(summary, f"{doubt}{UNSEEN}", (), way, is_way=True)
    nothing = f"no path of calls from {start} to {end} was found"
    extent = f"{start} leads to {counted(len(steps), 'definition')}. {cut}{UNSEEN}"
    return ToolResult(summary=nothing, text=f"{nothing}. {extent}", completeness=extent)


def _way(steps: Sequence[Step], targets: Collection[str]) -> list[Step]:
    """Return the steps that lead to the last one of `steps`, if that is one of `targets`."""
    if not steps or steps[-1].unit.id not in targets:
        return []
    by_id = {step.unit.id: step for step in steps}
    way = [steps[-1]]
    while way[0].level > 1 and way[0].through:
        way.insert(0, by_id[way[0].through.id])
    return way


def _handed_on(tables: Tables, unit: Unit) -> list[Step]:
    """Return the functions of its file that `unit` hands on, for others to call."""
    lines: dict[str, int] = {}
    for reference in tables.references(path=[unit.path]):
        if reference.unit_id == unit.id and reference.kind == "use" and reference.target:
            lines.setdefault(reference.target, reference.line)
    functions = [unit for unit in tables.by_ids(list(lines)) if unit.is_method]
    return [Step(function, function.path, lines[function.id]) for function in functions]


def _subclasses(box: Toolbox, name: str) -> ToolResult:
    """Return what inherits or implements a class, directly or through others.

    Of a class that is defined elsewhere it is what names it as its base.
    """
    tables = box.tables()
    outside = Unit("", "", "class", last_word(name), name, "", 0, 0)
    here = [unit for unit in definitions(tables, name) if unit.kind in CLASS_KINDS]
    roots = here or [outside]
    by_name = 0

    def heirs(unit: Unit) -> list[Step]:
        nonlocal by_name
        if language_called(unit.language).implemented_for and unit.kind != "trait":
            return []  # of its name another crate may have a trait
        sites = usages(tables, unit) if unit.path else []
        places = [site.reference for site in sites if site.reference.kind == "inherits"]
        if unit is outside or len(types_called(tables, unit.name)) == 1:
            # Re-exports are not all followed, and nothing else here is called so.
            named = tables.references(name=[unit.name], limit=CANDIDATES)
            more = [place for place in named if place.kind == "inherits" and place not in places]
            by_name += len(more)
            places += more
        steps = [Step(*heir) for heir in heirs_at(tables, places)]
        steps += [Step(heir, heir.path, heir.start_line) for heir in with_all_methods(tables, unit)]
        return steps

    steps, cut = follow(roots, heirs)
    if not here and not steps:
        return no_definition(tables, name)
    extent = _levels(steps)
    if not here:
        extent = f"{name} is not defined here; these name it as their base, or inherit from those. "
    if any(language_called(unit.language).implicit_interfaces for unit in here):
        extent += "A type that has all methods of the interface is taken to implement it. "
    if by_name and here:
        extent += f"{counted(by_name, 'place')} of these only with the same name. "
    extent += f"{_several(tables, roots)}{cut}"
    extent += "Classes that the program creates at run time are not seen."
    kinds = ("subclass or implementation", "subclasses or implementations")
    summary = f"{name} has {AT_LEAST if cut else ''}{counted(len(steps), *kinds)}"
    return _steps_result(summary, extent, here, steps)


def follow(
    roots: Sequence[Unit], step: Callable[[Unit], Iterable[Step]], targets: Collection[str] = ()
) -> tuple[list[Step], str]:
    """Return all that `step` leads to from `roots`, the nearest first, each definition once.

    It ends at the first unit whose id is one of `targets`. The second value is a sentence that says
    where it was cut off, '' if it was not.
    """
    # One function of several with a name may be the way's end, another its beginning.
    ids, steps = {unit.id for unit in roots}.difference(targets), list[Step]()
    queue = deque((unit, 1) for unit in roots)
    until = time.monotonic() + SECONDS
    followed = 0
    while queue:
        unit, level = queue.popleft()
        if followed == MOST_FOLLOWED or time.monotonic() > until:
            cut = f"Only the nearest {followed:,} were followed further: there may be more. "
            return steps, cut
        followed += 1
        for next_step in step(unit):
            if next_step.unit.id not in ids:
                ids.add(next_step.unit.id)
                steps.append(next_step._replace(level=level, through=unit))
                queue.append((next_step.unit, level + 1))
                if next_step.unit.id in targets:
                    return steps, ""
    return steps, ""


def _several(tables: Tables, roots: Sequence[Unit]) -> str:
    """Say which definitions are meant, if several, and whether not all places were looked at."""
    text = ""
    if len(roots) > 1:
        names = ", ".join(f"{unit.qualified_name} [{unit.place}]" for unit in roots)
        text = f"{len(roots):,} definitions are meant: {names}. "
    for unit in roots:
        if len(tables.references(name=[unit.name], limit=CANDIDATES)) == CANDIDATES:
            return f"{text}Only the first {CANDIDATES:,} places of that name were looked at. "
    return text


def _step_place(step: Step) -> Place:
    """Return the line of an edge, named after the definition that it leads to."""
    unit, text = step.unit, ""
    for holder in (unit, step.through or unit):
        if not text and holder.path == step.path:
            text = _code(holder, step.line)
    return Place(
        path=step.path, start_line=step.line, end_line=step.line, name=unit.qualified_name,
        text=text, language=unit.language, kind="test" if is_test(unit) else unit.kind,
    )  # fmt: skip


def _steps_result(
    summary: str, extent: str, roots: Iterable[Unit], steps: Sequence[Step], is_way: bool = False
) -> ToolResult:
    """Return `steps` as places and edges, the text below `roots`; `extent` says how sure it is.

    Edges lead to where the steps began; those of a way of calls lead on from there.
    """
    names = _names_of(steps)
    places, edges = list[Place](), list[Edge]()
    parts = [f"{unit.qualified_name or unit.name} [{unit.place}]" for unit in roots]
    for step in steps[:MOST_REACHED]:
        start, end = names[step.unit.id], names[(step.through or step.unit).id]
        notes = [step.note] if step.note else []
        if step.level > 1:
            notes.append(f"through {end}")
        note, label = ", ".join(notes), ""
        place = _step_place(step)
        text = f"{'  ' * step.level}{start} [{step.unit.place}]  {step.line}: {place.text.strip()}"
        if is_way:
            start, end, note, label = end, start, f"calls {start}", f"line {step.line}"
        parts.append(f"{text}  ({note})" if note else text)
        edges.append(Edge(start=start, end=end, label=label))
        places.append(place.model_copy(update={"name": start, "note": note}))
    left = len(steps) - len(places)
    return list_result(
        summary, parts, "Ask for one of them.", total=len(steps), left=left,
        completeness=extent.strip(), places=tuple(places), edges=tuple(edges),
    )  # fmt: skip


def _names_of(steps: Iterable[Step]) -> dict[str, str]:
    """Return id → name of the units at both ends, with the path where several have that name."""
    units: dict[str, Unit] = {}
    for step in steps:
        units[step.unit.id] = step.unit
        if step.through:
            units[step.through.id] = step.through
    several = Counter(unit.qualified_name for unit in units.values())
    names: dict[str, str] = {}
    for id_, unit in units.items():
        name = unit.path if unit.kind in TEXT_KINDS else unit.qualified_name
        names[id_] = f"{name} ({unit.path})" if several[name] > 1 else name
    return names


_WANTS: dict[str, Callable[[Toolbox, str], ToolResult]] = {
    "definition": symbol_definition,
    "callers": partial(_references, kind="call"),
    "references": _references,
    "callees": _callees,
    "subclasses": _subclasses,
    "impact": _impact,
}
"""Relation that can be asked for → its function."""
