"""What an answer is made from, and how that goes to a language model::

system     prompt `chat_system`: rules only, never any retrieved text
user       an earlier question ┐ what resembles this question, then the last turns, as
assistant  its answer          ┘ text and without their context
user       part 1: [MODE: explain]
                   [INSTRUCTION]
                   the question and what the mode asks for
                   [PROFILE] what the user told of themselves, where that matters
                   [CLIENT] what the client program asks of answers, where one does
           part 2: the whole [CONTEXT] block; no part when there is none
           part 3: [COUNTED] all that the index or git holds of what was asked for, where
                   that can be counted; data in a fence, like the block
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from codeqa.llm import Cancelled, Model, Thought, TokenUsage, estimate_messages, never
from codeqa.prompts import render_prompt
from codeqa.quoted.evidence import QuotedEvidence
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import NEED_CODE
from codeqa.search import SearchResult
from codeqa.selection import Budget
from codeqa.text.markdown import code_block
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import ContextBlock, Exchange

HISTORY_TURNS = 10
"""Earlier turns that are sent along at most: S3's window of three, three older ones of the
conversation that resemble the question, and four of any."""
HISTORY_CHARACTERS = 8_000
"""And their length in all: less than the context, which they must not drown."""
ANSWER_SHARE = 1 / 8
"""Part of a model's window that is left to its answer at least."""
LEAST_HISTORY = 400
"""Characters below which no earlier turn is told: nothing would be left of it."""
SHORTENED = "\n[…]"
CLIENT_ASKS = "What the program that asks wants of answers, as far as the rules allow:"
CLIENT_CHARACTERS = 8_000
"""Of what a client program asks for: several pages, and less than the context."""
COUNTED = "[COUNTED]\nAll of what was asked for, counted from the index and git:"
ELSEWHERE = "(Asked earlier, not just now) "
"""Before a question that is told because it resembles the present one."""

NO_CONTEXT = ContextBlock("", ())
EXTRACTIVE = "extractive"
"""Name of the generator that quotes the code."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Stands in the history for a quoted answer: that is text of files, which has no place among
what the model itself is supposed to have said."""


def answer_for_history(answer: str, generator: str) -> str:
    """`answer` as a model may see it in the history: one that quotes files is only mentioned."""
    return QUOTED if generator == EXTRACTIVE else answer


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that an answer may draw on."""

    question: str
    """Without tag and mode."""
    mode: str
    block: ContextBlock = NO_CONTEXT
    searched: bool = False
    """Whether the code base was searched for this question; else `block` is an earlier one's."""
    intent: str = "knowledge_base"
    """One of `intents.INTENTS`, as the policy decided."""
    history: tuple[Exchange, ...] = ()
    """Oldest first."""
    similar: tuple[Exchange, ...] = ()
    """Earlier questions that resemble this one, with their answers, the most similar first."""
    profile: str = ""
    """What the user told of themselves, as `key: value` lines."""
    instructions: str = ""
    """What the client program asks of the answer: wishes, beside the rules and never for them."""
    suggest: bool = False
    """Whether asking again with `@codebase` is to be suggested."""
    strict: bool = False
    """Whether only what the code shows may be said."""
    evidence: QuotedEvidence | None = None
    """For a writer that quotes, and what was counted for every one."""
    cancelled: Cancelled = never
    model: Model | None = None
    """The model that may answer."""
    budget: Budget | None = None
    """How much code it may be given."""
    window: int = 0
    """Tokens that the model takes; 0 is unknown."""
    search: SearchResult | None = None
    """What the search found, as it is kept; None where nothing was searched."""
    effort: str = ""
    """What was searched and packed with; '' where nothing was."""
    rewritten: str = ""
    """What was searched for instead of a follow-up that says too little alone."""
    retrieved: Mapping[str, int] = field(
        default_factory=lambda: {"num_docs": 0, "similar_queries": 0}
    )
    """How much was found for it: `num_docs` chunks, `similar_queries` past questions."""
    warnings: tuple[str, ...] = ()
    """What the reader should know about it, as sentences."""
    problems: tuple[str, ...] = ()
    """Hooks whose part was left out, a sentence each."""

    @property
    def counted(self) -> bool:
        """Whether a model is told what was counted in the index, beside the block."""
        return bool(self.evidence and self.evidence.counted)

    def masked(self) -> Gathered:
        """The same with secret-looking strings made asterisks, also in earlier questions and
        answers, which a client may have told; those in the code are masked in the index."""
        return replace(
            self,
            question=mask_secrets(self.question),
            history=tuple(map(_masked, self.history)),
            similar=tuple(map(_masked, self.similar)),
            profile=mask_secrets(self.profile),
            instructions=mask_secrets(self.instructions),
        )


def _masked(one: Exchange) -> Exchange:
    return replace(one, question=mask_secrets(one.question), answer=mask_secrets(one.answer))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What left for a model: yielded before the request, and again when it is repeated."""

    model: str = ""
    """`provider/name`; '' when no model was asked."""
    host: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    """Exactly as sent, in order: `{"role": …, "parts": [text, …]}`."""
    block: ContextBlock = NO_CONTEXT
    """The block among them."""
    warning: str = ""
    """What the reader should know about it, as a sentence."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A call of a tool that a model asked for, as its reader sees it; or its reasoning."""

    tool: str
    """'' for reasoning, which is `text`."""
    arguments: str
    """As the model wrote them, JSON if it wrote that."""
    summary: str
    """What was done and found, in a line."""
    text: str
    """What the model was given."""
    said: str = ""
    """What the model said before it."""
    milliseconds: float = 0.0
    failed: bool = False


Piece = str | ModelRequest | ToolStep | Thought | TokenUsage
"""Text of the answer, what was sent for it, what was looked up and thought meanwhile, and at the
end what the provider counted."""


class AnswerGenerator(Protocol):
    """Writes answers."""

    @property
    def name(self) -> str:
        """What the surfaces call it: the model, `extractive` or `app`."""
        ...

    @property
    def needs_evidence(self) -> bool:
        """Whether `Gathered.evidence` is to be gathered: it costs as much as the search."""
        ...

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Ends when `asked.cancelled()` is true; closing the generator stops the work behind it.
        Raises ModelError, also after some text.
        """
        ...


def build_messages(
    asked: Gathered, config_dir: Path | None = None, window: int = 0
) -> list[dict[str, Any]]:
    """The messages for `asked`, whose texts are masked already. Of earlier turns as much is told
    as a model that takes `window` tokens (0: unknown) has room for beside all else.

    Raises SettingsError for a prompt override that cannot be used.
    """
    system = {"role": "system", "content": render_prompt("chat_system", config_dir)}
    parts = [_instruction(asked, config_dir)]
    if asked.block.text:
        parts.append(asked.block.text)
    if asked.evidence and asked.counted:
        parts.append(f"{COUNTED}\n{code_block(asked.evidence.lead)}")
    last = {"role": "user", "content": [{"type": "text", "text": part} for part in parts]}
    told: list[dict[str, Any]] = []
    room = min(HISTORY_CHARACTERS, characters_left([system, last], window))
    for exchange in trim_history((*reversed(asked.similar), *asked.history), room):
        question = f"{ELSEWHERE}{exchange.question}" if exchange.elsewhere else exchange.question
        told.append({"role": "user", "content": question})
        told.append({"role": "assistant", "content": exchange.answer})
    while told and characters_left([system, *told, last], window) < 0:
        del told[:2]  # in a script of which every letter is a token
    return [system, *told, last]


def characters_left(messages: Iterable[Mapping[str, Any]], window: int) -> int:
    """Characters that fit into `window` tokens (0: unknown, taken for enough) beside `messages`
    and the answer; less than 0 when these are too long already."""
    if not window:
        return sys.maxsize
    tokens = window * (1 - ANSWER_SHARE) - estimate_messages(messages)
    return int(tokens * CHARACTERS_PER_TOKEN)


def as_sent(messages: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """`messages` as they are kept and shown: the texts of each as a list of parts."""
    return tuple({"role": message["role"], "parts": list(_parts(message))} for message in messages)


def _parts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message["content"]
    yield from [content] if isinstance(content, str) else (part["text"] for part in content)
    for call in message.get("tool_calls", ()):
        yield f"{call['function']['name']} {call['function']['arguments']}"


def count_tokens(sent: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of messages in the form of `as_sent`, estimated."""
    return estimate_messages(
        {"role": message["role"], "content": "\n\n".join(message["parts"])} for message in sent
    )


def trim_history(history: Sequence[Exchange], room: int = HISTORY_CHARACTERS) -> list[Exchange]:
    """The newest turns that fit `room` characters, oldest first; the newest always, its answer cut
    if it must, unless there is hardly any room."""
    kept: list[Exchange] = []
    if room < LEAST_HISTORY:
        return kept
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
