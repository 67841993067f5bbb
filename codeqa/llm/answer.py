"""Collect the answer of a model from the events of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codeqa.llm.call_parts import CallParts
from codeqa.llm.values import Reasoning, ToolCall
from codeqa.types import TokenUsage

OPENED, CLOSED = "<think>", "</think>"
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop by themselves."""
MOST_CALLS, LONGEST_CALLS = 32, 100_000
"""Tool calls that are collected, and the characters of an answer up to which they are."""
REACHED_LIMIT = ("length", "max_tokens")
"""`finish_reason` of an answer that became too long."""
ENDED_EARLY = {
    "content_filter": ": the provider's filter ended it",
    "error": ": the provider ended it with an error",
}
"""`finish_reason` of an answer that is not whole → why, as the end of a sentence."""


class AnswerReader:
    """Collects the events of one answer."""

    def __init__(self) -> None:
        self.reason = ""  # why the model finished
        self.length = 0  # characters that came
        self.begun = False  # whether text came; thoughts do not count
        self.parts = CallParts()
        self.usage: TokenUsage | None = None
        self.enough = False  # of tool calls: some models never stop by themselves
        self._thinks = False
        self._withheld = ""

    def take(self, event: Any) -> Iterator[str | Reasoning]:
        """Yield the text and the thoughts that an event adds; nothing for an unknown event."""
        match event:
            case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
                cost = event["usage"].get("cost")  # of OpenRouter
                cost = float(cost) if isinstance(cost, int | float) and cost > 0 else 0.0
                self.usage = TokenUsage(prompt, completion, cost=cost)
        match event:
            case {"choices": [{"delta": dict(delta), **choice}, *_]}:
                self.reason = str(choice.get("finish_reason") or self.reason)
                for call in delta.get("tool_calls") or ():
                    self._call(call)
                if function := delta.get("function_call"):  # as of 2023
                    self._call({"function": function})
                reasoning = delta.get("reasoning_content") or delta.get("reasoning")
                if reasoning and isinstance(reasoning, str):
                    yield Reasoning(reasoning)
                content = delta.get("content") or delta.get("refusal")
                if isinstance(content, str):
                    self.length += len(content)
                    yield from self._text(content)
        if self.reason in REACHED_LIMIT:
            self.usage = replace(self.usage or TokenUsage(), cut=True)

    @property
    def calls(self) -> list[ToolCall]:
        """The first tool calls."""
        return self.parts.calls[:MOST_CALLS]

    def rest(self) -> str:
        """Return text that was withheld because it began like a thought."""
        return "" if self._thinks else self._withheld

    def _text(self, piece: str) -> Iterator[str | Reasoning]:
        """Separate leading `<think>…</think>` from the text, wherever the pieces are cut."""
        text, self._withheld = self._withheld + piece, ""
        while text and not self.begun:
            if self._thinks:
                thought, closed, text = text.partition(CLOSED)
                if not closed:  # its last characters may begin the mark
                    at = max(0, len(thought) - len(CLOSED) + 1)
                    thought, self._withheld = thought[:at], thought[at:]
                if thought:
                    yield Reasoning(thought)
                self._thinks = not closed
                continue
            text = text.lstrip()
            if OPENED.startswith(text):
                self._withheld = text
                return
            self._thinks = text.startswith(OPENED)
            self.begun = not self._thinks
            text = text.removeprefix(OPENED)
        if text:
            yield text

    def _call(self, part: Any) -> None:
        """Add a part of a tool call."""
        if not self.enough:
            self.length += self.parts.add(part)
            self.enough = self.length > LONGEST_CALLS or len(self.parts) > MOST_CALLS
