"""Which reranker the settings ask for, and the built-in one where that cannot work.

`CODEQA_RERANKER` is `auto`, `built-in`, `model` (the language model, see `search.listwise`; the
built-in one where there is none), or names a model: docs/models.md has the table. The first part
of a name decides what it is, so that a model of an owner called `cohere`, `jina`, `rerankers` or
`cross-encoder` can be used as a folder only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeqa.embeddings.model_files import INSTALL, INSTALL_COMMAND, missing_extra
from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.built_in import BuiltInReranker
from codeqa.search.rerank.hosted import RERANK_PROVIDERS, hosted_reranker
from codeqa.search.rerank.local import (
    COLBERT_FILES,
    DEFAULT_MODEL,
    Family,
    files_of,
    model_here,
    shared,
)
from codeqa.search.rerank.reranker import BUILT_IN, BY_MODEL, CANDIDATES, Reranked, Reranker
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


class _WithFallback:
    """What was chosen, if it is there and works, else the built-in reranker."""

    def __init__(self, choice: RerankerChoice, settings: Settings) -> None:
        self._choice = choice
        self._settings = settings

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        choice = self._choice
        built_in = BuiltInReranker()
        if choice == RerankerChoice() and not _default_is_here():
            return built_in.rerank(hits, query)
        try:
            if choice.provider:
                chosen = hosted_reranker(self._settings, choice.provider, choice.model)
            else:
                chosen = shared(choice.model or DEFAULT_MODEL, choice.family)
            return chosen.rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = built_in.rerank(hits, query)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, warnings=(warning, *instead.warnings))


def reranker_status(settings: Settings) -> tuple[bool, str, str]:
    """Whether the reranker of the setting can be used, which one is, and what to do if not.

    Loads nothing and touches no network.
    """
    choice = parse_reranker(settings.reranker)
    if choice is None:
        by_model = settings.reranker.strip() == BY_MODEL
        return True, "the language model in use, else built-in" if by_model else BUILT_IN, ""
    problem = missing_extra()
    try:
        if choice.provider:
            hosted = hosted_reranker(settings, choice.provider, choice.model)
            sent = f"; a reranked question sends itself and up to {CANDIDATES} pieces of code there"
            return True, hosted.place + (sent if hosted.host else ", on this machine"), ""
        if choice.family is Family.PYTORCH:
            return True, f"{choice.name}, by PyTorch", ""
        if not choice.model:
            return True, _automatic(problem), ""
        if problem:
            return False, f"{choice.name} cannot be used: {problem}.", INSTALL
        here = model_here(choice.model, choice.family) is not None
        fetched = "" if here else ", downloaded from the model hub when first used"
        return True, f"{choice.name}{fetched}", ""
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


def _automatic(problem: str) -> str:
    """What `auto` uses, and why no better."""
    if problem:
        return f"{BUILT_IN}; {DEFAULT_MODEL} is not used: {problem}. {INSTALL}"
    if _default_is_here():
        return DEFAULT_MODEL
    return f"{BUILT_IN}; {DEFAULT_MODEL} is used once it is here: {DOWNLOAD_COMMAND}"


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else files_of(DEFAULT_MODEL).here({})
    return folder is not None and (folder / next(iter(COLBERT_FILES))).is_file()
