"""Questions asked before that resemble this one, with their answers (S3.18, S3.19)."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from codeqa.chat.topic import Vector
from codeqa.errors import StorageError
from codeqa.extractive.extractive import Extractive
from codeqa.extractive.generator import Exchange
from codeqa.intents import read_mode
from codeqa.state import PastExchange, PastQuestion, State
from codeqa.text.tag import strip_tag

QA_K = 4
"""Most past questions that go with one (S3.18)."""
MATRICES = 8
"""Kept in memory at once, the latest used: 10,000 questions of 512 numbers take 20 MB."""
FIRST_ROWS = 64
"""Room that a matrix begins with; it doubles when it is full."""
READ_AT_ONCE = 8
"""Candidates whose answers are read together: enough for four and those that do not count."""

log = logging.getLogger(__name__)


class Prior:
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
        k: int = QA_K,
        same: bool,
        skip: Collection[str] = (),
    ) -> list[Exchange]:
        """At most `k` past exchanges whose question has a cosine above `threshold` (C-23) to
        `vector` (d,), the most similar first.

        With `same` those of the conversation, else those of any other one. Left out are turns
        in `skip`, answers that quote, were stopped, failed or come from the app itself, those
        that another branch took the place of, and all but the latest of the same question.
        None come while the state cannot be read: an answer does without them.
        """
        key = (user, repository, embedding)
        try:
            above = self._above(key, vector, threshold)
            turns = [
                turn
                for turn, place in above
                if (place == conversation != "") == same and turn not in skip
            ]
            return self._exchanges(turns, user, k, elsewhere=not same)
        except StorageError as error:
            log.warning("earlier questions could not be read: %s", error)
            return []

    def _exchanges(
        self, turns: Sequence[str], user: str, k: int, elsewhere: bool
    ) -> list[Exchange]:
        """The first `k` of `turns` that count, as exchanges."""
        found: dict[str, Exchange] = {}
        """By the question: the most similar come first, of equal ones the latest."""
        for past in self._read(turns, user):
            _, question = read_mode(strip_tag(past.question))
            known = question.casefold() in found
            if known or not _counts(past):
                continue
            exchange = Exchange(question, past.answer, turn=past.turn, elsewhere=elsewhere)
            found[question.casefold()] = exchange
            if len(found) == k:
                break
        return list(found.values())

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
    """Vectors of length 1 as rows, with room for more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.last = 0
        """Number of the latest question."""
        self.seen = 0
        """Questions up to it, also those whose vector cannot be compared."""
        self._rows = np.zeros((FIRST_ROWS, width), np.float32)
        self._asked: list[tuple[str, str]] = []
        """Turn and conversation of each row that is filled."""

    def add(self, questions: Sequence[PastQuestion]) -> None:
        """Append `questions`, later ones than there are."""
        fitting = [one for one in questions if len(one.vector) == 2 * self.width]
        flat = np.frombuffer(b"".join(one.vector for one in fitting), "<f2").astype(np.float32)
        rows = flat.reshape(-1, self.width)
        lengths = np.linalg.norm(rows, axis=1)
        usable = np.isfinite(lengths) & (lengths > 0)
        rows = rows[usable] / lengths[usable, None]
        filled = len(self._asked)
        if filled + len(rows) > len(self._rows):
            grown = np.zeros((max(2 * len(self._rows), filled + len(rows)), self.width), np.float32)
            grown[:filled] = self._rows[:filled]
            self._rows = grown
        self._rows[filled : filled + len(rows)] = rows
        self._asked += [
            (one.turn, one.conversation) for one, good in zip(fitting, usable, strict=True) if good
        ]
        self.seen += len(questions)
        self.last = questions[-1].rowid if questions else self.last

    def above(self, vector: Vector, threshold: float) -> list[tuple[str, str]]:
        """Turn and conversation of the rows whose cosine to `vector` is above `threshold`, the
        most similar first, the latest of equal ones first."""
        length = float(np.linalg.norm(vector))
        if not length or not np.isfinite(length):
            return []
        scores = self._rows[: len(self._asked)] @ (np.asarray(vector, np.float32) / length)
        found = np.flatnonzero(scores > threshold)
        order = np.lexsort((-found, -scores[found]))
        return [self._asked[number] for number in found[order]]


def _counts(past: PastExchange) -> bool:
    """Whether a model may see this answer: one that a model gave, in full, and that stands."""
    whole = past.answer and past.finished and past.active
    return bool(whole) and not past.reply and past.generator != Extractive.name
