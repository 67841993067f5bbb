"""Which reranker the settings ask for, and the built-in one where that cannot work.

`CODEQA_RERANKER` is `auto`, `built-in`, `model` (the language model puts the files in order, which
the search does; the built-in one where there is none), or names a model: docs/models.md has the
table. The first part of a name decides what it is, so that a model of an owner called `cohere`,
`jina`, `rerankers` or `cross-encoder` can be used as a folder only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from codeqa.embeddings.local import INSTALL, INSTALL_COMMAND, missing_extra
from codeqa.errors import RerankerError
from codeqa.search.query import Query
from codeqa.search.rerank.built_in import BUILT_IN, CANDIDATES, Reranked, Reranker, rerank_built_in
from codeqa.search.rerank.models import (
    COLBERT,
    COLBERT_FILES,
    CROSS_ENCODER,
    DEFAULT_MODEL,
    PYTORCH,
    RERANK_PROVIDERS,
    files_of,
    hosted_reranker,
    model_here,
    shared,
)
from codeqa.settings import Settings
from codeqa.types import Hit

BY_MODEL = "model"
DOWNLOAD_COMMAND = f"CODEQA_RERANKER={DEFAULT_MODEL} codeqa serve"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """A model, '' for what `auto` takes."""

    model: str = ""
    kind: str = COLBERT
    """COLBERT, CROSS_ENCODER, PYTORCH, or a name in RERANK_PROVIDERS."""

    @property
    def name(self) -> str:
        """As the user reads it."""
        return f"{self.kind}/{self.model}" if self.hosted else files_of(self.model).title

    @property
    def hosted(self) -> bool:
        return self.kind in RERANK_PROVIDERS


class RerankerStatus(NamedTuple):
    """Whether the reranker of the setting can be used, which one is, and what to do if not."""

    usable: bool
    text: str
    hint: str = ""
    command: str = ""
    """What brings what the setting asks for, or what `auto` would rather use; '' where nothing is
    missing."""


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', '1' and so for 1."""
    return value in (True, "true", "True", "1")


def parse_reranker(setting: str) -> RerankerChoice | None:
    """What CODEQA_RERANKER asks for; None for the built-in one.

    Any text is some choice; whether it can be met shows when it is looked at.
    """
    text = setting.strip()
    if text in (BUILT_IN, BY_MODEL):
        return None
    if text in ("", "auto"):
        return RerankerChoice()
    first, slash, rest = text.partition("/")
    if slash and first in RERANK_PROVIDERS:
        return RerankerChoice(rest, first)
    if slash and first == PYTORCH:
        return RerankerChoice(rest, PYTORCH)
    if slash and first == CROSS_ENCODER:
        plain = "/" not in rest and not files_of(rest).is_folder
        return RerankerChoice(text if plain else rest, CROSS_ENCODER)
    return RerankerChoice(text)


def choose_reranker(settings: Settings) -> Reranker:
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """
    choice = parse_reranker(settings.reranker)

    def rerank(hits: Sequence[Hit], query: Query) -> Reranked:
        if choice is None or (not choice.model and not choice.hosted and not _default_is_here()):
            return rerank_built_in(hits, query)
        try:
            if choice.hosted:
                chosen = hosted_reranker(settings, choice.kind, choice.model)
            else:
                chosen = shared(choice.model or DEFAULT_MODEL, choice.kind)
            return chosen.rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = rerank_built_in(hits, query)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, warnings=(warning, *instead.warnings))

    return rerank


def reranker_status(settings: Settings) -> RerankerStatus:
    """Loads nothing and touches no network."""
    choice = parse_reranker(settings.reranker)
    if choice is None:
        by_model = settings.reranker.strip() == BY_MODEL
        text = "the language model in use, else built-in" if by_model else BUILT_IN
        return RerankerStatus(True, text)
    try:
        if choice.hosted:
            hosted = hosted_reranker(settings, choice.kind, choice.model)
            sent = f"; a reranked question sends itself and up to {CANDIDATES} pieces of code there"
            sent = sent if hosted.host else ", on this machine"
            return RerankerStatus(True, hosted.place + sent)
        if choice.kind == PYTORCH:
            return RerankerStatus(True, f"{choice.name}, by PyTorch")
        problem = missing_extra()
        if choice.model and problem:
            text = f"{choice.name} cannot be used: {problem}."
            return RerankerStatus(False, text, INSTALL, INSTALL_COMMAND)
        if problem:
            text = f"{BUILT_IN}; {DEFAULT_MODEL} is not used: {problem}. {INSTALL}"
            return RerankerStatus(True, text, command=INSTALL_COMMAND)
        if not choice.model and not _default_is_here():
            text = f"{BUILT_IN}; {DEFAULT_MODEL} is used once it is here: {DOWNLOAD_COMMAND}"
            return RerankerStatus(True, text, command=DOWNLOAD_COMMAND)
        here = not choice.model or model_here(choice.model, choice.kind) is not None
        fetched = "" if here else ", downloaded from the model hub when first used"
        name = choice.name if choice.model else DEFAULT_MODEL
        return RerankerStatus(True, f"{name}{fetched}")
    except RerankerError as error:
        return RerankerStatus(False, error.message, error.hint)


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else files_of(DEFAULT_MODEL).here({})
    return folder is not None and (folder / next(iter(COLBERT_FILES))).is_file()
