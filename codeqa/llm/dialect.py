"""What a request looks like to a server that wants some of it otherwise than OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codeqa.llm.endpoint import Message
from codeqa.llm.estimate import message_text
from codeqa.llm.refusal import Refusal
from codeqa.text.tokens import well_formed


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint has been found to want otherwise than OpenAI."""

    stream_options: bool = True
    limit: str = "max_tokens"
    parts: bool = True

    def adapted(self, refusal: Refusal) -> Dialect | None:
        """The dialect that avoids what `refusal` names; None when there is none."""
        words = refusal.words.lower()
        if refusal.status not in (400, 422) or refusal.too_long:
            return None
        if self.stream_options and "stream_options" in words:
            return replace(self, stream_options=False)
        if self.limit == "max_tokens" and "max_completion_tokens" in words:
            return replace(self, limit="max_completion_tokens")
        if self.parts and "string" in words and ("content" in words or "sequence" in words):
            return replace(self, parts=False)
        return None

    def body(self, messages: Sequence[Message], max_tokens: int | None) -> dict[str, Any]:
        """The fields of a request."""
        whole = messages
        if not self.parts:
            whole = [{**message, "content": message_text(message)} for message in messages]
        fields: dict[str, Any] = {"messages": _sendable(whole)}
        if max_tokens is not None:
            fields[self.limit] = max_tokens
        if self.stream_options:
            fields["stream_options"] = {"include_usage": True}
        return fields


def _sendable(value: Any) -> Any:
    """`value` with every text in it such that it can be encoded."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {key: _sendable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(one) for one in value]
    return value
