"""The rerank switch, what a reranker is, and the built-in one: how close words stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codeqa.retrieval.forms import form_pattern
from codeqa.retrieval.query import Query
from codeqa.types import Hit

BUILT_IN = "built-in"
CANDIDATES = 30
"""Hits that are read again; deeper ones are rarely the answer, and each costs its length."""
READ_CHARACTERS = 20_000
"""Longest part of a unit that is read: bounds the time of one unit to about a millisecond."""
PROXIMITY_WEIGHT = 0.5
"""The words within a few lines of each other against the same words far apart: moves the
lines that answer up a little (line ndcg@10 +.01 on the development questions)."""
NEAR_LINES = 10
"""Lines within which words are about the same thing: a screen's quarter, a short block."""


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
    """Reads each candidate and rewards those that hold the question's words close together.

    Needs no model and takes a few milliseconds.
    """

    name = BUILT_IN

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """The best CANDIDATES ordered anew; one word alone stands close to nothing."""
        if len(query.words) < 2:
            return Reranked(list(hits), self.name if hits else "")
        head = [_rescored(hit, query) for hit in hits[:CANDIDATES]]
        return Reranked(in_front(head, hits[CANDIDATES:]), self.name if hits else "")


def in_front(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """`rescored` by score and `rest` behind it in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


def closeness(text: str, question: Sequence[str]) -> float:
    """Largest part of the words that stands within NEAR_LINES lines of `text`, 0..1."""
    patterns = [form_pattern(word) for word in question]
    places = [
        (number, index)
        for number, line in enumerate(text[:READ_CHARACTERS].lower().split("\n"))
        for index, pattern in enumerate(patterns)
        if pattern.search(line)
    ]
    best = start = 0
    counts = [0] * len(patterns)
    for number, index in places:  # a window slides over the places, in order of lines
        counts[index] += 1
        while number - places[start][0] >= NEAR_LINES:
            counts[places[start][1]] -= 1
            start += 1
        best = max(best, sum(1 for count in counts if count))
    return best / len(patterns) if patterns else 0.0


def _rescored(hit: Hit, query: Query) -> Hit:
    unit = hit.unit
    near = closeness(f"{unit.path} {unit.qualified_name}\n{unit.source_code}", query.words)
    # A factor, not a sum: penalties and the order of the channels keep their meaning.
    why = f"reranked: {round(near * 100)}% of the words stand close together"
    return replace(hit, score=hit.score * (1 + PROXIMITY_WEIGHT * near), why=(*hit.why, why))
