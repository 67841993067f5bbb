"""Calls, in both directions: what a definition calls, and what calls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.code.imports import import_evidence
from codeqa.code.surroundings import CANDIDATES, related
from codeqa.code.usages import LIKELY, SELF_NAMES, SHORT_NAME, usages
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Reference, Unit

NAMESAKES = 2_000
"""Definitions that all names called by one function may have: a function of 300 lines in a code
base of 900,000 calls 36 names that have 413."""
BY_NAME = "possible: only the name is the same"


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the definition that it stands in, what it calls, and its line in the caller's file;
    or another use that a change of what is used would reach."""

    caller: Unit
    called: Unit
    line: int
    note: str = ""
    """BY_NAME where it merely is the likeliest of that name; or which related method is named."""

    @property
    def sure(self) -> bool:
        """Decided by file, import or receiver."""
        return self.note != BY_NAME


@dataclass(frozen=True, slots=True)
class Callers:
    """The definitions that call one, each by its first call, and how many places are left out
    because they may mean another one of that name."""

    calls: tuple[Call, ...]
    doubtful: int


def callers(
    tables: Tables,
    unit: Unit,
    least: float = LIKELY,
    *,
    only_calls: bool = False,
    alone: bool = False,
    limit: int = CANDIDATES,
) -> Callers:
    """What calls `unit`, or uses it otherwise unless `only_calls`, at least so surely; surest
    first, source before tests. Imports are no use. `alone` and `limit` are those of `usages`."""
    every = usages(tables, unit, limit, alone=alone).references
    sites = [
        site
        for site in every
        if site.confidence >= least
        and (site.reference.kind == "call" or not (only_calls or site.reference.kind == "import"))
    ]
    inside = {one.id: one for one in tables.by_ids([site.reference.unit_id for site in sites])}
    found: dict[str, Call] = {}
    for site in sites:
        if around := inside.get(site.reference.unit_id):
            note = site.through and f"through {site.through}"
            found.setdefault(around.id, Call(around, unit, site.reference.line, note))
    doubtful = sum(site.confidence < least and site.reference.kind != "import" for site in every)
    return Callers(tuple(found.values()), doubtful)


def callees(tables: Tables, unit: Unit, limit: int = 20) -> list[Call]:
    """What `unit` calls, each definition once, by its first call; at most `limit`.

    A call that the file does not decide is taken for the definition that the file imports, that
    the class inherits or that alone has this name. Calls into libraries are left out.
    """
    tables = tables.around(unit.path)
    calls = [
        place
        for place in tables.references_in(unit.path)
        if place.kind == "call" and place.unit_id == unit.id and place.target != unit.id
    ]
    decided = {one.id: one for one in tables.by_ids([c.target for c in calls if c.target])}
    open_names = dict.fromkeys(name_key(call.name) for call in calls if not call.target)
    by_name: dict[str, list[Unit]] = {}
    # Nobody calls a file, and of one definition the code goes before its signatures.
    named_so = sorted(tables.named(list(open_names), NAMESAKES), key=lambda one: one.is_stub)
    for one in named_so:
        if one.kind not in (*TEXT_KINDS, "module") and related(one.language, unit.language):
            by_name.setdefault(one.name, []).append(one)
    found: dict[str, Call] = {}
    for call in calls:
        named = by_name.get(call.name, ())
        called = decided.get(call.target) or _likeliest(unit, call, named)
        if called is not None and called.id not in (unit.id, *found):
            told = call.target or call.module or call.receiver in SELF_NAMES
            sure = bool(told) or _receives(called, call)
            found[called.id] = Call(unit, called, call.line, "" if sure else BY_NAME)
    return list(found.values())[:limit]


def _likeliest(unit: Unit, call: Reference, named: Sequence[Unit]) -> Unit | None:
    """The one of `named` that `call` in `unit` means, None where that cannot be said."""
    source = [one for one in named if one.role == "source"] or list(named)
    if call.receiver in SELF_NAMES:
        members = [one for one in source if one.kind in METHOD_KINDS and one.class_name]
        own = [one for one in members if last_word(one.class_name) == last_word(unit.class_name)]
        return (own or members)[0] if len(_places(own or members)) == 1 else None
    if call.module:
        module = call.module.partition("#")[0]
        imported = [o for o in source if import_evidence(unit.language, unit.path, module, o.path)]
        if len(_places(imported)) == 1:
            return imported[0]
    alike = [one for one in source if _receives(one, call)]
    if call.module or len(_places(alike)) == 1:
        return alike[0] if len(_places(alike)) == 1 else None
    if len(_places(source)) == 1 and len(call.name) >= SHORT_NAME:
        return source[0]
    return None


def _receives(unit: Unit, call: Reference) -> bool:
    """Whether the receiver is of the class of `unit`, or called as it is: `self.blocking_pool`."""
    names = (call.receiver, call.module.replace("#", "."))
    return name_key(last_word(unit.class_name)) in {name_key(last_word(n)) for n in names if n}


def _places(units: Iterable[Unit]) -> set[tuple[str, str]]:
    return {(unit.path, unit.qualified_name) for unit in units}
