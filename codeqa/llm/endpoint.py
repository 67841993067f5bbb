"""The values that the parts of this package hand to each other and to their callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from codeqa.text.tokens import estimate_tokens

Message = Mapping[str, Any]
"""A chat message: `role`, and `content` as a text or a list of `{"type": "text", "text": …}`."""

Complete = Callable[[Sequence[Message], int], str]
"""Messages and the most tokens to generate → the text of the answer."""

Cancelled = Callable[[], bool]
"""Whether the caller no longer wants the answer; cheap, and asked often."""

MESSAGE_TOKENS = 4
"""Tokens around each message: role and separators, as OpenAI documents them for its models."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached, and as whom.

    `key_variable` is the exported variable that the key came from, or that one could come from.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    provider: str = ""
    key_variable: str = ""

    @property
    def host(self) -> str:
        """Host name that texts are sent to, for the user to read."""
        return urlsplit(self.base_url).hostname or self.base_url

    @property
    def name(self) -> str:
        """`provider/name`, or the model's name alone."""
        return f"{self.provider}/{self.model}" if self.provider else self.model


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What an answer took, as the provider counts it; 0 where it does not say.

    `cut` is true when the answer ended at the token limit instead of where the model meant to.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False


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
    """Estimated tokens of a whole request, at 3 characters a token (`codeqa.text.tokens`).

    No tokenizer is at hand offline, and none would be right for all providers: published counts
    of the same programs give 3.3–3.6 characters a token for GPT, 2.7–3.0 for Gemini, 2.2–2.5 for
    the latest Claude; prose is nearer 4. What the provider itself counted is in `TokenUsage`.
    """
    return sum(MESSAGE_TOKENS + estimate_tokens(message_text(message)) for message in messages)
