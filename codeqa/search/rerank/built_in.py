"""What any reranker gives, and the built-in one, which reads the code of the best hits with no
model and no network.

By the shipped table it looks at three things: the nearest passage, late interaction with the body,
and whether better hits use the unit. Where the table knows nothing of the question, or is damaged,
the order stays. Measured over the order it is given: line ndcg@10 +.015 on the tuning questions
(better in ten repositories, worse in one), +.011 on those looked at once; cover@500 +.007 and
−.014.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codeqa.embeddings.registry import question_matcher
from codeqa.errors import EmbeddingError
from codeqa.search.query import Query
from codeqa.text.unit_text import fields_of
from codeqa.types import TEXT_KINDS, Hit, encloses

BUILT_IN = "built-in"
CANDIDATES = 50
"""Hits that any reranker reads at most; deeper ones are rarely the answer, and each costs its
length."""
PASSAGE_WEIGHT = 0.3
"""The nearest twelve lines: what answers may be a part of a long unit, whose one vector is a
mixture of all its parts."""
LATE_WEIGHT = 0.3
"""Late interaction: every word of the question has something in the body that means it."""
USED_WEIGHT = 0.15
"""Called or named in the code of better hits: what they stand on is often what is asked for."""

SECONDS = 0.3
"""That it may take; what is not read by then keeps its order. It is asked for with every
question, so that it must not be felt."""
READ_CHARACTERS = 20_000
"""Longest part of a unit that is read: bounds the time of one unit to about a millisecond."""

_NAME = re.compile(r"[^\W\d]\w{2,}")


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """What the user should know: why another reranker was used than the one asked for, that not
    all hits were read, or where code was sent."""


Reranker = Callable[[Sequence[Hit], Query], Reranked]
"""Orders the best of the hits anew; what it does not read stays behind, in its order. Raises
RerankerError when it cannot work."""


def rerank_built_in(hits: Sequence[Hit], query: Query, seconds: float = SECONDS) -> Reranked:
    """The best CANDIDATES ordered anew; one word alone is met by what is named so."""
    if not hits or len(query.words) < 2:
        return Reranked(list(hits), BUILT_IN if hits else "")
    try:
        near = question_matcher(query.text)
    except EmbeddingError:  # damaged: the index and `codeqa doctor` say so
        near = None
    if near is None or near.empty:
        return Reranked(list(hits), BUILT_IN)
    head = hits[:CANDIDATES]
    used = used_by_better(head)
    deadline = time.monotonic() + seconds  # the first in a process loaded the table
    done: list[Hit] = []
    for hit, use in zip(head, used, strict=True):
        if time.monotonic() > deadline:
            break
        unit, found = hit.unit, near.nearness(fields_of(hit.unit))
        close = PASSAGE_WEIGHT * found.passage + LATE_WEIGHT * found.late + USED_WEIGHT * use
        first = unit.start_line + found.first_line
        last = min(unit.start_line + found.last_line, unit.end_line)
        why = f"reranked: lines {first}-{last} come closest"
        why += ", and better hits use it" if use else ""
        # A factor, not a sum: penalties and the order of the channels keep their meaning.
        done.append(replace(hit, score=hit.score * (1 + close), why=(*hit.why, why)))
    warnings = unread_warnings(BUILT_IN, len(done), len(head), seconds)
    return Reranked(in_front(done, hits[len(done) :]), BUILT_IN, warnings)


def used_by_better(hits: Sequence[Hit]) -> list[float]:
    """How much the code of other hits names each of `hits`, 0..1.

    A hit at place p gives 1/p to each unit whose name stands in its code, divided among
    units of one name; a unit that only encloses another does not use it.
    """
    named: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        if hit.unit.kind not in TEXT_KINDS and hit.unit.kind != "module":
            named.setdefault(hit.unit.name, []).append(place)
    values = [0.0] * len(hits)
    for place, hit in enumerate(hits):
        unit = hit.unit
        if unit.kind in TEXT_KINDS:
            continue
        for name in named.keys() & set(_NAME.findall(unit.source_code[:READ_CHARACTERS])):
            for other in named[name]:
                if name != unit.name and not encloses(unit, hits[other].unit):
                    values[other] += 1 / (place + 1) / len(named[name])
    return [min(1.0, value) for value in values]


def in_front(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """`rescored` by score and `rest` behind it in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


def unread_warnings(name: str, read: int, candidates: int, seconds: float) -> tuple[str, ...]:
    """What to say when the time was over before all candidates were read; () when they were."""
    if read == candidates:
        return ()
    return (
        f"{name} read {read} of {candidates} hits in {seconds:.1f} seconds; "
        "the others stand behind them.",
    )
