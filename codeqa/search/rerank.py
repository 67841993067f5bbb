"""The rerank switch, what a reranker is, and the built-in one: it reads the best hits again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codeqa.search.closeness import Close, reading
from codeqa.search.lance import lance_reranker, relevance
from codeqa.search.query import Query
from codeqa.types import Hit

BUILT_IN = "built-in"
CANDIDATES = 50
"""Hits that any reranker reads at most; deeper ones are rarely the answer, and each costs its
length."""
SECONDS = 0.3
"""That the built-in one may take; what is not read by then keeps its order. It is asked for
with every question, so that it must not be felt."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    notice: str = ""
    """What the user should know of it: another than the wished one, or not all hits."""


class Reranker(Protocol):
    """Orders the best of the hits anew; what it does not read stays behind, in its order."""

    @property
    def name(self) -> str:
        """As the user reads it."""

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """Every one of `hits` once. Raises RerankerError when it cannot work."""


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', '1' and so for 1 (S1.20)."""
    return value in (True, "true", "True", "1")


class BuiltInReranker:
    """Reads the code of each candidate (see `closeness`); needs no model and no network.

    Measured over the order it is given: line ndcg@10 +.015 on the tuning questions (better in
    ten repositories, worse in one), +.011 on those looked at once; cover@500 +.007 and −.014.
    """

    name = BUILT_IN

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """The best CANDIDATES ordered anew; one word alone is met by what is named so."""
        if len(query.words) < 2 or not hits:
            return Reranked(list(hits), self.name if hits else "")
        head = hits[:CANDIDATES]
        seen: dict[str, Close] = {}

        def score(some: Sequence[Hit], asked: Query) -> list[float | None]:
            read = reading(some, asked)  # the first in a process loads the table
            values: list[float | None] = [None] * len(some)
            deadline = time.monotonic() + self._seconds
            for place, hit in enumerate(some):
                if time.monotonic() > deadline:
                    break
                seen[hit.unit.id] = close = read(place)
                values[place] = close.value
            return values

        near = relevance(lance_reranker(self.name, score), head, query)
        pairs = list(zip(head, near, strict=True))
        done = [_rescored(hit, n, seen[hit.unit.id]) for hit, n in pairs if n is not None]
        unread = [hit for hit, n in pairs if n is None]
        notice = unread_notice(self.name, len(done), len(head), self._seconds)
        return Reranked(in_front(done, [*unread, *hits[CANDIDATES:]]), self.name, notice)


def unread_notice(name: str, read: int, candidates: int, seconds: float) -> str:
    """What to say when time was over before all were read; '' when they were."""
    if read == candidates:
        return ""
    return (
        f"{name} read {read} of {candidates} hits in {seconds:.1f} seconds; "
        "the others stand behind them."
    )


def in_front(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """`rescored` by score and `rest` behind it in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


def _rescored(hit: Hit, value: float, close: Close) -> Hit:
    # A factor, not a sum: role_penalties and the order of the channels keep their meaning.
    return replace(hit, score=hit.score * (1 + value), why=(*hit.why, close.why))
