"""The values that travel between the layers.

Lines are 1-based and inclusive; columns are 1-based and count characters; paths are relative to the
repository's root and use `/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

METHOD_KINDS = frozenset({"function", "method", "constructor", "lambda"})
"""Kinds in the table `methods`; all others are in `classes`."""

CLASS_KINDS = frozenset({"class", "struct", "enum", "trait", "interface", "module", "type"})
"""Kinds in the table `classes` that are definitions and no text."""

TEXT_KINDS = frozenset({"document", "config", "chunk"})
"""Kinds in the table `classes` that are text and no definition."""

KINDS = METHOD_KINDS | CLASS_KINDS | TEXT_KINDS | {"constant"}
"""A constant is a name bound to a value in a module or class, whose unit has the same lines."""

HydeMode = Literal["off", "one", "two"]
"""Drafts to search by: none, one from the question alone, or a second one with the hits of that."""

Effort = Literal["fast", "normal", "deep"]
EFFORTS: tuple[Effort, ...] = ("fast", "normal", "deep")
"""How much is searched and sent for a question."""

Mode = Literal["explain", "locate", "review", "plan", "change"]
MODES: tuple[Mode, ...] = ("explain", "locate", "review", "plan", "change")
"""What kind of answer is wanted, the usual first; each has a prompt `mode_<name>`."""

EXTRACTIVE, APP = "extractive", "app"
"""Responders without a model: quoted code, and the app's own reply."""

ROLES = ("source", "test", "example", "benchmark", "document", "vendored", "generated")
"""What a file is for. Ranking puts `source` first unless the question asks for another."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a file that can be found: a definition, a section or a chunk."""

    path: str
    language: str
    kind: str
    name: str
    qualified_name: str
    source_code: str
    """The exact text of its lines, with decorators and a leading doc comment."""
    start_line: int
    end_line: int
    class_name: str = ""
    """Qualified name of the enclosing class, trait, impl target or module; '' at top level."""
    signature: str = ""
    doc_comment: str = ""
    head_end_line: int = 0
    """Last line before the first member that is a unit of its own; 0: `end_line`."""
    constructor_declaration: str = ""
    method_declarations: tuple[str, ...] = ()
    role: str = "source"
    id: str = ""
    """Stable hash of path, qualified name and ordinal; filled by `parsing`."""

    @property
    def is_stub(self) -> bool:
        """Return whether it is a signature without code: `def subs(self, …): ...`."""
        return self.is_method and self.source_code.endswith(": ...")

    @property
    def is_head(self) -> bool:
        """Return whether it is the beginning of a file, and not a `module X` in the code."""
        return self.kind == "module" and not self.signature

    @property
    def is_definition(self) -> bool:
        """Return whether it is neither text nor the beginning of a file."""
        return self.kind not in TEXT_KINDS and not self.is_head

    @property
    def is_method(self) -> bool:
        return self.kind in METHOD_KINDS

    @property
    def span(self) -> str:
        """Return `path:first-last`, the form in which answers cite."""
        return f"{self.path}:{self.start_line}-{self.end_line}"

    place = span
    """Its earlier name, for programs that use it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A line that calls, uses, imports or inherits a name."""

    path: str
    line: int
    column: int
    name: str
    kind: str
    """`call` · `use` (a mention as type or value) · `import` · `inherits`."""
    unit_id: str = ""
    """The unit around it; '' for module level outside every unit."""
    receiver: str = ""
    """Text before the name (`self`, `app`, `pkg`), when the grammar gives one; of an import the
    other name that the file gives it (`*` for all names), or without a module exports it as."""
    module: str = ""
    """The import specifier that binds the name or its receiver in this file. `#Client` after it,
    or alone, says that the receiver is an object of the class Client."""
    target: str = ""
    """Id of the definition, if this file alone decides it."""
    confidence: float = 0.0
    """How sure `target` is, 0 to 1."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The result of parsing a file."""

    path: str
    language: str
    units: tuple[Unit, ...]
    references: tuple[Reference, ...]
    has_errors: bool = False
    """The source is broken; units are those that could be parsed."""
    replaced_bytes: int = 0
    """Bytes that were not UTF-8 and became U+FFFD."""
    masked: int = 0
    """Secret-looking strings that became asterisks."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A unit that a search found."""

    unit: Unit
    score: float
    why: tuple[str, ...] = ()
    """Its signals in words, strongest first (`name matches "route"`)."""
    channels: Mapping[str, int] = field(default_factory=dict)
    """Channel name → 1-based rank in that channel."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens and cost of requests to a model, as the provider counts them; 0 where unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False
    """The last answer ended at the token limit."""
    estimated: bool = False
    """The provider did not count all."""
    cost: float = 0.0
    """US dollars, as far as the provider says it."""

    def __add__(self, later: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens + later.prompt_tokens,
            self.completion_tokens + later.completion_tokens,
            later.cut,
            self.estimated or later.estimated,
            self.cost + later.cost,
        )


NO_USAGE = TokenUsage()


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a search and its outcome."""

    name: str
    """`hyde-1` · `hyde-2` · `search` · `rerank`."""
    milliseconds: float = 0.0
    outcome: str = ""
    """`done` · `timed out` · `stopped` · `empty` · `skipped: …` · `failed: …`; '' while it runs."""
    text: str = ""
    """The draft, which is never to be trusted; '' for none."""
    model: str = ""
    """`provider/name` of the drafting model, '' for none."""
    host: str = ""
    usage: TokenUsage = NO_USAGE

    @property
    def failed(self) -> bool:
        return self.outcome.startswith("failed")


@dataclass(frozen=True, slots=True)
class Chunk:
    """An exact span of a file in the context block."""

    id: str
    path: str
    start_line: int
    end_line: int
    language: str
    content: str
    unit_id: str = ""
    """The unit that it shows or lies in; '' for whole files and for lines that the user chose."""
    why: str = ""
    name: str = ""
    kind: str = ""
    role: str = ""
    signature: str = ""
    """Of that unit."""

    @property
    def span(self) -> str:
        """Return `path:first-last`, the form in which a chunk is pinned and excluded."""
        return f"{self.path}:{self.start_line}-{self.end_line}"

    def holds(self, path: str, start: int, end: int) -> bool:
        """Return whether it has all of these lines of the file."""
        return self.path == path and self.start_line <= start and end <= self.end_line


def encloses(outer: Unit | Chunk, inner: Unit | Chunk) -> bool:
    """Return whether `outer` has all lines of `inner`."""
    if outer.path != inner.path:
        return False
    return outer.start_line <= inner.start_line and inner.end_line <= outer.end_line


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question of the conversation, and its answer as text."""

    question: str
    answer: str
    turn: str = ""
    """Its id; '' where a client sent it along."""
    conversation: str = ""
    elsewhere: bool = False
    """It belongs to another conversation, or to none, and resembles this question."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of long work: `done` of `total` steps of `phase`."""

    phase: str
    done: int
    total: int
    detail: str = ""

    @property
    def far_enough(self) -> bool:
        """Return whether the time left can be estimated: the first files wait for the parsers."""
        return 0 < 50 * self.done >= self.total


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The changes of an indexing run, and the size of the index after it."""

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
    """Files that could be parsed only in part."""
    skipped: Mapping[str, int]
    """Reason → number of files."""
    seconds: float
    bytes_on_disk: int
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Name of an embedding → units with a vector of it."""
    skipped_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Reason → paths of files that were skipped for it."""
    broken_files: Sequence[str] = ()
    """Paths of those that could be parsed only in part."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of an index."""

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
    """Unix time of the last run that changed anything."""
    checked_at: float = 0.0
    """Unix time of the last completed run."""
    watched: bool = False
    progress: Progress | None = None
    seconds_left: float = 0.0
    """Until the phase of `progress` ends; 0: unknown."""
    error: str = ""
