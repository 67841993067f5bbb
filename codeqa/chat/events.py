"""The events of an answer, in the order in which they come.

`Done`, the last one, holds the complete turn and is defined in `record`. Importing this is cheap:
the terminal reads events that a running server sends.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal

from codeqa.types import Hit

StepName = Literal[
    "embed", "load", "classify", "topic", "features", "policy", "prune", "retrieve",
    "before_generation", "generate", "after_generation", "persist",
]  # fmt: skip
"""The timed steps of a turn in their order; `features` adapts them to a change of topic."""
RESULT_CHARACTERS, REASONING_CHARACTERS = 2_000, 20_000
"""Most characters of a tool's result, and of a model's reasoning, that are shown and stored."""


def as_json(value: Any) -> Any:
    """Return `value` with dataclasses as dicts and tuples as lists.

    `dataclasses.asdict` copies each value deeply, which takes ten times as long.
    """
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened while an answer is made."""

    kind: ClassVar[str] = ""
    """Name of the event in streams."""

    @property
    def data(self) -> dict[str, Any]:
        """The fields as JSON."""
        return dict(as_json(self))


Events = Generator[Event, None, None]
"""The events as they come; closing the generator ends the answer."""


@dataclass(frozen=True, slots=True)
class Step(Event):
    """The end of one of the twelve steps of a turn."""

    kind: ClassVar[str] = "step"
    name: str = ""
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The question has been stored; `turn` is its id, '' if it is not to be stored."""

    kind: ClassVar[str] = "asked"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Classified(Event):
    """The intent of the message, and what is done about it."""

    kind: ClassVar[str] = "classified"
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """The decider of the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    rules: tuple[str, ...] = ()
    """Names of the policy's rules that decided."""
    searched_automatically: bool = False
    searches: bool = False
    goes_on: bool = False
    """True if it goes on from the code of an earlier question."""
    left_out: str = ""
    """Why the code of earlier questions was left out; '' if it was not."""
    suggest_codebase: bool = False


@dataclass(frozen=True, slots=True)
class Rewritten(Event):
    """The query is not the question: a `model` wrote it, or it is `carried` on from before."""

    kind: ClassVar[str] = "rewritten"
    question: str
    by: str


@dataclass(frozen=True, slots=True)
class Drafting(Event):
    """A model begins to write a draft, by which the code is searched."""

    kind: ClassVar[str] = "drafting"
    name: str = ""
    model: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Drafted(Event):
    """The end of a draft after `took` milliseconds, with an outcome as in `StageTime`.

    A draft that is skipped has no `Drafting` before it.
    """

    kind: ClassVar[str] = "drafted"
    name: str
    outcome: str
    text: str
    took: int


@dataclass(frozen=True, slots=True)
class HitSummary:
    """Path, lines, kind and name of a hit."""

    path: str
    start_line: int
    end_line: int
    kind: str
    name: str

    @classmethod
    def of(cls, hit: Hit) -> HitSummary:
        """Return what is shown of a hit."""
        unit = hit.unit
        name = unit.qualified_name or unit.name
        return HitSummary(unit.path, unit.start_line, unit.end_line, unit.kind, name)


@dataclass(frozen=True, slots=True)
class Hits(Event):
    """The hits for the question alone, or later those with the help of a model."""

    kind: ClassVar[str] = "hits"
    hits: tuple[HitSummary, ...]


@dataclass(frozen=True, slots=True)
class Retrieved(Event):
    """The number of chunks from the search, and of similar earlier questions."""

    kind: ClassVar[str] = "retrieved"
    num_docs: int = 0
    similar_queries: int = 0


@dataclass(frozen=True, slots=True)
class Generating(Event):
    """The responder named `generator` begins to write the answer."""

    kind: ClassVar[str] = "generating"
    generator: str = ""


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """A failed request to the model will be repeated in `seconds`; `text` says why it failed.

    It is sent once a second, the last time with 0. `begins` is true the first time.
    """

    kind: ClassVar[str] = "waiting"
    text: str = ""
    seconds: int = 0
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Thought(Event):
    """A piece of the model's reasoning."""

    kind: ClassVar[str] = "thought"
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolStep(Event):
    """A tool call of the model before it answers, or a piece of its reasoning."""

    kind: ClassVar[str] = "looked_up"
    tool: str = ""
    """Name of the tool; '' for reasoning, which is in `text`."""
    arguments: str = ""
    """Arguments as the model wrote them, usually JSON."""
    summary: str = ""
    """One line on the call and its result."""
    text: str = ""
    """The result that the model got."""
    said: str = ""
    """Text that the model wrote before the call."""
    milliseconds: float = 0.0
    failed: bool = False

    def shortened(self) -> ToolStep:
        """Return the step as it is shown and stored: a long result is cut."""
        room = RESULT_CHARACTERS if self.tool else REASONING_CHARACTERS
        text = self.text if len(self.text) <= room else f"{self.text[:room]}\n…"
        return replace(self, text=text, milliseconds=round(self.milliseconds, 1))


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation in a text, with the result of checking it."""

    path: str
    start: int
    end: int
    verified: bool = False
    """The file has these lines, and lines of it were sent or shown in the conversation."""
    exists: bool = False
    """The file has these lines now, whether they were shown or not."""
    problem: str = ""
    """Why it is not verified, in words."""
    changed: bool = False
    """These lines have changed since they were sent; checked again when the answer is shown."""


@dataclass(frozen=True, slots=True)
class Cited(Event):
    """Checked citations; the text that completes them comes after this."""

    kind: ClassVar[str] = "cited"
    citations: Sequence[Citation]


@dataclass(frozen=True, slots=True)
class Token(Event):
    """A piece of the answer."""

    kind: ClassVar[str] = "token"
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer failed, and what the user can do."""

    message: str = ""
    hint: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """The answer failed; `turn` is the id of the turn that stores the text so far."""

    kind: ClassVar[str] = "error"
    failure: Failure
    turn: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The fields as JSON, with those of the failure."""
        return {**as_json(self.failure), "turn": self.turn}


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The answer was stopped; `turn` as in `Failed`."""

    kind: ClassVar[str] = "stopped"
    turn: str = ""


def read_event(values: Mapping[str, Any]) -> Event:
    """Return the event that a server sent as `values`; a plain one if terminals do not show it."""
    for kind in (Drafting, Generating, Waiting, Thought, ToolStep):
        if values["stage"] == kind.kind:
            names = [field.name for field in fields(kind) if field.name in values]
            return kind(**{name: values[name] for name in names})
    return Event()
