"""What a question asks of a definition by its edges: who calls it, what it calls, its tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from codeqa.code.calls import Call, callees, callers
from codeqa.search.question_words import QUESTION_WORDS
from codeqa.store import Tables
from codeqa.text.tokens import words
from codeqa.types import TEXT_KINDS, Unit

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

_WORDS = re.compile(
    r"(?P<callees>\bcallees?\b|\b(?:does|do|did)\s+(?:\S+\s+){1,4}?(?:call|use|invoke)\b"
    r"|\b(?:called|used) by (?:it|that|this|them|those|these)\b)"
    r"|(?P<tests>\b(?:tests?|tested|covered by)\b(?:\s+(?:that )?cover\w*)?)"
    r"|(?P<callers>\bcallers?\b|\b(?:calls?|called|uses?|used|invokes?|invoked)\b)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|why|how)\b", re.IGNORECASE)
_TEST = re.compile(r"(?:^|\W)(?:tests?(?:\W|_)|Test[A-Z])")


@dataclass(frozen=True, slots=True)
class RelatedUnit:
    """A definition that the edges lead to, and the calls on the way, the last one farthest from
    where the walk began."""

    unit: Unit
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """The relations that a question asks for, what they begin at, and where they lead."""

    relations: tuple[Relation, ...]
    start: tuple[Unit, ...]
    found: tuple[RelatedUnit, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        """All that it touches, what it leads to first."""
        between = (call.called for one in self.found for call in one.calls)
        return tuple(dict.fromkeys((*(one.unit for one in self.found), *self.start, *between)))

    @property
    def asks_callers(self) -> bool:
        """Whether it asks where one definition is used, which is told like every such question."""
        return self.relations == ("callers",)


def asked_relations(text: str, names: Collection[str] = ()) -> tuple[Relation, ...]:
    """The relations to walk, one after another, for a question that asks for nothing else:
    `("callers", "callers")` for "its callers' callers?"; () for any other.

    `names` are the definitions that it names itself.
    """
    asked = [cast(Relation, match.lastgroup) for match in _WORDS.finditer(text)]
    named = {part.lower() for name in names for part in words(name)}
    beside = {word.lower() for word in words(without_relations(text))} - QUESTION_WORDS - named
    if _CONDITION.search(text) or len([w for w in beside if len(w) > 1]) > WORDS_BESIDE:
        return ()
    # "The tests of its callers": from the definition itself, its callers come first.
    return tuple(sorted(asked[:MOST_RELATIONS], key=lambda relation: relation == "tests"))


def without_relations(text: str) -> str:
    """`text` without the words that name a relation."""
    return _WORDS.sub(" ", text)


def follow_relations(
    tables: Tables, units: Sequence[Unit], relations: Sequence[Relation]
) -> list[RelatedUnit]:
    """Where `relations` lead from `units`, each definition once: source before tests, then the
    surest."""
    found = [RelatedUnit(unit) for unit in units]
    for number, relation in enumerate(relations):
        start = found[: len(units) if not number else FRONTIER]
        steps = _next(tables, start, relation)
        found = [step for step in steps if relation != "tests" or is_test(step.unit)]
        if not found and relation == "tests":  # covered through what calls it
            through = _next(tables, steps[:FRONTIER], "callers")
            found = [step for step in through if is_test(step.unit)]
        unique: dict[str, RelatedUnit] = {}
        for one in found:
            if one.unit not in [step.unit for step in start]:
                unique.setdefault(one.unit.id, one)
        found = sorted(unique.values(), key=lambda one: is_test(one.unit))
    return found


def tests_of(tables: Tables, unit: Unit) -> list[RelatedUnit]:
    """The tests that use `unit`, or where none does, what calls it."""
    return follow_relations(tables, [unit], ("tests",))


def is_test(unit: Unit) -> bool:
    """Whether it lies in a test file, or among the tests inside a source file."""
    return unit.role == "test" or _TEST.search(unit.qualified_name) is not None


def _next(tables: Tables, start: Sequence[RelatedUnit], relation: Relation) -> list[RelatedUnit]:
    """One step from each of `start`; for tests, all that uses it."""
    found: list[RelatedUnit] = []
    for one in start:
        if relation == "callees":
            calls = callees(tables, one.unit)
            found += [RelatedUnit(call.called, (*one.calls, call)) for call in calls]
            continue
        least = SURE_ENOUGH if relation == "callers" else SURE_ENOUGH_OF_TESTS
        # What merely hands a function on does not call it; a test covers what it hands on.
        only_calls = relation == "callers" and one.unit.is_method
        uses = callers(tables, one.unit, least, only_calls=only_calls, limit=USES).calls
        found += [
            RelatedUnit(call.caller, (*one.calls, call))
            for call in uses
            if call.caller.kind not in TEXT_KINDS
        ]
    return found
