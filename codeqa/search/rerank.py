"""Rerank the best hits: the interface of a reranker, and the built-in one.

`rerank_models` has the models, on this machine or of a provider, and the choice among all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codeqa.embeddings.registry import question_matcher
from codeqa.errors import EmbeddingError
from codeqa.search.query import Query
from codeqa.text.unit_text import fields_of
from codeqa.types import TEXT_KINDS, Hit, encloses

BUILT_IN = "built-in"
MOST_RERANKED = 50
"""Most hits that any reranker reads; deeper ones are rarely the answer, and each costs time."""

PASSAGE_WEIGHT = 0.3
"""Weight of the nearest twelve lines: the answer may be a part of a long unit, whose one vector is
a mixture of all its parts."""
LATE_WEIGHT = 0.3
"""Weight of late interaction: whether the body means something by every word of the question."""
USED_WEIGHT = 0.15
"""Weight of being called or named in the code of better hits, which often rely on the answer."""

READ_CHARACTERS = 20_000
"""Characters of a unit in which names are looked for, a little more than the table reads: this
bounds the time of one unit to about a millisecond."""

_NAME = re.compile(r"[^\W\d]\w{2,}")


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and the reranker that ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user: why another reranker was used than the chosen one, or where code was
    sent."""


Reranker = Callable[[Sequence[Hit], Query], Reranked]
"""Orders the best hits anew; hits that it does not read follow in their order."""


def ordered(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """Return `rescored` by score, then `rest` in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


def parse_rerank(value: object) -> bool:
    """Parse the switch as clients send it: true for True, 'true', 'True', '1' and 1."""
    return value in (True, "true", "True", "1")


def rerank_built_in(hits: Sequence[Hit], query: Query) -> Reranked:
    """Reorder the best MOST_RERANKED with the shipped table: passage, late interaction, use.

    That is the nearest passage, late interaction with the body, and whether better hits use them.
    The order stays for one word alone, which units of that name match, and where the table knows
    nothing of the question or is damaged. Measured against the order before: line ndcg@10 +.015 on
    the tuning questions (better in ten repositories, worse in one), +.011 on those looked at once;
    cover@500 +.007 and −.014.
    """
    if not hits or len(query.words) < 2:
        return Reranked(list(hits), BUILT_IN if hits else "")
    try:
        matcher = question_matcher(query.text)
    except EmbeddingError:  # the table is damaged: the index reports it
        matcher = None
    if matcher is None or matcher.empty:
        return Reranked(list(hits), BUILT_IN)
    head, rescored = hits[:MOST_RERANKED], []
    for hit, use in zip(head, used_by_better(head), strict=True):
        unit, near = hit.unit, matcher.nearness(fields_of(hit.unit))
        lift = PASSAGE_WEIGHT * near.passage + LATE_WEIGHT * near.late + USED_WEIGHT * use
        first = unit.start_line + near.first_line
        last = min(unit.start_line + near.last_line, unit.end_line)
        why = f"reranked: lines {first}-{last} come closest"
        why += ", and better hits use it" if use else ""
        # A factor, not a sum: penalties and the order of the channels keep their meaning.
        rescored.append(replace(hit, score=hit.score * (1 + lift), why=hit.why + (why,)))
    return Reranked(ordered(rescored, hits[len(head) :]), BUILT_IN)


def used_by_better(hits: Sequence[Hit]) -> list[float]:
    """Return how much the code of other hits names each of `hits`, 0..1.

    A hit of rank r gives 1/r to each unit whose name stands in its code, divided among units of one
    name; a unit that only encloses another does not use it.
    """
    by_name: dict[str, list[int]] = {}
    for index, hit in enumerate(hits):
        if hit.unit.kind not in TEXT_KINDS and hit.unit.kind != "module":
            by_name.setdefault(hit.unit.name, []).append(index)
    values = [0.0] * len(hits)
    for index, hit in enumerate(hits):
        unit = hit.unit
        if unit.kind in TEXT_KINDS:
            continue
        for name in by_name.keys() & set(_NAME.findall(unit.source_code[:READ_CHARACTERS])):
            for other in by_name[name]:
                if name != unit.name and not encloses(unit, hits[other].unit):
                    values[other] += 1 / (index + 1) / len(by_name[name])
    return [min(1.0, value) for value in values]
