"""The messages of a turn as they go to a model, and what they weigh.

::

    system     prompt `chat_system`: rules only, never any retrieved text
    user       an earlier question ┐ what resembles this question, then the last turns, as
    assistant  its answer          ┘ text and without their context
    user       part 1: [MODE: explain]
                       [INSTRUCTION]
                       the question and what the mode asks for
                       [PROFILE] what the user told of themselves, where that matters
                       [CLIENT] what the client program asks of answers, where one does
               part 2: the whole [CONTEXT] block; no part when there is none
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codeqa.chat.generation import Exchange, GenerationInput
from codeqa.llm import estimate_messages
from codeqa.prompts import render_prompt

HISTORY_TURNS = 10
"""Earlier turns that are sent along at most: S3's window of three, three older ones of the
conversation that resemble the question, and four of any."""
HISTORY_CHARACTERS = 8_000
"""And their length in all: less than the context, which they must not drown."""
SHORTENED = "\n[…]"
CLIENT_ASKS = "What the program that asks wants of answers, as far as the rules allow:"
CLIENT_CHARACTERS = 8_000
"""Of what a client program asks for: several pages, and less than the context."""
ELSEWHERE = "(Asked earlier, not just now) "
"""Before a question that is told because it resembles the present one."""

NEED_CODE = ("knowledge_base", "continuation")
"""Intents that are answered from the code."""

ApiMessage = dict[str, Any]


def build_messages(asked: GenerationInput, config_dir: Path | None = None) -> list[ApiMessage]:
    """The messages for `asked`, whose texts are masked already.

    Raises SettingsError for a prompt override that cannot be used.
    """
    messages: list[ApiMessage] = [
        {"role": "system", "content": render_prompt("chat_system", config_dir)}
    ]
    for exchange in trim_history((*reversed(asked.similar), *asked.history)):
        question = f"{ELSEWHERE}{exchange.question}" if exchange.elsewhere else exchange.question
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": exchange.answer})
    parts = [_instruction(asked, config_dir)]
    if asked.block.text:
        parts.append(asked.block.text)
    messages.append({"role": "user", "content": [{"type": "text", "text": p} for p in parts]})
    return messages


def as_sent(messages: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """`messages` as they are kept and shown: the texts of each as a list of parts."""
    contents = ((m["role"], m["content"]) for m in messages)
    return tuple(
        {
            "role": role,
            "parts": [text] if isinstance(text, str) else [part["text"] for part in text],
        }
        for role, text in contents
    )


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
            question = _cut(exchange.question, room // 2)
            answer = _cut(exchange.answer, room - len(question))
            exchange = replace(exchange, question=question, answer=answer)
        room -= len(exchange.question) + len(exchange.answer)
        if room < 0:
            break
        kept.append(exchange)
    return kept[::-1]


def _instruction(asked: GenerationInput, config_dir: Path | None) -> str:
    needs_code = asked.intent in NEED_CODE
    prompt = f"mode_{asked.mode}" if needs_code else "general"
    texts = [render_prompt(prompt, config_dir, question=asked.question)]
    if not asked.block.text and asked.searched:
        texts.append(render_prompt("nothing_found", config_dir))
    elif not asked.block.text and (needs_code or asked.suggest):
        texts.append(render_prompt("no_context", config_dir))
    if asked.strict and needs_code:
        texts.append(render_prompt("strict", config_dir))
    if asked.profile:
        texts.append(f"[PROFILE]\n{asked.profile}")
    if asked.instructions:
        wished = _cut(asked.instructions, CLIENT_CHARACTERS)
        texts.append(f"[CLIENT]\n{CLIENT_ASKS}\n{wished}")
    text = "\n\n".join(text.rstrip() for text in texts)
    return f"[MODE: {asked.mode}]\n[INSTRUCTION]\n{text}\n"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - len(SHORTENED)] + SHORTENED
