"""What a follow-up is about by the code's edges: the definition that it refers to, the relation
that it asks for, and what lies near the code that the conversation has found."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from codeqa.chat.values import ConversationSoFar
from codeqa.code.calls import Walk, asked_relations, callees, follow_relations, is_test
from codeqa.context.blocks import unit_chunk
from codeqa.routing.followup import code_names, telling_words
from codeqa.search.hybrid import SearchResult
from codeqa.search.mentions import definitions_called
from codeqa.search.query import Query, parse_query
from codeqa.search.ranking import best_of_each
from codeqa.store import Tables
from codeqa.text.tokens import form_pattern, last_word
from codeqa.types import Chunk, Hit, Unit

SEVERAL = 5
"""Definitions that "those" are at most, and that are asked for tests where none was named."""
RELATED = 8
"""Definitions that the edges lead to, in the context."""
CALLING = 3
"""Definitions of the earlier context whose callees are near it."""
NEAR_CALLED = 1.25
"""What is called by the code found before, where it holds every word of a follow-up: against its
best hit."""
_LAST_FOUND = re.compile(r"\bth(?:(at|is)|ose|ese|em|ey|eir)\b", re.IGNORECASE)
"""With a group for one thing; else several are meant."""


def walk_edges(
    tables: Tables, typed: Query, standalone: str, so_far: ConversationSoFar
) -> Walk | None:
    """Where the relations lead that a follow-up asks for; None when it asks for none, or of
    nothing that is known."""
    whole = parse_query(standalone)
    names = code_names(typed)
    asked = asked_relations(typed.text, names) or asked_relations(whole.text, code_names(whole))
    if not (asked and so_far.history):
        return None
    units = referred(tables, typed, whole, so_far, several="tests" in asked)
    if not units:
        return None
    calls = follow_relations(tables, units, asked)
    if "tests" in asked:
        held = shares([call.caller for call in calls], telling_words(whole))
        calls.sort(key=lambda call: -held[call.caller.id])
    return Walk(asked, tuple(units), tuple(calls[:RELATED]))


def referred(
    tables: Tables, typed: Query, whole: Query, so_far: ConversationSoFar, several: bool = False
) -> list[Unit]:
    """The definitions that `typed` speaks of: those that it names; for "that" and "those" what the
    last search found; else what the conversation has named, `whole` being the question made
    standalone; else the first that the last answer speaks of, if its name has a word of what was
    asked, or what has most of that: an answer may begin with what only leads there."""
    last = so_far.names
    points = _LAST_FOUND.findall(typed.text)
    many = SEVERAL if several or "" in points else 1
    names = code_names(typed) or (() if points and last else code_names(whole))
    if names or points or several:
        return _defined(tables, names or last[:many], so_far.context.chunks)
    units = _defined(tables, last, so_far.context.chunks)
    words = set(telling_words(whole)) - set(telling_words(typed))
    if units and not any(form_pattern(word).search(_spaced(units[0].name)) for word in words):
        held = shares(units, words)
        units.sort(key=lambda unit: -held[unit.id])
    return units[:1]


def _defined(tables: Tables, names: Sequence[str], shown: Sequence[Chunk]) -> list[Unit]:
    """The definition of each of `names`: of several the one that was shown."""
    seen = [chunk.unit_id for chunk in shown]
    units: list[Unit] = []
    for name in names:
        called = definitions_called(tables, name) or definitions_called(tables, last_word(name))
        at = {one.id: seen.index(one.id) if one.id in seen else len(seen) for one in called}
        units += sorted(called, key=lambda one: at[one.id])[:1]
    return units


def with_walk(result: SearchResult, walk: Walk) -> SearchResult:
    """`result` with what the edges lead to in front, and guaranteed a place in the context."""
    best = max((hit.score for hit in result.units), default=0.0) or 1.0
    whys = {
        unit.id: (f"{call.caller.qualified_name} calls {call.called.qualified_name}",)
        for unit, call in zip(walk.found, walk.calls, strict=True)
    }
    hits = [
        Hit(unit, (2 - 0.01 * number) * best, whys.get(unit.id, ()), {"edges": number + 1})
        for number, unit in enumerate(walk.units)
    ]
    added = {hit.unit.id for hit in hits}
    units, methods, classes = (
        tuple(hit for hit in found if hit.unit.id not in added)
        for found in (result.units, result.methods, result.classes)
    )
    mentioned = (*hits, *result.mentioned)
    return replace(
        result, units=(*hits, *units), methods=methods, classes=classes, mentioned=mentioned
    )


def with_near(
    tables: Tables, result: SearchResult, typed: Query, so_far: ConversationSoFar
) -> tuple[SearchResult, list[Chunk]]:
    """`result` with what the code calls that was found before, as candidates that count by the
    words of the follow-up itself; and, as chunks, these before that code."""
    earlier = so_far.context.chunks
    before = tables.by_ids([chunk.unit_id for chunk in earlier if chunk.unit_id])
    best_source = [one for one in before if one.is_method and not is_test(one)][:CALLING]
    calls = [call for unit in best_source for call in callees(tables, unit)]
    called = {call.called.id: call.called for call in calls}
    held = shares([*before, *called.values()], telling_words(typed))
    found = {hit.unit.id: hit for hit in result.units}
    best = max((hit.score for hit in result.units), default=1.0) or 1.0
    near = [unit for unit in called.values() if held[unit.id]]
    near.sort(key=lambda unit: -held[unit.id])
    for unit in near:
        hit = found.get(unit.id) or Hit(unit, 0.0, ("near what was found before",))
        found[unit.id] = replace(hit, score=hit.score + NEAR_CALLED * best * held[unit.id])
    units = tuple(sorted(found.values(), key=lambda hit: -hit.score))
    methods, classes = best_of_each(units)
    result = replace(result, units=units, methods=methods, classes=classes)
    known = {chunk.unit_id for chunk in earlier}
    return result, [*(unit_chunk(unit) for unit in near if unit.id not in known), *earlier]


def shares(units: Sequence[Unit], words: Collection[str]) -> dict[str, float]:
    """Id of each unit → the part of `words` that it holds, from 0 to 1; a word that few of them
    hold counts for more, one in the code alone for half of one in the name."""
    names = {unit.id: _spaced(unit.qualified_name) for unit in units}
    texts = {unit.id: _spaced(f"{unit.path}\n{unit.source_code}") for unit in units}
    total, whole = dict.fromkeys(names, 0.0), 0.0
    for pattern in map(form_pattern, words):
        named = {key for key, text in names.items() if pattern.search(text)}
        held = named | {key for key, text in texts.items() if pattern.search(text)}
        if held:
            worth = math.log(1 + len(units) / len(held))
            whole += worth
            for key in held:
                total[key] += worth if key in named else worth / 2
    return {key: value / whole if whole else 0.0 for key, value in total.items()}


def _spaced(text: str) -> str:
    return text.lower().replace("_", " ")
