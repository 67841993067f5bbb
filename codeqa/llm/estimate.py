"""How many tokens a text will take, without any model's tokenizer.

An estimate, said to be one: 3 characters a token (`codeqa.text.tokens`). No tokenizer is at hand
offline, and none would be right for all providers: published counts of the same Python,
JavaScript and Rust programs give 3.3–3.6 characters a token for GPT, 2.7–3.0 for Gemini and
earlier Claude models, 2.2–2.5 for the latest Claude; prose is nearer 4. So for code the estimate
is up to a fifth too high with the first and up to a quarter too low with the last. What the
provider itself counted stands in `TokenUsage` as soon as there is an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from codeqa.llm.endpoint import Message
from codeqa.text.tokens import estimate_tokens

MESSAGE_TOKENS = 4
"""Tokens around each message: role and separators, as OpenAI documents them for its models."""

__all__ = ["estimate_messages", "estimate_tokens", "message_text"]


def message_text(message: Message) -> str:
    """The text of a message, whose parts are joined by a blank line."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n\n".join(str(part.get("text", "")) for part in content)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimated tokens of a whole request."""
    return sum(MESSAGE_TOKENS + estimate_tokens(message_text(message)) for message in messages)
