"""The responder with a language model, which may look further before it answers.

It gets the results of a search, and answers or makes looks first. The looks of one message are a
round and run at the same time. A look is a call of one of the agents' tools, or, if the model's
server supports none, a line of text that every model can write (`looks.py`). Results of looks may
be cited like chunks. A look that fails costs a line, never the answer.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeqa.chat.events import ToolStep
from codeqa.chat.looks import LOOK_TOOLS
from codeqa.chat.messages import (
    ALONE,
    TOO_LONG,
    Reply,
    ask_model,
    build_messages,
    characters_left,
    shrink,
)
from codeqa.chat.stream import RETRIES
from codeqa.chat.values import AnswerPiece, Gathered
from codeqa.code.tools import TOOLS, Toolbox, ToolResult
from codeqa.code.tools.search import edges_of
from codeqa.context.block import NO_CONTEXT, ContextBlock, chunk_id
from codeqa.errors import CodeQAError, ContextLengthError, ModelError, RateLimitError, UsageError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, RetryWait, ToolCall
from codeqa.prompts import render_prompt
from codeqa.text import json_object
from codeqa.text.markdown import code_block, code_span
from codeqa.types import Chunk, Effort, encloses

ROUNDS: dict[Effort, int] = {"fast": 0, "normal": 3, "deep": 10}
"""Most rounds of looks before the answer."""
READING_SECONDS = 180.0
"""Seconds of looking after which the model has to answer."""
RESULTS_CHARACTERS = 60_000
"""Most characters of the results of looks; beyond that the oldest are shortened."""
MOST_LOOKS = 10
"""Most looks of one round; further calls are dropped, and left out of the messages sent back."""
TOO_MANY = f"Too many at once: only the first {MOST_LOOKS} of at least {{}} were made."
LOOK_THREADS = 4
MOST_MISUSES = 2
"""Rounds with only wrong or repeated looks after which the model has to answer."""
ANSWER_NOW = "Answer the question now, from what you have seen; no more looks."
NO_LOOKS = "The model could not look further ({}), so the answer uses only the code found before."
MOST_HALVED = 2
"""Refusals of a request as too long after which less code is sent."""
NO_TOOLS = "The model was asked again without tools ({})."
SUMMARY_CHARACTERS = 120
ASKED_AGAIN = "The code found so far does not answer this. The model wanted to look at: {}.\n"
KEPT_CHARACTERS = 400
"""Characters that stay of a shortened result."""
SHORTENED_RESULT = "[… shortened; look again for all of it]"
CALLS_HEADER = "[CALLS]\nWhat the first of these call and are called by, each [path:line]:\n"
CALLS_LISTED = 6
"""Definitions whose calls are listed."""
ALSO_FOUND = "[ALSO FOUND]\nNot shown above, the best first:\n"
ALSO_LISTED = 24
"""Hits listed that did not fit: about 600 tokens."""

LEAST_ROOM = 4_000
"""Characters of room for results below which looking is not worth its calls."""


@dataclass
class _ReaderState:
    """The state of one answer."""

    messages: list[dict[str, Any]]
    chunks: list[Chunk]
    dropped: Sequence[Chunk]
    """Chunks of the search that did not fit."""
    rounds: int
    """Most rounds of looks."""
    room: int
    """Most characters of results that are sent."""
    by_lines: bool
    """True if the model writes looks as lines of text."""
    done: int = 0
    """Number of rounds so far."""
    misused: int = 0
    failures: int = 0
    may_restart: bool = False
    """True if a failed request may be repeated in another form."""
    answered: bool = False
    made: set[tuple[str, str]] = field(default_factory=set)
    results: list[dict[str, Any]] = field(default_factory=list)
    """The messages with results of looks."""

    def block(self) -> ContextBlock:
        """Return the context block with the code that looks have shown."""
        return ContextBlock(tuple(self.chunks), tuple(_not_in(self.dropped, self.chunks)))


@dataclass(frozen=True, slots=True)
class Reader:
    """A responder with `model`, which may look further for `rounds` rounds."""

    model: Model
    toolbox: Toolbox
    """The tools for looks, and the index against which citations are checked."""
    config_dir: Path | None = None
    rounds: int = 0
    room: int = RESULTS_CHARACTERS
    """Most characters of results, if the model's window is large enough."""
    tools: Sequence[str] = LOOK_TOOLS

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def generate(self, gathered: Gathered) -> Generator[AnswerPiece, None, None]:
        """Look further, round by round, and answer.

        Code that does not fit into the model's window is left out. If the model fails before the
        answer begins, it is asked once more: with half of the code if the request was too long,
        with looks as lines if it may have refused tools, or without further looks. Raises
        ModelError, maybe after some text.
        """
        attempt = self._first_attempt(gathered)
        while True:
            gathered = attempt.gathered
            messages = build_messages(gathered, self.config_dir)
            reading = self._begin(
                messages, gathered.block, gathered.window, attempt.rounds, attempt.by_lines
            )
            reading.may_restart = True
            if reading.room >= LEAST_ROOM:
                messages[-1]["content"] += self._edges(gathered) + _also_found(gathered)
                reading.room = min(self.room, characters_left(messages, gathered.window))
            try:
                yield from self._read(reading, gathered.cancelled, attempt.warning)
            except ModelError as error:
                if reading.answered or gathered.cancelled():
                    raise
                attempt = _next_attempt(attempt, reading, error)
            else:
                if attempt.by_lines and reading.rounds:
                    self.model.note_refused_tools()
                return

    def _first_attempt(self, gathered: Gathered) -> _Attempt:
        """Return the first attempt, with less code if the model's window cannot hold all."""
        by_lines = self.model.refuses_tools
        if gathered.block.chunks:
            alone = build_messages(replace(gathered, history=(), similar=()), self.config_dir)
            room = characters_left(alone, gathered.window)
            if room < 0:
                smaller = shrink(gathered, len(gathered.block.text) + room)
                return _Attempt(smaller, self.rounds, by_lines, _left_out(gathered, smaller))
        return _Attempt(gathered, self.rounds, by_lines)

    def follow(
        self, opening: Sequence[Mapping[str, Any]], window: int, cancelled: Cancelled
    ) -> Generator[AnswerPiece, None, None]:
        """Look further and answer the messages `opening`, with a window of `window` tokens.

        Raises ModelError, maybe after some text.
        """
        messages = [dict(message) for message in opening]
        reading = self._begin(messages, NO_CONTEXT, window, self.rounds, self.model.refuses_tools)
        yield from self._read(reading, cancelled, "")

    def _begin(
        self,
        messages: list[dict[str, Any]],
        block: ContextBlock,
        window: int,
        rounds: int,
        by_lines: bool,
    ) -> _ReaderState:
        """Add the rules for looks to `messages`, unless their results have no room."""
        room = min(self.room, characters_left(messages, window))
        if room < LEAST_ROOM:
            rounds = 0
        if rounds:
            name = "look_lines" if by_lines else "look"
            rules = render_prompt(name, self.config_dir, rounds=str(rounds))
            messages[0] = {**messages[0], "content": f"{messages[0]['content']}\n{rules}"}
        return _ReaderState(messages, list(block.chunks), block.dropped, rounds, room, by_lines)

    def _read(
        self, reading: _ReaderState, cancelled: Cancelled, warning: str
    ) -> Generator[AnswerPiece, None, None]:
        """Send requests, round by round, until the model answers."""
        until = time.monotonic() + READING_SECONDS
        tools = [
            {"type": "function", "function":
             {"name": name, "description": tool.description, "parameters": tool.schema()}}
            for name, tool in TOOLS.items() if name in self.tools
        ]  # fmt: skip
        signatures = {name: list(TOOLS[name].arguments.model_fields) for name in self.tools}
        while True:
            is_over = time.monotonic() > until or reading.misused >= MOST_MISUSES
            is_last = is_over or reading.done == reading.rounds
            if is_last and reading.done:
                reading.messages.append({"role": "user", "content": ANSWER_NOW})
            _shorten(reading.results, reading.room)
            by_lines = reading.by_lines and reading.rounds > 0
            request = ask_model(
                self.model, reading.messages, reading.block(), self.toolbox, cancelled,
                signatures=signatures, tools=() if is_last or by_lines else tools,
                by_lines=by_lines, warning=warning,
            )  # fmt: skip
            calls, text, remark = yield from self._watched(request, reading)
            if not calls or cancelled():
                return
            if by_lines or is_last:  # a message needs a text
                text = text or " ".join(f"{call.name} {call.arguments}" for call in calls)
            if is_last:
                yield ASKED_AGAIN.format(code_span(" ".join(text.split())[:SUMMARY_CHARACTERS]))
                return
            remark = "" if by_lines else " ".join(remark.split())
            yield from self._look(calls, text, remark, reading)
            if cancelled():
                return

    def _watched(
        self, request: Generator[AnswerPiece, None, Reply], reading: _ReaderState
    ) -> Generator[AnswerPiece, None, Reply]:
        """Yield the pieces of a request, and note whether the answer has begun.

        Raises ModelError when the request has failed so often that it should change its form.
        """
        with closing(request):
            while True:
                try:
                    piece = next(request)
                except StopIteration as end:
                    reply: Reply = end.value
                    return reply
                reading.answered |= isinstance(piece, str) and bool(piece)
                yield piece
                if isinstance(piece, RetryWait) and piece.begins and reading.rounds:
                    reading.failures += 1
                    # Not after the wait: by then the next request may have begun.
                    limited = isinstance(piece.error, RateLimitError)
                    restarts = reading.may_restart and not (limited or reading.answered)
                    if reading.failures == RETRIES and restarts:
                        raise piece.error

    def _look(
        self, calls: Sequence[ToolCall], text: str, remark: str, reading: _ReaderState
    ) -> Generator[AnswerPiece, None, None]:
        """Make the looks of a round at the same time, and add their results to the messages.

        `text` is the whole message of the model, `remark` its words before the calls.
        """
        first_calls = calls[:MOST_LOOKS]
        with ThreadPoolExecutor(LOOK_THREADS) as threads:
            looks = list(threads.map(lambda call: self._call(call, reading), first_calls))
        texts = [step.text for step, _ in looks]
        if len(calls) > MOST_LOOKS:
            texts[-1] += f"\n{TOO_MANY.format(len(calls))}"
        for number, (call, (step, result)) in enumerate(zip(first_calls, looks, strict=True)):
            reading.made.add((call.name, call.arguments))
            if result is not None:
                reading.chunks += new_chunks(reading.chunks, result, call.name)
            yield step if number else replace(step, said=remark)
        own_message: dict[str, Any] = {"role": "assistant", "content": text}
        if not reading.by_lines:
            own_message = _model_message(text, first_calls)
        results: list[dict[str, Any]] = []
        for call, result_text in zip(first_calls, texts, strict=True):
            if reading.by_lines:
                content = f"[LOOK {call.id}]\n{code_block(result_text)}"
                results.append({"role": "user", "content": content})
            else:
                results.append({"role": "tool", "tool_call_id": call.id, "content": result_text})
        reading.messages += [own_message] + results
        reading.results += results
        reading.done += 1
        reading.misused = reading.misused + 1 if all(step.failed for step, _ in looks) else 0

    def _call(self, call: ToolCall, reading: _ReaderState) -> tuple[ToolStep, ToolResult | None]:
        started = time.perf_counter()

        def step(summary: str, text: str, failed: bool) -> ToolStep:
            took = 1000 * (time.perf_counter() - started)
            return ToolStep(call.name, call.arguments, summary, text, "", took, failed)

        arguments = json_object(call.arguments or "{}")
        try:
            if (call.name, call.arguments) in reading.made:
                raise UsageError("Called before with the same arguments.", "See its result above.")
            if call.name not in self.tools:
                advice = f"Use one of these: {', '.join(self.tools)}."
                raise UsageError(f"There is no tool {call.name!r}.", advice)
            if arguments is None:
                raise UsageError("The arguments are not a JSON object.")
            result = TOOLS[call.name].call(self.toolbox, arguments)
        except CodeQAError as error:
            return step(f"{call.name}: {error.message}", str(error), True), None
        return step(result.summary, result.text, False), result

    def _edges(self, gathered: Gathered) -> list[dict[str, str]]:
        """Return the callers and callees of the best methods in the block, as a message part."""
        ids = dict.fromkeys(chunk.unit_id for chunk in gathered.block.chunks if chunk.unit_id)
        with suppress(CodeQAError):  # the index may have been removed meanwhile
            tables = self.toolbox.tables()
            units = {unit.id: unit for unit in tables.by_ids(list(ids))}
            methods = [units[id_] for id_ in ids if id_ in units and units[id_].is_method]
            listed = methods[:CALLS_LISTED]
            edges = [(unit.qualified_name, edges_of(tables, unit)) for unit in listed]
            lines = [f"{name}: {'. '.join(parts)}" for name, parts in edges if parts]
            if lines:
                return [{"type": "text", "text": CALLS_HEADER + code_block("\n".join(lines))}]
        return []


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One way to ask a model; after a failure there may be another."""

    gathered: Gathered
    rounds: int
    by_lines: bool
    warning: str = ""
    halved: int = 0
    """How often half of the code was left out."""


def _next_attempt(attempt: _Attempt, reading: _ReaderState, error: ModelError) -> _Attempt:
    """Return how to ask the model after `error`, or raise that."""
    is_too_long = isinstance(error, ContextLengthError) and not reading.done
    if is_too_long and attempt.halved < MOST_HALVED:
        smaller = shrink(attempt.gathered)
        if smaller == attempt.gathered:
            raise error
        warning = attempt.warning or _left_out(attempt.gathered, smaller)
        return _Attempt(smaller, 0, attempt.by_lines, warning, attempt.halved + 1)
    if isinstance(error, RateLimitError) or not reading.rounds:
        raise error
    if not attempt.by_lines and not reading.done:
        warning = f"{attempt.warning} {NO_TOOLS.format(error.message.rstrip('.'))}".strip()
        return replace(attempt, by_lines=True, warning=warning)
    warning = f"{attempt.warning} {NO_LOOKS.format(error.message.rstrip('.'))}".strip()
    gathered = replace(attempt.gathered, block=reading.block())
    return replace(attempt, gathered=gathered, rounds=0, warning=warning)


def _left_out(whole: Gathered, smaller: Gathered) -> str:
    return ALONE if smaller.block is whole.block else TOO_LONG


def _also_found(gathered: Gathered) -> list[dict[str, str]]:
    """Return further hits of the search by span and name, as a message part."""
    others = _not_in(gathered.block.dropped, gathered.block.chunks)
    if not others:
        return []
    lines = [f"{chunk.span} {chunk.name}".rstrip() for chunk in others[:ALSO_LISTED]]
    return [{"type": "text", "text": ALSO_FOUND + code_block("\n".join(lines))}]


def _not_in(chunks: Sequence[Chunk], others: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks whose lines are not a part of one of the others."""
    return [chunk for chunk in chunks if not any(encloses(other, chunk) for other in others)]


def new_chunks(chunks: Sequence[Chunk], result: ToolResult, tool: str) -> list[Chunk]:
    """Return the spans of `result` with text that is in none of `chunks`, as chunks."""
    added: list[Chunk] = []
    for hit in result.places:
        span = (hit.path, hit.start_line, hit.end_line)
        if not hit.text or hit.note.startswith("at "):
            continue
        if any(chunk.holds(*span) for chunk in (*chunks, *added)):
            continue
        id_ = chunk_id(hit.path, hit.location, hit.text)
        chunk = Chunk(id_, *span, hit.language, hit.text, why=f"found by {tool}")
        added.append(replace(chunk, name=hit.name, kind=hit.kind))
    return added


def _shorten(results: Sequence[dict[str, Any]], room: int) -> None:
    """Cut the oldest results until all have at most `room` characters; the latest stays whole."""
    size = sum(len(message["content"]) for message in results)
    for message in results[:-1]:
        if size <= room:
            return
        text = message["content"]
        if len(text) > KEPT_CHARACTERS + len(SHORTENED_RESULT):
            message["content"] = f"{text[:KEPT_CHARACTERS]}\n{SHORTENED_RESULT}"
            size += len(message["content"]) - len(text)


def _model_message(text: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    """Return the model's message with its tool calls, as it is sent back to it."""
    tool_calls = []
    for call in calls:
        # Servers parse the arguments again, and refuse invalid JSON.
        arguments = call.arguments if json_object(call.arguments) else "{}"
        function = {"name": call.name, "arguments": arguments}
        tool_calls.append({"id": call.id, "type": "function", "function": function})
    return {"role": "assistant", "content": text, "tool_calls": tool_calls}
