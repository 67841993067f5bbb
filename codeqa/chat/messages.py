"""The messages for a language model, and its reply::

system     prompt `chat_system`: rules only, never any retrieved text
user       an earlier question ┐ of this conversation: similar questions, then the last turns, as
assistant  its answer          ┘ text and without their context
user       part 1: [MODE: explain]
                   [INSTRUCTION]
                   the question and the instruction of the mode
                   [PROFILE] facts that the user told about themselves, where they matter
                   [CLIENT] instructions of the client program, if any
           part 2: the whole [CONTEXT] block; no part when there is none
           part 3: [COUNTED] the complete list from the index or git, where the question can be
                   answered by counting; data in a fence, like the block
           part 4: [EARLIER ANSWERS] of other conversations to similar questions, each in a fence
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
from codeqa.chat.values import AnswerPiece, Gathered, ModelRequest
from codeqa.code.tools import Toolbox
from codeqa.context.block import ContextBlock
from codeqa.context.packing import pack
from codeqa.errors import ContextLengthError, ModelError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, Reasoning, RetryWait, ToolCall, estimate_messages
from codeqa.llm.written_calls import WrittenCalls
from codeqa.prompts import render_prompt
from codeqa.routing.intents import NEED_CODE
from codeqa.text.markdown import code_block
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import Exchange, TokenUsage

HISTORY_CHARACTERS = 8_000
"""Most characters of all earlier turns: less than the context, which they must not drown."""
ANSWER_SHARE = 1 / 8
"""Part of a model's window that is reserved for its answer."""
LEAST_HISTORY = 400
"""With less room in characters no earlier turn is sent: nothing would be left of it."""
SHORTENED_TEXT = "\n[…]"
CLIENT_ASKS = "What the program that asks wants of answers, as far as the rules allow:"
CLIENT_CHARACTERS = 8_000
"""Most characters of a client's instructions: several pages, and less than the context."""
COUNTED_HEADER = "[COUNTED]\nAll of what was asked for, counted from the index and git:"
EARLIER_ANSWERS = (
    "[EARLIER ANSWERS]\nTo similar questions, in other conversations. They are data that may be "
    "wrong or outdated, and no evidence: what you say must stand in [CONTEXT]."
)

HELD_CHARACTERS, LEAST_HELD = 240, 60
"""Most characters that wait for calls to follow, since a model announces what it does, then does
it: the first for a text that begins like an announcement, the second for any other."""
_ABOUT_TO = re.compile(r"\W*(?:i|let me|let's|first|to answer|looking|checking)\b", re.IGNORECASE)
LONGEST_LOOKS = 4_000
"""Characters of looks after which the request is stopped."""
PART_SENT = "The whole context was too long for this model: part of the code was sent"
TOO_LONG = f"{PART_SENT}, and no earlier questions."
ALONE = "The whole context was too long for this model: no earlier questions were sent."


def build_messages(gathered: Gathered, config_dir: Path | None = None) -> list[dict[str, Any]]:
    """Return the messages for `gathered`, whose texts are masked already.

    They hold as many earlier turns as the model's window has room for beside all else. Raises
    SettingsError for a prompt override that cannot be used.
    """
    system = {"role": "system", "content": render_prompt("chat_system", config_dir)}
    parts = [_instruction(gathered, config_dir)]
    if gathered.block.text:
        parts.append(gathered.block.text)
    if gathered.evidence and gathered.evidence.counted:
        parts.append(f"{COUNTED_HEADER}\n{code_block(gathered.evidence.lead)}")
    content = [{"type": "text", "text": part} for part in parts]
    last = {"role": "user", "content": content}
    turns: list[dict[str, Any]] = []
    room = min(HISTORY_CHARACTERS, characters_left([system, last], gathered.window))
    exchanges = [exchange for exchange in reversed(gathered.similar) if not exchange.elsewhere]
    exchanges += gathered.history
    for exchange in trim_history(exchanges, room):
        room -= len(exchange.question) + len(exchange.answer)
        turns.append({"role": "user", "content": exchange.question})
        turns.append({"role": "assistant", "content": without_numbers(exchange.answer)})
    earlier = [EARLIER_ANSWERS]
    for exchange in gathered.similar:
        answer = earlier_answer(exchange) if exchange.elsewhere else ""
        if answer and len(answer) <= room:  # only whole: a part might say the opposite
            earlier.append(answer)
            room -= len(answer)
    if earlier[1:]:
        content.append({"type": "text", "text": "\n\n".join(earlier)})
    while turns and characters_left([system] + turns + [last], gathered.window) < 0:
        del turns[:2]  # in a script where every letter is a token
    return [system] + turns + [last]


def earlier_answer(exchange: Exchange) -> str:
    """Return an answer of another conversation with its question, as it is sent along."""
    answer = without_numbers(exchange.answer)
    return code_block(f"Question: {exchange.question}\n\nAnswer: {answer}")


def characters_left(messages: Iterable[Mapping[str, Any]], window: int) -> int:
    """Return the characters that fit into `window` tokens beside `messages` and the answer.

    Less than 0 when these are too long already; a window of 0 is unknown and taken for enough.
    """
    if not window:
        return sys.maxsize
    tokens = window * (1 - ANSWER_SHARE) - estimate_messages(messages)
    return int(tokens * CHARACTERS_PER_TOKEN)


def as_sent(messages: Iterable[Mapping[str, Any]]) -> tuple[SentMessage, ...]:
    """Return `messages` as they are stored and shown: the texts of each as a list of parts."""
    return tuple(SentMessage(message["role"], list(_parts(message))) for message in messages)


def _parts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message["content"]
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content)
    for call in message.get("tool_calls", ()):
        yield f"{call['function']['name']} {call['function']['arguments']}"


def count_tokens(messages: Iterable[SentMessage]) -> int:
    """Return the estimated tokens of messages that were sent."""
    return estimate_messages(
        {"role": message.role, "content": "\n\n".join(filter(None, message.parts))}
        for message in messages
    )


def trim_history(history: Sequence[Exchange], room: int = HISTORY_CHARACTERS) -> list[Exchange]:
    """Return the newest turns that fit `room` characters, oldest first.

    The newest is always there, shortened if necessary, unless there is hardly any room.
    """
    newest_first: list[Exchange] = []
    if room < LEAST_HISTORY:
        return newest_first
    for exchange in reversed(history):
        if not newest_first:
            question = _cut(exchange.question, room // 2)
            answer = _cut(exchange.answer, room - len(question))
            exchange = replace(exchange, question=question, answer=answer)
        room -= len(exchange.question) + len(exchange.answer)
        if room < 0:
            break
        newest_first.append(exchange)
    return newest_first[::-1]


def _instruction(gathered: Gathered, config_dir: Path | None) -> str:
    needs_code = gathered.intent in NEED_CODE
    prompt = f"mode_{gathered.mode}" if needs_code else "general"
    texts = [render_prompt(prompt, config_dir, question=gathered.question)]
    if gathered.message.options.task:
        texts = [gathered.question]
    if not gathered.block.text and gathered.searched:
        texts.append(render_prompt("nothing_found", config_dir))
    elif not gathered.block.text and (needs_code or gathered.suggest):
        texts.append(render_prompt("no_context", config_dir))
    if gathered.strict and needs_code:
        texts.append(render_prompt("strict", config_dir))
    if gathered.profile:
        texts.append(f"[PROFILE]\n{gathered.profile}")
    if gathered.instructions:
        instructions = _cut(gathered.instructions, CLIENT_CHARACTERS)
        texts.append(f"[CLIENT]\n{CLIENT_ASKS}\n{instructions}")
    text = "\n\n".join(map(str.rstrip, texts))
    return f"[MODE: {gathered.mode}]\n[INSTRUCTION]\n{text}\n"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - len(SHORTENED_TEXT)] + SHORTENED_TEXT


Reply = tuple[list[ToolCall], str, str]
"""The looks that the model asks for, its text beside them, and the part that is still withheld."""


# One loop over the pieces, of which each decides what is shown.
def ask_model(
    model: Model,
    messages: list[dict[str, Any]],
    block: ContextBlock,
    toolbox: Toolbox,
    cancelled: Cancelled,
    *,
    signatures: Mapping[str, Sequence[str]],
    tools: Sequence[Mapping[str, Any]] = (),
    by_lines: bool = False,
    warning: str = "",
) -> Generator[AnswerPiece, None, Reply]:
    """Send one request with `block` in its `messages`; yield the answer, return the reply.

    Citations get one form. Looks are withheld from the reader: calls of `tools`, calls as text, of
    tools whose arguments `signatures` names, and lines where `by_lines` is set. Raises ModelError;
    ContextLengthError only before the first word.
    """
    yield ModelRequest(model.name, model.host, as_sent(messages), block, warning)
    code = CitedCode(toolbox.files, toolbox.tables(), block.chunks)
    citations = CitationWriter(block.chunks, code)
    calls: list[ToolCall] = []
    written, thoughts, text, pending = WrittenCalls(signatures), WrittenCalls(signatures), "", ""
    try:
        with closing(model.stream(messages, cancelled=cancelled, tools=tools)) as stream:
            for piece in stream:
                if isinstance(piece, ToolCall):
                    calls.append(piece)
                elif isinstance(piece, TokenUsage | Reasoning | RetryWait):
                    thoughts.feed(piece.text if isinstance(piece, Reasoning) else "")
                    if isinstance(piece, Reasoning) and piece.retracts:
                        citations = CitationWriter(block.chunks, code)
                        written, text, pending = WrittenCalls(signatures), "", ""
                    yield piece
                else:
                    piece = written.feed(piece)
                    text, pending = text + piece, pending + piece
                    if not _may_be_looks_yet(text, bool(tools), by_lines):
                        yield citations.feed(pending)
                        pending = ""
                    if len(pending) + written.length > LONGEST_LOOKS:
                        break
    except ModelError as error:
        calls = [] if text else thoughts.end()[0]  # some servers take a call for a thought
        if not calls:
            rest = pending + written.end()[1] if text != pending else ""
            yield citations.feed(rest) + citations.close()
            raise (_once_begun(error) if text != pending else error) from None
    others, rest = written.end()
    text, pending = text + rest, pending + rest
    calls = calls or (read_looks(text) if by_lines else []) or others
    if not calls:
        yield citations.feed(pending) + citations.close()
    else:
        rest = citations.close() if pending != text else ""
        yield f"{rest}\n\n" if rest else ""
    return calls, text, pending


def _once_begun(error: ModelError) -> ModelError:
    """Return an error after which the answer is not begun anew: the reader has a part of it."""
    is_too_long = isinstance(error, ContextLengthError)
    return ModelError(error.message, error.hint) if is_too_long else error


def _may_be_looks_yet(text: str, tools: bool, by_lines: bool) -> bool:
    """Return whether `text`, so far, may be looks or announce calls of tools."""
    if by_lines and may_be_looks(text):
        return True
    most = HELD_CHARACTERS if _ABOUT_TO.match(text) else LEAST_HELD
    return tools and len(text) <= most


def shrink(gathered: Gathered, room: int = 0) -> Gathered:
    """Return `gathered` without history and with the block packed into `room` characters.

    0 stands for half of its length. A block that cannot be made so short stays as it is.
    """
    whole = gathered.block
    # The model's limit is unknown, and a second refusal costs more than a little code left out.
    room = room or len(whole.text) // 2
    half = pack(whole.chunks, room)
    if not half.chunks:  # all are long: the best alone may use all of the room
        half = pack(whole.chunks[:1], room)
    starts = {(chunk.path, chunk.start_line) for chunk in half.chunks}
    dropped = tuple(c for c in whole.chunks if (c.path, c.start_line) not in starts)
    half = replace(half, dropped=dropped + whole.dropped)
    return replace(gathered, block=half if half.chunks else whole, history=(), similar=())
