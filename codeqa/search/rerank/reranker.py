"""What a reranker takes and gives, and what all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codeqa.search.query import Query
from codeqa.types import Hit, Unit

BUILT_IN = "built-in"
CANDIDATES = 50
"""Hits that any reranker reads at most; deeper ones are rarely the answer, and each costs its
length."""
CHARACTERS = 2_000
"""Of a unit that a model is given: the tokens that models of this size read are fewer."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """What the user should know: why another reranker was used than the one asked for, that not
    all hits were read, or where code was sent."""


class Reranker(Protocol):
    """Orders the best of the hits anew; what it does not read stays behind, in its order."""

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """Every one of `hits` once. Raises RerankerError when it cannot work."""


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', '1' and so for 1."""
    return value in (True, "true", "True", "1")


def document(unit: Unit) -> str:
    """What a model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


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
