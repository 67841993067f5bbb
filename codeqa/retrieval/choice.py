"""Which reranker the settings ask for, and the built-in one where that cannot work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from codeqa.errors import RerankerError
from codeqa.retrieval.checkpoint import (
    DEFAULT_CHECKPOINT,
    INSTALL,
    local_folder,
    missing_packages,
    short_name,
)
from codeqa.retrieval.colbert import shared
from codeqa.retrieval.query import Query
from codeqa.retrieval.rerank import BUILT_IN, BuiltInReranker, Reranked, Reranker
from codeqa.settings import Settings
from codeqa.types import Hit

AUTO = "auto"

_log = logging.getLogger(__name__)


def choose_reranker(settings: Settings) -> Reranker:
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded or downloaded before its first use.
    """
    wished = settings.reranker.strip()
    if wished == BUILT_IN:
        return BuiltInReranker()
    return _WithFallback("" if wished in ("", AUTO) else wished)


def reranker_status(settings: Settings) -> tuple[bool, str, str]:
    """Whether the reranker of the setting can be used, which one is, and what to do if not.

    Loads nothing and touches no network.
    """
    wished = settings.reranker.strip()
    if wished == BUILT_IN:
        return True, BUILT_IN, ""
    automatic = wished in ("", AUTO)
    checkpoint = DEFAULT_CHECKPOINT if automatic else wished
    if problem := missing_packages():
        if automatic:
            return True, f"{BUILT_IN}; {checkpoint} is not used: {problem}", ""
        return False, f"{short_name(checkpoint)} cannot be used: {problem}.", INSTALL
    try:
        folder = local_folder(checkpoint)
    except RerankerError as error:
        return False, error.message, error.hint
    if folder is not None:
        return True, short_name(checkpoint), ""
    if automatic:
        return True, f"{BUILT_IN}; CODEQA_RERANKER={checkpoint} downloads and uses that one", ""
    return True, f"{checkpoint}, downloaded from the model hub when first used", ""


class _WithFallback:
    """A checkpoint ('' for the default one, if it is there), else the built-in reranker."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._built_in = BuiltInReranker()

    @property
    def name(self) -> str:
        return short_name(self._checkpoint) if self._checkpoint or _default_is_here() else BUILT_IN

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        if not self._checkpoint and not _default_is_here():
            return self._built_in.rerank(hits, query)
        checkpoint = self._checkpoint or DEFAULT_CHECKPOINT
        try:
            return shared(checkpoint, download=bool(self._checkpoint)).rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            notice = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(self._built_in.rerank(hits, query), notice=notice.strip())


def _default_is_here() -> bool:
    return not missing_packages() and local_folder(DEFAULT_CHECKPOINT) is not None
