"""Follow calls in both directions, and the relations (callers, callees, tests) of a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Literal, cast

from codeqa.asked import asks, question_pattern
from codeqa.code.evidence import LIKELY, MOST_EDGES, SELF_NAMES, SHORT_NAME, UsageSite
from codeqa.code.exports import handed_on
from codeqa.code.imports import import_evidence, without_class
from codeqa.code.names import related
from codeqa.code.usages import usages
from codeqa.languages import detect, language_called
from codeqa.search.query import QUESTION_WORDS
from codeqa.store import Tables
from codeqa.store.records import INDEXED
from codeqa.text import counted, some_of
from codeqa.text.tokens import last_word, name_key, words
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Reference, Unit

MOST_CALLED_UNITS = 2_000
"""Definitions of all names that one function calls: one of 300 lines in a code base of 900,000
calls 36 names, which have 413."""
BY_NAME = "possible: only the name is the same"

Relation = Literal["callers", "callees", "tests"]

SURE_ENOUGH = 0.5
SURE_ENOUGH_OF_TESTS = 0.15
"""Least confidence of an edge that is followed. A test seldom names the class of its objects; the
question's words decide which tests fit."""
MOST_USES = 60
"""Uses of each definition that are examined."""
MOST_RELATIONS = 4
"""Relations that are followed one after another: "its callers' callers' tests"."""
FRONTIER = 8
"""Definitions whose relations are followed further."""
MOST_ENDINGS = 6
"""Endings named of the files whose references are not read."""
WORDS_BESIDE = 1
"""Words that such a question may have beside those of the relation: with more of them it asks
something else, "what happens to the session when it is called twice?"."""

_TEST = re.compile(r"(?:^|\W)tests?\W")
"""A module of tests inside a source file, unlike `Flask.test_client`."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or another use that a change of the definition `called` would reach."""

    caller: Unit
    called: Unit
    line: int
    """In the caller's file."""
    note: str = ""
    """BY_NAME where only the name is the same, or the related method that is named."""

    @property
    def sure(self) -> bool:
        """Return whether file, import or receiver decides it."""
        return self.note != BY_NAME


def callers(
    tables: Tables,
    unit: Unit,
    least: float = LIKELY,
    *,
    only_calls: bool = False,
    alone: bool = False,
    reads: bool = False,
    limit: int = MOST_EDGES,
) -> tuple[list[Call], int]:
    """Return the first use of `unit` in each caller, and how many uses are less sure than `least`.

    The surest come first, source before tests. With `only_calls` other uses than calls are left
    out, imports always; `alone` and `reads` are those of `usages`. `limit` uses are examined.
    """
    doubtful = 0
    likely: list[UsageSite] = []
    for site in usages(tables, unit, alone=alone, reads=reads)[:limit]:
        kind = site.reference.kind
        if site.confidence < least:
            doubtful += kind != "import"
        elif kind == "call" or (kind != "import" and not only_calls):
            likely.append(site)
    ids = [site.reference.unit_id for site in likely]
    units = {unit.id: unit for unit in tables.by_ids(ids)}
    calls: dict[str, Call] = {}
    for site in likely:
        if caller := units.get(site.reference.unit_id):
            note = f"through {site.through}" if site.through else ""
            calls.setdefault(caller.id, Call(caller, unit, site.reference.line, note))
    return list(calls.values()), doubtful


def unread(tables: Tables, units: Iterable[Unit]) -> str:
    """Say in which files `units` may be used unseen, where nothing else uses them; '' for none."""
    languages = {unit.language for unit in units}
    kinds, broken = Counter[str](), 0
    for file in tables.files():
        language = language_called(file.language)
        if file.status != INDEXED or file.broken:
            other = detect(file.path)
            broken += other is not None and any(related(other.name, name) for name in languages)
        elif not (language.grammar or language.holds or language.cell_language):
            kinds[PurePosixPath(file.path).suffix or file.path] += 1
    parts: list[str] = []
    if kinds:
        endings = some_of([ending for ending, _ in kinds.most_common()], MOST_ENDINGS)
        files = counted(kinds.total(), "file")
        parts.append(f"{files} of kinds whose references are not read ({endings})")
    if broken:
        parts.append(f"{counted(broken, 'file')} that could be read only in part or not at all")
    return f"Not seen: what is in {' and '.join(parts)}; grep finds it. " if parts else ""


def callees(tables: Tables, unit: Unit, limit: int = 20) -> list[Call]:
    """Return the first call of each of at most `limit` definitions that `unit` calls.

    A call that the file does not decide is taken for the definition that the file imports, that
    the class inherits or that alone has this name. Calls into libraries are left out.
    """
    tables = tables.around(unit.path)
    references: list[Reference] = []
    edges = tables.references(path=[unit.path])
    for reference in edges:
        is_call = reference.kind == "call" and reference.unit_id == unit.id
        if is_call and reference.target != unit.id:
            references.append(reference)
    ids = [reference.target for reference in references if reference.target]
    targets = {target.id: target for target in tables.by_ids(ids)}
    open_names = dict.fromkeys(name_key(call.name) for call in references if not call.target)
    by_name: dict[str, list[Unit]] = {}
    # Of one definition the code comes before its signatures.
    namesakes = tables.named(list(open_names), MOST_CALLED_UNITS)
    for namesake in sorted(namesakes, key=lambda namesake: namesake.is_stub):
        is_file = namesake.kind in TEXT_KINDS or namesake.kind == "module"
        if not is_file and related(namesake.language, unit.language):
            by_name.setdefault(namesake.name, []).append(namesake)
    calls: dict[str, Call] = {}
    for reference in references:
        callee = targets.get(reference.target)
        callee = callee or _likeliest(unit, reference, by_name.get(reference.name, ()))
        if callee is None and reference.module:
            callee = _only(handed_on(tables, reference, edges))
        if callee and callee.id != unit.id and callee.id not in calls:
            sure = reference.target or reference.module or reference.receiver in SELF_NAMES
            sure = sure or _receives(callee, reference)
            calls[callee.id] = Call(unit, callee, reference.line, "" if sure else BY_NAME)
    return list(calls.values())[:limit]


def _likeliest(unit: Unit, call: Reference, namesakes: Sequence[Unit]) -> Unit | None:
    """Return the one of `namesakes` that `call` in `unit` means, None where that is unclear."""
    units = [other for other in namesakes if other.role == "source"] or list(namesakes)
    if call.receiver in SELF_NAMES:
        members = [other for other in units if other.kind in METHOD_KINDS and other.class_name]
        owner = last_word(unit.class_name)
        own_members = [member for member in members if last_word(member.class_name) == owner]
        return _only(own_members or members)
    module = without_class(call.module)
    leads = partial(import_evidence, unit.language, unit.path, module)
    callee = _only([other for other in units if leads(other.path)])
    callee = callee or _only([other for other in units if _receives(other, call)])
    if callee or call.module or len(call.name) < SHORT_NAME:
        return callee
    return _only(units)


def _receives(unit: Unit, call: Reference) -> bool:
    """Return whether the receiver has the class of `unit`, or its name: `self.blocking_pool`."""
    key = name_key(last_word(unit.class_name))
    names = (call.receiver, call.module.replace("#", "."))
    return any(name and name_key(last_word(name)) == key for name in names)


def _only(units: Sequence[Unit]) -> Unit | None:
    """Return the first of `units` if all have the same path and name, as overloads do."""
    return units[0] if len({(unit.path, unit.qualified_name) for unit in units}) == 1 else None


@dataclass(frozen=True, slots=True)
class RelationWalk:
    """The relations of a question, the definitions it starts from and the last calls it meets."""

    relations: tuple[Relation, ...]
    start: tuple[Unit, ...]
    calls: tuple[Call, ...]

    @property
    def ends(self) -> list[Unit]:
        """Return the definitions that it leads to."""
        return [far_end(call, self.relations[-1]) for call in self.calls]

    @property
    def units(self) -> list[Unit]:
        """Return all definitions that it touches, the ends first."""
        units = self.ends + list(self.start)
        for call in self.calls:
            units += (call.caller, call.called)
        return list(dict.fromkeys(units))


def asked_relations(text: str, names: Collection[str] = ()) -> tuple[Relation, ...]:
    """Return the relations to follow, one after another, for a question that asks nothing else.

    `("callers", "callers")` for "its callers' callers?". `names` are the definitions in it.
    """
    matches = question_pattern("relations").finditer(text)
    relations = [cast(Relation, match.lastgroup) for match in matches]
    other_words = {word.lower() for word in words(without_relations(text)) if len(word) > 1}
    other_words -= QUESTION_WORDS
    for name in names:
        other_words.difference_update(part.lower() for part in words(name))
    if asks("condition", text) or len(other_words) > WORDS_BESIDE:
        return ()
    # "The tests of its callers": from the definition itself, its callers come first.
    return tuple(sorted(relations[:MOST_RELATIONS], key=lambda relation: relation == "tests"))


def without_relations(text: str) -> str:
    """Return `text` without the words that name a relation."""
    return question_pattern("relations").sub(" ", text)


def follow_relations(
    tables: Tables, units: Sequence[Unit], relations: Iterable[Relation]
) -> list[Call]:
    """Return a call of each definition to which `relations` in turn lead, source before tests."""
    calls: list[Call] = []
    for relation in relations:
        by_end: dict[str, Call] = {}
        for unit in units:
            for call in _CALLS[relation](tables, unit):
                end = far_end(call, relation)
                if end not in units:
                    by_end.setdefault(end.id, call)
        calls = sorted(by_end.values(), key=lambda call: is_test(far_end(call, relation)))
        units = [far_end(call, relation) for call in calls[:FRONTIER]]
    return calls


def far_end(call: Call, relation: Relation) -> Unit:
    """Return the definition to which `relation` leads by `call`."""
    return call.called if relation == "callees" else call.caller


def tests_of(tables: Tables, unit: Unit) -> list[Call]:
    """Return the uses of `unit` by tests, or where there is none, of its callers; surest first."""
    users = _users(tables, unit, SURE_ENOUGH_OF_TESTS)
    tests = [call for call in users if is_test(call.caller)]
    if not tests:
        for user in users[:FRONTIER]:
            tests += [call for call in _callers(tables, user.caller) if is_test(call.caller)]
    return tests


def is_test(unit: Unit) -> bool:
    """Return whether it lies in a test file, or among the tests inside a source file."""
    return unit.role == "test" or _TEST.search(unit.qualified_name) is not None


def _callers(tables: Tables, unit: Unit) -> list[Call]:
    # A function that merely passes `unit` on does not call it.
    return _users(tables, unit, SURE_ENOUGH, only_calls=unit.is_method)


def _users(tables: Tables, unit: Unit, least: float, *, only_calls: bool = False) -> list[Call]:
    uses, _ = callers(tables, unit, least, only_calls=only_calls, limit=MOST_USES)
    return [call for call in uses if call.caller.kind not in TEXT_KINDS]


_CALLS = {"callers": _callers, "callees": callees, "tests": tests_of}
