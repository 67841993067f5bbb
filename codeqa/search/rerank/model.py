"""Any model that scores hits, as a reranker: bounded candidates, bounded time, half of the say."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.ranking import role_penalties
from codeqa.search.rerank.reranker import CANDIDATES, Reranked, in_front, unread_warnings
from codeqa.types import Hit

SECONDS = 15.0
"""That a model may take which does not look at the clock itself."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""

Score = Callable[[Sequence[Hit], Query], Sequence[float | None]]
"""Relevance of each hit, in their order; None for one that was not read."""

T = TypeVar("T")


class ModelReranker:
    """Orders the best hits by half their own score and half what `score` says of them.

    `candidates` are read, never more than CANDIDATES, and after `seconds` they are not waited for
    any longer. `host` is where the candidates are sent, which a warning
    then says; '' when they stay on this machine.
    """

    def __init__(
        self,
        name: str,
        score: Score,
        *,
        candidates: int = CANDIDATES,
        seconds: float = SECONDS,
        host: str = "",
    ) -> None:
        self.name = name
        self._score = score
        self._candidates = min(candidates, CANDIDATES)
        self._seconds = seconds
        self._host = host
        # A failure, too, says where code may have been sent.
        self._place = f"{name} at {host}" if host else name

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """What is not read stays behind, in its order.

        Raises RerankerError when the model fails, is too slow or gives no usable score.
        """
        if not hits or not query.text:
            return Reranked(list(hits), self.name if hits else "")
        head = hits[: self._candidates]
        started = time.monotonic()
        scored = list(zip(head, self._scores(head, query), strict=True))
        seconds = time.monotonic() - started
        read = [(hit, score) for hit, score in scored if score is not None]
        if not read:
            raise RerankerError(
                f"{self._place} read nothing within {seconds:.1f} seconds.",
                "Ask again when the machine is less busy.",
            )
        warnings = unread_warnings(self.name, len(read), len(head), seconds)
        if self._host:
            count = f"{len(head)} piece{'s' if len(head) > 1 else ''} of code"
            warnings += (f"The question and {count} were sent to {self._host} to be ordered.",)
        unread = [hit for hit, score in scored if score is None]
        rest = [*unread, *hits[len(head) :]]
        return Reranked(in_front(combined(read, query, self.name), rest), self.name, warnings)

    def _scores(self, head: Sequence[Hit], query: Query) -> Sequence[float | None]:
        try:
            scores = within(self._seconds, lambda: self._score(head, query))
        except RerankerError:
            raise
        except TimeoutError:
            raise RerankerError(
                f"{self._place} did not answer within {self._seconds:g} seconds.",
                "Ask again in a moment, or set CODEQA_RERANKER=built-in.",
            ) from None
        except Exception as error:  # anybody's code; its text may hold the question or the code
            raise RerankerError(
                f"{self._place} failed while reading ({type(error).__name__}).",
                "Set CODEQA_RERANKER=built-in if it happens again.",
            ) from None
        if not all(score is None or math.isfinite(score) for score in scores):
            raise RerankerError(
                f"{self._place} gives scores that are no numbers.",
                "Its model is damaged: fetch it again, or set CODEQA_RERANKER=built-in.",
            )
        return scores


def combined(read: Sequence[tuple[Hit, float]], query: Query, name: str) -> list[Hit]:
    """Hits with scores of which MODEL_SHARE is the model's, on the scale of the old ones.

    A model's scores lie close together or on a scale of its own, so that they are spread
    over 0..1 first; tests and re-exports are pushed back as in the first stage.
    """
    low, high = min(score for _, score in read), max(score for _, score in read)
    best = max(hit.score for hit, _ in read)
    found = []
    for hit, score in read:
        relevant = (score - low) / (high - low) if high > low else 1.0
        for factor, _ in role_penalties(hit.unit, query):
            relevant *= factor
        mixed = MODEL_SHARE * relevant * best + (1 - MODEL_SHARE) * hit.score
        why = f"reranked by {name}: {score:.2f}"
        found.append(replace(hit, score=mixed, why=(*hit.why, why)))
    return found


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives, in a thread that is left to itself after `seconds` (TimeoutError)."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # whatever it is belongs to the one who waits
            done.set_exception(error)

    # A daemon: a request that hangs must not keep the program from ending.
    threading.Thread(target=run, daemon=True).start()
    return done.result(timeout=seconds)
