"""The record of a turn: what is stored, shown and continued; the last of a turn's values.

Importing this is cheap, as with `events`; `stored` reads and writes its row.
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
    HitPlace,
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
    "CodeQA ended while it was written. What had come is kept.",
    "broke_off",
)
"""Stored as the error of a turn until that has ended: should the process die, it is true."""

Values = Mapping[str, Any]
"""An object of JSON."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RecordedHit(HitPlace):
    """A hit of the search."""

    unit_id: str = ""
    score: float = 0.0
    why: Sequence[str] = ()
    channels: Mapping[str, int] = field(default_factory=dict)
    """Channel name → 1-based rank in that channel."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of all requests for an answer; `cost` is in US dollars, 0 where it is unknown."""

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
    """A message as it was sent to a model; in a record None stands for the context block."""

    role: str
    parts: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A question, its answer and how that came about.

    All but the first five is stored as JSON, each field under its name: what an earlier version
    did not store has its default.
    """

    id: str = ""
    typed: str = ""
    """The question with its tag, secret-looking strings masked."""
    answer: str = ""
    created: float = 0.0
    """Seconds since the epoch."""
    parent: str = ""
    """Id of the turn before it; '' for the first."""

    mode: str = ""
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """What decided the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    rules: Sequence[str] = ()
    """Of the policy, that decided."""
    searched_automatically: bool = False
    searches: bool = False
    goes_on: bool = False
    """From the code of an earlier question."""
    left_out: str = ""
    """Why the code of earlier questions was left out; '' where it was not."""
    suggest_codebase: bool = False
    retrieval_info: Retrieved = field(default_factory=Retrieved)
    coverage: str = ""
    generator: str = ""
    """The model's name, `extractive` or `app`."""
    reply: str = ""
    """Which of the app's own replies the answer is; '' when it is none."""
    model: str = ""
    host: str = ""
    effort: str = ""
    """`fast`, `normal` or `deep`, chosen or by the setting; '' where nothing was searched."""
    reranker: str = ""
    hyde: str = ""
    """`off`, `one` or `two`; '' where nothing was searched."""
    stages: Sequence[StageTime] = ()
    """Of the search."""
    hits: Sequence[RecordedHit] = ()
    """Of the search, best first."""
    notice: str = ""
    """What the reader should know, as sentences."""
    cut: bool = False
    tokens: Tokens = Tokens()
    looked_up: Sequence[ToolStep] = ()
    """The model's tool calls, and its reasoning."""
    citations: Sequence[Citation] = ()
    earlier: Sequence[EarlierAnswer] = ()
    rewritten: str = ""
    """What was searched for instead of a follow-up that says too little alone."""
    suggestions: Sequence[str] = ()
    hook_problems: Sequence[str] = ()
    """Hooks whose part was left out, and why, as sentences."""
    steps: Sequence[Step] = ()
    finished: bool = True
    """Neither stopped nor failed."""
    error: Failure | None = None
    """What ended it."""
    messages: Sequence[SentMessage] = ()
    asked: Sequence[str] = ()
    """Ends of the ids of the repositories that it was asked of, where that was of all."""
    chunks: tuple[Chunk, ...] = ()
    dropped: tuple[Chunk, ...] = ()
    """The context, and what had no room in it."""

    @property
    def question(self) -> str:
        """Without its tag."""
        return strip_tag(self.typed)

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed)

    @property
    def block(self) -> ContextBlock:
        return ContextBlock(self.chunks, self.dropped)

    @property
    def sent(self) -> list[SentMessage]:
        """`messages` exactly as they were sent; none when no model was asked."""
        block = self.block.text
        return [
            SentMessage(one.role, [block if part is None else part for part in one.parts])
            for one in self.messages
        ]

    @property
    def found_names(self) -> tuple[str, ...]:
        """Definitions that the search found: those that its answer speaks of first, in its order;
        where edges were walked, what they led to first."""
        names = list(dict.fromkeys(hit.name for hit in self.hits if hit.name))
        if any("edges" in hit.channels for hit in self.hits):
            return tuple(names)
        return tuple(sorted(names, key=lambda name: place_of_name(name, self.answer)))

    def hits_shown(self) -> list[dict[str, Any]]:
        """Return the hits as JSON, each with whether it is among the chunks that were sent."""
        sent = {(chunk.unit_id, chunk.start_line) for chunk in self.chunks}
        chosen = [chunk for chunk in self.chunks if not chunk.unit_id]
        shown = []
        for hit in self.hits:
            values = as_json(hit)
            del values["unit_id"]
            end = (hit.path, hit.end_line, hit.end_line)
            whole = (hit.unit_id, hit.start_line) in sent
            values["sent"] = whole or any(chunk.holds(*end) for chunk in chosen)
            shown.append(values)
        return shown

    def hit_of(self, chunk: Chunk) -> RecordedHit | None:
        """Return the hit that `chunk` shows, whole or cut; None for a place of use."""
        place = (chunk.unit_id, chunk.start_line)
        return next((hit for hit in self.hits if (hit.unit_id, hit.start_line) == place), None)

    def public(self) -> dict[str, Any]:
        """Return what programs and the page may know of it, as JSON: neither code nor what a model
        was sent, and of the search's stages no hypothetical answers, which are long."""
        private = ("hits", "messages", "asked", "chunks", "dropped")
        values = {
            one.name: as_json(getattr(self, one.name))
            for one in fields(self)
            if one.name not in private
        }
        names = ("name", "milliseconds", "outcome")
        values["stages"] = [{name: stage[name] for name in names} for stage in values["stages"]]
        return values

    def page(self) -> dict[str, Any]:
        """Return what the page gets of a stored turn; the answer is rendered there."""
        values = self.public() | {"question": self.question, "tagged": self.tagged}
        for name in ("typed", "reply", "cut"):
            del values[name]
        return values


@dataclass(frozen=True, slots=True)
class Done(Event):
    """The answer is complete."""

    kind: ClassVar[str] = "done"
    record: TurnRecord
    turn: str = ""
    """Id under which it is stored; '' where it is not."""
    revised: str = ""
    """The answer as a hook changed it; '' when none did."""
    profile: Values = field(default_factory=dict)
    """What its writer said of themselves."""

    @property
    def data(self) -> dict[str, Any]:
        """All of it that is public, as JSON."""
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
        """Return what programs get at the end of a stream, as JSON."""
        names = ("intent", "confidence", "retrieval_info")
        values = {name: as_json(getattr(self.record, name)) for name in names}
        return values | {"query_tags": self.query_tags}

    def whole(self) -> dict[str, Any]:
        """Return what programs get with an answer in one piece, as JSON."""
        names = ("intent", "confidence", "retrieval_info", "citations", "notice")
        values = {name: as_json(getattr(self.record, name)) for name in names}
        return {"turn": self.turn} | values


COLUMNS = ("id", "typed", "answer", "created", "parent")
"""Fields with a column of their own in the table of turns."""


# Reading what `as_json` wrote.

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
    """Return the `kind` that `as_json` wrote as `stored`; what an earlier version did not write has
    its default. Raises TypeError where that has none."""
    values: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        value = stored.get(one.name)
        if value is None or value == {}:
            continue
        if one.name in _ONE:
            value = read_value(_ONE[one.name], value)
        elif one.name in _EACH:
            value = tuple(read_values(_EACH[one.name], value))
        values[one.name] = value
    return kind(**values)


def read_values(kind: type[Value], stored: Iterable[Values]) -> Iterable[Value]:
    """Yield the values of a list; those that an earlier version wrote otherwise are left out."""
    for one in stored:
        with suppress(TypeError, AttributeError):
            yield read_value(kind, one)


def read_done(values: Values) -> Done:
    """Return the event whose `data` a server tells."""
    record = read_value(TurnRecord, values)
    return Done(record, values["turn"], values["revised"], values["profile"])


def place_of_name(name: str, answer: str) -> int:
    """Where `answer` first speaks of the definition `name`, as code, whole or by its last word;
    behind its end where it does not. `Flask.run` does not speak of `Flask`."""
    for written in (name, last_word(name)):
        if found := re.search(rf"`{re.escape(written)}(?!\w|[.#]\w|::)", answer):
            return found.start()
    return len(answer)
