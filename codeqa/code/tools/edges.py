"""Tools that follow references: where a name is used, what calls it, what it calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from codeqa.code import UsageSite, usages
from codeqa.code.calls import Call
from codeqa.code.calls import callees as calls_of
from codeqa.code.calls import callers as callers_of
from codeqa.code.relations import is_test
from codeqa.code.surroundings import CANDIDATES
from codeqa.code.tools.declaration import Toolbox
from codeqa.code.tools.finding import MOST_DEFINITIONS, Name, definitions, no_definition
from codeqa.code.tools.results import Edge, Place, ToolResult, by_file, list_result
from codeqa.code.usages import LIKELY, SURENESS
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.tokens import last_word
from codeqa.types import Unit

MOST_REFERENCES = 50
MOST_ALSO = 12
"""Further lines told of one function."""
MOST_DEPTH = 3
BREADTH, ALL_CALLS = 12, 1_000
"""Calls followed from one definition, for a tree that is read rather than measured; and looked
at, to count them."""
UNSEEN = "Calls by a computed name (reflection, a table of functions) are not seen."
_DONE = {"call": "called", "use": "used", "import": "imported", "inherits": "inherited from"}

ReferenceKind = Annotated[
    Literal["", "call", "use", "import", "inherits"], Field(description="Only places of this kind.")
]
Skip = Annotated[int, Field(ge=0, description="How many to leave out, as seen before.")]
Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH, description="Levels that are followed, 1 to 3.")]


def find_references(
    box: Toolbox, name: Name, kind: ReferenceKind = "", skip: Skip = 0
) -> ToolResult:
    """Every place that calls, uses, imports or inherits a definition, by the functions that they
    are in, source before tests, each with its first line and the numbers of further ones; marked
    where it is only likely or possible. Says how many there are in all."""
    tables = box.tables()
    units = definitions(tables, name)
    every = _sites(tables, name, units)
    found = [one for one in every if kind in ("", one[0].reference.kind)]
    if not units and not found:
        return no_definition(tables, name)
    groups, in_tests = use_places(tables, [site for site, _ in found], kind)
    places = groups[skip : skip + MOST_REFERENCES]
    parts = by_file(
        (p.path, f"{p.start_line}{p.name and f' in {p.name}'}{p.note and f', {p.note}'}: {p.text}")
        for p in places
    )
    verb = _DONE.get(kind, "referred to")
    summary = f"{name} is {verb} in {counted(len(found), 'place')}"
    hint = "`skip` leads to them; grep finds all lines that hold the name."
    known = _completeness(tables, name, kind, units, every, in_tests)
    last = units[0].qualified_name if len(units) == 1 else last_word(name)
    sure = (place for place in places if SURENESS[-1][1] not in place.note)
    edges = dict.fromkeys((place.name or place.path, last) for place in sure)
    arrows = tuple(Edge(start=start, end=end) for start, end in edges)
    left = len(groups) - skip - len(parts)
    return list_result(summary, parts, hint, total=len(found), left=left, told=places,
                       edges=arrows, completeness=known)  # fmt: skip


def use_places(
    tables: Tables, sites: Sequence[UsageSite], kind: str = ""
) -> tuple[list[Place], int]:
    """`sites`, which were asked for by `kind`, by the definition that they are in and how sure they
    are: what is at least likely first, source before tests; and how many of all are in tests."""
    ids = dict.fromkeys(site.reference.unit_id for site in sites)
    around = {unit.id: unit for unit in tables.by_ids(list(ids))}

    def in_test(site: UsageSite) -> bool:
        unit = around.get(site.reference.unit_id)
        return is_test(unit) if unit else role_of(site.reference.path) == "test"

    groups: dict[tuple[str, str, str, str], list[UsageSite]] = {}
    for site in sites:
        one = site.reference
        key = (one.path, one.unit_id, one.kind, f"{site.sureness} {site.through}")
        groups.setdefault(key, []).append(site)

    def order(held: Sequence[UsageSite]) -> tuple[bool, bool, float]:
        return held[0].confidence < LIKELY, in_test(held[0]), -held[0].confidence

    ordered = sorted(groups.values(), key=order)
    places = [_place(held, around.get(held[0].reference.unit_id), kind) for held in ordered]
    return places, sum(map(in_test, sites))


def _sites(tables: Tables, name: str, units: Sequence[Unit]) -> list[tuple[UsageSite, str]]:
    """The places, surest first, each with the id of the definition that it surest means: one that
    may mean several of them is one place, and with '' where it means none of them surer."""
    once: dict[tuple[str, int, int], tuple[UsageSite, str]] = {}
    for unit in units:
        for site in usages(tables, unit, CANDIDATES).references:
            at = (site.reference.path, site.reference.line, site.reference.column)
            best, _ = once.get(at, (site, ""))
            if at not in once or site.confidence > best.confidence:
                once[at] = (site, unit.id)
            elif site.confidence == best.confidence:
                once[at] = (best, "")
    if not units:  # what is defined elsewhere is known by its name alone
        owner = name.removesuffix("()").rpartition(".")[0]
        for place in tables.references_named(last_word(name.removesuffix("()")), CANDIDATES):
            if owner in ("", place.receiver):
                at = (place.path, place.line, place.column)
                once[at] = (UsageSite(place, 0.0), "")
    return sorted(once.values(), key=lambda one: -one[0].confidence)


def _completeness(
    tables: Tables,
    name: str,
    kind: str,
    units: Sequence[Unit],
    every: Sequence[tuple[UsageSite, str]],
    in_tests: int,
) -> str:
    """How sure the places are, which definitions they mean, what was left out, as sentences."""
    found = [one for one in every if kind in ("", one[0].reference.kind)]
    levels = Counter(site.sureness for site, _ in found)
    told = [f"{levels[one]:,} {one}" for _, one in SURENESS if levels[one]]
    parts = [f"{', '.join(told)}{' (only the name is the same)' * bool(levels['possible'])}."]
    parts = parts if found else []
    if in_tests:
        parts.append(f"{in_tests:,} of these in tests.")
    if not units:
        parts.append(f"{name} is not defined here.")
    if len(units) > 1:
        meant = Counter(owner for _, owner in found)
        each = [
            f"{unit.qualified_name} [{unit.location}] {meant[unit.id]:,}"
            for unit in sorted(units, key=lambda unit: -meant[unit.id])[:MOST_DEFINITIONS]
        ]
        rest = ", the others fewer or none" * (len(units) > MOST_DEFINITIONS)
        rest += f"; {meant['']:,} may mean any of them" * bool(meant[""])
        parts.append(f"{len(units):,} definitions are called so: {', '.join(each)}{rest}.")
    named = tables.references_named(last_word(name.removesuffix("()")), CANDIDATES)
    if len(every) > len(found):
        others = counted(len(every) - len(found), "place")
        parts.append(f"Of another kind, such as imports: {others}.")
    if (further := len(named) - len(every)) > 0:
        parts.append(f"{counted(further, 'further place')} of that name may mean something else.")
    if len(named) == CANDIDATES:
        parts.append(f"Only the first {CANDIDATES:,} places of that name were looked at.")
    return " ".join([*parts, UNSEEN])


def _place(sites: Sequence[UsageSite], around: Unit | None, asked: str) -> Place:
    """The first of `sites`, which are in one definition, with the lines of the others."""
    lines = sorted({site.reference.line for site in sites})
    line, *others = lines
    code = around.source_code.split("\n") if around else []
    at = line - around.start_line if around else -1
    kind, sure = sites[0].reference.kind, sites[0].sureness
    also = ", ".join(map(str, others[:MOST_ALSO]))
    also += f" and {len(others) - MOST_ALSO} more" * (len(others) > MOST_ALSO)
    through = sites[0].through and f"through {sites[0].through}"
    told = (kind * (kind != asked), through, sure * (sure != SURENESS[0][1]),
            also and f"also {'lines' if len(others) > 1 else 'line'} {also}")  # fmt: skip
    return Place(
        path=sites[0].reference.path,
        start_line=line,
        end_line=line,
        text=code[at].strip() if 0 <= at < len(code) else "",
        name=around.qualified_name if around else "",
        kind=kind,
        note=", ".join(filter(None, told)),
        times=len(sites),
    )


def callers(box: Toolbox, name: Name, depth: Depth = 1) -> ToolResult:
    """The functions that surely call a function, each with the line of its call, and with a depth
    those that call them, as a tree. Tests, and calls that may mean another of that name, are
    counted and not listed."""
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_DEFINITIONS]
    tests: set[str] = set()
    possible: Counter[str] = Counter()

    def who_calls(unit: Unit) -> list[tuple[Unit, Call]]:
        # Through a base at first alone: a framework calls nearly everything so in the end.
        found = callers_of(tables, unit, alone=unit not in roots)
        possible[unit.qualified_name] += found.doubtful
        outside = [one for one in found.calls if one.caller.role == "test" != unit.role]
        tests.update(one.caller.id for one in outside)
        return [(one.caller, one) for one in found.calls if one not in outside]

    found = _tree(tables, name, roots, depth, who_calls, "called by", "caller")
    told = f"\nAnd by {counted(len(tests), 'test')}." if tests else ""
    if unsure := ", ".join(f"{number:,} of {one}" for one, number in possible.items() if number):
        told += f"\nPossible calls, which find_references lists: {unsure}."
    return found.model_copy(update={"text": found.text + told})


def callees(box: Toolbox, name: Name, depth: Depth = 1) -> ToolResult:
    """What a function calls in this repository, in the order of its text, each with the line of the
    call, and with a depth what those call, as a tree. Calls into libraries are left out."""
    tables = box.tables()
    roots = definitions(tables, name)[:MOST_DEFINITIONS]

    def what_it_calls(unit: Unit) -> list[tuple[Unit, Call]]:
        return [(call.called, call) for call in calls_of(tables, unit, ALL_CALLS)]

    return _tree(tables, name, roots, depth, what_it_calls, "calls", "callee")


def _tree(
    tables: Tables,
    name: str,
    roots: Sequence[Unit],
    depth: int,
    follow: Callable[[Unit], Sequence[tuple[Unit, Call]]],
    verb: str,
    noun: str,
) -> ToolResult:
    """What `follow` leads to from `roots`, `depth` levels deep, each once, with the call there."""
    if not roots:
        return no_definition(tables, name)
    seen = {unit.id for unit in roots}
    left: set[str] = set()
    lines: list[str] = []
    places: list[Place] = []
    # A stack and no recursion: what comes next is what was put there last.
    waiting: list[tuple[Unit, Call | None, int]] = [(unit, None, 0) for unit in reversed(roots)]
    while waiting:
        unit, call, level = waiting.pop()
        told = f"{'  ' * level}{unit.qualified_name or unit.name} [{unit.location}]"
        if call:
            holder, line, mark = call.caller, call.line, call.note
            code = holder.source_code.split("\n")[line - holder.start_line]
            told += f"  {line}: {code.strip()}{mark and f'  ({mark})'}"
            places.append(
                Place(path=holder.path, start_line=line, end_line=line, text=code,
                      language=holder.language, name=unit.qualified_name, kind=unit.kind, note=mark)
            )  # fmt: skip
        lines.append(told)
        if level < depth:
            every = [step for step in follow(unit) if step[0].id not in seen]
            found = every[:BREADTH]
            seen.update(one.id for one, _ in found)
            left.update(one.id for one, _ in every[BREADTH:])
            waiting += [(*step, level + 1) for step in reversed(found)]
    total = len(places) + len(left - seen)
    summary = f"{name} {verb} {counted(total, 'function')}"
    hint = f"At most {BREADTH} of each are told; ask for the {noun}s of one of them."
    more = total - len(places)
    return list_result(summary, lines, hint, total=total, left=more, places=tuple(places))
