"""The record of a turn, which is stored, shown and continued: the last value of a turn.

Importing this is cheap, like `events`; `stored` reads and writes its row in the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from codeqa.chat.events import (
    Citation,
    Event,
    Failure,
    HitSummary,
    Retrieved,
    Step,
    ToolStep,
    as_json,
)
from codeqa.context.block import ContextBlock
from codeqa.text import has_tag, strip_tag
from codeqa.text.tokens import last_word
from codeqa.types import Chunk, StageTime, TokenUsage

BROKE_OFF = Failure(
    "The answer broke off.",
    "CodeQA was stopped while writing it. The text so far is saved.",
    "broke_off",
)
"""Stored as the error of an unfinished turn: it is true if the process dies."""

Values = Mapping[str, Any]
"""A JSON object."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RecordedHit(HitSummary):
    """A hit of the search."""

    unit_id: str = ""
    score: float = 0.0
    why: Sequence[str] = ()
    channels: Mapping[str, int] = field(default_factory=dict)
    """Channel name → 1-based rank in that channel."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of all requests for an answer; `cost` is in US dollars, 0 if it is unknown."""

    prompt: int = 0
    completion: int = 0
    estimated: bool = False
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """An answer of another conversation that was sent along."""

    question: str
    answer: str
    turn: str
    conversation: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message as it was sent to a model; in a record, None stands for the context block."""

    role: str
    parts: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A question with its answer, and how the answer was made.

    All fields but the first five are stored as JSON under their names; a field that an earlier
    version did not store has its default.
    """

    id: str = ""
    typed: str = ""
    """The question with its tag; strings that look like secrets are masked."""
    answer: str = ""
    created: float = 0.0
    """Seconds since the epoch."""
    parent: str = ""
    """Id of the turn before it; '' for the first."""

    mode: str = ""
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """The decider of the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    rules: Sequence[str] = ()
    """Names of the policy's rules that decided."""
    searched_automatically: bool = False
    searches: bool = False
    goes_on: bool = False
    """True if it goes on from the code of an earlier question."""
    left_out: str = ""
    """Why the code of earlier questions was left out; '' if it was not."""
    suggest_codebase: bool = False
    retrieval_info: Retrieved = field(default_factory=Retrieved)
    coverage: str = ""
    generator: str = ""
    """The model's name, `extractive` or `app`."""
    reply: str = ""
    """Kind of the app's own reply; '' for other answers."""
    model: str = ""
    host: str = ""
    effort: str = ""
    """`fast`, `normal` or `deep`; '' if nothing was searched."""
    reranker: str = ""
    hyde: str = ""
    """`off`, `one` or `two` drafts; '' if nothing was searched."""
    stages: Sequence[StageTime] = ()
    """Stages of the search."""
    hits: Sequence[RecordedHit] = ()
    """Hits of the search, best first."""
    notice: str = ""
    """Sentences on what the user should know."""
    cut: bool = False
    tokens: Tokens = Tokens()
    looked_up: Sequence[ToolStep] = ()
    """The model's tool calls, and its reasoning."""
    citations: Sequence[Citation] = ()
    earlier: Sequence[EarlierAnswer] = ()
    rewritten: str = ""
    """The query that was used instead of a follow-up which says too little alone."""
    suggestions: Sequence[str] = ()
    hook_problems: Sequence[str] = ()
    """Sentences on hooks that failed and were skipped."""
    steps: Sequence[Step] = ()
    finished: bool = True
    """True if the answer was neither stopped nor failed."""
    error: Failure | None = None
    """The error that ended it."""
    messages: Sequence[SentMessage] = ()
    asked: Sequence[str] = ()
    """Ends of the ids of the repositories, for a question to all of them."""
    chunks: tuple[Chunk, ...] = ()
    dropped: tuple[Chunk, ...] = ()
    """The chunks in the context block, and those that did not fit."""

    @property
    def question(self) -> str:
        """The question without its tag."""
        return strip_tag(self.typed)

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed)

    @property
    def block(self) -> ContextBlock:
        return ContextBlock(self.chunks, self.dropped)

    @property
    def sent(self) -> list[SentMessage]:
        """The messages as sent, but the block in today's form; none if no model was asked."""
        block, messages = self.block.text, []
        for message in self.messages:
            parts = [block if part is None else part for part in message.parts]
            messages.append(SentMessage(message.role, parts))
        return messages

    @property
    def found_names(self) -> tuple[str, ...]:
        """Names of the definitions that the search found.

        They are in the order in which the answer mentions them, or in the order of the hits if
        some were found along edges.
        """
        names = list(dict.fromkeys(hit.name for hit in self.hits if hit.name))
        if any("edges" in hit.channels for hit in self.hits):
            return tuple(names)
        return tuple(sorted(names, key=lambda name: place_of_name(name, self.answer)))

    def hits_as_json(self) -> list[dict[str, Any]]:
        """Return the hits as JSON; `sent` says whether a hit is among the sent chunks."""
        sent = {(chunk.unit_id, chunk.start_line) for chunk in self.chunks}
        without_unit = [chunk for chunk in self.chunks if not chunk.unit_id]
        rows = []
        for hit in self.hits:
            values = as_json(hit)
            del values["unit_id"]
            last_line = (hit.path, hit.end_line, hit.end_line)
            is_sent = (hit.unit_id, hit.start_line) in sent
            values["sent"] = is_sent or any(chunk.holds(*last_line) for chunk in without_unit)
            rows.append(values)
        return rows

    def hit_of(self, chunk: Chunk) -> RecordedHit | None:
        """Return the hit that `chunk` shows, whole or in part; None if it shows none."""
        start = (chunk.unit_id, chunk.start_line)
        return next((hit for hit in self.hits if (hit.unit_id, hit.start_line) == start), None)

    def public(self) -> dict[str, Any]:
        """Return the public fields as JSON, for programs and the page.

        They contain no code and no messages to a model, and no drafts, which are long.
        """
        private = ("hits", "messages", "asked", "chunks", "dropped")
        names = [field.name for field in fields(self) if field.name not in private]
        values = {name: as_json(getattr(self, name)) for name in names}
        for stage in values["stages"]:
            for name in stage.keys() - {"name", "milliseconds", "outcome"}:
                del stage[name]
        return values

    def page(self) -> dict[str, Any]:
        """Return the fields that the page gets of a stored turn."""
        values = self.public() | {"question": self.question, "tagged": self.tagged}
        for name in ("typed", "reply", "cut"):
            del values[name]
        return values


@dataclass(frozen=True, slots=True)
class Done(Event):
    """The end of a complete answer."""

    kind: ClassVar[str] = "done"
    record: TurnRecord
    turn: str = ""
    """Id of the stored turn; '' if it is not stored."""
    revised: str = ""
    """The answer as a hook changed it; '' if none did."""
    profile: Values = field(default_factory=dict)
    """Facts about the user in this message."""

    @property
    def data(self) -> dict[str, Any]:
        """All public fields as JSON."""
        values = self.record.public()
        for name in (*COLUMNS, "finished", "error"):
            del values[name]
        return values | {
            "query_tags": self.query_tags,
            "turn": self.turn,
            "revised": self.revised,
            "profile": dict(self.profile),
        }

    @property
    def query_tags(self) -> list[str]:
        return ["codebase"] if self.record.tagged else []

    def summary(self) -> dict[str, Any]:
        """Return the values that programs get at the end of a stream, as JSON."""
        names = ("intent", "confidence", "retrieval_info")
        values = {name: as_json(getattr(self.record, name)) for name in names}
        return values | {"query_tags": self.query_tags}

    def whole(self) -> dict[str, Any]:
        """Return the values that programs get with an answer in one piece, as JSON."""
        names = ("intent", "confidence", "retrieval_info", "citations", "notice")
        values = {name: as_json(getattr(self.record, name)) for name in names}
        return {"turn": self.turn} | values


COLUMNS = ("id", "typed", "answer", "created", "parent")
"""Fields that have their own column in the table of turns."""


# Read values that `as_json` wrote.

_EACH: Mapping[str, type[Any]] = {
    "stages": StageTime,
    "hits": RecordedHit,
    "looked_up": ToolStep,
    "citations": Citation,
    "earlier": EarlierAnswer,
    "steps": Step,
    "messages": SentMessage,
    "chunks": Chunk,
    "dropped": Chunk,
}
_ONE: Mapping[str, type[Any]] = {
    "retrieval_info": Retrieved,
    "tokens": Tokens,
    "error": Failure,
    "usage": TokenUsage,
}


def read_value(kind: type[Value], stored: Values) -> Value:
    """Return the `kind` that `as_json` wrote as `stored`.

    Fields that an earlier version did not write have their default. Raises TypeError for a field
    without one.
    """
    values: dict[str, Any] = {}
    for name in [part.name for part in fields(kind)]:  # type: ignore[arg-type]
        value = stored.get(name)
        if value is None or value == {}:
            continue
        if name in _ONE:
            value = read_value(_ONE[name], value)
        elif name in _EACH:
            value = tuple(read_values(_EACH[name], value))
        values[name] = value
    return kind(**values)


def read_values(kind: type[Value], stored: Iterable[Values]) -> Iterable[Value]:
    """Yield the values of a list, without those that an earlier version wrote in another form."""
    for values in stored:
        with suppress(TypeError, AttributeError):
            yield read_value(kind, values)


def read_done(values: Values) -> Done:
    """Return the event whose `data` a server sent."""
    record = read_value(TurnRecord, values)
    return Done(record, values["turn"], values["revised"], values["profile"])


def place_of_name(name: str, answer: str) -> int:
    """Return the position where `answer` first mentions the definition `name` as code, or its end.

    The last word of the name also counts, but `Flask.run` does not mention `Flask`.
    """
    for form in (name, last_word(name)):
        if match := re.search(rf"`{re.escape(form)}(?!\w|[.#]\w|::)", answer):
            return match.start()
    return len(answer)
