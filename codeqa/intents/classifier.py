"""The intent of a message: by its tag, from the cache, by the rules, or by a language model."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

from codeqa.errors import CodeQAError, places_of
from codeqa.intents.asking import ask_model
from codeqa.intents.heuristics import by_heuristics
from codeqa.intents.intent import INTENTS, POLICY_VERSION, Intent
from codeqa.llm import Cancelled, Model, never
from codeqa.state.cache import Cache
from codeqa.text.tokens import well_formed

TAGGED = Intent("knowledge_base", 1.0, "tag", "the tag @codebase")
CACHE_SECONDS = 1_800.0
"""Lifetime of a cached intent (S3.12)."""
MODEL_SECONDS = 3.0
"""Time that a model has; then the rules' answer stands."""
MODEL_BELOW = 0.8
"""Confidence of the rules under which a model is asked: a lead of less than three points. Of the
messages that the rules had not been made on a sixth lie below, with 12 of 20 errors
(benchmarks/results/intents.md)."""
PAUSE_SECONDS = 30.0
"""A model that did not say a usable word is not asked for an intent again for so long."""

log = logging.getLogger(__name__)


class Classifier:
    """Tells what messages are for; safe to share between threads.

    `connect` gives the small model of the moment, None for none. Only what a model said is
    cached: the rules are done sooner than a value is read, and what need not be kept is not.
    """

    def __init__(
        self,
        cache: Cache,
        connect: Callable[[], Model | None],
        config_dir: Path | None,
        seconds: float = MODEL_SECONDS,
    ) -> None:
        self._cache = cache
        self._connect = connect
        self._config_dir = config_dir
        self._seconds = seconds
        self._ask_again = 0.0

    def classify(
        self,
        text: str,
        *,
        tagged: bool,
        has_history: bool,
        user: str,
        use_model: bool = True,
        cancelled: Cancelled = never,
        by_rules: Intent | None = None,
    ) -> Intent:
        """The intent of `text`, which comes without tag and mode; `by_rules` is what
        `by_heuristics` said of it, where that is known already.

        Raises nothing: whatever becomes of the cache and the model, the rules have an answer.
        """
        if tagged:
            return TAGGED
        key = cache_key(user, text, has_history)
        if (known := self._recall(key)) is not None:
            return known
        found = by_rules or by_heuristics(text, has_history=has_history)
        if found.confidence >= MODEL_BELOW or not use_model:
            return found
        said = self._ask(text, has_history, cancelled)
        if said is None:
            return found
        self._keep(key, said)
        return said

    def _ask(self, text: str, has_history: bool, cancelled: Cancelled) -> Intent | None:
        if cancelled() or time.monotonic() < self._ask_again:
            return None
        try:
            model = self._connect()
        except CodeQAError as error:  # a model that is badly set is told where it is to answer
            log.info("no model to classify by: %s", type(error).__name__)
            return None
        if model is None:
            return None
        said = ask_model(
            model,
            text,
            has_history=has_history,
            config_dir=self._config_dir,
            seconds=self._seconds,
            cancelled=cancelled,
        )
        if said is None and not cancelled():
            self._ask_again = time.monotonic() + PAUSE_SECONDS
        return said

    def _recall(self, key: str) -> Intent | None:
        try:
            value = json.loads(self._cache.get(key) or "null")
            name, sure = value if value is not None else ("", 0.0)
            known = name in INTENTS and 0 <= float(sure) <= 1
            return Intent(name, float(sure), "cache", _CACHED) if known else None
        except Exception as error:  # a cache costs no answer, whatever lies in it
            log.warning("a cached intent could not be read: %s", places_of(error))
            return None

    def _keep(self, key: str, intent: Intent) -> None:
        try:
            self._cache.set(key, json.dumps([intent.name, intent.confidence]), CACHE_SECONDS)
        except Exception as error:
            log.warning("an intent could not be cached: %s", places_of(error))


_CACHED = "a language model was asked within the last half hour"


def cache_key(user: str, text: str, has_history: bool) -> str:
    """Key of a cached intent (C-22); neither the user nor the text can be read from it."""
    normal = " ".join(well_formed(text).casefold().split())
    parts = json.dumps([user, normal, has_history, POLICY_VERSION])
    return f"intent:{hashlib.sha256(parts.encode()).hexdigest()}"
