"""Which reranker the settings ask for, and the built-in one where that cannot work.

`CODEQA_RERANKER` is `auto`, `built-in`, `model` (the language model, see `search.listwise`; the
built-in one where there is none), or one of these; a folder is written as a folder
(`/path`, `./path`, `~/path`), everything else is a name on the model hub:

    owner/name, folder                        ColBERT, or a cross-encoder that fastembed lists
    cross-encoder/owner/name, …/folder        a cross-encoder
    cross-encoder/name                        the one of that name by the hub's `cross-encoder`
    rerankers/owner/name, …/folder            a checkpoint of PyTorch
    cohere/model, jina/model                  a model behind Cohere's or Jina's API

The first part decides, so that a model of an owner called as one of these can be used as a
folder only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeqa.embeddings.model_files import INSTALL, INSTALL_COMMAND, missing_extra
from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.built_in import BuiltInReranker
from codeqa.search.rerank.hosted import RERANK_PROVIDERS, hosted_model
from codeqa.search.rerank.local import (
    COLBERT_FILES,
    DEFAULT_MODEL,
    Family,
    files_of,
    model_here,
    shared,
)
from codeqa.search.rerank.reranker import BUILT_IN, BY_MODEL, Reranked, Reranker
from codeqa.settings import Settings
from codeqa.types import Hit

AUTO = "auto"
DOWNLOAD_COMMAND = f"CODEQA_RERANKER={DEFAULT_MODEL} codeqa serve"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """What the setting asks for; all empty for `auto`."""

    provider: str = ""
    """A name in RERANK_PROVIDERS, or '' for a model on this machine."""
    model: str = ""
    family: Family = Family.COLBERT

    @property
    def name(self) -> str:
        """As the user reads it."""
        return f"{self.provider}/{self.model}" if self.provider else files_of(self.model).title


def parse_reranker(setting: str) -> RerankerChoice | None:
    """What CODEQA_RERANKER asks for; None for the built-in one.

    Any text is some choice; whether it can be met shows when it is looked at.
    """
    text = setting.strip()
    if text in (BUILT_IN, BY_MODEL):
        return None
    if text in ("", AUTO):
        return RerankerChoice()
    first, slash, rest = text.partition("/")
    if slash and first in RERANK_PROVIDERS:
        return RerankerChoice(first, rest)
    if slash and first == Family.PYTORCH:
        return RerankerChoice(model=rest, family=Family.PYTORCH)
    if slash and first == Family.CROSS_ENCODER:
        plain = "/" not in rest and not files_of(rest).is_folder
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
        by_model = settings.reranker.strip() == BY_MODEL
        return True, "the language model in use, else built-in" if by_model else BUILT_IN, ""
    try:
        if choice.provider:
            return True, hosted_model(settings, choice.provider, choice.model).place, ""
        return _local_status(choice)
    except RerankerError as error:
        return False, error.message, error.hint


def missing_command(settings: Settings) -> str:
    """The one command that brings what the setting asks for, or what `auto` would rather use;
    '' where nothing is missing. It stands in the text of `reranker_status` or in its hint."""
    choice = parse_reranker(settings.reranker)
    if choice is None or choice.provider or choice.family is Family.PYTORCH:
        return ""
    if missing_extra():
        return INSTALL_COMMAND
    return "" if choice.model or _default_is_here() else DOWNLOAD_COMMAND


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
            return hosted_model(self._settings, choice.provider, choice.model).reranker()
        model = choice.model or DEFAULT_MODEL
        return shared(model, choice.family, may_download=bool(choice.model))


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else files_of(DEFAULT_MODEL).here({})
    return folder is not None and (folder / next(iter(COLBERT_FILES))).is_file()


def _local_status(choice: RerankerChoice) -> tuple[bool, str, str]:
    if choice.family is Family.PYTORCH:
        return True, f"{choice.name}, by PyTorch", ""
    problem = missing_extra()
    if not choice.model:
        if problem:
            return True, f"{BUILT_IN}; {DEFAULT_MODEL} is not used: {problem}. {INSTALL}", ""
        if _default_is_here():
            return True, DEFAULT_MODEL, ""
        return True, f"{BUILT_IN}; {DEFAULT_MODEL} is used once it is here: {DOWNLOAD_COMMAND}", ""
    if problem:
        return False, f"{choice.name} cannot be used: {problem}.", INSTALL
    if model_here(choice.model, choice.family) is not None:
        return True, choice.name, ""
    return True, f"{choice.name}, downloaded from the model hub when first used", ""
