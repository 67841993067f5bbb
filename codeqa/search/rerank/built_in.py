"""The built-in reranker: it reads the code of the best hits, with no model and no network.

With the shipped table it looks at three things: the nearest passage, late interaction with the
body, and whether better hits use the unit. Without it, at how close the question's words stand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codeqa.embeddings import question_matcher, shipped_table
from codeqa.errors import EmbeddingError
from codeqa.search.query import Query
from codeqa.search.rerank.reranker import (
    BUILT_IN,
    CANDIDATES,
    Reranked,
    in_front,
    unread_warnings,
)
from codeqa.search.word_forms import form_pattern
from codeqa.text.unit_text import fields_of
from codeqa.types import TEXT_KINDS, Hit, Unit

PASSAGE_WEIGHT = 0.3
"""The nearest twelve lines: what answers may be a part of a long unit, whose one vector is a
mixture of all its parts."""
LATE_WEIGHT = 0.3
"""Late interaction: every word of the question has something in the body that means it."""
USED_WEIGHT = 0.15
"""Called or named in the code of better hits: what they stand on is often what is asked for."""
PROXIMITY_WEIGHT = 0.5
"""Without the table: the question's words within a few lines of each other against the same
words far apart."""

SECONDS = 0.3
"""That it may take; what is not read by then keeps its order. It is asked for with every
question, so that it must not be felt."""
NEAR_LINES = 10
"""Lines within which words are about the same thing: a screen's quarter, a short block."""
READ_CHARACTERS = 20_000
"""Longest part of a unit that is read: bounds the time of one unit to about a millisecond."""

_NAME = re.compile(r"[^\W\d]\w{2,}")


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close a hit comes to the question."""

    value: float
    """The sum of the parts with their weights: the hit's score counts 1 + this times."""
    why: str


class BuiltInReranker:
    """Reads the code of each candidate.

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
        read = reader(head, query)  # the first in a process loads the table
        deadline = time.monotonic() + self._seconds
        done: list[Hit] = []
        for place, hit in enumerate(head):
            if time.monotonic() > deadline:
                break
            close = read(place)
            # A factor, not a sum: penalties and the order of the channels keep their meaning.
            score = hit.score * (1 + close.value)
            done.append(replace(hit, score=score, why=(*hit.why, close.why)))
        warnings = unread_warnings(self.name, len(done), len(head), self._seconds)
        return Reranked(in_front(done, hits[len(done) :]), self.name, warnings)


def reader(hits: Sequence[Hit], query: Query) -> Callable[[int], Closeness]:
    """A function that reads the hit at a place of `hits`, which are best first."""
    folder = shipped_table()
    try:
        near = question_matcher(str(folder), query.text) if folder else None
    except EmbeddingError:  # damaged: the index and `codeqa doctor` say so
        near = None
    if near is None or near.empty:
        return lambda place: _by_words(hits[place].unit, query)
    used = used_by_better(hits)

    def read(place: int) -> Closeness:
        unit = hits[place].unit
        found = near.nearness(fields_of(unit))
        value = (
            PASSAGE_WEIGHT * found.passage + LATE_WEIGHT * found.late + USED_WEIGHT * used[place]
        )
        first, last = unit.start_line + found.first_line, unit.start_line + found.last_line
        why = f"reranked: lines {first}-{min(last, unit.end_line)} come closest"
        return Closeness(value, why + (", and better hits use it" if used[place] else ""))

    return read


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
                if name != unit.name and not _encloses(unit, hits[other].unit):
                    values[other] += 1 / (place + 1) / len(named[name])
    return [min(1.0, value) for value in values]


def words_together(text: str, question: Sequence[str]) -> float:
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


def _by_words(unit: Unit, query: Query) -> Closeness:
    near = words_together(f"{unit.path} {unit.qualified_name}\n{unit.source_code}", query.words)
    why = f"reranked: {round(near * 100)}% of the words stand close together"
    return Closeness(PROXIMITY_WEIGHT * near, why)


def _encloses(outer: Unit, inner: Unit) -> bool:
    return (
        outer.path == inner.path
        and outer.start_line <= inner.start_line
        and inner.end_line <= outer.end_line
    )
