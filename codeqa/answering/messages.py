"""The messages of a turn as they go to a model (S5), and what they weigh.

::

    system     prompt `chat_system`: rules only, never any retrieved text
    user       an earlier question ┐ the last turns as text, without their context
    assistant  its answer          ┘
    user       part 1: [MODE: explain]
                       [INSTRUCTION]
                       the question and what the mode asks for
               part 2: the whole [CONTEXT] block; no part when there is none
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeqa.answering.generator import Asked, Exchange
from codeqa.llm import estimate_messages
from codeqa.parsing.secrets import mask_secrets
from codeqa.prompts import render_prompt

HISTORY_TURNS = 6
"""Earlier turns that are sent along: as many as a conversation usually stays on one matter."""
HISTORY_CHARACTERS = 8_000
"""And their length in all: less than the context, which they must not drown."""
SHORTENED = "\n[…]"

ApiMessage = dict[str, Any]


def build_messages(asked: Asked, config_dir: Path | None = None) -> list[ApiMessage]:
    """The messages for `asked`, secret-looking strings in what was typed masked.

    Raises SettingsError for a prompt override that cannot be used.
    """
    messages: list[ApiMessage] = [
        {"role": "system", "content": render_prompt("chat_system", config_dir)}
    ]
    for exchange in trim_history(asked.history):
        messages.append({"role": "user", "content": _masked(exchange.question)})
        messages.append({"role": "assistant", "content": _masked(exchange.answer)})
    parts = [_instruction(asked, config_dir)]
    if asked.block.text:
        parts.append(asked.block.text)
    messages.append({"role": "user", "content": [{"type": "text", "text": p} for p in parts]})
    return messages


def as_sent(messages: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """`messages` as they are kept and shown: the texts of each as a list of parts."""
    return tuple({"role": m["role"], "parts": _parts(m["content"])} for m in messages)


def count_tokens(sent: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of messages in the form of `as_sent`, estimated."""
    return estimate_messages(
        {"role": message["role"], "content": "\n\n".join(message["parts"])} for message in sent
    )


def trim_history(history: Sequence[Exchange]) -> list[Exchange]:
    """The newest turns that fit, oldest first; the newest always, its answer cut if it must."""
    kept: list[Exchange] = []
    room = HISTORY_CHARACTERS
    for exchange in reversed(history[-HISTORY_TURNS:]):
        if not kept:
            exchange = _shortened(exchange, room)
        room -= len(exchange.question) + len(exchange.answer)
        if room < 0:
            break
        kept.append(exchange)
    return kept[::-1]


def _instruction(asked: Asked, config_dir: Path | None) -> str:
    text = render_prompt(f"mode_{asked.mode}", config_dir, question=_masked(asked.question))
    if not asked.block.text:
        missing = "nothing_found" if asked.searched else "no_context"
        text = f"{text.rstrip()}\n\n{render_prompt(missing, config_dir)}"
    return f"[MODE: {asked.mode}]\n[INSTRUCTION]\n{text.rstrip()}\n"


def _shortened(exchange: Exchange, room: int) -> Exchange:
    """`exchange` in at most `room` characters: the ends of its texts are cut off, by lines."""
    question = _cut(exchange.question, room // 2)
    return Exchange(question, _cut(exchange.answer, room - len(question)))


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    room -= len(SHORTENED)
    end = text.rfind("\n", 0, room + 1)
    return text[: end if end > 0 else room] + SHORTENED


def _parts(content: str | Sequence[Mapping[str, str]]) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def _masked(text: str) -> str:
    return mask_secrets(text)[0]
