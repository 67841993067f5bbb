"""Models that rerank on this machine: loaded once, read in batches, bounded in time.

ColBERT and cross-encoders run on ONNX Runtime through fastembed, checkpoints of PyTorch through
`rerankers`. Every way in which loading one fails is named.
"""

from __future__ import annotations

import logging
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

CROSS_ENCODER_HINT = "Choose one that is; a cross-encoder is written `cross-encoder/…`."

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

Score = Callable[[str, Sequence[str]], Iterable[float]]
"""Question and texts → the score of each text, in their order, a batch at a time."""


_log = logging.getLogger(__name__)


class Family(StrEnum):
    """What a model is, as messages call it and as the setting begins."""

    COLBERT = "ColBERT"
    CROSS_ENCODER = "cross-encoder"
    PYTORCH = "rerankers"


def local_reranker(name: str, load: Callable[[], Score], seconds: float = SECONDS) -> ModelReranker:
    """What `load` gives, called once, with the first question, as a reranker.

    It scores as many of the first hits as can be read in `seconds`, loading included, and is
    given up when that takes longer.
    """
    loading = threading.Lock()
    loaded: list[Score] = []

    def scores(hits: Sequence[Hit], query: Query) -> list[float | None]:
        deadline = time.monotonic() + seconds
        with loading:
            if not loaded:
                loaded.append(_named_failure(name, load))
        found: list[float | None] = []
        for one in loaded[0](query.text, [document(hit.unit) for hit in hits]):
            found.append(one)
            if time.monotonic() > deadline and len(found) % BATCH == 0:
                break
        return found + [None] * (len(hits) - len(found))

    return ModelReranker(name, scores, CANDIDATES, seconds + LAST_BATCH)


def _named_failure(name: str, load: Callable[[], Score]) -> Score:
    """What `load` gives. Raises RerankerError for whatever it raises."""
    try:
        return load()
    except RerankerError:
        raise
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0][:200]
        raise RerankerError(
            f"{name} cannot be loaded ({type(error).__name__}: {first}).",
            "Fetch the model again, or set CODEQA_RERANKER=built-in.",
        ) from None


@cache
def shared(model: str, family: Family) -> ModelReranker:
    """The one reranker of this process for `model`: all repositories share its memory."""
    return local_reranker(files_of(model).title, partial(load_score, model, family))


def files_of(model: str) -> ModelFiles:
    pytorch = "A checkpoint of PyTorch is written `rerankers/…`."
    return ModelFiles(model, "CODEQA_RERANKER", RerankerError, pytorch)


def model_here(model: str, family: Family) -> Path | None:
    """The folder of a model of fastembed's, None where it must be downloaded; as `here` raises."""
    return files_of(model).here(_kind_of(model, family)[1])


def _kind_of(model: str, family: Family) -> tuple[Any, dict[str, Any]]:
    """fastembed's class for a model, and what it says of it."""
    from fastembed import LateInteractionTextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    known = listed(TextCrossEncoder, model)
    if known or family is Family.CROSS_ENCODER:
        return TextCrossEncoder, known
    return LateInteractionTextEmbedding, listed(LateInteractionTextEmbedding, model)


def load_score(model: str, family: Family) -> Score:
    """Load a model, from the hub where it is not here. Raises RerankerError for what is amiss."""
    if family is Family.PYTORCH:
        return _load_pytorch(model)
    files = files_of(model)
    if problem := missing_extra():
        raise RerankerError(f"{files.title} cannot be used: {problem}.", INSTALL)
    from fastembed.common.model_description import ModelSource

    kind, known = _kind_of(model, family)
    folder = files.here(known) or files.fetch(known)
    is_colbert = not hasattr(kind, "rerank")
    file = known["model_file"] if known else onnx_file(folder)
    if is_colbert and not known:
        known = listed(kind, COLBERT_FILES.get(file, ""))
        if not known:
            raise RerankerError(
                f"{files.title} holds no {' or '.join(COLBERT_FILES)}, as a ColBERT model does.",
                CROSS_ENCODER_HINT,
            )
    name = known["model"] if known else f"folder {folder}"
    if not listed(kind, name):
        kind.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)
    with tempfile.TemporaryDirectory() as spare:
        opened = kind(name, specific_model_path=str(_quantised(folder, file, Path(spare))))
    if is_colbert:
        (given,) = (one.shape for one in opened.query_embed("a"))  # exporters may leave sizes open
        fits = len(given) == 2 and given[1] == known["dim"]
    else:
        given = opened.model.model.get_outputs()[0].shape[1:]
        fits = len(given) == 1 and (given[0] == 1 or not isinstance(given[0], int))
    if not fits:
        family = Family.COLBERT if is_colbert else Family.CROSS_ENCODER
        raise RerankerError(
            f"{files.title} is no {family}: for a text it gives {' × '.join(map(str, given))}.",
            CROSS_ENCODER_HINT,
        )
    read_at_most(TOKENS, opened)
    return (
        partial(_late_interaction, opened)
        if is_colbert
        else partial(opened.rerank, batch_size=BATCH)
    )


def _late_interaction(model: Any, question: str, texts: Sequence[str]) -> Iterable[float]:
    """The mean, over the question's tokens, of the cosine of the text's nearest token.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, sum it: the same order, on a scale of its own.
    """
    import numpy as np

    (asked,) = model.query_embed(question)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    for tokens in model.embed(texts, batch_size=BATCH):
        yield float((asked @ tokens.T).max(axis=1).mean())


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
