"""The rerank switch and the built-in reranker: how close together the words stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codeqa.retrieval.query import Query, variants
from codeqa.types import Hit

CANDIDATES = 30
"""Hits that are read again; deeper ones are rarely the answer, and each costs its length."""
READ_CHARACTERS = 20_000
"""Longest part of a unit that is read: bounds the time of one unit to about a millisecond."""
PROXIMITY_WEIGHT = 0.5
"""The words within a few lines of each other against the same words far apart: moves the
lines that answer up a little (line ndcg@10 +.01 on the development questions)."""
NEAR_LINES = 10
"""Lines within which words are about the same thing: a screen's quarter, a short block."""


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', 1 and '1' (S1.20)."""
    return value is True or (not isinstance(value, bool) and value in ("true", "True", "1", 1))


def rerank(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """`hits` with the best CANDIDATES ordered anew; the order below them stays.

    Needs no model: it reads each candidate and rewards those that hold the question's
    words close together.
    """
    if len(query.words) < 2:
        return list(hits)
    head = [_rescored(hit, query) for hit in hits[:CANDIDATES]]
    head.sort(key=lambda hit: -hit.score)
    floor = min((hit.score for hit in head), default=0.0)
    tail = [replace(hit, score=min(hit.score, floor)) for hit in hits[CANDIDATES:]]
    return head + tail


def closeness(text: str, question: Sequence[str]) -> float:
    """Largest part of the words that stands within NEAR_LINES lines of `text`, 0..1."""
    patterns = [_forms(word) for word in question]
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


def _forms(word: str) -> re.Pattern[str]:
    """Any form of `word`, also inside an identifier."""
    return re.compile("|".join(re.escape(form) for form in (word, *variants(word))))
