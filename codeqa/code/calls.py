"""Calls, in both directions: what a definition calls, what calls it, which tests do, and what a
question asks of that."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from codeqa.asked import asks, question_pattern
from codeqa.code.imports import import_evidence
from codeqa.code.usages import CANDIDATES, LIKELY, SELF_NAMES, SHORT_NAME, related, usages
from codeqa.search.query import QUESTION_WORDS
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key, words
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Reference, Unit

NAMESAKES = 2_000
"""Definitions that all names called by one function may have: a function of 300 lines in a code
base of 900,000 calls 36 names that have 413."""
BY_NAME = "possible: only the name is the same"

Relation = Literal["callers", "callees", "tests"]

SURE_ENOUGH = 0.5
SURE_ENOUGH_OF_TESTS = 0.15
"""Least confidence of an edge that is walked. A test seldom says of which class its objects are,
and which of them fit is decided by the question's words."""
USES = 60
"""Places of use that are looked at for each definition."""
MOST_RELATIONS = 4
"""Relations that are walked one after another: "its callers' callers' tests"."""
FRONTIER = 8
"""Definitions that are gone on from to the next level."""
WORDS_BESIDE = 1
"""Words that such a question may have beside those of the relation: with more of them it asks
something else, "what happens to the session when it is called twice?"."""

_TEST = re.compile(r"(?:^|\W)tests?\W")
"""A module of tests inside a source file: `Flask.test_client` is none."""


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


def callers(
    tables: Tables,
    unit: Unit,
    least: float = LIKELY,
    *,
    only_calls: bool = False,
    alone: bool = False,
    limit: int = CANDIDATES,
) -> tuple[list[Call], int]:
    """What calls `unit`, or uses it otherwise unless `only_calls`, at least so surely, each by its
    first call, the surest first, source before tests; and how many places are left out because
    they may mean another one of that name. Imports are no use. `limit` places are looked at;
    `alone` is that of `usages`."""
    every = usages(tables, unit, alone=alone)[:limit]
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
    return list(found.values()), doubtful


def callees(tables: Tables, unit: Unit, limit: int = 20) -> list[Call]:
    """What `unit` calls, each definition once, by its first call; at most `limit`.

    A call that the file does not decide is taken for the definition that the file imports, that
    the class inherits or that alone has this name. Calls into libraries are left out.
    """
    tables = tables.around(unit.path)
    inside = (place for place in tables.references(path=[unit.path]) if place.unit_id == unit.id)
    calls = [place for place in inside if place.kind == "call" and place.target != unit.id]
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
        return _only(own or members)
    module = call.module.partition("#")[0]
    imported = [o for o in source if import_evidence(unit.language, unit.path, module, o.path)]
    told = _only(imported) or _only([one for one in source if _receives(one, call)])
    if told or call.module or len(call.name) < SHORT_NAME:
        return told
    return _only(source)


def _receives(unit: Unit, call: Reference) -> bool:
    """Whether the receiver is of the class of `unit`, or called as it is: `self.blocking_pool`."""
    names = (call.receiver, call.module.replace("#", "."))
    return name_key(last_word(unit.class_name)) in {name_key(last_word(n)) for n in names if n}


def _only(units: Sequence[Unit]) -> Unit | None:
    """The first of `units` where all of them are at one place, as overloads are."""
    return units[0] if len({(unit.path, unit.qualified_name) for unit in units}) == 1 else None


@dataclass(frozen=True, slots=True)
class Walk:
    """The relations that a question asks for, what they begin at, and the calls that they lead to
    in the end."""

    relations: tuple[Relation, ...]
    start: tuple[Unit, ...]
    calls: tuple[Call, ...]

    @property
    def found(self) -> list[Unit]:
        """What it leads to."""
        return [far_end(call, self.relations[-1]) for call in self.calls]

    @property
    def units(self) -> list[Unit]:
        """All that it touches, what it leads to first."""
        between = (unit for call in self.calls for unit in (call.caller, call.called))
        return list(dict.fromkeys((*self.found, *self.start, *between)))


def asked_relations(text: str, names: Collection[str] = ()) -> tuple[Relation, ...]:
    """The relations to walk, one after another, for a question that asks for nothing else:
    `("callers", "callers")` for "its callers' callers?"; () for any other.

    `names` are the definitions that it names itself.
    """
    found = question_pattern("relations").finditer(text)
    asked = [cast(Relation, match.lastgroup) for match in found]
    named = {part.lower() for name in names for part in words(name)}
    beside = {word.lower() for word in words(without_relations(text))} - QUESTION_WORDS - named
    if asks("condition", text) or len([w for w in beside if len(w) > 1]) > WORDS_BESIDE:
        return ()
    # "The tests of its callers": from the definition itself, its callers come first.
    return tuple(sorted(asked[:MOST_RELATIONS], key=lambda relation: relation == "tests"))


def without_relations(text: str) -> str:
    """`text` without the words that name a relation."""
    return question_pattern("relations").sub(" ", text)


def follow_relations(
    tables: Tables, units: Sequence[Unit], relations: Iterable[Relation]
) -> list[Call]:
    """Where `relations`, one after another, lead from `units`: each definition once, by a call;
    source before tests, then the surest."""
    calls: list[Call] = []
    for relation in relations:
        found: dict[str, Call] = {}
        for call in (call for unit in units for call in _CALLS[relation](tables, unit)):
            if (end := far_end(call, relation)) not in units:
                found.setdefault(end.id, call)
        calls = sorted(found.values(), key=lambda call: is_test(far_end(call, relation)))
        units = [far_end(call, relation) for call in calls[:FRONTIER]]
    return calls


def far_end(call: Call, relation: Relation) -> Unit:
    """What `relation` leads to by `call`."""
    return call.called if relation == "callees" else call.caller


def tests_of(tables: Tables, unit: Unit) -> list[Call]:
    """The uses of `unit` by tests, or where there is none, of what calls it; the surest first."""
    users = _users(tables, unit, SURE_ENOUGH_OF_TESTS)
    tests = [call for call in users if is_test(call.caller)]
    through = [] if tests else [_callers(tables, call.caller) for call in users[:FRONTIER]]
    return tests or [call for calls in through for call in calls if is_test(call.caller)]


def is_test(unit: Unit) -> bool:
    """Whether it lies in a test file, or among the tests inside a source file."""
    return unit.role == "test" or _TEST.search(unit.qualified_name) is not None


def _callers(tables: Tables, unit: Unit) -> list[Call]:
    # What merely hands a function on does not call it; a test covers what it hands on.
    return _users(tables, unit, SURE_ENOUGH, only_calls=unit.is_method)


def _users(tables: Tables, unit: Unit, least: float, *, only_calls: bool = False) -> list[Call]:
    uses, _ = callers(tables, unit, least, only_calls=only_calls, limit=USES)
    return [call for call in uses if call.caller.kind not in TEXT_KINDS]


_CALLS = {"callers": _callers, "callees": callees, "tests": tests_of}
