"""Follow edges from a definition: callees, impact, paths of calls, subclasses."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from codeqa.code.calls import Call, is_test, unread
from codeqa.code.calls import callees as calls_of
from codeqa.code.calls import callers as callers_of
from codeqa.code.evidence import MOST_EDGES
from codeqa.code.inheritance import heirs_at, overrides, with_all_methods
from codeqa.code.names import types_called
from codeqa.code.tools.references import AT_LEAST, UNSEEN, code_line
from codeqa.code.tools.search import MOST_MEANT, definitions, no_definition
from codeqa.code.tools.tool import (
    Arrow,
    CodeSpan,
    Toolbox,
    ToolResult,
    list_result,
)
from codeqa.code.usages import usages
from codeqa.languages import language_called
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.tokens import last_word
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Unit

LONGEST_CALL = 100
ALL_CALLS = 1_000
MOST_FOLLOWED = 400
"""Definitions whose edges are followed: a hub of a code base is reached from all of it."""
WALK_SECONDS = 5.0
"""Time after which nothing more is followed."""
MOST_REACHED = 200
"""Definitions that are listed; all are counted."""
OVERRIDING = (
    "Some of these calls name a method of a base class or interface that another method overrides, "
    "or pass on a function that is called later. "
)
BY_NAME_ALONE = "Some of these calls match by name only; no certain path was found. "


class Hop(NamedTuple):
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


def callees(box: Toolbox, name: str) -> ToolResult:
    """Return what a function surely calls in this repository, in the order of its text.

    Each callee has the line of the call and the names of what it calls itself. Calls into libraries
    are left out.
    """
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_MEANT]
    if not roots:
        return no_definition(tables, name)
    parts, steps, doubtful = list[str](), list[Hop](), 0
    for root in roots:
        parts.append(f"{root.qualified_name or root.name} [{root.span}]")
        for call in calls_of(tables, root, ALL_CALLS):
            if not call.sure:
                doubtful += 1
                continue
            unit, code = call.called, code_line(root, call.line).strip()[:LONGEST_CALL]
            steps.append(Hop(unit, root.path, call.line, through=root))
            parts.append(f"  {unit.qualified_name} [{unit.span}]  {call.line}: {code}")
            names = [inner.called.qualified_name for inner in calls_of(tables, unit) if inner.sure]
            if names:
                parts.append(f"    → {', '.join(names)}")
    doubt = f"Not listed: {counted(doubtful, 'call')} with only the same name." if doubtful else ""
    edges = [Arrow(start=name, end=step.unit.qualified_name) for step in steps]
    return list_result(
        f"{name} calls {counted(len(steps), 'function')}", parts, "Ask for one of them.",
        total=len(steps), completeness=doubt, places=tuple(map(_hop_span, steps)),
        edges=tuple(edges),
    )  # fmt: skip


def impact(box: Toolbox, name: str) -> ToolResult:
    """Return what a change of a definition may break, and the tests among that.

    That is all that calls, uses or inherits it, directly or through others.
    """
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_MEANT]
    if not roots:
        return no_definition(tables, name)
    doubtful = 0

    def users(unit: Unit) -> list[Hop]:
        nonlocal doubtful
        if is_test(unit) and unit not in roots:
            return []
        # Through a base at first alone: a framework calls nearly everything so in the end.
        is_root = unit in roots
        calls, left = callers_of(tables, unit, alone=not is_root, reads=is_root)
        doubtful += left
        return [Hop(call.caller, call.caller.path, call.line, call.note) for call in calls]

    steps, cut = follow(roots, users)
    code, tests = list[Hop](), list[Hop]()
    for step in steps:
        (tests if is_test(step.unit) else code).append(step)
    doubt = f"{_levels(code)}{cut}"
    if doubtful:
        places = counted(doubtful, "place")
        doubt += f"Not counted: {places} with only the same name; the list of uses has them. "
    summary = f"a change of {name} may break {AT_LEAST if cut else ''}"
    summary += f"{counted(len(code), 'definition')} and {counted(len(tests), 'test')}"
    unseen = UNSEEN if steps else unread(tables, roots) + UNSEEN
    return _steps_result(summary, f"{doubt}{_several(tables, roots)}{unseen}", roots, code + tests)


def _levels(steps: Sequence[Hop]) -> str:
    direct = sum(step.level == 1 for step in steps)
    return f"{direct:,} directly, {len(steps) - direct:,} through these. "


def call_path(box: Toolbox, start: str, end: str) -> ToolResult:
    """Return the shortest way of calls from one function to another, each call with its line.

    Where no way is sure, it has calls of which only the name is the same.
    """
    tables = box.tables()
    begins, ends = definitions(tables, start), definitions(tables, end)
    if not begins or not ends:
        return no_definition(tables, end if begins else start)
    begins = [unit for unit in begins if unit not in ends] or begins
    targets = {unit.id for unit in ends}

    overridden_by = cache(lambda unit: overrides(tables.around(unit.path), unit))

    @cache
    def calls_from(unit: Unit) -> list[Call]:
        tables.around(unit.path).copy_now()
        return calls_of(tables, unit, ALL_CALLS)

    def next_steps(indirect: bool, by_name: bool, unit: Unit) -> list[Hop]:
        calls = [call for call in calls_from(unit) if call.sure or by_name]
        direct = [Hop(call.called, unit.path, call.line) for call in calls]
        if not indirect:
            return direct
        overriding: list[Hop] = []
        for step in direct:
            overriding += [step._replace(unit=method) for method in overridden_by(step.unit)]
        return direct + overriding + _handed_on(tables.around(unit.path), unit)

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


def _way(steps: Sequence[Hop], targets: Collection[str]) -> list[Hop]:
    """Return the steps that lead to the last one of `steps`, if that is one of `targets`."""
    if not steps or steps[-1].unit.id not in targets:
        return []
    by_id = {step.unit.id: step for step in steps}
    way = [steps[-1]]
    while way[0].level > 1 and way[0].through:
        way.insert(0, by_id[way[0].through.id])
    return way


def _handed_on(tables: Tables, unit: Unit) -> list[Hop]:
    """Return the functions of its file that `unit` hands on, for others to call."""
    lines: dict[str, int] = {}
    for reference in tables.references(path=[unit.path]):
        if reference.unit_id == unit.id and reference.kind == "use" and reference.target:
            lines.setdefault(reference.target, reference.line)
    functions = [unit for unit in tables.by_ids(list(lines)) if unit.is_method]
    return [Hop(function, function.path, lines[function.id]) for function in functions]


def subclasses(box: Toolbox, name: str) -> ToolResult:
    """Return what inherits or implements a class, directly or through others.

    For a class defined elsewhere, return the classes that name it as their base.
    """
    tables = box.tables()
    outside = Unit("", "", "class", last_word(name), name, "", 0, 0)
    here = [unit for unit in definitions(tables, name) if unit.kind in CLASS_KINDS]
    roots = here or [outside]
    by_name = 0

    def heirs(unit: Unit) -> list[Hop]:
        nonlocal by_name
        if language_called(unit.language).implemented_for and unit.kind != "trait":
            return []  # another crate may have a trait of this name
        sites = usages(tables, unit) if unit.path else []
        edges = [site.reference for site in sites if site.reference.kind == "inherits"]
        if unit is outside or len(types_called(tables, unit.name)) == 1:
            # Re-exports are not all followed, and nothing else here is called so.
            named = tables.references(name=[unit.name], limit=MOST_EDGES)
            more = [edge for edge in named if edge.kind == "inherits" and edge not in edges]
            by_name += len(more)
            edges += more
        steps = [Hop(*heir) for heir in heirs_at(tables, edges)]
        steps += [Hop(heir, heir.path, heir.start_line) for heir in with_all_methods(tables, unit)]
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
    roots: Sequence[Unit], step: Callable[[Unit], Iterable[Hop]], targets: Collection[str] = ()
) -> tuple[list[Hop], str]:
    """Return all that `step` leads to from `roots`, the nearest first, each definition once.

    It ends at the first unit whose id is one of `targets`. The second value is a sentence that says
    where it was cut off, '' if it was not.
    """
    # Two functions of one name may be the start and the end.
    ids, steps = {unit.id for unit in roots}.difference(targets), list[Hop]()
    queue = deque((unit, 1) for unit in roots)
    until = time.monotonic() + WALK_SECONDS
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
        names = ", ".join(f"{unit.qualified_name} [{unit.span}]" for unit in roots)
        text = f"{len(roots):,} definitions are meant: {names}. "
    for unit in roots:
        if len(tables.references(name=[unit.name], limit=MOST_EDGES)) == MOST_EDGES:
            return f"{text}Only the first {MOST_EDGES:,} places of that name were looked at. "
    return text


def _hop_span(step: Hop) -> CodeSpan:
    """Return the line of an edge, named after the definition that it leads to."""
    unit, text = step.unit, ""
    for holder in (unit, step.through or unit):
        if not text and holder.path == step.path:
            text = code_line(holder, step.line)
    return CodeSpan(
        path=step.path, start_line=step.line, end_line=step.line, name=unit.qualified_name,
        text=text, language=unit.language, kind="test" if is_test(unit) else unit.kind,
    )  # fmt: skip


def _steps_result(
    summary: str, extent: str, roots: Iterable[Unit], steps: Sequence[Hop], is_way: bool = False
) -> ToolResult:
    """Return `steps` as places and edges, the text below `roots`; `extent` says how sure it is.

    Edges lead to where the steps began; those of a way of calls lead on from there.
    """
    names = _names_of(steps)
    places, edges = list[CodeSpan](), list[Arrow]()
    parts = [f"{unit.qualified_name or unit.name} [{unit.span}]" for unit in roots]
    for step in steps[:MOST_REACHED]:
        start, end = names[step.unit.id], names[(step.through or step.unit).id]
        notes = [step.note] if step.note else []
        if step.level > 1:
            notes.append(f"through {end}")
        note, label = ", ".join(notes), ""
        span = _hop_span(step)
        text = f"{'  ' * step.level}{start} [{step.unit.span}]  {step.line}: {span.text.strip()}"
        if is_way:
            start, end, note, label = end, start, f"calls {start}", f"line {step.line}"
        parts.append(f"{text}  ({note})" if note else text)
        edges.append(Arrow(start=start, end=end, label=label))
        places.append(span.model_copy(update={"name": start, "note": note}))
    left = len(steps) - len(places)
    return list_result(
        summary, parts, "Ask for one of them.", total=len(steps), left=left,
        completeness=extent.strip(), places=tuple(places), edges=tuple(edges),
    )  # fmt: skip


def _names_of(steps: Iterable[Hop]) -> dict[str, str]:
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
