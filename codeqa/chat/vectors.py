"""Vectors of questions, by which similar earlier questions are found."""

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
"""Latest messages of a conversation, which a model always sees."""
SEMANTIC_K = 3
"""Most older questions (with answers) that it also sees, if they resemble this one."""
QA_K = 4
"""Most similar questions of this conversation, and of others."""
SIMILAR_READ = 32
"""Similar past questions whose answers are read: not all of them may be used."""
SIMILAR_FROM = 0.5
"""Cosine above which two questions are alike: the lowest multiple of .05 that no pair of different
topics exceeds in the `tune` half of research/evals/intents (`research.benchmarks.intents`)."""


class QuestionVectors:
    """Makes vectors with the embedding that comes with CodeQA, loaded once."""

    @cached_property
    def _embedding(self) -> Embedding | None:
        return fast_embedding()

    @property
    def name(self) -> str:
        """Name of the embedding; '' if none is installed."""
        return self._embedding.name if self._embedding else ""

    def __call__(self, text: str) -> Vector | None:
        """Return the vector (d,) of `text`, or None if it has no word that the embedding knows.

        It is also None for text without a topic: "why is that?" resembles every such question.
        """
        if self._embedding is None or not says_something(text):
            return None
        vector = self._embedding.embed_query(well_formed(text))
        return vector if vector.any() else None


def write_vector(vector: Vector) -> bytes:
    """Return `vector` as it is stored: float16, little endian."""
    return vector.astype("<f2").tobytes()


def cosine(first: Vector, second: Vector) -> float:
    """Return the cosine of two vectors (d,) of one embedding; 0 if one of them is zero."""
    lengths = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / lengths if lengths else 0.0


def prune(
    history: Sequence[Exchange], question: Vector | None, embed: Callable[[str], Vector | None]
) -> tuple[Exchange, ...]:
    """Return the latest exchanges, and before them older ones with a similar question.

    The oldest comes first. A question always keeps its answer.
    """
    recent = RECENCY_WINDOW // 2
    older, latest = history[:-recent], history[-recent:]
    if question is None or not older:
        return tuple(latest)
    scores = []
    for exchange in older:
        vector = embed(exchange.question)
        scores.append(0.0 if vector is None else cosine(question, vector))
    best = sorted(range(len(older)), key=lambda number: -scores[number])[:SEMANTIC_K]
    similar = [older[number] for number in sorted(best) if scores[number] > SIMILAR_FROM]
    return tuple(similar) + tuple(latest)


def names_other_code(one: Query, other: Query) -> bool:
    """Return whether two questions name different code, such as `load_page` and `load_user`.

    Such questions are not alike, however similar their vectors are.
    """
    names, other_names = _names_in(one), _names_in(other)
    return bool(names and other_names) and names.isdisjoint(other_names)


def _names_in(query: Query) -> set[str]:
    return {name.lower() for name in query.names + query.qualified + query.files}


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
    """Return past exchanges whose question is similar to that of `vector` (d,), most similar first.

    At most `QA_K` are of the conversation, and after them as many of others. Left out are turns in
    `skip`, those that not `shows`, all but the latest of equal questions, turns that another branch
    replaced, answers that are not a model's or not complete, and answers of other conversations
    that not `holds` any more. Raises StorageError.
    """
    # Read again each time: 2,000 questions take a few milliseconds.
    questions = state.turns.past_questions(user, repository, embedding)
    similar = _most_similar(questions, vector)
    ranked = [question for question in similar if question.turn not in skip]
    exchanges: list[Exchange] = []
    for is_same in (True, False):
        turns = [
            question.turn
            for question in ranked
            if (question.conversation == conversation != "") == is_same
        ][:SIMILAR_READ]
        stored = state.turns.standing(turns, user)  # without those deleted meanwhile
        by_question: dict[str, Exchange] = {}
        for turn in turns:
            past = stored.get(turn)
            if past is None or len(by_question) == QA_K or not _is_from_model(past):
                continue
            _, text = read_mode(strip_tag(past.question))
            key = text.casefold()  # of equal questions the latest comes first
            if key not in by_question and shows(past) and (is_same or holds(past)):
                exchange = Exchange(text, past.answer, past.id, past.conversation, not is_same)
                by_question[key] = exchange
        exchanges += by_question.values()
    return exchanges


def _most_similar(questions: Sequence[PastQuestion], vector: Vector) -> list[PastQuestion]:
    """Return similar questions, the most similar first, and the latest of equal ones first."""
    size = 2 * len(vector)  # float16
    questions = [question for question in questions if len(question.vector) == size]
    vectors = b"".join(question.vector for question in questions)
    flat = np.frombuffer(vectors, "<f2").astype(np.float32)
    rows = flat.reshape(-1, len(vector))
    with np.errstate(all="ignore"):  # a zero vector gives NaN, which exceeds nothing
        scores = rows @ vector / (np.linalg.norm(rows, axis=1) * np.linalg.norm(vector))
    similar = np.flatnonzero(scores > SIMILAR_FROM)
    order = np.lexsort((-similar, -scores[similar]))
    return [questions[number] for number in similar[order]]


def _is_from_model(past: Turn) -> bool:
    """Return whether a model gave this answer, and in full: only then may a model see it again."""
    details = past.details
    if not past.answer or details.get("error") or not details.get("finished", True):
        return False
    return not details.get("reply") and details.get("generator") != EXTRACTIVE
