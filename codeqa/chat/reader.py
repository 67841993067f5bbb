"""The one writer of answers with a language model: it reads on until it can answer.

It is given what a search found, and answers from that or looks further first. Several looks at once
are a round, made beside each other. A look is a call of one of the agents' tools, or, where the
model's server takes none, a line that every model can write (`looks.py`). What looks show may be
cited as chunks may; one that fails costs a line, never the answer.
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
from codeqa.chat.messages import TOO_LONG, Reply, ask_model, build_messages, characters_left, shrink
from codeqa.chat.stream import RETRIES
from codeqa.chat.values import Gathered, Piece
from codeqa.code.tools import TOOLS, Toolbox, ToolResult
from codeqa.code.tools.search import edges_of
from codeqa.context.block import NO_CONTEXT, ContextBlock, chunk_id
from codeqa.errors import CodeQAError, ContextLengthError, ModelError, RateLimitError, UsageError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, ToolCall, Waiting
from codeqa.prompts import render_prompt
from codeqa.text import json_object
from codeqa.text.markdown import code_block, code_span
from codeqa.types import Chunk, Effort, encloses

ROUNDS: dict[Effort, int] = {"fast": 0, "normal": 3, "deep": 10}
"""Rounds of looks before the answer, at most."""
READING_SECONDS = 180.0
"""Time after which the next request has to answer."""
RESULTS_CHARACTERS = 60_000
"""Of what looks have shown; beyond it the oldest are shortened, never the question."""
MOST_LOOKS = 10
"""Looks of one round that are made; the others are not even sent back."""
TOO_MANY = f"Too many at once: only the first {MOST_LOOKS} of at least {{}} were made."
THREADS = 4
MISUSES = 2
"""Rounds with nothing but wrong or repeated looks, after which the model has to answer."""
ANSWER_NOW = "Answer the question now, from what you have seen; no more looks."
WITHOUT = "The model could not look further ({}); this is answered from what was found before."
SUMMARY = 120
ASKED_AGAIN = "What was found does not show this. What is missing: {}.\n"
KEPT_CHARACTERS = 400
"""What stays of a result that is shortened."""
SHORTENED = "[… shortened; look again for all of it]"
CALLS = "[CALLS]\nWhat the first of these call and are called by, each [path:line]:\n"
EDGES = 6
"""Definitions of which that is told."""
ALSO_FOUND = "[ALSO FOUND]\nNot shown above, the best first:\n"
ALSO_LISTED = 24
"""Places listed that did not fit: about 600 tokens."""

LEAST_ROOM = 4_000
"""Characters of results below which looking is not worth its calls."""

_REFUSING: set[tuple[str, str]] = set()
"""Models, by name and host, whose servers refused tools and took lines: they are offered these."""


@dataclass
class _Reading:
    """What one answer has come to so far."""

    messages: list[dict[str, Any]]
    chunks: list[Chunk]
    dropped: Sequence[Chunk]
    """What of the search did not fit."""
    rounds: int
    """How many there may be."""
    room: int
    """Characters of results that are sent."""
    by_lines: bool
    """Whether looks are written as lines."""
    done: int = 0
    """Rounds that were made."""
    misused: int = 0
    failures: int = 0
    may_restart: bool = False
    """A failed request may be begun anew, in another way."""
    answered: bool = False
    made: set[tuple[str, str]] = field(default_factory=set)
    results: list[dict[str, Any]] = field(default_factory=list)
    """Those of the messages that hold results."""

    def block(self) -> ContextBlock:
        left = (o for o in self.dropped if not any(encloses(one, o) for one in self.chunks))
        return ContextBlock(tuple(self.chunks), tuple(left))


@dataclass(frozen=True, slots=True)
class Reader:
    """Answers with `model`, which may look further for `rounds` rounds."""

    model: Model
    toolbox: Toolbox
    """What it looks with, and what its citations are checked against."""
    config_dir: Path | None = None
    rounds: int = 0
    room: int = RESULTS_CHARACTERS
    """Characters of results, where the model's window has so many."""
    tools: Sequence[str] = LOOK_TOOLS

    @property
    def name(self) -> str:
        return self.model.name

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Look further, round by round, and answer: with less code where the model's window cannot
        hold all, and once again with half of it where the model says that it was too long.

        A model that fails before anything is answered is asked once more: with looks as lines where
        it may be tools that it refuses, else from what was found so far. Raises ModelError, also
        after some text.
        """
        warning, rounds, model = "", self.rounds, (self.model.name, self.model.host)
        by_lines, halved = model in _REFUSING, False
        if asked.block.chunks:
            alone = build_messages(replace(asked, history=(), similar=()), self.config_dir)
            if (left := characters_left(alone, asked.window)) < 0:
                asked, warning = shrink(asked, len(asked.block.text) + left), TOO_LONG
        while True:
            messages = build_messages(asked, self.config_dir)
            reading = self._begin(messages, asked.block, asked.window, rounds, by_lines)
            reading.may_restart = True
            if reading.room >= LEAST_ROOM:
                messages[-1]["content"] += [*self._edges(asked), *_also_found(asked)]
                reading.room = min(self.room, characters_left(messages, asked.window))
            try:
                yield from self._read(reading, asked.cancelled, warning)
            except ModelError as error:
                if reading.answered or asked.cancelled():
                    raise
                too_long = isinstance(error, ContextLengthError) and not reading.done
                if too_long and not halved:
                    if (smaller := shrink(asked)) == asked:
                        raise
                    asked, warning, rounds, halved = smaller, TOO_LONG, 0, True
                elif isinstance(error, RateLimitError) or not reading.rounds:
                    raise
                elif not (by_lines or reading.done):
                    by_lines = True
                else:
                    warning, rounds = WITHOUT.format(error.message.rstrip(".")), 0
                    asked = replace(asked, block=reading.block())
            else:
                if by_lines and reading.rounds:
                    _REFUSING.add(model)
                return

    def follow(
        self, opening: Sequence[Mapping[str, Any]], window: int, cancelled: Cancelled
    ) -> Generator[Piece, None, None]:
        """Look further and answer as the messages `opening` ask, for a model that takes `window`
        tokens. Raises ModelError, also after some text."""
        messages, by_lines = [*map(dict, opening)], (self.model.name, self.model.host) in _REFUSING
        reading = self._begin(messages, NO_CONTEXT, window, self.rounds, by_lines)
        yield from self._read(reading, cancelled, "")

    def _begin(
        self,
        messages: list[dict[str, Any]],
        block: ContextBlock,
        window: int,
        rounds: int,
        by_lines: bool,
    ) -> _Reading:
        """Add the rules of looking to `messages`; no round where its results have no room."""
        room = min(self.room, characters_left(messages, window))
        if room < LEAST_ROOM:
            rounds = 0
        if rounds:
            name = "look_lines" if by_lines else "look"
            rules = render_prompt(name, self.config_dir, rounds=str(rounds))
            messages[0] = {**messages[0], "content": f"{messages[0]['content']}\n{rules}"}
        return _Reading(messages, list(block.chunks), block.dropped, rounds, room, by_lines)

    def _read(
        self, reading: _Reading, cancelled: Cancelled, warning: str
    ) -> Generator[Piece, None, None]:
        """Ask round by round until there is an answer."""
        until = time.monotonic() + READING_SECONDS
        tools = [
            {"type": "function", "function":
             {"name": name, "description": tool.description, "parameters": tool.schema()}}
            for name, tool in TOOLS.items() if name in self.tools
        ]  # fmt: skip
        while True:
            over = time.monotonic() > until or reading.misused >= MISUSES
            last = over or reading.done == reading.rounds
            if last and reading.done:
                reading.messages.append({"role": "user", "content": ANSWER_NOW})
            _shorten(reading.results, reading.room)
            lines = reading.by_lines and reading.rounds > 0
            request = ask_model(
                self.model, reading.messages, reading.block(), self.toolbox, cancelled,
                tools=() if last or lines else tools, by_lines=lines, warning=warning,
            )  # fmt: skip
            calls, text, said = yield from self._watched(request, reading)
            if not calls or cancelled():
                return
            if last:
                yield ASKED_AGAIN.format(code_span(" ".join(text.split())[:SUMMARY]))
                return
            yield from self._look(calls, text, "" if lines else " ".join(said.split()), reading)
            if cancelled():
                return

    def _watched(
        self, request: Generator[Piece, None, Reply], reading: _Reading
    ) -> Generator[Piece, None, Reply]:
        """Pass on what a request yields, and note whether there is text of an answer. Raises
        ModelError where it has failed so often that the next time has to be another request."""
        with closing(request):
            while True:
                try:
                    piece = next(request)
                except StopIteration as end:
                    asked: Reply = end.value
                    return asked
                reading.answered |= isinstance(piece, str) and bool(piece)
                yield piece
                if isinstance(piece, Waiting) and piece.begins and reading.rounds:
                    reading.failures += 1
                    # At once: by the end of the wait the next request may be under way.
                    limited = isinstance(piece.error, RateLimitError)
                    restarts = reading.may_restart and not (limited or reading.answered)
                    if reading.failures == RETRIES and restarts:
                        raise piece.error

    def _look(
        self, calls: Sequence[ToolCall], text: str, said: str, reading: _Reading
    ) -> Generator[Piece, None, None]:
        """Make `calls`, those of one round at the same time, and note what they give; the model has
        `said` something before them."""
        few = calls[:MOST_LOOKS]
        with ThreadPoolExecutor(THREADS) as threads:
            looks = list(threads.map(lambda call: self._call(call, reading), few))
        texts = [step.text for step, _ in looks]
        if len(calls) > MOST_LOOKS:
            texts[-1] += f"\n{TOO_MANY.format(len(calls))}"
        for number, (call, (step, result)) in enumerate(zip(few, looks, strict=True)):
            reading.made.add((call.name, call.arguments))
            if result is not None:
                reading.chunks += new_chunks(reading.chunks, result, call.name)
            yield step if number else replace(step, said=said)
        if reading.by_lines:
            own = {"role": "assistant", "content": text}
            results = [
                {"role": "user", "content": f"[LOOK {call.id}]\n{code_block(told)}"}
                for call, told in zip(few, texts, strict=True)
            ]
        else:
            own = _model_message(text, few)
            results = [
                {"role": "tool", "tool_call_id": call.id, "content": told}
                for call, told in zip(few, texts, strict=True)
            ]
        reading.messages += [own, *results]
        reading.results += results
        reading.done += 1
        reading.misused = 0 if any(not s.failed for s, _ in looks) else reading.misused + 1

    def _call(self, call: ToolCall, reading: _Reading) -> tuple[ToolStep, ToolResult | None]:
        started = time.perf_counter()

        def step(summary: str, text: str, failed: bool) -> ToolStep:
            took = 1000 * (time.perf_counter() - started)
            return ToolStep(call.name, call.arguments, summary, text, "", took, failed)

        given = json_object(call.arguments or "{}")
        try:
            if (call.name, call.arguments) in reading.made:
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

    def _edges(self, asked: Gathered) -> list[dict[str, str]]:
        """What the best definitions of the block call and are called by, by name and line, as a
        part of the message."""
        ids = dict.fromkeys(chunk.unit_id for chunk in asked.block.chunks if chunk.unit_id)
        with suppress(CodeQAError):  # the index may be gone by now
            tables = self.toolbox.tables()
            units = {unit.id: unit for unit in tables.by_ids([*ids])}
            best = [units[id_] for id_ in ids if id_ in units and units[id_].is_method][:EDGES]
            edges = ((unit.qualified_name, edges_of(tables, unit)) for unit in best)
            told = [f"{name}: {'. '.join(lines)}" for name, lines in edges if lines]
            return [{"type": "text", "text": CALLS + code_block("\n".join(told))}] if told else []
        return []


def _also_found(asked: Gathered) -> list[dict[str, str]]:
    """What the search found besides, by place and name, as a part of the message."""
    shown = asked.block.chunks
    others = [one for one in asked.block.dropped if not any(encloses(one, c) for c in shown)]
    listed = [f"{one.place} {one.name}".rstrip() for one in others[:ALSO_LISTED]]
    text = ALSO_FOUND + code_block("\n".join(listed))
    return [{"type": "text", "text": text}] if listed else []


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


def _shorten(results: Sequence[dict[str, Any]], room: int) -> None:
    """Cut the oldest results until all of them have at most `room` characters; the latest stays
    whole."""
    size = sum(len(one["content"]) for one in results)
    for one in results[:-1]:
        if size <= room:
            return
        if len(one["content"]) > KEPT_CHARACTERS + len(SHORTENED):
            size -= len(one["content"])
            one["content"] = f"{one['content'][:KEPT_CHARACTERS]}\n{SHORTENED}"
            size += len(one["content"])


def _model_message(text: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The model's own message, as it is sent back to it."""
    made = []
    for call in calls:
        # Servers read the arguments again, and refuse what is no JSON.
        arguments = call.arguments if json_object(call.arguments) else "{}"
        function = {"name": call.name, "arguments": arguments}
        made.append({"id": call.id, "type": "function", "function": function})
    return {"role": "assistant", "content": text, "tool_calls": made}
