"""Collect the answer of a model from the events of its stream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codeqa.llm.call_parts import CallParts
from codeqa.llm.dialects import DIALECTS
from codeqa.llm.thoughts import TextReader
from codeqa.llm.values import Reasoning, ToolCall
from codeqa.types import TokenUsage

LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop by themselves."""
MOST_CALLS, LONGEST_CALLS = 32, 100_000
"""Tool calls that are collected, and the characters of an answer up to which they are."""
ENDED_EARLY = {
    **dict.fromkeys(DIALECTS["filtered"], ": the provider's filter ended it"),
    **dict.fromkeys(DIALECTS["failed"], ": the provider ended it with an error"),
}
"""`finish_reason` of an answer that is not whole → why, as the end of a sentence."""
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class AnswerReader:
    """Collects the events of one answer."""

    def __init__(self, with_tools: bool = True) -> None:
        self._with_tools = with_tools  # else calls are left out
        self.reason = ""  # why the model finished
        self.length = 0  # characters that came
        self.parts = CallParts()
        self.usage: TokenUsage | None = None
        self.enough = False  # of tool calls: some models never stop by themselves
        self.came = False  # whether a part of an answer came, maybe an empty one
        self.thought = False  # whether reasoning came
        self._text = TextReader()
        self._half = ""  # of a character

    @property
    def begun(self) -> bool:
        """Return whether text came; thoughts do not count."""
        return self._text.begun

    def take(self, event: Any) -> Iterator[str | Reasoning]:
        """Yield the text and the thoughts that an event adds; nothing for an unknown event."""
        self.came |= isinstance(event, dict) and "choices" in event
        match event:
            case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
                cost = event["usage"].get("cost")  # of OpenRouter
                cost = float(cost) if isinstance(cost, int | float) and cost > 0 else 0.0
                self.usage = TokenUsage(prompt, completion, cost=cost)
        match event:
            case {"choices": [dict(choice), *_]}:
                for piece in self._take_choice(choice):
                    self.thought |= isinstance(piece, Reasoning)
                    yield piece
        if self.reason in DIALECTS["too_long"]:
            self.usage = replace(self.usage or TokenUsage(), cut=True)

    @property
    def calls(self) -> list[ToolCall]:
        """The first tool calls."""
        return self.parts.calls[:MOST_CALLS]

    def rest(self) -> str:
        """Return text that was withheld because it began like a thought."""
        return self._text.rest()

    def _take_choice(self, choice: Mapping[str, Any]) -> Iterator[str | Reasoning]:
        """Yield what a choice adds: a part of the answer, or all of it as a `message`."""
        whole = choice.get("message")
        reason = choice.get("finish_reason") or self.reason or (whole and "stop") or ""
        self.reason = str(reason).lower()
        delta = choice.get("delta") or whole or {"content": choice.get("text")}
        if not isinstance(delta, dict):
            return
        for call in delta.get("tool_calls") or ():
            self._call(call)
        if function := delta.get("function_call"):  # as of 2023
            self._call({"function": function})
        if reasoning := next(
            filter(None, (_words(delta.get(name)) for name in DIALECTS["reasoning"])), ""
        ):
            yield Reasoning(reasoning)
        content = delta.get("content") or delta.get("refusal")
        for part in content if isinstance(content, list) else [content]:
            words = _words(part)
            if _is_reasoning(part) and words:
                yield Reasoning(words)
            elif words:
                self.length += len(words)
                yield from self._text.take(self._whole_characters(words))

    def _whole_characters(self, text: str) -> str:
        """Return `text` with characters whose halves came in two pieces."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _SURROGATES.sub(
            lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
        )

    def _call(self, part: Any) -> None:
        """Add a part of a tool call."""
        if self._with_tools and not self.enough:
            self.length += self.parts.add(part)
            self.enough = self.length > LONGEST_CALLS or len(self.parts) > MOST_CALLS


def _is_reasoning(part: Any) -> bool:
    """Return whether a part of a content is reasoning."""
    return isinstance(part, dict) and bool(
        {"thinking", "reasoning"} & set(part) or re.search("think|reason", str(part.get("type")))
    )


def _words(content: Any) -> str:
    """Return the text of a content or of its parts, which may have parts."""
    words, rest = list[str](), [content]
    while rest:
        match rest.pop():
            case str(text):
                words.append(text)
            case [*parts]:
                rest += reversed(parts)
            case dict(part):
                rest.append(next(filter(None, map(part.get, DIALECTS["contents"])), None))
    return "".join(words)
