"""Embeddings that run on this machine, through fastembed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from codeqa.embeddings.hosted import PROVIDERS
from codeqa.embeddings.model_files import (
    INSTALL,
    ModelFiles,
    listed,
    missing_extra,
    onnx_file,
    read_at_most,
)
from codeqa.errors import EmbeddingError

BY_PYTORCH = ("sentence-transformers", "huggingface")
"""Providers of LanceDB's whose models run here without PyTorch."""
TOKENS = 512
"""Read of a text: what most of these models are trained on, and a second of a core for one text
of a model of the usual size."""
BATCH = 8
"""Texts at once; each is filled up to the longest, so that more is slower and takes more memory."""


def local_model(setting: str) -> str:
    """The model on this machine, by name or folder, that CODEQA_EMBEDDING asks for; else ''.

    It is whatever begins with no provider's name; `huggingface/` and `sentence-transformers/`
    may stand before it.
    """
    provider, _, name = setting.partition("/")
    if not name:
        return ""
    from lancedb.embeddings import get_registry

    if provider == "huggingface" or (provider in BY_PYTORCH and "/" in name):
        return name
    hosted = {*PROVIDERS, *get_registry()._functions}.difference(BY_PYTORCH)
    return "" if provider in hosted else setting


class LocalModel:
    """One model of fastembed's, which is loaded, and fetched if it has to be, once per process.

    Raises EmbeddingError that says what is amiss.
    """

    def __init__(self, name: str) -> None:
        self._model = _load(name)

    def compute_query_embeddings(self, query: str) -> list[Any]:
        """One vector in a list."""
        return list(self._model.query_embed(query))

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[Any]:
        """A vector for each text."""
        return list(self._model.passage_embed(list(texts), batch_size=BATCH))


@cache
def _load(name: str) -> Any:
    files = ModelFiles(name, "CODEQA_EMBEDDING", EmbeddingError)
    if problem := missing_extra():
        raise EmbeddingError(f"{files.title} cannot be used: {problem}.", INSTALL)
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource

    known = listed(TextEmbedding, name)
    folder = files.here(known) or files.fetch(known)
    kept_as = known.get("model") or f"folder {folder}"
    if not listed(TextEmbedding, kept_as):
        TextEmbedding.add_custom_model(
            kept_as,
            pooling=_pooling(folder),
            normalization=True,
            sources=ModelSource(hf=kept_as),
            dim=0,  # nobody reads it
            model_file=onnx_file(folder),
        )
    model: Any = TextEmbedding(kept_as, specific_model_path=str(folder))
    read_at_most(TOKENS, model)
    return model


def _pooling(folder: Path) -> Any:
    """How a model's tokens become one vector, as sentence-transformers notes it; else the mean."""
    from fastembed.common.model_description import PoolingType

    try:
        noted = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return PoolingType.MEAN
    return PoolingType.CLS if noted.get("pooling_mode_cls_token") else PoolingType.MEAN
