"""Vectors of questions: which earlier questions go with one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np

from codeqa.chat.values import Vector
from codeqa.embeddings.registry import Embedding, fast_embedding
from codeqa.routing.mode import read_mode
from codeqa.search.query import Query, says_something
from codeqa.state import State
from codeqa.state.records import PastQuestion, Turn
from codeqa.text import strip_tag
from codeqa.text.tokens import well_formed
from codeqa.types import EXTRACTIVE, Exchange

RECENCY_WINDOW = 6
"""Latest messages that a model always sees."""
SEMANTIC_K = 3
"""And older questions, with their answers, that it sees when they resemble this one."""
QA_K = 4
"""Most past questions that are found for one."""
CANDIDATES = 32
"""The most similar past questions whose answers are read: not all of them count."""
SIMILAR = 0.5
"""Cosine above which two questions are alike, by `python -m research.benchmarks.intents` on
the `tune` half of the pairs in research/evals/intents: the lowest step of .05 that no pair of
different topics exceeds."""


class QuestionVectors:
    """Makes vectors with the shipped embedding, loaded once."""

    @cached_property
    def _embedding(self) -> Embedding | None:
        return fast_embedding()

    @property
    def name(self) -> str:
        """Name of the embedding; '' where none is installed."""
        return self._embedding.name if self._embedding else ""

    def __call__(self, text: str) -> Vector | None:
        """Vector (d,) of `text`; None where the embedding knows no word of it, or where none of
        them does more than ask: "why is that?" is like every other such question and belongs
        to every topic."""
        if self._embedding is None or not says_something(text):
            return None
        vector = self._embedding.embed_query(well_formed(text))
        return vector if vector.any() else None


def write_vector(vector: Vector) -> bytes:
    """`vector` as it is stored: float16, little endian."""
    return vector.astype("<f2").tobytes()


def cosine(first: Vector, second: Vector) -> float:
    """Cosine of two vectors (d,) of one embedding; 0 when one is zero."""
    lengths = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / lengths if lengths else 0.0


def prune(
    history: Sequence[Exchange], question: Vector | None, embed: Callable[[str], Vector | None]
) -> tuple[Exchange, ...]:
    """The window of the latest exchanges, and before it those older ones whose question is similar
    to this one; oldest first.

    A question always keeps its answer: neither says much without the other.
    """
    recent = RECENCY_WINDOW // 2
    older, latest = history[:-recent], history[-recent:]
    if question is None or not older:
        return tuple(latest)
    made = (embed(exchange.question) for exchange in older)
    scores = [0.0 if vector is None else cosine(question, vector) for vector in made]
    best = sorted(range(len(older)), key=lambda number: -scores[number])[:SEMANTIC_K]
    near = (older[number] for number in sorted(best) if scores[number] > SIMILAR)
    return (*near, *latest)


def names_other_code(one: Query, other: Query) -> bool:
    """Whether two questions name different code: `load_page` and `load_user` are not alike,
    however alike their vectors are."""
    named, also = ({n.lower() for n in (*q.names, *q.qualified, *q.files)} for q in (one, other))
    return bool(named and also) and named.isdisjoint(also)


def similar_questions(
    state: State,
    vector: Vector,
    *,
    embedding: str,
    user: str,
    repository: str,
    conversation: str,
    skip: Collection[str] = (),
    shows: Callable[[Turn], bool] = lambda _: True,
    holds: Callable[[Turn], bool],
) -> list[Exchange]:
    """At most `QA_K` past exchanges of the conversation, and behind them as many of others, whose
    question is similar to the one of `vector` (d,), the most similar first.

    Left out are turns in `skip` and what does not `shows`, answers that quote, were stopped, failed
    or come from the app itself, those that another branch took the place of, all but the latest of
    the same question, and of other conversations those that do not `holds` any more. Raises
    StorageError.
    """
    # Read anew each time: 2,000 questions take a few milliseconds.
    asked = state.turns.past_questions(user, repository, embedding)
    ranked = _most_similar(asked, vector)
    found: list[Exchange] = []
    for same in (True, False):
        turns = [
            one.turn
            for one in ranked
            if (one.conversation == conversation != "") == same and one.turn not in skip
        ][:CANDIDATES]
        read = state.turns.standing(turns, user)  # without those deleted meanwhile
        alike: dict[str, Exchange] = {}
        """By the question: the most similar come first, of equal ones the latest."""
        for past in filter(_counts, (read[turn] for turn in turns if turn in read)):
            _, question = read_mode(strip_tag(past.question))
            free = len(alike) < QA_K and question.casefold() not in alike and shows(past)
            if free and (same or holds(past)):
                exchange = Exchange(question, past.answer, past.id, past.conversation, not same)
                alike[question.casefold()] = exchange
        found += alike.values()
    return found


def _most_similar(asked: Sequence[PastQuestion], vector: Vector) -> list[PastQuestion]:
    """Those of `asked` that are similar to `vector`, the most similar first, the latest of equal
    ones first."""
    asked = [one for one in asked if len(one.vector) == 2 * len(vector)]  # float16
    flat = np.frombuffer(b"".join(one.vector for one in asked), "<f2").astype(np.float32)
    rows = flat.reshape(-1, len(vector))
    with np.errstate(all="ignore"):  # of a vector without length, the cosine is above nothing
        scores = rows @ vector / (np.linalg.norm(rows, axis=1) * np.linalg.norm(vector))
    found = np.flatnonzero(scores > SIMILAR)
    return [asked[number] for number in found[np.lexsort((-found, -scores[found]))]]


def _counts(past: Turn) -> bool:
    """Whether a model may see this answer: one that a model gave, in full."""
    told = past.details
    whole = past.answer and told.get("finished", True) and not told.get("error")
    return bool(whole) and not told.get("reply") and told.get("generator") != EXTRACTIVE
