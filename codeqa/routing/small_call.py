"""The one call of a small model about a message: what it is for, whether it leaves the topic, and
the message made complete.

It is made where words are in doubt of any of the three, and once at most. Raises nothing:
whatever becomes of the model, or of what it writes, the words have an answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from codeqa.errors import CodeQAError, StorageError
from codeqa.llm.client import Cancelled, Message, Model, generate_bounded, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.followup import STAYS, Leaving, code_names
from codeqa.routing.intents import INTENTS, Intent
from codeqa.routing.mode import read_mode
from codeqa.routing.words import shortened
from codeqa.search.query import parse_query
from codeqa.state.cache import Cache
from codeqa.text import has_tag
from codeqa.text.tokens import search_tokens, well_formed
from codeqa.types import Exchange

PROMPT_VERSION = 6
"""Part of the key under which a model's word on an intent is cached: raise it when the
prompt, or what an intent means, changes."""
CACHE_SECONDS = 1_800.0
"""Lifetime of a cached intent."""
MODEL_SECONDS = 4.0
"""Time that a model has: half of what a draft may take, for it comes before them."""
PAUSE_SECONDS = 30.0
"""A model that said nothing of use is not asked again for so long."""
MOST_TOKENS = 250
LONGEST = 400
"""Characters of a completed question; what is longer is an answer or a rant."""
LAST_QUESTIONS = 3
QUESTION_CHARACTERS = 300
ANSWER_CHARACTERS = 800
NAMES = 6
"""Earlier turns as a model sees them: enough to tell what "it" is."""

_TOPICS: Mapping[str, Leaving] = {
    "SAME": STAYS,
    "NEW": Leaving("code", "the model takes it for a question about other code"),
    "OTHER": Leaving("elsewhere", "the model finds that no code here is about it"),
}
_LABEL = re.compile(
    r"^(?:(?:the )?(?:standalone|rewritten|complete[d]?|follow-?up) ?)*(?:question|query)?:\s+",
    re.IGNORECASE,
)
_FORMATTED = re.compile(r"^(?:#|[-*+>]\s|\d+[.)]\s)|\*\*|__\w|\]\(|<\w+[ />]|\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """What a model said of a message; None and '' for what it did not say in a usable form."""

    intent: Intent | None = None
    leaving: Leaving | None = None
    question: str = ""
    """The message as a question that stands alone."""


@dataclass(slots=True)
class SmallCall:
    """Asks the small model of the moment, and keeps what it said of intents for half an hour."""

    cache: Cache
    connect: Callable[[], Model | None]
    """None for no model."""
    config_dir: Path | None
    seconds: float = MODEL_SECONDS
    _ask_again: float = field(default=0.0, init=False)

    def recall(self, user: str, text: str, has_history: bool) -> Intent | None:
        """What it said lately of the same message."""
        kept = None
        with suppress(StorageError):  # a cache costs no answer, whatever lies in it
            kept = self.cache.get(cache_key(user, text, has_history))
        found = read_answer(kept or "", text).intent
        return found and replace(found, source="cache")

    def ask(
        self,
        user: str,
        text: str,
        has_history: bool,
        history: Sequence[Exchange],
        names: Sequence[str],
        cancelled: Cancelled = never,
    ) -> Understood:
        """What the model says of `text` in time, which comes without tag and mode."""
        if cancelled() or time.monotonic() < self._ask_again:
            return Understood()
        said = Understood()
        with suppress(CodeQAError):  # a model that is badly set is told where it is to answer
            model = self.connect()
            if model is None:
                return said
            ask = partial(messages_for, text, has_history, history, names, self.config_dir)
            *_, stage = generate_bounded(
                "understand", model, ask, MOST_TOKENS, self.seconds, cancelled
            )
            said = read_answer(stage.text, text, history, names)
        if said == Understood() and not cancelled():
            self._ask_again = time.monotonic() + PAUSE_SECONDS
        if said.intent and said.intent.name == "continuation" and not has_history:
            said = replace(said, intent=None)
        if intent := said.intent:
            value = json.dumps({"intent": intent.name, "confidence": intent.confidence})
            with suppress(StorageError):
                self.cache.set(cache_key(user, text, has_history), value, CACHE_SECONDS)
        return said


def cache_prefix(user: str) -> str:
    """How the keys of all intents begin that are cached for `user`."""
    return f"intent:{hashlib.sha256(user.encode()).hexdigest()[:32]}:"


def cache_key(user: str, text: str, has_history: bool) -> str:
    """Key of a cached intent; neither the user nor the text can be read from it."""
    normal = " ".join(well_formed(text).casefold().split())
    parts = json.dumps([user, normal, has_history, PROMPT_VERSION])
    return f"{cache_prefix(user)}{hashlib.sha256(parts.encode()).hexdigest()}"


def messages_for(
    text: str,
    has_history: bool,
    history: Sequence[Exchange],
    names: Sequence[str],
    config_dir: Path | None = None,
) -> list[Message]:
    """What the model is sent; no text of the conversation stands in the system message.

    Raises SettingsError for a prompt override that cannot be used.
    """
    earlier = (
        "There are earlier turns." if has_history else "It is the first message of a conversation."
    )
    parts = [one.question[:QUESTION_CHARACTERS] for one in history[-LAST_QUESTIONS:]]
    if history:
        parts = ["[EARLIER QUESTIONS]", *parts]
        parts += ["[LAST ANSWER]", history[-1].answer[:ANSWER_CHARACTERS]]
    if names:
        parts += ["[NAMES]", ", ".join(names[:NAMES])]
    parts += ["[MESSAGE]", shortened(text)]
    return [
        {"role": "system", "content": render_prompt("understand", config_dir, earlier=earlier)},
        {"role": "user", "content": mask_secrets("\n".join(parts))},
    ]


def read_answer(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> Understood:
    """What of a model's JSON can be used; nothing of what is none."""
    try:
        said, _ = json.JSONDecoder().raw_decode(written[max(0, written.find("{")) :])
    except (ValueError, RecursionError):
        return Understood()
    if not isinstance(said, dict):
        return Understood()
    return Understood(
        _intent(said),
        _TOPICS.get(str(said.get("topic")).upper()),
        usable_question(str(said.get("question") or ""), text, history, names),
    )


def _intent(said: Mapping[str, Any]) -> Intent | None:
    name, sure = said.get("intent"), said.get("confidence")
    if name not in INTENTS or isinstance(sure, bool) or not isinstance(sure, int | float):
        return None
    if not 0 <= sure <= 1:
        return None
    return Intent(name, round(sure, 2), "model", "a language model was asked")


def usable_question(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> str:
    """What the model wrote, as a question to search for; '' when it cannot be one.

    It is one short line of plain text. It has no tag, mode, filter or `@name` that its user did
    not type, keeps those, and every name of theirs; and it is about something that was said.
    """
    line = mask_secrets(_LABEL.sub("", written.strip())).strip(" \"'“”«»")
    if not 3 <= len(line) <= LONGEST or _FORMATTED.search(line) or has_tag(line):
        return ""
    mode, rest = read_mode(line, "explain")
    if rest != line or mode != "explain":
        return ""
    typed, made = parse_query(text), parse_query(line)
    # What restricts a search, or guarantees a place in it.
    if (typed.pointed, typed.filters) != (made.pointed, made.filters):
        return ""
    if any(name.lower() not in line.lower() for name in (*code_names(typed), *typed.phrases)):
        return ""
    said = " ".join((text, *names, *(one.question for one in history[-LAST_QUESTIONS:])))
    known = {token for word in parse_query(said).words for token in search_tokens(word)}
    return line if known.intersection(t for w in made.words for t in search_tokens(w)) else ""
