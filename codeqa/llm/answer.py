"""What the events of a streamed answer say, whichever server wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codeqa.llm.endpoint import TokenUsage, ToolCall

OPENED, CLOSED = "<think>", "</think>"


class ThoughtFilter:
    """Takes a leading `<think>…</think>` apart from the answer, however it is cut into pieces, and
    leaves out white space before the answer."""

    def __init__(self) -> None:
        self.thought = False
        """Whether there was any."""
        self.inside = False
        """Whether it has begun and not ended."""
        self.reasoning = ""
        """What the last piece added to it."""
        self._begun = False
        """Whether the answer has; then nothing is looked at any more."""
        self._held = ""

    def feed(self, piece: str) -> str:
        """The part of what has come that belongs to the answer."""
        self.reasoning = ""
        if self._begun:
            return piece
        held = self._held + piece if self.inside else (self._held + piece).lstrip()
        if not self.thought and held.startswith(OPENED):
            self.thought = self.inside = True
            held = held.removeprefix(OPENED)
        if self.inside:
            self.reasoning, closed, after = held.partition(CLOSED)
            self.inside, held = not closed, after.lstrip()
            if not closed:  # its last characters may begin the mark
                at = max(0, len(self.reasoning) - len(CLOSED) + 1)
                self.reasoning, held = self.reasoning[:at], self.reasoning[at:]
        undecided = not self.thought and OPENED.startswith(held)
        self._begun = bool(held) and not self.inside and not undecided
        self._held = "" if self._begun else held
        return held if self._begun else ""

    def close(self) -> str:
        """What was held back and turned out to be text."""
        return "" if self.thought else self._held


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""
        """The model's finish reason."""
        self.length = 0
        """Characters of the answer, what is held back included."""
        self.understood = False
        """Whether any event was one of a chat API."""
        self.reasoning = ""
        """What the last event added to the model's reasoning."""
        self._calls: dict[object, dict[str, str]] = {}
        """By index, as servers number them; what belongs together comes in parts."""
        self._reasoned = False
        self._tokens: tuple[int, int] | None = None
        self._thoughts = ThoughtFilter()

    @property
    def reasoned(self) -> bool:
        """Whether the model reasoned aloud."""
        return self._reasoned or self._thoughts.thought

    def calls(self) -> list[ToolCall]:
        """The tools that the model wants called, in its order; without those that have no name."""
        return [
            ToolCall(call["id"] or f"call_{number}", call["name"], call["arguments"])
            for number, call in enumerate(self._calls.values())
            if call["name"]
        ]

    def usage(self) -> TokenUsage | None:
        """What the answer took; None when there is nothing to tell."""
        cut = self.reason == "length"
        if self._tokens is None and not cut:
            return None
        return TokenUsage(*(self._tokens or (0, 0)), cut=cut)

    def take(self, event: Any) -> str:
        """The text that an event adds; '' for none, and for one of another shape."""
        self.reasoning = ""
        match event:
            case {"usage": Mapping() as usage}:
                spent = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
                prompt, completion = (n if isinstance(n, int) and n > 0 else 0 for n in spent)
                self._tokens = (prompt, completion)
        text = ""
        match event:
            case {"choices": [*choices]}:
                self.understood = True
                if choices and isinstance(choices[0], Mapping):
                    text = self._take_choice(choices[0])
        if not self._thoughts.inside:
            self.length += len(text)
        if text:
            text = self._thoughts.feed(text)
            self.reasoning += self._thoughts.reasoning
        return text

    def close(self) -> str:
        """Text that was held back until the end."""
        return self._thoughts.close()

    def _take_choice(self, choice: Mapping[str, Any]) -> str:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.reason = reason
        # A server that does not stream sends the whole message.
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, Mapping):
            return ""
        content = delta.get("content")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        self._reasoned |= bool(reasoning)
        self.reasoning = reasoning if isinstance(reasoning, str) else ""
        for part in delta.get("tool_calls") or ():
            self._take_call(part)
        if isinstance(content, list):  # Mistral's reasoning models send parts
            parts = [part for part in content if isinstance(part, Mapping)]
            thinking = [part.get("thinking") for part in parts if part.get("type") == "thinking"]
            self._reasoned |= bool(thinking)
            self.reasoning += "".join(map(_text_of, thinking))
            content = "".join(str(p.get("text", "")) for p in parts if p.get("type") == "text")
        texts = (content, delta.get("refusal"))
        return next((text for text in texts if isinstance(text, str) and text), "")

    def _take_call(self, part: Any) -> None:
        function = part.get("function") if isinstance(part, Mapping) else None
        if not isinstance(function, Mapping):
            return
        id_ = part.get("id") if isinstance(part.get("id"), str) else ""
        # Some servers number each whole call 0, or not at all: another id is another call.
        key: object = part.get("index", len(self._calls))
        known = self._calls.get(key)
        if known and id_ and known["id"] not in ("", id_):
            key = id_
        call = self._calls.setdefault(key, {"id": "", "name": "", "arguments": ""})
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # Ollama's own way
            arguments = json.dumps(arguments)
        call["id"] = call["id"] or id_
        call["name"] += function["name"] if isinstance(function.get("name"), str) else ""
        call["arguments"] += arguments if isinstance(arguments, str) else ""
        self.length += len(arguments) if isinstance(arguments, str) else 0


def _text_of(thinking: Any) -> str:
    """The text of one part of Mistral's reasoning, which is a string or parts again."""
    parts = thinking if isinstance(thinking, list) else [{"text": thinking}]
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
