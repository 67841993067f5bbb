"""Follow the edges of the index from what a conversation speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codeqa.chat.values import ConversationSoFar
from codeqa.code.calls import Walk, asked_relations, follow_relations
from codeqa.routing.followup import code_names
from codeqa.search.mentions import definitions_called
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.store import Tables
from codeqa.text.tokens import last_word
from codeqa.types import Chunk, Hit, Unit

SEVERAL = 5
"""Definitions that "those" are at most, and that are asked for tests where none was named."""
RELATED = 8
"""Definitions that the edges lead to, in the context."""
_LAST_FOUND = re.compile(r"\bth(?:(at|is)|ose|ese|em|ey|eir)\b", re.IGNORECASE)
"""With a group for one thing; else several are meant."""


def walk_edges(
    tables: Tables, typed: Query, whole: Query, so_far: ConversationSoFar
) -> Walk | None:
    """Follow the relations that a follow-up asks for, as `typed` or made a `whole` question; None
    when it asks for none, or of nothing that is known."""
    names = code_names(typed)
    asked = asked_relations(typed.text, names) or asked_relations(whole.text, code_names(whole))
    if not (asked and so_far.history):
        return None
    units = referred(tables, typed, whole, so_far, several="tests" in asked)
    if not units:
        return None
    calls = follow_relations(tables, units, asked)
    return Walk(asked, tuple(units), tuple(calls[:RELATED]))


def referred(
    tables: Tables, typed: Query, whole: Query, so_far: ConversationSoFar, several: bool = False
) -> list[Unit]:
    """The definitions that `typed` speaks of: those that it names; for "that" and "those" what the
    last search found; else what the conversation has named, `whole` being the question made
    standalone; else the first that the last answer speaks of."""
    last = so_far.names
    points = _LAST_FOUND.findall(typed.text)
    many = SEVERAL if several or "" in points else 1
    names = code_names(typed) or (() if points and last else code_names(whole))
    if names or points or several:
        return _defined(tables, names or last[:many], so_far.context.chunks)
    units = _defined(tables, last, so_far.context.chunks)
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
        for unit, call in zip(walk.ends, walk.calls, strict=True)
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
