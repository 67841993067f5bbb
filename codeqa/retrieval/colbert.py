"""ColBERT late interaction through `rerankers`: loaded once, read in batches, bounded in time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache, partial
from typing import Any

from codeqa.errors import RerankerError
from codeqa.retrieval.checkpoint import short_name
from codeqa.retrieval.loading import load_ranker
from codeqa.retrieval.query import Query
from codeqa.retrieval.ranking import penalties
from codeqa.retrieval.rerank import Reranked, in_front
from codeqa.types import Hit, Unit

CANDIDATES = 20
"""Hits that are read: about 2.5 s on two cores for a model of this size (384 wide, 12 layers)."""
CHARACTERS = 2_000
"""Of a hit that are tokenised at all; the tokens that are read are about half of it."""
BATCH = 5
"""Hits between two looks at the clock, 0.6 s. All 20 at once are no faster on a CPU (1 to 10
measure the same within the noise) and take 150 MB more."""
SECONDS = 15.0
"""That one request waits for the model, loading included; what is not read by then keeps
its order. Five times the usual, for slower and busier machines."""
RETRY_SECONDS = 30.0
"""After a failure the checkpoint is left alone for so long: an unreachable hub costs each try
its time."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""


class ColbertReranker:
    """Scores the best hits by the similarity of each word of the question to the code.

    `checkpoint` is a folder or a name on the model hub; with `download` a name that is not
    in the local cache is fetched. Nothing is imported or read before the first call, which
    calls `load(checkpoint, may_download=…)` for a ranker of `rerankers`.
    """

    def __init__(
        self,
        checkpoint: str,
        *,
        download: bool,
        seconds: float = SECONDS,
        load: Callable[..., Any] | None = None,
    ) -> None:
        self.name = short_name(checkpoint)
        self._open = partial(load or load_ranker, checkpoint, may_download=download)
        self._seconds = seconds
        self._loading: Future[Any] | None = None
        self._failed_at = math.inf
        self._start = threading.Lock()
        # The tokenizer is not made for several threads, and the model takes all cores anyway.
        self._turn = threading.Lock()

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """The best CANDIDATES by half their own and half the model's score.

        Raises RerankerError when packages or checkpoint are missing or unfit, when it is not
        loaded within the time, and when nothing was read in it.
        """
        if not hits or not query.text:
            return Reranked(list(hits), self.name if hits else "")
        deadline = time.monotonic() + self._seconds
        model = self._loaded(deadline)
        head = hits[:CANDIDATES]
        scores = self._scores(model, query.text, [document(hit.unit) for hit in head], deadline)
        notice = ""
        if len(scores) < len(head):
            notice = (
                f"{self.name} read {len(scores)} of {len(head)} hits in "
                f"{self._seconds:g} seconds; the others stand behind them."
            )
        rescored = combined(head[: len(scores)], scores, query, self.name)
        return Reranked(in_front(rescored, hits[len(scores) :]), self.name, notice)

    def _loaded(self, deadline: float) -> Any:
        """The ranker of `rerankers`, waited for until `deadline`."""
        with self._start:
            if self._loading is None or time.monotonic() > self._failed_at + RETRY_SECONDS:
                self._loading, self._failed_at = Future(), math.inf
                # A daemon: a download that hangs must not keep the program from ending.
                threading.Thread(target=self._load, args=(self._loading,), daemon=True).start()
            loading = self._loading
        try:
            error = loading.exception(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise RerankerError(
                f"{self.name} is still being loaded after {self._seconds:g} seconds.",
                "Ask again in a moment.",
            ) from None
        if isinstance(error, RerankerError):  # for everyone who waits an error of their own
            raise RerankerError(error.message, error.hint)
        if error is not None:
            raise RerankerError(
                f"{self.name} cannot be loaded ({type(error).__name__}).",
                "Look at its folder, or set CODEQA_RERANKER=built-in.",
            )
        return loading.result()

    def _load(self, loading: Future[Any]) -> None:
        try:
            model = self._open()
        except BaseException as error:  # whatever it is belongs to those who wait
            self._failed_at = time.monotonic()
            loading.set_exception(error)
        else:
            loading.set_result(model)

    def _scores(
        self, model: Any, question: str, documents: Sequence[str], deadline: float
    ) -> list[float]:
        """Scores of the first documents, as many as can be read until `deadline`."""
        scores: list[float] = []
        needed = 0.0  # seconds of the longest batch so far: one more is begun if it can end
        while len(scores) < len(documents) and time.monotonic() + needed < deadline:
            batch = documents[len(scores) : len(scores) + BATCH]
            if not self._turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
            started = time.monotonic()
            try:
                scores += score_batch(model, question, batch)
            except Exception as error:  # torch raises anything; its text may hold the code
                raise RerankerError(
                    f"{self.name} failed while reading ({type(error).__name__}).",
                    "Set CODEQA_RERANKER=built-in if it happens again.",
                ) from None
            finally:
                self._turn.release()
            needed = max(needed, time.monotonic() - started)
        if not scores:
            raise RerankerError(
                f"{self.name} read nothing within {self._seconds:g} seconds.",
                "Ask again when the machine is less busy.",
            )
        if not all(map(math.isfinite, scores)):
            raise RerankerError(
                f"{self.name} gives scores that are no numbers.",
                "Its checkpoint is damaged: fetch it again, or set CODEQA_RERANKER=built-in.",
            )
        return scores


@cache
def shared(checkpoint: str, *, download: bool) -> ColbertReranker:
    """The one reranker of this process for `checkpoint`: all repositories share its memory."""
    return ColbertReranker(checkpoint, download=download)


def score_batch(model: Any, question: str, documents: Sequence[str]) -> list[float]:
    """Scores of a few documents in their order; never called with none (IndexError inside)."""
    ranked = model.rank(question, list(documents), doc_ids=list(range(len(documents))))
    by_id = {result.document.doc_id: float(result.score) for result in ranked.results}
    return [by_id[number] for number in range(len(documents))]


def document(unit: Unit) -> str:
    """What the model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


def combined(hits: Sequence[Hit], scores: Sequence[float], query: Query, name: str) -> list[Hit]:
    """`hits` with scores of which MODEL_SHARE is the model's, on the scale of the old ones.

    The model's scores lie close together, so that they are spread over 0..1 first; tests
    and re-exports are pushed back as in the first stage.
    """
    low, high = min(scores), max(scores)
    best = max(hit.score for hit in hits)
    found = []
    for hit, score in zip(hits, scores, strict=True):
        relevance = (score - low) / (high - low) if high > low else 1.0
        for factor, _ in penalties(hit.unit, query):
            relevance *= factor
        mixed = MODEL_SHARE * relevance * best + (1 - MODEL_SHARE) * hit.score
        why = f"reranked by {name}: {score:.2f}"
        found.append(replace(hit, score=mixed, why=(*hit.why, why)))
    return found
