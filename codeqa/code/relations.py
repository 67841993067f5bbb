"""What a question asks of a definition by its edges: who calls it, what it calls, its tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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
    uses = callers(tables, unit, least, only_calls=only_calls, limit=USES).calls
    return [call for call in uses if call.caller.kind not in TEXT_KINDS]


_CALLS = {"callers": _callers, "callees": callees, "tests": tests_of}
