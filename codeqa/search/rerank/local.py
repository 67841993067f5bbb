"""A checkpoint that reranks on this machine: loaded once, read in batches, bounded in time.

Every way in which loading one with `rerankers` fails is named.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.checkpoint import (
    INSTALL,
    Family,
    fetch,
    local_folder,
    missing_packages,
    short_name,
)
from codeqa.search.rerank.model import ModelReranker
from codeqa.search.rerank.reranker import document
from codeqa.types import Hit

CANDIDATES = 20
"""Hits that are read: about 2.5 s on two cores for a model of 384 dimensions and 12 layers."""
BATCH = 5
"""Hits between two looks at the clock, 0.6 s. All 20 at once are no faster on a CPU (1 to 10
measure the same within the noise) and take 150 MB more."""
SECONDS = 15.0
"""That one request waits for the model, loading included; what is not read by then keeps
its order. Five times the usual, for slower and busier machines."""
LAST_BATCH = 1.0
"""Seconds on top, for a batch that was begun in time."""
RETRY_SECONDS = 30.0
"""After a failure the checkpoint is left alone for so long: an unreachable hub costs each try
its time."""
TOKENS = 256
"""Read of each hit: its place, name, signature, comment and first lines. Twenty hits take 2.5 s
on two cores, and 1 s with 128 tokens."""


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
        self.seconds = seconds
        self._load = partial(load or load_ranker, checkpoint, family, may_download=download)
        self._ranker: Any = None
        self._failure: tuple[str, str] = ("", "")
        self._failed_at = -math.inf
        self._loading = threading.Lock()
        # The tokenizer is not made for several threads, and the model takes all cores anyway.
        self._turn = threading.Lock()

    def scores(self, hits: Sequence[Hit], query: Query) -> list[float | None]:
        """Scores of the first hits, as many as can be read in the time; None for the others.

        Raises RerankerError when packages or checkpoint are missing or unfit; what the model
        raises comes as it is. Loading, which others wait for, is not bounded by the time.
        """
        deadline = time.monotonic() + self.seconds
        ranker = self._loaded()
        texts = [document(hit.unit) for hit in hits]
        scores: list[float | None] = []
        needed = 0.0  # seconds of the longest batch so far: one more is begun if it can end
        while len(scores) < len(texts) and time.monotonic() + needed < deadline:
            if not self._turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                break
            started = time.monotonic()
            try:
                scores += score_batch(ranker, query.text, texts[len(scores) : len(scores) + BATCH])
            finally:
                self._turn.release()
            needed = max(needed, time.monotonic() - started)
        return scores + [None] * (len(texts) - len(scores))

    def _loaded(self) -> Any:
        with self._loading:
            if self._ranker is None and time.monotonic() > self._failed_at + RETRY_SECONDS:
                try:
                    self._ranker = self._load()
                except RerankerError as error:
                    self._failure = error.message, error.hint
                except Exception as error:
                    self._failure = (
                        f"{self.name} cannot be loaded ({type(error).__name__}).",
                        "Look at its folder, or set CODEQA_RERANKER=built-in.",
                    )
                self._failed_at = time.monotonic()
            if self._ranker is None:
                raise RerankerError(*self._failure)
            return self._ranker


@cache
def shared(checkpoint: str, family: Family, *, download: bool) -> ModelReranker:
    """The one reranker of this process for `checkpoint`: all repositories share its memory."""
    return local_reranker(LocalModel(checkpoint, family, download=download))


def local_reranker(model: LocalModel) -> ModelReranker:
    """`model` as a reranker, which is given up when loading takes longer than its time."""
    return ModelReranker(
        model.name, model.scores, candidates=CANDIDATES, seconds=model.seconds + LAST_BATCH
    )


def score_batch(model: Any, question: str, documents: Sequence[str]) -> list[float]:
    """Scores of a few documents in their order; never called with none (IndexError inside)."""
    ranked = model.rank(question, list(documents), doc_ids=list(range(len(documents))))
    by_id = {result.document.doc_id: float(result.score) for result in ranked.results}
    return [by_id[number] for number in range(len(documents))]


def load_ranker(checkpoint: str, family: Family, *, may_download: bool) -> Any:
    """The ranker of `rerankers` for a checkpoint. Raises RerankerError that says what is amiss."""
    name = short_name(checkpoint)
    if problem := missing_packages():
        raise RerankerError(f"{name} cannot be used: {problem}.", INSTALL)
    folder = local_folder(checkpoint)
    if folder is None and not may_download:
        raise RerankerError(
            f"{name} is not on this machine.", f"Set CODEQA_RERANKER={name} to download it."
        )
    folder = folder or fetch(checkpoint)
    with _Unset() as unset:
        try:
            model = _OPEN[family](str(folder))
        except ImportError:
            raise RerankerError(
                f"{name} cannot be used: torch or transformers does not start here.", INSTALL
            ) from None
        except Exception as error:
            first = str(error).strip().split("\n", 1)[0][:200]
            raise RerankerError(
                f"{name} cannot be loaded ({type(error).__name__}: {first}).",
                "Fetch the checkpoint again, or set CODEQA_RERANKER=built-in.",
            ) from None
    lacking = [one for one in unset.names if family != Family.COLBERT or ".pooler." not in one]
    labels = model.model.config.num_labels if family == Family.CROSS_ENCODER else 1
    if lacking or labels != 1:
        why = f"it gives {labels} numbers for a text, not one"
        if lacking:
            why = f"it lacks {', '.join(lacking[:3])}"
        raise RerankerError(
            f"{name} is no {family} checkpoint: {why}.",
            "Set CODEQA_RERANKER to one that is, or to `built-in`; a cross-encoder is written "
            "`cross-encoder/…`.",
        )
    return model


def _colbert(folder: str) -> Any:
    # The class itself: `rerankers.Reranker` prints and returns None where this one raises.
    from rerankers.models.colbert_ranker import ColBERTRanker

    model = ColBERTRanker(folder, verbose=0, tokenizer_kwargs=_HERE, model_kwargs=_HERE)
    model.doc_max_length = min(model.doc_max_length, TOKENS)
    return model


def _cross_encoder(folder: str) -> Any:
    from rerankers.models.transformer_ranker import TransformerRanker

    model = TransformerRanker(folder, verbose=0, tokenizer_kwargs=_HERE, model_kwargs=_HERE)
    # Of question and text together. A tokenizer that names no limit would cut nothing, and
    # some models count their positions from 2 on.
    positions = getattr(model.model.config, "max_position_embeddings", TOKENS) - 2
    model.tokenizer.model_max_length = min(model.tokenizer.model_max_length, positions, TOKENS)
    model.is_monobert = False  # by the folder's path; those give two numbers, and are refused
    return model


_HERE = {"local_files_only": True}
_OPEN = {Family.COLBERT: _colbert, Family.CROSS_ENCODER: _cross_encoder}


class _Unset(logging.Filter):
    """Notes the weights that a checkpoint lacks, which `transformers` only warns of.

    It fills them at random and goes on: any BERT would then rerank, by chance. What else it
    warns of while it loads (options that it renames, layers that it does not spread) helps nobody.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logger = logging.getLogger("transformers.modeling_utils")
        self._whole = logging.getLogger("transformers")
        self._levels = (logging.NOTSET, logging.NOTSET)
        self.names: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "newly initialized" not in message:
            return True
        self.names += re.findall(r"'([\w.]+)'", message.partition("newly initialized")[2])
        return False

    def __enter__(self) -> _Unset:
        # At its own level, so that no setting of `transformers` keeps the warning from coming.
        self._levels = (self._logger.level, self._whole.level)
        self._whole.setLevel(logging.ERROR)
        self._logger.setLevel(logging.WARNING)
        self._logger.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeFilter(self)
        self._logger.setLevel(self._levels[0])
        self._whole.setLevel(self._levels[1])
