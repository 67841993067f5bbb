"""The events of an answer, in the order of its stream, each a value of its own.

`Done`, the last one, holds the finished turn and is defined in `record`. Importing this is cheap:
the terminal reads events that a running server sends.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

from codeqa.types import Hit

RESULT_CHARACTERS, REASONING_CHARACTERS = 2_000, 20_000
"""Characters of a tool's result, and of a model's reasoning, that are told and stored."""


def as_json(value: Any) -> Any:
    """Return `value` with its dataclasses as objects and its tuples as lists.

    `dataclasses.asdict` copies each value deeply, which takes ten times as long.
    """
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [as_json(one) for one in value]
    return value


@dataclass(frozen=True, slots=True)
class Event:
    """One step of an answer."""

    kind: ClassVar[str] = ""
    """Its name on the wire and for programs."""

    @property
    def data(self) -> dict[str, Any]:
        """Its fields as JSON."""
        return dict(as_json(self))


Events = Generator[Event, None, None]
"""As they come; closing it ends what makes them."""


@dataclass(frozen=True, slots=True)
class Step(Event):
    """One of the twelve steps of a turn has ended."""

    kind: ClassVar[str] = "step"
    name: str = ""
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The question is stored, if it is to be; `turn` is its id, '' where it is not stored."""

    kind: ClassVar[str] = "asked"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Classified(Event):
    """What the message is taken for, and what is done about it."""

    kind: ClassVar[str] = "classified"
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """What decided the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    rules: tuple[str, ...] = ()
    """Of the policy, that decided."""
    searched_automatically: bool = False
    searches: bool = False
    goes_on: bool = False
    """From the code of an earlier question."""
    left_out: str = ""
    """Why the code of earlier questions was left out; '' where it was not."""
    suggest_codebase: bool = False


@dataclass(frozen=True, slots=True)
class Rewritten(Event):
    """Something else is searched for than was typed; by `model`, or `carried` from before."""

    kind: ClassVar[str] = "rewritten"
    question: str
    by: str


@dataclass(frozen=True, slots=True)
class Drafting(Event):
    """A hypothetical answer is being written, to search by."""

    kind: ClassVar[str] = "drafting"
    name: str = ""
    model: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Drafted(Event):
    """It has ended, as in `StageTime`, after `took` milliseconds; one that is skipped has no
    `Drafting` before it."""

    kind: ClassVar[str] = "drafted"
    name: str
    outcome: str
    text: str
    took: int


@dataclass(frozen=True, slots=True)
class HitPlace:
    """Where a hit lies, and what it is called."""

    path: str
    start_line: int
    end_line: int
    kind: str
    name: str

    @classmethod
    def of(cls, hit: Hit) -> HitPlace:
        unit = hit.unit
        name = unit.qualified_name or unit.name
        return HitPlace(unit.path, unit.start_line, unit.end_line, unit.kind, name)


@dataclass(frozen=True, slots=True)
class Hits(Event):
    """The hits of the question alone, before a model helps; and once more those with its help."""

    kind: ClassVar[str] = "hits"
    hits: tuple[HitPlace, ...]


@dataclass(frozen=True, slots=True)
class Retrieved(Event):
    """How much was retrieved: chunks by a search, and earlier questions."""

    kind: ClassVar[str] = "retrieved"
    num_docs: int = 0
    similar_queries: int = 0


@dataclass(frozen=True, slots=True)
class Generating(Event):
    """The answer is being written by `generator`."""

    kind: ClassVar[str] = "generating"
    generator: str = ""


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """A request to the model failed and is made again in `seconds`, `text` says why; sent once a
    second, 0 at last. `begins` is true the first time."""

    kind: ClassVar[str] = "waiting"
    text: str = ""
    seconds: int = 0
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Thought(Event):
    """A piece of the model's own reasoning."""

    kind: ClassVar[str] = "thought"
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolStep(Event):
    """A tool call of the model before it answers, as its reader sees it; or its reasoning."""

    kind: ClassVar[str] = "looked_up"
    tool: str = ""
    """'' for reasoning, which is `text`."""
    arguments: str = ""
    """As the model wrote them, JSON if it wrote that."""
    summary: str = ""
    """What was done and its result, in a line."""
    text: str = ""
    """What the model was given."""
    said: str = ""
    """What the model said before it."""
    milliseconds: float = 0.0
    failed: bool = False

    def shortened(self) -> ToolStep:
        """Return it as it is told and stored, a long result by its beginning."""
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
    """The file has these lines, and something of it was sent or shown in the conversation."""
    exists: bool = False
    """The file has these lines now, whether or not they were shown."""
    problem: str = ""
    """Why it is not verified, as the end of a sentence."""
    changed: bool = False
    """These lines are not what was sent any more; looked at again when the answer is shown."""


@dataclass(frozen=True, slots=True)
class Cited(Event):
    """Citations, checked, before the text that completes them."""

    kind: ClassVar[str] = "cited"
    citations: Sequence[Citation]


@dataclass(frozen=True, slots=True)
class Token(Event):
    """A piece of the answer."""

    kind: ClassVar[str] = "token"
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer failed, and what to do about it."""

    message: str = ""
    hint: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """The answer failed; `turn` is the id under which the part is stored that had come."""

    kind: ClassVar[str] = "error"
    failure: Failure
    turn: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """Its fields as JSON, those of the failure among them."""
        return {**as_json(self.failure), "turn": self.turn}


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The answer was stopped; `turn` as in `Failed`."""

    kind: ClassVar[str] = "stopped"
    turn: str = ""


def read_event(values: Mapping[str, Any]) -> Event:
    """Return the event that a server tells a page of by `values`; a plain one for those that a
    terminal does not show."""
    for kind in (Drafting, Generating, Waiting, Thought, ToolStep):
        if values["stage"] == kind.kind:
            return kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})
    return Event()
