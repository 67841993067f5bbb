"""Which reranker the settings ask for, and the built-in one where that cannot work.

`CODEQA_RERANKER` is `auto`, `built-in`, or one of these; a folder is written as a folder
(`/path`, `./path`, `~/path`), everything else is a name on the model hub:

    owner/name, folder                        a ColBERT checkpoint
    cross-encoder/owner/name, …/folder        a cross-encoder
    cross-encoder/name                        the one of that name by the hub's `cross-encoder`
    cohere/model, jina/model                  a model behind Cohere's or Jina's API

The first part decides, so that a ColBERT checkpoint of an owner called `cohere`, `jina` or
`cross-encoder` can be used as a folder only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.built_in import BuiltInReranker
from codeqa.search.rerank.checkpoint import (
    DEFAULT_CHECKPOINT,
    INSTALL,
    Family,
    is_folder_name,
    local_folder,
    missing_packages,
    short_name,
)
from codeqa.search.rerank.hosted import RERANK_PROVIDERS, hosted_model, hosted_reranker
from codeqa.search.rerank.local import shared
from codeqa.search.rerank.reranker import BUILT_IN, Reranked, Reranker
from codeqa.settings import Settings
from codeqa.types import Hit

AUTO = "auto"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """What the setting asks for; all empty for `auto`."""

    provider: str = ""
    """A name in RERANK_PROVIDERS, or '' for a checkpoint on this machine."""
    model: str = ""
    family: Family = Family.COLBERT

    @property
    def name(self) -> str:
        """As the user reads it."""
        return f"{self.provider}/{self.model}" if self.provider else short_name(self.model)


def parse_reranker(setting: str) -> RerankerChoice | None:
    """What CODEQA_RERANKER asks for; None for the built-in one.

    Any text is some choice; whether it can be met shows when it is looked at.
    """
    text = setting.strip()
    if text == BUILT_IN:
        return None
    if text in ("", AUTO):
        return RerankerChoice()
    first, slash, rest = text.partition("/")
    if slash and first in RERANK_PROVIDERS:
        return RerankerChoice(first, rest)
    if slash and first == Family.CROSS_ENCODER:
        plain = "/" not in rest and not is_folder_name(rest)
        return RerankerChoice(model=text if plain else rest, family=Family.CROSS_ENCODER)
    return RerankerChoice(model=text)


def choose_reranker(settings: Settings) -> Reranker:
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """
    choice = parse_reranker(settings.reranker)
    return BuiltInReranker() if choice is None else _WithFallback(choice, settings)


def reranker_status(settings: Settings) -> tuple[bool, str, str]:
    """Whether the reranker of the setting can be used, which one is, and what to do if not.

    Loads nothing and touches no network.
    """
    choice = parse_reranker(settings.reranker)
    if choice is None:
        return True, BUILT_IN, ""
    try:
        if choice.provider:
            return True, hosted_model(settings, choice.provider, choice.model).place, ""
        return _local_status(choice)
    except RerankerError as error:
        return False, error.message, error.hint


class _WithFallback:
    """What was chosen, if it is there and works, else the built-in reranker."""

    def __init__(self, choice: RerankerChoice, settings: Settings) -> None:
        self._choice = choice
        self._settings = settings
        self._built_in = BuiltInReranker()

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        if self._choice == RerankerChoice() and not _default_is_here():
            return self._built_in.rerank(hits, query)
        try:
            return self._chosen().rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = self._built_in.rerank(hits, query)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, warnings=(warning, *instead.warnings))

    def _chosen(self) -> Reranker:
        choice = self._choice
        if choice.provider:
            return hosted_reranker(hosted_model(self._settings, choice.provider, choice.model))
        checkpoint = choice.model or DEFAULT_CHECKPOINT
        return shared(checkpoint, choice.family, download=bool(choice.model))


def _default_is_here() -> bool:
    return not missing_packages() and local_folder(DEFAULT_CHECKPOINT) is not None


def _local_status(choice: RerankerChoice) -> tuple[bool, str, str]:
    checkpoint = choice.model or DEFAULT_CHECKPOINT
    if problem := missing_packages():
        if not choice.model:
            return True, f"{BUILT_IN}; {checkpoint} is not used: {problem}", ""
        return False, f"{short_name(checkpoint)} cannot be used: {problem}.", INSTALL
    if local_folder(checkpoint) is not None:
        return True, short_name(checkpoint), ""
    if not choice.model:
        return True, f"{BUILT_IN}; CODEQA_RERANKER={checkpoint} downloads and uses that one", ""
    return True, f"{checkpoint}, downloaded from the model hub when first used", ""
