"""What a language model is sent of what was gathered, and what it answers::

system     prompt `chat_system`: rules only, never any retrieved text
user       an earlier question ┐ of this conversation: what resembles this question, then the
assistant  its answer          ┘ last turns, as text and without their context
user       part 1: [MODE: explain]
                   [INSTRUCTION]
                   the question and what the mode asks for
                   [PROFILE] what the user told of themselves, where that matters
                   [CLIENT] what the client program asks of answers, where one does
           part 2: the whole [CONTEXT] block; no part when there is none
           part 3: [COUNTED] all that the index or git holds of what was asked for, where
                   that can be counted; data in a fence, like the block
           part 4: [EARLIER ANSWERS] those of other conversations to similar questions, each
                   in a fence
           last: [CALLS] and [ALSO FOUND], further places by name and line (`reader.py`)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from codeqa.chat.citations import CitationWriter, CitedCode, without_numbers
from codeqa.chat.looks import may_be_looks, read_looks
from codeqa.chat.record import SentMessage
from codeqa.chat.values import Gathered, ModelRequest, Piece
from codeqa.code.tools import Toolbox
from codeqa.context.block import ContextBlock
from codeqa.context.packing import pack
from codeqa.errors import ContextLengthError, ModelError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, Thought, ToolCall, Waiting, estimate_messages
from codeqa.prompts import render_prompt
from codeqa.routing.intents import NEED_CODE
from codeqa.text.markdown import code_block
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import Exchange, TokenUsage

HISTORY_CHARACTERS = 8_000
"""Of earlier turns in all: less than the context, which they must not drown."""
ANSWER_SHARE = 1 / 8
"""Part of a model's window that is left to its answer at least."""
LEAST_HISTORY = 400
"""Characters below which no earlier turn is told: nothing would be left of it."""
SHORTENED = "\n[…]"
CLIENT_ASKS = "What the program that asks wants of answers, as far as the rules allow:"
CLIENT_CHARACTERS = 8_000
"""Of what a client program asks for: several pages, and less than the context."""
COUNTED = "[COUNTED]\nAll of what was asked for, counted from the index and git:"
EARLIER_ANSWERS = (
    "[EARLIER ANSWERS]\nTo similar questions, in other conversations. They are data that may be "
    "wrong or outdated, and no evidence: what you say must stand in [CONTEXT]."
)

HELD_CHARACTERS, LEAST_HELD = 240, 60
"""Text that waits for whether calls follow, since a model says what it is about to do, then does
it; so much of any, and more of one that begins so."""
_ABOUT_TO = re.compile(r"\W*(?:i|let me|let's|first|to answer|looking|checking)\b", re.IGNORECASE)
LONGEST_LOOKS = 4_000
"""Characters of what is not for the reader that are waited for."""
TOO_LONG = (
    "The whole context was too long for this model: part of the code was sent, and no earlier "
    "questions."
)


def build_messages(asked: Gathered, config_dir: Path | None = None) -> list[dict[str, Any]]:
    """The messages for `asked`, whose texts are masked already. Of earlier turns as much is told
    as the model's window has room for beside all else.

    Raises SettingsError for a prompt override that cannot be used.
    """
    system = {"role": "system", "content": render_prompt("chat_system", config_dir)}
    parts = [_instruction(asked, config_dir)]
    if asked.block.text:
        parts.append(asked.block.text)
    if asked.evidence and asked.evidence.counted:
        parts.append(f"{COUNTED}\n{code_block(asked.evidence.lead)}")
    content = [{"type": "text", "text": part} for part in parts]
    last = {"role": "user", "content": content}
    told: list[dict[str, Any]] = []
    room = min(HISTORY_CHARACTERS, characters_left([system, last], asked.window))
    ours = (one for one in reversed(asked.similar) if not one.elsewhere)
    for exchange in trim_history((*ours, *asked.history), room):
        room -= len(exchange.question) + len(exchange.answer)
        told.append({"role": "user", "content": exchange.question})
        told.append({"role": "assistant", "content": without_numbers(exchange.answer)})
    earlier = [EARLIER_ANSWERS]
    for answer in (earlier_answer(one) for one in asked.similar if one.elsewhere):
        if len(answer) <= room:  # a part of one might say the opposite
            earlier.append(answer)
            room -= len(answer)
    if earlier[1:]:
        content.append({"type": "text", "text": "\n\n".join(earlier)})
    while told and characters_left([system, *told, last], asked.window) < 0:
        del told[:2]  # in a script of which every letter is a token
    return [system, *told, last]


def earlier_answer(exchange: Exchange) -> str:
    """An answer of another conversation with its question, as it is sent along."""
    answer = without_numbers(exchange.answer)
    return code_block(f"Question: {exchange.question}\n\nAnswer: {answer}")


def characters_left(messages: Iterable[Mapping[str, Any]], window: int) -> int:
    """Characters that fit into `window` tokens (0: unknown, taken for enough) beside `messages`
    and the answer; less than 0 when these are too long already."""
    if not window:
        return sys.maxsize
    tokens = window * (1 - ANSWER_SHARE) - estimate_messages(messages)
    return int(tokens * CHARACTERS_PER_TOKEN)


def as_sent(messages: Iterable[Mapping[str, Any]]) -> tuple[SentMessage, ...]:
    """Return `messages` as they are stored and shown: the texts of each as a list of parts."""
    return tuple(SentMessage(message["role"], list(_parts(message))) for message in messages)


def _parts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message["content"]
    yield from [content] if isinstance(content, str) else (part["text"] for part in content)
    for call in message.get("tool_calls", ()):
        yield f"{call['function']['name']} {call['function']['arguments']}"


def count_tokens(sent: Iterable[SentMessage]) -> int:
    """Return the estimated tokens of messages that were sent."""
    return estimate_messages(
        {"role": message.role, "content": "\n\n".join(filter(None, message.parts))}
        for message in sent
    )


def trim_history(history: Sequence[Exchange], room: int = HISTORY_CHARACTERS) -> list[Exchange]:
    """The newest turns that fit `room` characters, oldest first; the newest always, its answer cut
    if it must, unless there is hardly any room."""
    kept: list[Exchange] = []
    if room < LEAST_HISTORY:
        return kept
    for exchange in reversed(history):
        if not kept:
            question = _cut(exchange.question, room // 2)
            answer = _cut(exchange.answer, room - len(question))
            exchange = replace(exchange, question=question, answer=answer)
        room -= len(exchange.question) + len(exchange.answer)
        if room < 0:
            break
        kept.append(exchange)
    return kept[::-1]


def _instruction(asked: Gathered, config_dir: Path | None) -> str:
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


Asked = tuple[list[ToolCall], str, str]
"""The looks that the model wants, all that it said, and what of that was not told."""


def ask_model(
    model: Model,
    messages: list[dict[str, Any]],
    block: ContextBlock,
    toolbox: Toolbox,
    cancelled: Cancelled,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    by_lines: bool = False,
    warning: str = "",
) -> Generator[Piece, None, Asked]:
    """One request with `block` in its `messages`: the answer goes on to the reader, its citations
    in one shape; of what belongs to looks, calls of `tools` or written `by_lines`, nothing does.
    Raises ModelError, ContextLengthError before the first word alone."""
    yield ModelRequest(model.name, model.host, as_sent(messages), block, warning)
    code = CitedCode(toolbox.files, toolbox.tables(), block.chunks)
    citations = CitationWriter(block.chunks, code)
    calls: list[ToolCall] = []
    text, held = "", ""
    try:
        with closing(model.stream(messages, cancelled=cancelled, tools=tools)) as stream:
            for piece in stream:
                if isinstance(piece, ToolCall):
                    calls.append(piece)
                elif isinstance(piece, TokenUsage | Thought | Waiting):
                    yield piece
                else:
                    text, held = text + piece, held + piece
                    looks = by_lines and may_be_looks(text)
                    most = HELD_CHARACTERS if _ABOUT_TO.match(text) else LEAST_HELD
                    if not looks and not (tools and len(text) <= most):
                        yield citations.feed(held)
                        held = ""
                    elif len(text) > LONGEST_LOOKS:
                        break
    except ModelError as error:
        yield citations.close()
        if text != held and isinstance(error, ContextLengthError):
            # Too late to begin anew: the reader already has a part of the answer.
            raise ModelError(error.message, error.hint) from error
        raise
    calls = calls or (read_looks(text) if by_lines else [])
    if not calls:
        yield citations.feed(held) + citations.close()
    elif rest := citations.close() if held != text else "":
        yield rest + "\n\n"
    return calls, text, held


def shrink(asked: Gathered, room: int = 0) -> Gathered:
    """`asked` without history and with the block packed anew into `room` characters (0: half of
    its length); a block that cannot be made so short stays as it is."""
    whole = asked.block
    # What it can hold is not known, and a second refusal costs more than a little code left out.
    room = room or len(whole.text) // 2
    half = pack(whole.chunks, room)
    if not half.chunks:  # all are long: the best alone may use all of the room
        half = pack(whole.chunks[:1], room)
    kept = {(c.path, c.start_line) for c in half.chunks}
    left_out = [c for c in whole.chunks if (c.path, c.start_line) not in kept]
    half = replace(half, dropped=(*left_out, *whole.dropped))
    return replace(asked, block=half if half.chunks else whole, history=(), similar=())
