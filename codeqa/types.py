"""The values that travel between the layers.

All are frozen: a stage that wants another value makes a new one.
Lines are 1-based and inclusive; columns are 1-based and count characters;
paths are relative to the repository's root and use `/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from operator import add
from typing import Literal

METHOD_KINDS = frozenset({"function", "method", "constructor", "lambda"})
"""Kinds that live in the `methods` table; every other kind lives in `classes`."""

CLASS_KINDS = frozenset({"class", "struct", "enum", "trait", "interface", "module", "type"})
"""Kinds of the `classes` table that are definitions rather than text."""

TEXT_KINDS = frozenset({"document", "config", "chunk"})
"""Kinds of the `classes` table that hold text without a definition."""

KINDS = METHOD_KINDS | CLASS_KINDS | TEXT_KINDS | {"constant"}
"""A constant is a name that is bound to a value at the level of a module or a class. It lies in the
`classes` table, beside the head or the class that has its lines too."""

HydeMode = Literal["off", "one", "two"]
"""Drafts of the answer that are searched by: none · one from the question alone · a second one
with what the first found."""

Effort = Literal["fast", "normal", "deep"]
EFFORTS: tuple[Effort, ...] = ("fast", "normal", "deep")
"""How much a question is given, in what is searched by and in what is sent."""

Mode = Literal["explain", "locate", "review", "plan", "change"]
MODES: tuple[Mode, ...] = ("explain", "locate", "review", "plan", "change")
"""What is wanted of an answer, the usual first; each has a prompt `mode_<name>`."""

EXTRACTIVE, APP = "extractive", "app"
"""What writes an answer without a model: it quotes the code, or says what the app has to say."""

ROLES = ("source", "test", "example", "benchmark", "document", "vendored", "generated")
"""What a file is for; ranking pushes everything but `source` back unless asked for."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One retrievable piece of a file: a definition, a section or a chunk.

    `source_code` is exactly the text of lines `start_line`..`end_line`, decorators
    and a leading doc comment included.
    """

    path: str
    language: str
    kind: str
    name: str
    qualified_name: str
    source_code: str
    start_line: int
    end_line: int
    class_name: str = ""
    """Qualified name of the enclosing class, trait, impl target or module; '' at top level."""
    signature: str = ""
    doc_comment: str = ""
    head_end_line: int = 0
    """Last line of the part before the first member that is a unit of its own; 0: `end_line`."""
    constructor_declaration: str = ""
    method_declarations: tuple[str, ...] = ()
    role: str = "source"
    id: str = ""
    """Stable hash of path, qualified name and ordinal; filled by `parsing`."""

    @property
    def is_stub(self) -> bool:
        """A signature without code, `def subs(self, …): ...`: there may be nine for a function."""
        return self.is_method and self.source_code.endswith(": ...")

    @property
    def is_head(self) -> bool:
        """The beginning of a file, and no module that is written as a definition."""
        return self.kind == "module" and not self.signature

    @property
    def is_definition(self) -> bool:
        """No text, and no file."""
        return self.kind not in TEXT_KINDS and not self.is_head

    @property
    def is_method(self) -> bool:
        return self.kind in METHOD_KINDS

    @property
    def place(self) -> str:
        """`path:first-last`, the form in which answers cite."""
        return f"{self.path}:{self.start_line}-{self.end_line}"


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a name is called, used, imported or inherited from."""

    path: str
    line: int
    column: int
    name: str
    kind: str
    """`call` · `use` (a mention as type or value) · `import` · `inherits`."""
    unit_id: str = ""
    """The unit that the place lies in; '' for module level outside every unit."""
    receiver: str = ""
    """Text before the name (`self`, `app`, `pkg`), when the grammar gives one."""
    module: str = ""
    """The import specifier that binds the name or its receiver in this file; `#Client` after
    it, or alone, when the receiver is known to be an object of a class of that name."""
    target: str = ""
    """Id of the definition when this file alone decides it."""
    confidence: float = 0.0
    """How sure `target` is, 0 to 1; 0 when the file alone does not decide."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Everything that one read of one file yields."""

    path: str
    language: str
    units: tuple[Unit, ...]
    references: tuple[Reference, ...]
    has_errors: bool = False
    """The grammar met broken source; what parsed is there all the same."""
    replaced_bytes: int = 0
    """Bytes that were not UTF-8 and became U+FFFD."""
    masked: int = 0
    """Secret-looking strings that became asterisks."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A unit that a search returned."""

    unit: Unit
    score: float
    why: tuple[str, ...] = ()
    """Signals that placed it, strongest first, in words (`name matches "route"`)."""
    channels: Mapping[str, int] = field(default_factory=dict)
    """Channel name → 1-based rank in that channel."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What requests to a model took, as the provider counts it; 0 where nothing is known. `cut`:
    the last answer ended at the token limit instead of where the model meant to. `estimated`: the
    provider did not count all. `cost` is in US dollars, as far as the provider says it."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False
    estimated: bool = False
    cost: float = 0.0

    def __add__(self, later: TokenUsage) -> TokenUsage:
        read, written, _, estimated, cost = map(add, astuple(self), astuple(later))
        return TokenUsage(read, written, later.cut, bool(estimated), cost)


NO_USAGE = TokenUsage()


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a search, and what came of it."""

    name: str
    """`hyde-1` · `hyde-2` · `search` · `rerank`."""
    milliseconds: float = 0.0
    outcome: str = ""
    """`done` · `timed out` · `stopped` · `empty` · `skipped: …` · `failed: …`; '' while it
    goes on."""
    text: str = ""
    """The draft that a language model wrote: never to be trusted, and '' for none."""
    model: str = ""
    """`provider/name` and host of what was asked for the draft; '' when nothing was."""
    host: str = ""
    usage: TokenUsage = NO_USAGE

    @property
    def failed(self) -> bool:
        return self.outcome.startswith("failed")


@dataclass(frozen=True, slots=True)
class Chunk:
    """What goes into the context block: an exact span of one file."""

    id: str
    path: str
    start_line: int
    end_line: int
    language: str
    content: str
    unit_id: str = ""
    """The unit that it shows or lies in; '' for whole files, and lines that a user chose."""
    why: str = ""
    name: str = ""
    kind: str = ""
    role: str = ""
    signature: str = ""
    """Of that unit."""

    @property
    def place(self) -> str:
        """`path:first-last`, the form in which a chunk is pinned and excluded."""
        return f"{self.path}:{self.start_line}-{self.end_line}"

    def holds(self, path: str, start: int, end: int) -> bool:
        """Whether it has all of these lines of the file."""
        return self.path == path and self.start_line <= start and end <= self.end_line


def encloses(outer: Unit | Chunk, inner: Unit | Chunk) -> bool:
    """Whether `outer` has all lines of `inner`."""
    same = outer.path == inner.path
    return same and outer.start_line <= inner.start_line and inner.end_line <= outer.end_line


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question of the conversation, and its answer as text."""

    question: str
    answer: str
    turn: str = ""
    """Its id; '' when a client told it."""
    conversation: str = ""
    elsewhere: bool = False
    """It resembles this question and belongs to another conversation, or to none."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work is: `done` of `total` units of `phase`."""

    phase: str
    done: int
    total: int
    detail: str = ""

    @property
    def far_enough(self) -> bool:
        """Whether the time that is left can be told from it: the first files wait for the parsers
        to start, and 2 of 773 gave "19 min left" of 26 s."""
        return 0 < 50 * self.done >= self.total


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What one indexing run did, and what the index holds now."""

    repository: str
    files: int
    methods: int
    classes: int
    documents: int
    references: int
    changed: int
    removed: int
    unchanged: int
    replaced: int
    """Files with bytes that were not UTF-8."""
    broken: int
    """Files that the grammar could parse only in part."""
    skipped: Mapping[str, int]
    """Reason → number of files."""
    seconds: float
    bytes_on_disk: int
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Name of an embedding → units with a vector of it."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the page and every answer say about the index."""

    repository: str
    name: str
    state: str
    """`missing` · `indexing` · `refining` · `paused` · `ready` · `stopped` · `failed`."""
    files: int = 0
    units: int = 0
    references: int = 0
    embedded: int = 0
    """Units with a vector of the embedding in use."""
    embedding: str = ""
    """Name of the embedding in use; '' for none."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    updated_at: float = 0.0
    """Seconds since the epoch of the last run that changed anything."""
    checked_at: float = 0.0
    """The same of the last completed run."""
    watched: bool = False
    """Changes on disk are followed."""
    progress: Progress | None = None
    seconds_left: float = 0.0
    """Until the phase of `progress` ends; 0 while that is unknown."""
    error: str = ""
