"""Follow the edges of the index from the definitions that a conversation is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codeqa.chat.values import ConversationSoFar
from codeqa.code.calls import RelationWalk, asked_relations, follow_relations
from codeqa.routing.followup import code_names
from codeqa.search.mentions import definitions_called
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.store import Tables
from codeqa.text.tokens import last_word
from codeqa.types import Chunk, Hit, Unit

MOST_MEANT = 5
"""Most definitions that "those" stands for, or whose tests are meant where none was named."""
MOST_RELATED = 8
"""Most definitions at the other end of the edges, in the context."""
_PRONOUN = re.compile(r"\bth(?:(at|is)|ose|ese|em|ey|eir)\b", re.IGNORECASE)
"""Matches words for what the last search found; the group matches those for one thing."""


def walk_edges(
    tables: Tables, typed: Query, completed: Query, so_far: ConversationSoFar
) -> RelationWalk | None:
    """Follow the relations that a follow-up asks for, as `typed` or as `completed`.

    Return None when it asks for none, or about no known definition.
    """
    names = code_names(typed)
    relations = asked_relations(typed.text, names)
    relations = relations or asked_relations(completed.text, code_names(completed))
    if not relations or not so_far.history:
        return None
    units = referred(tables, typed, completed, so_far, several="tests" in relations)
    if not units:
        return None
    calls = follow_relations(tables, units, relations)
    return RelationWalk(relations, tuple(units), tuple(calls[:MOST_RELATED]))


def referred(
    tables: Tables, typed: Query, completed: Query, so_far: ConversationSoFar, several: bool = False
) -> list[Unit]:
    """Return the definitions that `typed` is about.

    These are those that it names; for "that" and "those" the hits of the last search; else those
    that `completed`, the standalone question, names; else the first that the last answer names.
    """
    last = so_far.names
    pronouns = _PRONOUN.findall(typed.text)
    most = MOST_MEANT if several or "" in pronouns else 1
    names = code_names(typed)
    if not names and not (pronouns and last):
        names = code_names(completed)
    if names or pronouns or several:
        return _defined(tables, names or last[:most], so_far.context.chunks)
    units = _defined(tables, last, so_far.context.chunks)
    return units[:1]


def _defined(tables: Tables, names: Sequence[str], chunks: Sequence[Chunk]) -> list[Unit]:
    """Return the definition of each of `names`: of several the one that is first in `chunks`."""
    ranks: dict[str, int] = {}
    for rank, chunk in enumerate(chunks):
        ranks.setdefault(chunk.unit_id, rank)
    units: list[Unit] = []
    for name in names:
        called = definitions_called(tables, name) or definitions_called(tables, last_word(name))
        units += sorted(called, key=lambda unit: ranks.get(unit.id, len(chunks)))[:1]
    return units


def with_walk(result: SearchResult, walk: RelationWalk) -> SearchResult:
    """Return `result` with the ends of the edges in front, guaranteed a place in the context."""
    best = max((hit.score for hit in result.units), default=0.0) or 1.0
    whys: dict[str, tuple[str, ...]] = {}
    for unit, call in zip(walk.ends, walk.calls, strict=True):
        whys[unit.id] = (f"{call.caller.qualified_name} calls {call.called.qualified_name}",)
    hits = tuple(
        Hit(unit, (2 - 0.01 * number) * best, whys.get(unit.id, ()), {"edges": number + 1})
        for number, unit in enumerate(walk.units)
    )
    ids = {hit.unit.id for hit in hits}

    def others(ranked: Sequence[Hit]) -> tuple[Hit, ...]:
        return tuple(hit for hit in ranked if hit.unit.id not in ids)

    return replace(
        result,
        units=hits + others(result.units),
        methods=others(result.methods),
        classes=others(result.classes),
        mentioned=hits + result.mentioned,
    )
