"""Asking a language model for the intent of a message that the rules are unsure of."""

from __future__ import annotations

import json
import logging
import re
import time
from contextlib import closing
from pathlib import Path

from codeqa.errors import CodeQAError
from codeqa.intents.intent import INTENTS, Intent
from codeqa.intents.tokens import shortened
from codeqa.llm import Cancelled, Message, Model
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets

MOST_TOKENS = 32
"""The JSON that is asked for has about 20."""
MOST_CHARACTERS = 400
"""Longest answer that is read, whatever a server sends."""
REASON = "a language model was asked"

_FIRST = "It is the first message of a conversation."
_LATER = "There are earlier turns, which you do not see."
_OBJECT = re.compile(r"\{[^{}]*\}")

log = logging.getLogger(__name__)


def messages_for(text: str, has_history: bool, config_dir: Path | None) -> list[Message]:
    """What the model is sent: the message without what looks like a secret, and no other turn.

    Raises SettingsError for a prompt override that cannot be used.
    """
    earlier = _LATER if has_history else _FIRST
    return [
        {
            "role": "system",
            "content": render_prompt("classify_intent", config_dir, earlier=earlier),
        },
        {"role": "user", "content": shortened(mask_secrets(text))},
    ]


def ask_model(
    model: Model,
    text: str,
    *,
    has_history: bool,
    config_dir: Path | None,
    seconds: float,
    cancelled: Cancelled,
) -> Intent | None:
    """What `model` says within `seconds`; None when it fails, is late or says anything odd."""
    until = time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() >= until or cancelled()

    said = ""
    try:
        asked = messages_for(text, has_history, config_dir)
        with closing(model.stream(asked, max_tokens=MOST_TOKENS, cancelled=over)) as pieces:
            for piece in pieces:
                said += piece if isinstance(piece, str) else ""
                if len(said) > MOST_CHARACTERS:
                    break
    except CodeQAError as error:
        log.info("no intent from %s: %s", model.name, type(error).__name__)
        return None
    return read_answer(said, has_history=has_history)


def read_answer(said: str, *, has_history: bool) -> Intent | None:
    """The intent in a model's answer; None unless it is one, with a confidence from 0 to 1."""
    found = _OBJECT.search(said[:MOST_CHARACTERS])
    try:
        answer = json.loads(found.group()) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    name, sure = answer.get("intent"), answer.get("confidence")
    if not isinstance(name, str) or name not in INTENTS:
        return None
    if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1:
        return None
    if name == "continuation" and not has_history:
        return None
    return Intent(name, round(float(sure), 2), "model", REASON)
