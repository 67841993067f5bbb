"""A checkpoint into a ranker of `rerankers`, with every way in which that fails named."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from codeqa.errors import RerankerError
from codeqa.search.checkpoint import (
    INSTALL,
    Family,
    fetch,
    local_folder,
    missing_packages,
    short_name,
)

TOKENS = 256
"""Read of each hit: its place, name, signature, comment and first lines. Twenty hits take 2.5 s
on two cores, and 1 s with 128 tokens."""


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
            raise _unfit(name, family, folder, error) from None
    lacking = [one for one in unset.names if family != Family.COLBERT or ".pooler." not in one]
    if lacking:
        raise _other_kind(name, family, f"it lacks {', '.join(lacking[:3])}")
    if family == Family.CROSS_ENCODER and model.model.config.num_labels != 1:
        given = model.model.config.num_labels
        raise _other_kind(name, family, f"it gives {given} numbers for a text, not one")
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


def _other_kind(name: str, family: Family, why: str) -> RerankerError:
    return RerankerError(
        f"{name} is no {family} checkpoint: {why}.",
        "Set CODEQA_RERANKER to one that is, or to `built-in`; a cross-encoder is written "
        "`cross-encoder/…`.",
    )


def _unfit(name: str, family: Family, folder: Path, error: Exception) -> RerankerError:
    """Why a checkpoint that is there cannot be loaded, as a sentence."""
    other_size = any(words in str(error) for words in ("size mismatch", "mismatched sizes"))
    if family == Family.COLBERT and other_size:
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
