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
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeqa.errors import RerankerError
from codeqa.llm.address import leads_here
from codeqa.search.checkpoint import (
    DEFAULT_CHECKPOINT,
    INSTALL,
    Family,
    is_folder_name,
    local_folder,
    missing_packages,
    short_name,
)
from codeqa.search.hosted import PROVIDERS, HostedModel, hosted_model, hosted_reranker
from codeqa.search.local import shared
from codeqa.search.query import Query
from codeqa.search.rerank import BUILT_IN, CANDIDATES, BuiltInReranker, Reranked, Reranker
from codeqa.settings import Settings
from codeqa.types import Hit

AUTO = "auto"

_MODEL = re.compile(r"[\w.:-]+(?:/[\w.:-]+)*", re.ASCII)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the setting asks for; all empty for `auto`."""

    provider: str = ""
    """A name in PROVIDERS, or '' for a checkpoint on this machine."""
    model: str = ""
    family: Family = Family.COLBERT

    @property
    def name(self) -> str:
        """As the user reads it."""
        return f"{self.provider}/{self.model}" if self.provider else short_name(self.model)


def parse_reranker(setting: str) -> Wish | None:
    """What CODEQA_RERANKER asks for; None for the built-in one.

    Any text is some wish; whether it can be met shows when it is looked at.
    """
    wished = setting.strip()
    if wished == BUILT_IN:
        return None
    if wished in ("", AUTO):
        return Wish()
    first, slash, rest = wished.partition("/")
    if slash and first in PROVIDERS:
        return Wish(first, rest)
    if slash and first == Family.CROSS_ENCODER:
        plain = "/" not in rest and not is_folder_name(rest)
        return Wish(model=wished if plain else rest, family=Family.CROSS_ENCODER)
    return Wish(model=wished)


def choose_reranker(settings: Settings) -> Reranker:
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """
    wish = parse_reranker(settings.reranker)
    return BuiltInReranker() if wish is None else _WithFallback(wish, settings)


def reranker_status(settings: Settings) -> tuple[bool, str, str]:
    """Whether the reranker of the setting can be used, which one is, and what to do if not.

    Loads nothing and touches no network.
    """
    wish = parse_reranker(settings.reranker)
    if wish is None:
        return True, BUILT_IN, ""
    try:
        if wish.provider:
            return True, _sent_to(_hosted(wish, settings)), ""
        return _local_status(wish)
    except RerankerError as error:
        return False, error.message, error.hint


def _local_status(wish: Wish) -> tuple[bool, str, str]:
    checkpoint = wish.model or DEFAULT_CHECKPOINT
    if problem := missing_packages():
        if not wish.model:
            return True, f"{BUILT_IN}; {checkpoint} is not used: {problem}", ""
        return False, f"{short_name(checkpoint)} cannot be used: {problem}.", INSTALL
    if local_folder(checkpoint) is not None:
        return True, short_name(checkpoint), ""
    if not wish.model:
        return True, f"{BUILT_IN}; CODEQA_RERANKER={checkpoint} downloads and uses that one", ""
    return True, f"{checkpoint}, downloaded from the model hub when first used", ""


def _hosted(wish: Wish, settings: Settings) -> HostedModel:
    if wish.model and not _MODEL.fullmatch(wish.model):
        raise RerankerError(
            f"CODEQA_RERANKER={wish.name!r} names no model.",
            f"Write it as in `{wish.provider}/{PROVIDERS[wish.provider].example}`.",
        )
    return hosted_model(settings, wish.provider, wish.model)


def _sent_to(model: HostedModel) -> str:
    if leads_here(model.url):
        return f"{model.name} at {model.host}, on this machine"
    return (
        f"{model.name} at {model.host}; a reranked question sends itself and up to {CANDIDATES} "
        "pieces of code there"
    )


class _WithFallback:
    """What was wished for, if it is there and works, else the built-in reranker."""

    def __init__(self, wish: Wish, settings: Settings) -> None:
        self._wish = wish
        self._settings = settings
        self._built_in = BuiltInReranker()

    @property
    def name(self) -> str:
        if self._wish.model or self._wish.provider:
            return self._wish.name
        return DEFAULT_CHECKPOINT if _default_is_here() else BUILT_IN

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        if self._wish == Wish() and not _default_is_here():
            return self._built_in.rerank(hits, query)
        try:
            return self._wished().rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = self._built_in.rerank(hits, query)
            notice = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, notice=f"{notice} {instead.notice}".strip())

    def _wished(self) -> Reranker:
        wish = self._wish
        if wish.provider:
            return hosted_reranker(_hosted(wish, self._settings))
        checkpoint = wish.model or DEFAULT_CHECKPOINT
        return shared(checkpoint, wish.family, download=bool(wish.model))


def _default_is_here() -> bool:
    return not missing_packages() and local_folder(DEFAULT_CHECKPOINT) is not None
