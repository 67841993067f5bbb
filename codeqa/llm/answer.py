"""Collect the answer of a model from the events of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codeqa.llm.values import Thought, ToolCall
from codeqa.types import TokenUsage

OPENED, CLOSED = "<think>", "</think>"
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop of themselves."""

MOST_CALLS, LONGEST_CALLS = 32, 100_000
"""Calls of one answer that are collected, up to so many characters of it."""

REACHED_LIMIT = ("length", "max_tokens")
"""What servers give as `finish_reason` for an answer that became too long."""

ENDED_EARLY = {
    "content_filter": ": the provider's filter ended it",
    "error": ": the provider ended it with an error",
}
"""`finish_reason` of an answer that is not whole → why, as the end of a sentence."""


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""  # why the model finished
        self.length = 0  # characters that came
        self.begun = False  # whether any of its text came; thoughts are none
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self.enough = False  # of calls: some models never stop of themselves
        self._thinks = False
        self._held = ""

    def take(self, event: Any) -> Iterator[str | Thought]:
        """The text and the thoughts that an event adds; nothing for one of another shape."""
        match event:
            case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
                cost = event["usage"].get("cost")  # OpenRouter says it
                cost = float(cost) if isinstance(cost, int | float) and cost > 0 else 0.0
                self.usage = TokenUsage(prompt, completion, cost=cost)
        match event:
            case {"choices": [{"delta": dict(delta), **choice}, *_]}:
                self.reason = str(choice.get("finish_reason") or self.reason)
                for call in delta.get("tool_calls") or ():
                    self._call(call)
                reasoning = delta.get("reasoning_content") or delta.get("reasoning")
                if reasoning and isinstance(reasoning, str):
                    yield Thought(reasoning)
                content = delta.get("content") or delta.get("refusal")
                if isinstance(content, str):
                    self.length += len(content)
                    yield from self._text(content)
        if self.reason in REACHED_LIMIT:
            self.usage = replace(self.usage or TokenUsage(), cut=True)

    def rest(self) -> str:
        """Text that was held back, for it began like a thought."""
        return "" if self._thinks else self._held

    def _text(self, piece: str) -> Iterator[str | Thought]:
        """Leading `<think>…</think>` taken apart from the text, however they are cut into pieces,
        and white space before the text left out."""
        held, self._held = self._held + piece, ""
        while held and not self.begun:
            if self._thinks:
                thought, closed, held = held.partition(CLOSED)
                if not closed:  # its last characters may begin the mark
                    at = max(0, len(thought) - len(CLOSED) + 1)
                    thought, self._held = thought[:at], thought[at:]
                if thought:
                    yield Thought(thought)
                self._thinks = not closed
                continue
            held = held.lstrip()
            if OPENED.startswith(held):
                self._held = held
                return
            self._thinks = held.startswith(OPENED)
            self.begun = not self._thinks
            held = held.removeprefix(OPENED)
        if held:
            yield held

    def _call(self, part: Any) -> None:
        """A call begins with its name; parts without one go on with the last."""
        function = part["function"]
        name, arguments = function.get("name"), function.get("arguments") or ""
        self.length += len(arguments)
        self.enough |= self.length > LONGEST_CALLS or bool(name and len(self.calls) == MOST_CALLS)
        if self.enough:
            return
        if name:
            self.calls.append(ToolCall(part.get("id") or f"call_{len(self.calls)}", name, ""))
        self.calls[-1] = replace(self.calls[-1], arguments=self.calls[-1].arguments + arguments)
