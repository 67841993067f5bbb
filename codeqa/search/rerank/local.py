"""Models that rerank on this machine: loaded once, read in batches, bounded in time.

ColBERT and cross-encoders run on ONNX Runtime through fastembed, checkpoints of PyTorch through
`rerankers`. Every way in which loading one fails is named.
"""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codeqa.embeddings.model_files import (
    INSTALL,
    ModelFiles,
    listed,
    missing_extra,
    onnx_file,
    read_at_most,
)
from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.reranker import ModelReranker, document
from codeqa.types import Hit

DEFAULT_MODEL = "answerdotai/answerai-colbert-small-v1"
"""33 million parameters, 96 dimensions a token, made for the CPU."""
COLBERT_FILES = {"vespa_colbert.onnx": DEFAULT_MODEL, "model.onnx": "colbert-ir/colbertv2.0"}
"""A file in a folder, and the model of fastembed's list that is read in the same way."""

CANDIDATES = 20
"""Hits that are read: about .3 s on two cores for a model of 384 dimensions and 12 layers."""
BATCH = 5
"""Hits between two looks at the clock. All 20 at once are no faster on a CPU."""
TOKENS = 128
"""Read of each hit: its place, name, signature, comment and first lines. 256 take three times as
long."""
QUANTISED_BYTES = 300_000_000
"""Largest file whose weights become 8-bit numbers when it is loaded: twice as fast, with vectors
of the same direction (cosine .9996). That takes 3 s for 133 MB; for larger models too long."""
SECONDS = 15.0
"""That one request waits for the model, loading included; what is not read by then keeps
its order."""
LAST_BATCH = 1.0
"""Seconds on top, for a batch that was begun in time."""
RETRY_SECONDS = 30.0
"""After a failure the model is left alone for so long: an unreachable hub costs each try its
time."""

Score = Callable[[str, Sequence[str]], Iterable[float]]
"""Question and texts → the score of each text, in their order, a batch at a time."""


_log = logging.getLogger(__name__)


class Family(StrEnum):
    """What a model is, as messages call it and as the setting begins."""

    COLBERT = "ColBERT"
    CROSS_ENCODER = "cross-encoder"
    PYTORCH = "rerankers"


class LocalModel:
    """Scores hits by what `load` gives, which is called once, with the first question."""

    def __init__(self, name: str, load: Callable[[], Score], seconds: float = SECONDS) -> None:
        self.name = name
        self.seconds = seconds
        self._load = load
        self._score: Score | None = None
        self._failure = RerankerError("")
        self._failed_at = -math.inf
        self._loading = threading.Lock()

    def scores(self, hits: Sequence[Hit], query: Query) -> list[float | None]:
        """Scores of the first hits, as many as can be read in the time; None for the others.

        Raises RerankerError when packages or files are missing or unfit; what the model raises
        comes as it is.
        """
        deadline = time.monotonic() + self.seconds
        score = self._loaded()
        scores: list[float | None] = []
        for one in score(query.text, [document(hit.unit) for hit in hits]):
            scores.append(one)
            if time.monotonic() > deadline and len(scores) % BATCH == 0:
                break
        return scores + [None] * (len(hits) - len(scores))

    def _loaded(self) -> Score:
        with self._loading:
            if self._score is None and time.monotonic() > self._failed_at + RETRY_SECONDS:
                try:
                    self._score = self._load()
                except RerankerError as error:
                    self._failure = error
                except Exception as error:
                    first = str(error).strip().split("\n", 1)[0][:200]
                    self._failure = RerankerError(
                        f"{self.name} cannot be loaded ({type(error).__name__}: {first}).",
                        "Fetch the model again, or set CODEQA_RERANKER=built-in.",
                    )
                self._failed_at = time.monotonic()
            if self._score is None:
                raise RerankerError(self._failure.message, self._failure.hint)
            return self._score


@cache
def shared(model: str, family: Family, *, may_download: bool) -> ModelReranker:
    """The one reranker of this process for `model`: all repositories share its memory."""
    load = partial(load_score, model, family, may_download=may_download)
    return local_reranker(LocalModel(files_of(model).title, load))


def local_reranker(model: LocalModel) -> ModelReranker:
    """`model` as a reranker, which is given up when loading takes longer than its time."""
    return ModelReranker(model.name, model.scores, CANDIDATES, model.seconds + LAST_BATCH)


def files_of(model: str) -> ModelFiles:
    pytorch = "A checkpoint of PyTorch is written `rerankers/…`."
    return ModelFiles(model, "CODEQA_RERANKER", RerankerError, pytorch)


def model_here(model: str, family: Family) -> Path | None:
    """The folder of a model of fastembed's, None where it must be downloaded; as `here` raises."""
    return files_of(model).here(_kind_of(model, family)[1])


def load_score(model: str, family: Family, *, may_download: bool) -> Score:
    """Load a model. Raises RerankerError that says what is amiss."""
    files = files_of(model)
    if family is Family.PYTORCH:
        return _load_pytorch(model)
    if problem := missing_extra():
        raise RerankerError(f"{files.title} cannot be used: {problem}.", INSTALL)
    kind, known = _kind_of(model, family)
    folder = files.here(known)
    if folder is None and not may_download:
        raise RerankerError(
            f"{model} is not on this machine.", f"Set CODEQA_RERANKER={model} to download it."
        )
    folder = folder or files.fetch(known)
    return _open(kind, known, folder, files.title)


def _kind_of(model: str, family: Family) -> tuple[Any, dict[str, Any]]:
    """fastembed's class for a model, and what it says of it."""
    from fastembed import LateInteractionTextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    known = listed(TextCrossEncoder, model)
    if known or family is Family.CROSS_ENCODER:
        return TextCrossEncoder, known
    return LateInteractionTextEmbedding, listed(LateInteractionTextEmbedding, model)


def _open(kind: Any, known: dict[str, Any], folder: Path, title: str) -> Score:
    from fastembed.common.model_description import ModelSource

    is_colbert = not hasattr(kind, "rerank")
    file = known["model_file"] if known else onnx_file(folder)
    if is_colbert and not known:
        known = listed(kind, COLBERT_FILES.get(file, ""))
        if not known:
            raise RerankerError(
                f"{title} holds no {' or '.join(COLBERT_FILES)}, as a ColBERT model does.",
                "A cross-encoder is written `cross-encoder/…`.",
            )
    name = known["model"] if known else f"folder {folder}"
    if not listed(kind, name):
        kind.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)
    with tempfile.TemporaryDirectory() as spare:
        model = kind(name, specific_model_path=str(_quantised(folder, file, Path(spare))))
    if is_colbert:
        (given,) = (one.shape for one in model.query_embed("a"))  # exporters may leave sizes open
        fits = len(given) == 2 and given[1] == known["dim"]
    else:
        given = model.model.model.get_outputs()[0].shape[1:]
        fits = len(given) == 1 and (given[0] == 1 or not isinstance(given[0], int))
    if not fits:
        family = Family.COLBERT if is_colbert else Family.CROSS_ENCODER
        raise RerankerError(
            f"{title} is no {family}: for a text it gives {' × '.join(map(str, given))}.",
            "Set CODEQA_RERANKER to one that is; a cross-encoder is written `cross-encoder/…`.",
        )
    read_at_most(TOKENS, model)
    return partial(_late_interaction if is_colbert else _judged, model)


def _quantised(folder: Path, file: str, spare: Path) -> Path:
    """A folder with the model's weights as 8-bit numbers, in `spare`; else `folder` itself."""
    if not find_spec("onnx") or (folder / file).stat().st_size > QUANTISED_BYTES:
        return folder
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    for path in folder.glob("*.json"):
        shutil.copy(path, spare)
    (spare / file).parent.mkdir(exist_ok=True)
    try:
        model = onnx.load(folder / file)
        add_pre_process_metadata(model)  # else the root logger is told that it would be better
        # Of 7 bits and per channel: processors without VNNI add products of 8 in 16, and overflow.
        quantize_dynamic(model, spare / file, reduce_range=True, per_channel=True)
    except Exception:  # damaged, which loading will tell, or of a kind that is not known there
        _log.info("%s stays of full precision", folder, exc_info=True)
        return folder
    return spare


def _late_interaction(model: Any, question: str, texts: Sequence[str]) -> Iterable[float]:
    """The mean, over the question's tokens, of the cosine of the text's nearest token.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, sum it: the same order, on a scale of its own.
    """
    import numpy as np

    (asked,) = model.query_embed(question)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    for tokens in model.embed(texts, batch_size=BATCH):
        yield float((asked @ tokens.T).max(axis=1).mean())


def _judged(model: Any, question: str, texts: Sequence[str]) -> Iterable[float]:
    yield from model.rerank(question, texts, batch_size=BATCH)


def _load_pytorch(model: str) -> Score:
    """A checkpoint by the classes of `rerankers`; its factory prints and returns nothing when
    something is missing, and takes some names for hosted models."""
    from rerankers.models import AVAILABLE_RANKERS

    kind = "ColBERTRanker" if "colbert" in model.lower() else "TransformerRanker"
    if kind not in AVAILABLE_RANKERS:
        raise RerankerError(
            f"rerankers/{model} cannot be used: PyTorch and transformers are not installed.",
            'Install them: pip install "rerankers[transformers]"',
        )
    ranker = AVAILABLE_RANKERS[kind](model, verbose=0)

    def score(question: str, texts: Sequence[str]) -> Iterable[float]:
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            ranked = ranker.rank(question, batch, doc_ids=list(range(len(batch))))
            by_place = {result.document.doc_id: result.score for result in ranked.results}
            yield from (float(by_place[place]) for place in range(len(batch)))

    return score
