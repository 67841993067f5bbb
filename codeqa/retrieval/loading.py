"""A ColBERT checkpoint into a ranker of `rerankers`, with every way in which that fails named."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from codeqa.errors import RerankerError
from codeqa.retrieval.checkpoint import (
    INSTALL,
    fetch,
    local_folder,
    missing_packages,
    short_name,
)

TOKENS = 256
"""Read of each hit: its place, name, signature, comment and first lines. Twenty hits take 2.5 s
on two cores, and 1 s with 128 tokens."""


def load_ranker(checkpoint: str, *, may_download: bool) -> Any:
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
            model = _open(folder)
        except ImportError:
            raise RerankerError(
                f"{name} cannot be used: torch or transformers does not start here.", INSTALL
            ) from None
        except Exception as error:
            raise _unfit(name, folder, error) from None
    if unset.names:
        raise RerankerError(
            f"{name} is no ColBERT checkpoint: it lacks {', '.join(unset.names[:3])}.",
            "Set CODEQA_RERANKER to one that is, or to `built-in`.",
        )
    return model


def _open(folder: Path) -> Any:
    # The class itself: `rerankers.Reranker` prints and returns None where this one raises.
    from rerankers.models.colbert_ranker import ColBERTRanker

    offline = {"local_files_only": True}
    model = ColBERTRanker(str(folder), verbose=0, tokenizer_kwargs=offline, model_kwargs=offline)
    model.doc_max_length = min(model.doc_max_length, TOKENS)
    return model


class _Unset(logging.Filter):
    """Notes the weights that a checkpoint lacks, which `transformers` only warns of.

    It fills them at random and goes on: any BERT would then rerank, by chance.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logger = logging.getLogger("transformers.modeling_utils")
        self._level = logging.NOTSET
        self.names: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "newly initialized" not in message:
            return True
        listed = re.findall(r"'([\w.]+)'", message.partition("newly initialized")[2])
        self.names += [name for name in listed if ".pooler." not in name]  # nothing uses it
        return False

    def __enter__(self) -> _Unset:
        # At its own level, so that no setting of `transformers` keeps the warning from coming.
        self._level = self._logger.level
        self._logger.setLevel(logging.WARNING)
        self._logger.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeFilter(self)
        self._logger.setLevel(self._level)


def _unfit(name: str, folder: Path, error: Exception) -> RerankerError:
    """Why a checkpoint that is there cannot be loaded, as a sentence."""
    if "size mismatch" in str(error) or "mismatched sizes" in str(error):
        return RerankerError(
            f"{name} has vectors of another size than its path says: 96 dimensions are "
            f"expected where it contains `small`, 128 elsewhere.",
            f"Rename the folder {folder} accordingly.",
        )
    first = str(error).strip().split("\n", 1)[0][:200]
    return RerankerError(
        f"{name} cannot be loaded ({type(error).__name__}: {first}).",
        "Fetch the checkpoint again, or set CODEQA_RERANKER=built-in.",
    )
