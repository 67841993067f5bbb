"""What the events of a streamed answer say, whichever server wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

OPENED, CLOSED = "<think>", "</think>"


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


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""
        """The model's finish reason."""
        self.length = 0
        """Characters that came."""
        self.understood = False
        """Whether any event was one of a chat API."""
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self._state = "start"  # then "thought" where it begins with one, "gap" behind it, "text"
        self._held = ""

    def take(self, event: Any) -> Iterator[str | Thought]:
        """The text and the thoughts that an event adds; nothing for one of another shape."""
        match event:
            case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
                self.usage = TokenUsage(prompt, completion)
        match event:
            case {"choices": [{**choice}, *_]}:
                self.understood = True
                self.reason = str(choice.get("finish_reason") or self.reason)
                # A server that does not stream sends the whole message.
                delta = choice.get("delta") or choice.get("message")
                if isinstance(delta, Mapping):
                    yield from self._delta(delta)
            case {"choices": []}:
                self.understood = True
        if self.reason == "length":
            self.usage = replace(self.usage or TokenUsage(), cut=True)

    def rest(self) -> str:
        """Text that was held back, for it began like a thought."""
        return self._held if self._state == "start" else ""

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[str | Thought]:
        for call in delta.get("tool_calls") or ():
            self._call(call)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content") or delta.get("refusal") or ""
        if reasoning and isinstance(reasoning, str):
            yield Thought(reasoning)
        for part in content if isinstance(content, list) else [{"text": content}]:
            match part:
                case {"thinking": [*thoughts]}:  # Mistral's reasoning models send such parts
                    yield from (Thought(one["text"]) for one in thoughts if "text" in one)
                case {"text": str(text)} if text:
                    self.length += len(text)
                    yield from self._text(text)

    def _text(self, piece: str) -> Iterator[str | Thought]:
        """A leading `<think>…</think>` taken apart from the text, however it is cut into pieces,
        and white space before the text left out."""
        held, self._held = self._held + piece, ""
        if self._state == "start":
            held = held.lstrip()
            if OPENED.startswith(held):
                self._held = held
                return
            self._state = "thought" if held.startswith(OPENED) else "text"
            held = held.removeprefix(OPENED) if self._state == "thought" else held
        if self._state == "thought":
            thought, closed, held = held.partition(CLOSED)
            if not closed:  # its last characters may begin the mark
                at = max(0, len(thought) - len(CLOSED) + 1)
                thought, self._held = thought[:at], thought[at:]
            if thought:
                yield Thought(thought)
            self._state = "gap" if closed else "thought"
        if self._state == "gap":
            held = held.lstrip()
            self._state = "text" if held else "gap"
        if held:
            yield held

    def _call(self, part: Any) -> None:
        """A call begins with its name; parts without one go on with the last."""
        match part:
            case {"function": {"name": str(name), **more}} if name:
                number = len(self.calls)
                self.calls.append(ToolCall(str(part.get("id") or f"call_{number}"), name, ""))
            case {"function": {**more}} if self.calls:
                pass
            case _:
                return
        arguments = more.get("arguments") or ""
        if not isinstance(arguments, str):  # Ollama's own way
            arguments = json.dumps(arguments)
        self.length += len(arguments)
        self.calls[-1] = replace(self.calls[-1], arguments=self.calls[-1].arguments + arguments)
