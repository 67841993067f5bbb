"""A checkpoint that reranks on this machine: loaded once, read in batches, bounded in time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, partial
from typing import Any

from codeqa.errors import RerankerError
from codeqa.search.blend import LanceReranker
from codeqa.search.checkpoint import Family, short_name
from codeqa.search.lance import document, lance_reranker
from codeqa.search.loading import load_ranker
from codeqa.search.query import Query
from codeqa.types import Hit

CANDIDATES = 20
"""Hits that are read: about 2.5 s on two cores for a model of 384 dimensions and 12 layers."""
BATCH = 5
"""Hits between two looks at the clock, 0.6 s. All 20 at once are no faster on a CPU (1 to 10
measure the same within the noise) and take 150 MB more."""
SECONDS = 15.0
"""That one request waits for the model, loading included; what is not read by then keeps
its order. Five times the usual, for slower and busier machines."""
RETRY_SECONDS = 30.0
"""After a failure the checkpoint is left alone for so long: an unreachable hub costs each try
its time."""


class LocalModel:
    """Scores hits by a checkpoint of `family`, through a ranker of `rerankers`.

    `checkpoint` is a folder or a name on the model hub; with `download` a name that is not
    in the local cache is fetched. Nothing is imported or read before the first call, which
    calls `load(checkpoint, family, may_download=…)` for the ranker.
    """

    def __init__(
        self,
        checkpoint: str,
        family: Family = Family.COLBERT,
        *,
        download: bool,
        seconds: float = SECONDS,
        load: Callable[..., Any] | None = None,
    ) -> None:
        self.name = short_name(checkpoint)
        self._open = partial(load or load_ranker, checkpoint, family, may_download=download)
        self._seconds = seconds
        self._loading: Future[Any] | None = None
        self._failed_at = math.inf
        self._start = threading.Lock()
        # The tokenizer is not made for several threads, and the model takes all cores anyway.
        self._turn = threading.Lock()

    def scores(self, hits: Sequence[Hit], query: Query) -> list[float | None]:
        """Scores of the first hits, as many as can be read in the time; None for the others.

        Raises RerankerError when packages or checkpoint are missing or unfit and when it is
        not loaded within the time; what the model raises comes as it is.
        """
        deadline = time.monotonic() + self._seconds
        model = self._loaded(deadline)
        texts = [document(hit.unit) for hit in hits]
        scores: list[float | None] = []
        needed = 0.0  # seconds of the longest batch so far: one more is begun if it can end
        while len(scores) < len(texts) and time.monotonic() + needed < deadline:
            if not self._turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
            started = time.monotonic()
            try:
                scores += score_batch(model, query.text, texts[len(scores) : len(scores) + BATCH])
            finally:
                self._turn.release()
            needed = max(needed, time.monotonic() - started)
        return scores + [None] * (len(texts) - len(scores))

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


@cache
def shared(checkpoint: str, family: Family, *, download: bool) -> LanceReranker:
    """The one reranker of this process for `checkpoint`: all repositories share its memory."""
    return local_reranker(LocalModel(checkpoint, family, download=download))


def local_reranker(model: LocalModel) -> LanceReranker:
    """`model` through LanceDB's interface; it keeps to a deadline of its own."""
    ranker = lance_reranker(model.name, model.scores)
    return LanceReranker(ranker, candidates=CANDIDATES, seconds=None)


def score_batch(model: Any, question: str, documents: Sequence[str]) -> list[float]:
    """Scores of a few documents in their order; never called with none (IndexError inside)."""
    ranked = model.rank(question, list(documents), doc_ids=list(range(len(documents))))
    by_id = {result.document.doc_id: float(result.score) for result in ranked.results}
    return [by_id[number] for number in range(len(documents))]
