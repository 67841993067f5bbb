"""What passes between a model and who asks it: messages, and the pieces of an answer."""

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
"""Of a small call's answer, whatever a server sends: 768 tokens of code and a good third."""

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to be called, as it wrote it: `arguments` should be a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what a model says to itself before it answers, where its server sends that."""

    text: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request ended in `error` and is made again in `seconds`, as `text` says; told once a
    second down to 0. `begins`: it is the first that is told of this wait."""

    seconds: int
    text: str
    error: ModelError
    begins: bool


Message = Mapping[str, Any]
"""A chat message: `role`, and `content` as a text or a list of `{"type": "text", "text": …}`."""

Complete = Callable[[Sequence[Message], int], str]
"""Messages and the most tokens to generate → the text of the answer."""

Cancelled = Callable[[], bool]
"""Whether the caller no longer wants the answer; cheap, and asked often."""

Piece = str | Thought | Waiting | ToolCall | TokenUsage


def never() -> bool:
    """The answer of a caller that does not cancel."""
    return False


def message_text(message: Message) -> str:
    """The text of a message, whose parts are joined by a blank line."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n\n".join(str(part.get("text", "")) for part in content)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimated tokens of a whole request; what the provider counted is in `TokenUsage`."""
    return sum(MESSAGE_TOKENS + estimate_tokens(message_text(message)) for message in messages)


def clean_text(text: str) -> str:
    """`text` as it is used and shown: bounded, no fences, nothing that cannot be seen."""
    text = _FENCE.sub("", well_formed(text[:TEXT_CHARACTERS])).replace("\r\n", "\n")
    return _UNSEEN.sub("", text).strip()
