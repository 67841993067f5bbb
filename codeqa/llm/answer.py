"""What the events of a streamed answer say, whichever server wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codeqa.llm.endpoint import TokenUsage

DONE = object()
"""The event that says that the answer is complete."""
OPENED, CLOSED = "<think>", "</think>"


class ThoughtFilter:
    """Leaves out a leading `<think>…</think>`, however it is cut into pieces."""

    def __init__(self) -> None:
        self.thought = False
        """Whether there was any."""
        self.inside = False
        """Whether it has begun and not ended."""
        self._begun = False
        """Whether the answer has; then nothing is looked at any more."""
        self._held = ""

    def feed(self, piece: str) -> str:
        """The part of what has come that belongs to the answer."""
        if self._begun:
            return piece
        self._held += piece
        if not self.thought:
            begin = self._held.lstrip()
            self.thought = self.inside = begin.startswith(OPENED)
            if self.thought:
                self._held = begin.removeprefix(OPENED)
            else:
                self._begun = not OPENED.startswith(begin)
                return self._release() if self._begun else ""
        if self.inside:
            _, closed, after = self._held.partition(CLOSED)
            self.inside = not closed
            self._held = after if closed else self._held[-len(CLOSED) + 1 :]
        if not self.inside:
            self._held = self._held.lstrip()
            self._begun = bool(self._held)
        return self._release() if self._begun else ""

    def close(self) -> str:
        """What was held back and turned out to be text."""
        held = self._release()
        return held if not self.thought and held.strip() else ""

    def _release(self) -> str:
        held, self._held = self._held, ""
        return held


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""
        """The model's finish reason."""
        self.error: Any = None
        """The event that holds an error instead of text."""
        self.length = 0
        """Characters of the answer, what is held back included."""
        self.ended = False
        """Whether the stream said that it is complete."""
        self.understood = False
        """Whether any event was one of a chat API."""
        self._reasoned = False
        self._tokens: tuple[int, int] | None = None
        self._thoughts = ThoughtFilter()

    @property
    def thought(self) -> bool:
        """Whether the model reasoned aloud."""
        return self._reasoned or self._thoughts.thought

    def usage(self) -> TokenUsage | None:
        """What the answer took; None when there is nothing to tell."""
        cut = self.reason == "length"
        if self._tokens is None and not cut:
            return None
        return TokenUsage(*(self._tokens or (0, 0)), cut=cut)

    def take(self, event: Any) -> str:
        """The text that an event adds; '' for none, and for one of another shape."""
        if event is DONE:
            self.ended = True
        if not isinstance(event, Mapping):
            return ""
        if event.get("error"):
            self.understood = True
            self.error = event
            return ""
        text = self._take_choice(event)
        self._take_usage(event)
        if not self._thoughts.inside:
            self.length += len(text)
        return self._thoughts.feed(text) if text else ""

    def close(self) -> str:
        """Text that was held back until the end."""
        return self._thoughts.close()

    def _take_choice(self, event: Mapping[str, Any]) -> str:
        choices = event.get("choices")
        if not isinstance(choices, list):
            return ""
        self.understood = True
        first = choices[0] if choices else None
        if not isinstance(first, Mapping):
            return ""
        reason = first.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.reason = reason
        # A server that does not stream sends the whole message.
        delta = first.get("delta") or first.get("message")
        if not isinstance(delta, Mapping):
            return ""
        content = delta.get("content")
        self._reasoned |= bool(delta.get("reasoning_content") or delta.get("reasoning"))
        if isinstance(content, list):  # Mistral's reasoning models send parts
            parts = [part for part in content if isinstance(part, Mapping)]
            self._reasoned |= any(part.get("type") == "thinking" for part in parts)
            content = "".join(str(p.get("text", "")) for p in parts if p.get("type") == "text")
        texts = (content, delta.get("refusal"))
        return next((text for text in texts if isinstance(text, str) and text), "")

    def _take_usage(self, event: Mapping[str, Any]) -> None:
        usage = event.get("usage")
        if isinstance(usage, Mapping):
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self._tokens = (_count(prompt), _count(completion))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
