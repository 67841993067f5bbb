"""What of earlier turns goes with a question: the latest, and those that resemble it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from codeqa.chat.generation import EXTRACTIVE, Exchange, answer_for_history
from codeqa.chat.record import TurnRecord
from codeqa.chat.vectors import Vector, cosine
from codeqa.errors import StorageError
from codeqa.intents import read_mode
from codeqa.search import Query
from codeqa.state import PastExchange, PastQuestion, State
from codeqa.text.tag import strip_tag

HISTORY_MESSAGES = 20
"""Latest messages, questions and answers alike, that are loaded."""
RECENCY_WINDOW = 6
"""Latest messages that a model always sees."""
SEMANTIC_K = 3
"""And older questions, with their answers, that it sees when they resemble this one."""
QA_K = 4
"""Most past questions that are found for one."""
MATRICES = 8
"""Kept in memory at once, the latest used: 10,000 questions of 512 numbers take 20 MB."""
READ_AT_ONCE = 8
"""Candidates whose answers are read together: enough for four and those that do not count."""

Embed = Callable[[str], Vector | None]
"""A question's vector; None for one that the embedding knows no word of, and without one."""

log = logging.getLogger(__name__)


def exchanges_of(turns: Sequence[TurnRecord]) -> tuple[Exchange, ...]:
    """The answered questions of `turns`, as a model may see them.

    The app's own account of what is stored stays out: it is for its reader alone.
    """
    return tuple(
        Exchange(
            read_mode(turn.question)[1], answer_for_history(turn.answer, turn.generator), turn.id
        )
        for turn in turns
        if turn.answer and turn.reply != "privacy"
    )


def prune(
    history: Sequence[Exchange], question: Vector | None, embed: Embed, threshold: float
) -> tuple[Exchange, ...]:
    """The window of the latest exchanges, and before it those older ones whose question is more
    similar to this one than `threshold`; oldest first.

    A question always keeps its answer: neither says much without the other.
    """
    recent = RECENCY_WINDOW // 2
    older, latest = history[:-recent], history[-recent:]
    if question is None or not older:
        return tuple(latest)
    scored = []
    for number, exchange in enumerate(older):
        vector = embed(exchange.question)
        score = 0.0 if vector is None else cosine(question, vector)
        if score > threshold:
            scored.append((-score, number))
    kept = sorted(number for _, number in sorted(scored)[:SEMANTIC_K])
    return (*(older[number] for number in kept), *latest)


def names_other_code(one: Query, other: Query) -> bool:
    """Whether two questions name different code: `load_page` and `load_user` are not alike,
    however alike their vectors are."""
    named, also = ({n.lower() for n in (*q.names, *q.qualified, *q.files)} for q in (one, other))
    return bool(named and also) and named.isdisjoint(also)


class PastQuestions:
    """The vectors of past questions in memory, one matrix per user, repository and embedding.

    Each is brought up to date with every look, by the numbers of the questions: other
    processes may add and delete some. Safe to share between threads.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._matrices: OrderedDict[tuple[str, str, str], _Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def similar(
        self,
        vector: Vector,
        *,
        user: str,
        repository: str,
        conversation: str,
        embedding: str,
        threshold: float,
        same: bool,
        skip: Collection[str] = (),
        k: int = QA_K,
    ) -> list[Exchange]:
        """At most `k` past exchanges whose question has a cosine above `threshold` to `vector`
        (d,), the most similar first.

        With `same` those of the conversation, else those of any other one. Left out are turns
        in `skip`, answers that quote, were stopped, failed or come from the app itself, those
        that another branch took the place of, and all but the latest of the same question.
        None come while the state cannot be read: an answer does without them.
        """
        key = (user, repository, embedding)
        try:
            turns = [
                turn
                for turn, place in self._above(key, vector, threshold)
                if (place == conversation != "") == same and turn not in skip
            ]
            found: dict[str, Exchange] = {}
            """By the question: the most similar come first, of equal ones the latest."""
            for past in self._read(turns, user):
                _, question = read_mode(strip_tag(past.question))
                if question.casefold() in found or not _counts(past):
                    continue
                exchange = Exchange(question, past.answer, turn=past.turn, elsewhere=not same)
                found[question.casefold()] = exchange
                if len(found) == k:
                    break
            return list(found.values())
        except StorageError as error:
            log.warning("earlier questions could not be read: %s", error)
            return []

    def _above(
        self, key: tuple[str, str, str], vector: Vector, threshold: float
    ) -> list[tuple[str, str]]:
        """Turn and conversation of the questions above `threshold`, the most similar first."""
        with self._lock:
            matrix = self._matrices.pop(key, None)
            if (
                matrix is None
                or matrix.width != len(vector)
                or self._state.questions.count(*key, matrix.last) != matrix.seen
            ):
                matrix = _Matrix(len(vector))
            matrix.add(self._state.questions.past(*key, since=matrix.last))
            self._matrices[key] = matrix
            while len(self._matrices) > MATRICES:
                self._matrices.popitem(last=False)
            return matrix.above(vector, threshold)

    def _read(self, turns: Sequence[str], user: str) -> Iterator[PastExchange]:
        """The exchanges of `turns` in this order, without those deleted meanwhile."""
        for start in range(0, len(turns), READ_AT_ONCE):
            some = turns[start : start + READ_AT_ONCE]
            read = self._state.turns.exchanges(some, user)
            yield from (read[turn] for turn in some if turn in read)


class _Matrix:
    """Vectors of length 1 as rows, each with the turn and the conversation it was asked in."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.last = 0
        """Number of the latest question."""
        self.seen = 0
        """Questions up to it, also those whose vector cannot be compared."""
        self._rows = np.zeros((0, width), np.float32)
        self._asked: list[tuple[str, str]] = []

    def add(self, questions: Sequence[PastQuestion]) -> None:
        """Append `questions`, later ones than there are."""
        if not questions:
            return
        fitting = [one for one in questions if len(one.vector) == 2 * self.width]
        flat = np.frombuffer(b"".join(one.vector for one in fitting), "<f2").astype(np.float32)
        rows = flat.reshape(-1, self.width)
        lengths = np.linalg.norm(rows, axis=1)
        usable = np.isfinite(lengths) & (lengths > 0)
        self._rows = np.concatenate([self._rows, rows[usable] / lengths[usable, None]])
        self._asked += [
            (one.turn, one.conversation) for one, good in zip(fitting, usable, strict=True) if good
        ]
        self.seen += len(questions)
        self.last = questions[-1].rowid

    def above(self, vector: Vector, threshold: float) -> list[tuple[str, str]]:
        """Turn and conversation of the rows whose cosine to `vector` is above `threshold`, the
        most similar first, the latest of equal ones first."""
        length = float(np.linalg.norm(vector))
        if not length or not np.isfinite(length):
            return []
        scores = self._rows @ (np.asarray(vector, np.float32) / length)
        found = np.flatnonzero(scores > threshold)
        order = np.lexsort((-found, -scores[found]))
        return [self._asked[number] for number in found[order]]


def _counts(past: PastExchange) -> bool:
    """Whether a model may see this answer: one that a model gave, in full, and that stands."""
    whole = past.answer and past.finished and past.active
    return bool(whole) and not past.reply and past.generator != EXTRACTIVE
