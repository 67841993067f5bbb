"""The messages to a model, and the pieces of its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeqa.errors import ModelError
from codeqa.text.tokens import estimate_tokens, well_formed
from codeqa.types import TokenUsage

MESSAGE_TOKENS = 4
"""Tokens around each message: role and separators, as OpenAI documents them for its models."""
TEXT_CHARACTERS = 4_000
"""Most of a small call's answer: 768 tokens of code and a good third."""
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it: `arguments` should be a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of a model's reasoning before it answers, where its server sends that."""

    text: str
    retracts: bool = False
    """True if all text before it turned out to be reasoning too."""


@dataclass(frozen=True, slots=True)
class RetryWait:
    """The request ended in `error` and is made again in `seconds`: one each second, down to 0."""

    seconds: int
    text: str
    error: ModelError
    begins: bool
    """True if it is the first of this wait."""


Message = Mapping[str, Any]
"""A chat message: `role`, and `content` as a text or a list of `{"type": "text", "text": …}`."""
Complete = Callable[[Sequence[Message], int], str]
"""Messages and the most tokens to generate → the text of the answer."""
Cancelled = Callable[[], bool]
"""True if the caller no longer wants the answer; cheap, for it is called often."""
Piece = str | Reasoning | RetryWait | ToolCall | TokenUsage


def never() -> bool:
    """Return False: the `Cancelled` of a caller that does not cancel."""
    return False


def message_text(message: Message) -> str:
    """Return the text of a message; its parts are joined by a blank line."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n\n".join(str(part.get("text", "")) for part in content)


def answer_text(pieces: Iterable[Piece]) -> str:
    """Return the text of an answer without the reasoning."""
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
        elif isinstance(piece, Reasoning) and piece.retracts:
            texts.clear()
    return "".join(texts)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimate the tokens of a whole request; `TokenUsage` has the provider's count."""
    return sum(MESSAGE_TOKENS + estimate_tokens(message_text(message)) for message in messages)


def clean_text(text: str) -> str:
    """Return `text` shortened, without fences and invisible characters."""
    text = _FENCE.sub("", well_formed(text[:TEXT_CHARACTERS])).replace("\r\n", "\n")
    return _UNSEEN.sub("", text).strip()
