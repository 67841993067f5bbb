"""The intent of a message: by its tag, from the cache, by the rules, or by a language model."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, Field, ValidationError

from codeqa.errors import CodeQAError, places_of
from codeqa.intents.reading import read, shortened
from codeqa.intents.rules import RULES, Rule
from codeqa.intents.signs import of_code
from codeqa.llm import Cancelled, Message, Model, generate_bounded, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.state.cache import Cache
from codeqa.text.tokens import well_formed

IntentName = Literal["general", "knowledge_base", "continuation", "profile", "privacy"]
INTENTS: tuple[str, ...] = get_args(IntentName)
POLICY_VERSION = 5
"""Part of the key under which a model's word on an intent is cached: raise it when the rules for
intents or the policy change."""
CACHE_SECONDS = 1_800.0
"""Lifetime of a cached intent."""
MODEL_SECONDS = 3.0
"""Time that a model has; then the rules' answer stands."""
MODEL_BELOW = 0.8
"""Confidence of the rules under which a model is asked: a lead of less than three points
(benchmarks/results/intents.md says how many messages lie below, and how many of them are wrong)."""
PAUSE_SECONDS = 30.0
"""A model that did not say a usable word is not asked for an intent again for so long."""
MOST_TOKENS = 32
"""The JSON that a model is asked for has about 20."""
MOST_CHARACTERS = 400
"""Longest answer that is read, whatever a server sends."""

_BEFORE = ("privacy", "profile", "continuation", "knowledge_base", "general")
"""Which intent wins a draw."""
_OBJECT = re.compile(r"\{[^{}]*\}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intent:
    """One of INTENTS, and how it was found."""

    name: str
    confidence: float
    """0 to 1: how often a message so classified is one."""
    source: str
    """`tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    """The rule that decided, in words."""


def by_heuristics(text: str, *, has_history: bool) -> Intent:
    """The intent of `text`, which comes without tag and mode, by the rules alone: no model, no
    network, well under a millisecond."""
    sums, held = weigh(text, has_history=has_history)
    if not held:  # nothing is known of it: a question, or more of the same
        name = "continuation" if has_history else "knowledge_base"
        return Intent(name, 0.5, "heuristics", "nothing else fits")
    best, second = sorted(_BEFORE, key=lambda name: -sums[name])[:2]
    reason = max((rule for rule in held if rule.intent == best), key=lambda rule: rule.weight)
    # Every two points of lead halve the doubt.
    confidence = round(1 - 0.5 * 2 ** ((sums[second] - sums[best]) / 2), 2)
    return Intent(best, confidence, "heuristics", reason.name)


def weigh(text: str, *, has_history: bool) -> tuple[Mapping[str, int], list[Rule]]:
    """The sum of each intent's weights, and the rules that hold."""
    message = read(text, has_history=has_history)
    code = of_code(message)  # then it is neither small talk nor about its writer
    fitting = (rule for rule in RULES if not (code and rule.intent in ("general", "profile")))
    held = [rule for rule in fitting if rule.holds(message)]
    sums = dict.fromkeys(INTENTS, 0)
    for rule in held:
        sums[rule.intent] += rule.weight
    return sums, held


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
            return Intent("knowledge_base", 1.0, "tag", "the tag @codebase")
        key = cache_key(user, text, has_history)
        if (known := self._recall(key, has_history)) is not None:
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
        """What the model says in time; None without one, and when it says nothing of use."""
        if cancelled() or time.monotonic() < self._ask_again:
            return None
        found = None
        with suppress(CodeQAError):  # a model that is badly set is told where it is to answer
            model = self._connect()
            if model is None:
                return None
            ask = partial(messages_for, text, has_history, self._config_dir)
            *_, stage = generate_bounded(
                "intent", model, ask, MOST_TOKENS, self._seconds, cancelled
            )
            found = read_answer(stage.text, has_history=has_history)
        if found is None and not cancelled():
            self._ask_again = time.monotonic() + PAUSE_SECONDS
        return found

    def _recall(self, key: str, has_history: bool) -> Intent | None:
        try:
            found = read_answer(self._cache.get(key) or "", has_history=has_history)
        except Exception as error:  # a cache costs no answer, whatever lies in it
            log.warning("a cached intent could not be read: %s", places_of(error))
            return None
        return found and replace(found, source="cache")

    def _keep(self, key: str, intent: Intent) -> None:
        try:
            value = json.dumps({"intent": intent.name, "confidence": intent.confidence})
            self._cache.set(key, value, CACHE_SECONDS)
        except Exception as error:
            log.warning("an intent could not be cached: %s", places_of(error))


class _Answer(BaseModel):
    """What a model says, and what of it is cached."""

    intent: IntentName
    confidence: float = Field(ge=0, le=1, strict=True)


def cache_prefix(user: str) -> str:
    """How the keys of all intents begin that are cached for `user`."""
    return f"intent:{hashlib.sha256(user.encode()).hexdigest()[:32]}:"


def cache_key(user: str, text: str, has_history: bool) -> str:
    """Key of a cached intent; neither the user nor the text can be read from it."""
    normal = " ".join(well_formed(text).casefold().split())
    parts = json.dumps([user, normal, has_history, POLICY_VERSION])
    return f"{cache_prefix(user)}{hashlib.sha256(parts.encode()).hexdigest()}"


def messages_for(text: str, has_history: bool, config_dir: Path | None) -> list[Message]:
    """What a model is sent: the message without what looks like a secret, and no other turn.

    Raises SettingsError for a prompt override that cannot be used.
    """
    earlier = (
        "There are earlier turns, which you do not see."
        if has_history
        else "It is the first message of a conversation."
    )
    told = render_prompt("classify_intent", config_dir, earlier=earlier)
    return [
        {"role": "system", "content": told},
        {"role": "user", "content": shortened(mask_secrets(text))},
    ]


def read_answer(said: str, *, has_history: bool) -> Intent | None:
    """The intent in a model's answer; None unless it is one, with a confidence from 0 to 1."""
    found = _OBJECT.search(said[:MOST_CHARACTERS])
    try:
        answer = _Answer.model_validate_json(found.group()) if found else None
    except ValidationError:
        return None
    if answer is None or (answer.intent == "continuation" and not has_history):
        return None
    sure = round(answer.confidence, 2)
    return Intent(answer.intent, sure, "model", "a language model was asked")
