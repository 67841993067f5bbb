"""Answers in several steps: the model reads on with tools until it knows enough, within bounds.

It starts from the context that a search has found, so that one step often suffices. What its tools
show it may be cited as chunks may. A model that calls them wrongly is told so once, and then has to
answer; one that takes no tools, or fails, answers from what the search found.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from codeqa.chat.messages import ModelGenerator, ask_model, build_messages
from codeqa.chat.stream import RETRIES
from codeqa.chat.values import Gathered, ModelRequest, Piece, ToolStep
from codeqa.code.tools import TOOLS, ToolResult
from codeqa.context import ContextBlock, chunk_id
from codeqa.errors import CodeQAError, ModelError, RateLimitError, UsageError
from codeqa.llm.client import ToolCall, Waiting
from codeqa.prompts import render_prompt
from codeqa.text import json_object
from codeqa.types import Chunk

MOST_STEPS = 12
"""Requests to the model, the last of which has to answer."""
AGENT_SECONDS = 180.0
"""Time after which the next request has to answer."""
RESULTS_CHARACTERS = 60_000
"""Of what tools have shown; beyond it the oldest are shortened, never the question."""
MOST_CALLS = 8
"""Calls of one step that are made; the others are not even sent back."""
TOO_MANY = f"Too many calls at once: only the first {MOST_CALLS} of at least {{}} were made."
THREADS = 4
MISUSES = 2
"""Steps with nothing but wrong or repeated calls, after which the model has to answer."""
ANSWER_NOW = "Answer the question now, from what you have found; no more tools."
WITHOUT = "The model could not look further ({}); this is answered from what the search found."
KEPT_CHARACTERS = 400
"""What stays of a result that is shortened."""
SHORTENED = "[… shortened; call it again for all of it]"


@dataclass
class _Work:
    """What one answer has come to so far."""

    messages: list[dict[str, Any]]
    chunks: list[Chunk]
    made: set[tuple[str, str]] = field(default_factory=set)
    misused: int = 0

    def block(self) -> ContextBlock:
        return ContextBlock(tuple(self.chunks))


@dataclass(frozen=True, slots=True)
class AgentGenerator(ModelGenerator):
    """Lets `model` call the tools of `toolbox` before it answers."""

    room: int = RESULTS_CHARACTERS
    """Characters of results for this model's window."""
    tools: Sequence[str] = tuple(TOOLS)
    opening: Sequence[Mapping[str, Any]] = ()
    """The messages that it begins with, instead of those of a question."""

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Look further, step by step, and answer; without tools where the model fails before
        anything was answered. Raises ModelError, also after some text."""
        messages = [dict(one) for one in self.opening] or build_messages(asked, self.config_dir)
        rules = render_prompt("agent", self.config_dir, steps=str(MOST_STEPS))
        messages[0] = {**messages[0], "content": f"{messages[0]['content']}\n{rules}"}
        work, answered, failures = _Work(messages, list(asked.block.chunks)), False, 0
        try:
            with closing(self._steps(asked, work)) as pieces:
                for piece in pieces:
                    answered |= isinstance(piece, str) and bool(piece)
                    yield piece
                    if isinstance(piece, Waiting) and piece.begins:
                        failures += 1
                        # The last time it is asked without tools, which it may fail for, and at
                        # once: by the end of the wait the next request may be under way.
                        limited = isinstance(piece.error, RateLimitError)
                        if failures == RETRIES and not (limited or answered or self.opening):
                            raise piece.error
        except ModelError as error:
            # What was not opened by a question has no plain answer, nor has a busy provider.
            given_up = isinstance(error, RateLimitError)
            if answered or asked.cancelled() or self.opening or given_up:
                raise
            warning = WITHOUT.format(error.message.rstrip("."))
            for piece in ModelGenerator.generate(self, replace(asked, block=work.block())):
                if isinstance(piece, ModelRequest) and not piece.warning:
                    piece = replace(piece, warning=warning)
                yield piece

    def _steps(self, asked: Gathered, work: _Work) -> Generator[Piece, None, None]:
        until = time.monotonic() + AGENT_SECONDS
        declared = [
            {"name": name, "description": tool.description, "parameters": tool.schema()}
            for name, tool in TOOLS.items()
            if name in self.tools
        ]
        for step in range(MOST_STEPS):
            last = step + 1 == MOST_STEPS or time.monotonic() > until or work.misused >= MISUSES
            if last:
                work.messages.append({"role": "user", "content": ANSWER_NOW})
            shorten(work.messages, self.room)
            tools = [{"type": "function", "function": one} for one in declared if not last]
            calls, text, said = yield from ask_model(
                self.model, work.messages, work.block(), self.toolbox, asked.cancelled, tools=tools
            )
            if not calls or asked.cancelled():
                return
            work.messages.append(model_message(text, calls[:MOST_CALLS]))
            yield from self._make(calls, " ".join(said.split()), work)
            if asked.cancelled():
                return

    def _make(
        self, calls: Sequence[ToolCall], said: str, work: _Work
    ) -> Generator[Piece, None, None]:
        """Make `calls`, those of one step at the same time, and note what they give; the model has
        `said` something before them."""
        few = calls[:MOST_CALLS]
        with ThreadPoolExecutor(THREADS) as threads:
            results = list(threads.map(lambda call: self._call(call, work), few))
        for number, (call, (step, result)) in enumerate(zip(few, results, strict=True)):
            work.made.add((call.name, call.arguments))
            if result is not None:
                work.chunks += new_chunks(work.chunks, result, call.name)
            told = {"role": "tool", "tool_call_id": call.id, "content": step.text}
            work.messages.append(told)
            yield step if number else replace(step, said=said)
        if len(calls) > MOST_CALLS:
            work.messages[-1]["content"] += f"\n{TOO_MANY.format(len(calls))}"
        useful = any(not step.failed for step, _ in results)
        work.misused = 0 if useful else work.misused + 1

    def _call(self, call: ToolCall, work: _Work) -> tuple[ToolStep, ToolResult | None]:
        started = time.perf_counter()

        def step(summary: str, text: str, failed: bool) -> ToolStep:
            took = 1000 * (time.perf_counter() - started)
            return ToolStep(call.name, call.arguments, summary, text, "", took, failed)

        given = json_object(call.arguments or "{}")
        try:
            if (call.name, call.arguments) in work.made:
                raise UsageError("Called before with the same arguments.", "See its result above.")
            if call.name not in self.tools:
                there = f"There are: {', '.join(self.tools)}."
                raise UsageError(f"There is no tool {call.name!r}.", there)
            if given is None:
                raise UsageError("The arguments are not a JSON object.")
            result = TOOLS[call.name].call(self.toolbox, given)
        except CodeQAError as error:
            return step(f"{call.name}: {error.message}", str(error), True), None
        return step(result.summary, result.text, False), result


def new_chunks(known: Sequence[Chunk], result: ToolResult, tool: str) -> list[Chunk]:
    """The places with text of `result` that lie in no chunk that is known, as chunks."""
    found: list[Chunk] = []
    for place in result.places:
        lines = (place.path, place.start_line, place.end_line)
        if not place.text or place.note.startswith("at "):
            continue
        if any(one.holds(*lines) for one in (*known, *found)):
            continue
        id_ = chunk_id(place.path, place.location, place.text)
        chunk = Chunk(id_, *lines, place.language, place.text, why=f"found by {tool}")
        found.append(replace(chunk, name=place.name, kind=place.kind))
    return found


def shorten(messages: list[dict[str, Any]], room: int) -> None:
    """Cut the oldest results of tools until all of them have at most `room` characters; the
    latest stays whole."""
    results = [one for one in messages if one["role"] == "tool"]
    size = sum(len(one["content"]) for one in results)
    for one in results[:-1]:
        if size <= room:
            return
        if len(one["content"]) > KEPT_CHARACTERS + len(SHORTENED):
            size -= len(one["content"])
            one["content"] = f"{one['content'][:KEPT_CHARACTERS]}\n{SHORTENED}"
            size += len(one["content"])


def model_message(text: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The model's own message, as it is sent back to it."""
    made = []
    for call in calls:
        # Servers read the arguments again, and refuse what is no JSON.
        arguments = call.arguments if json_object(call.arguments) else "{}"
        function = {"name": call.name, "arguments": arguments}
        made.append({"id": call.id, "type": "function", "function": function})
    return {"role": "assistant", "content": text, "tool_calls": made}
