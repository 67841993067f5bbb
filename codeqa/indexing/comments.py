"""Descriptions of the methods of an index, off unless asked for: what they will
cost, and writing them beside the code, where they are searched and embedded with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeqa.embeddings import fast_embedding
from codeqa.indexing.describing import (
    MAX_TOKENS,
    Described,
    describe,
    sent_characters,
    sort_out,
    worth_describing,
)
from codeqa.indexing.lock import hold
from codeqa.llm import Complete
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Filter, Location, Tables
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import METHOD_KINDS, Progress, Unit

if TYPE_CHECKING:
    from codeqa.store.writer import Writer

TYPICAL_TOKENS = 60
"""Of a description, for telling what a run will take."""
ROWS_PER_COMMIT = 64
"""Descriptions written at once: what a killed run has to write, not to buy, again."""
ROLES = ("source", "test", "example", "benchmark", "document")
"""Code that is described, in this order; nobody asks what vendored and generated code does."""


@dataclass(frozen=True, slots=True)
class CommentPlan:
    """What a run will describe, and what it will send and get."""

    units: tuple[Unit, ...]
    """Those whose description is known, and those that are asked for."""
    requests: int
    known: int
    """Units that cost nothing."""
    tokens_sent: int
    """An estimate, rather too high."""

    @property
    def tokens_back(self) -> int:
        """An estimate of what comes back."""
        return self.requests * TYPICAL_TOKENS

    @property
    def most_tokens_back(self) -> int:
        """What cannot be exceeded."""
        return self.requests * MAX_TOKENS


def plan_comments(
    settings: Settings, location: Location, model: str, limit: int | None = None
) -> CommentPlan:
    """What describing the index of `location` by `model` takes; at most `limit` requests.

    Nothing is sent. Raises IndexMissingError when nothing was indexed.
    """
    methods = Tables.open(location).units(Filter(kinds=tuple(sorted(METHOD_KINDS)), roles=ROLES))
    units = sorted(worth_describing(methods), key=lambda unit: ROLES.index(unit.role))
    known, tasks = sort_out(units, model, State(settings.data_dir).values, settings.config_dir)
    tasks = tasks[:limit]
    asked = [unit for task in tasks for unit in task.units]
    return CommentPlan(
        units=(*(unit for unit, _ in known), *asked),
        requests=len(tasks),
        known=len(known),
        tokens_sent=int(sum(map(sent_characters, tasks)) / CHARACTERS_PER_TOKEN),
    )


def add_comments(
    settings: Settings,
    location: Location,
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> int:
    """Describe `units` and write the descriptions into their rows; returns rows changed.

    The index is held only while some are written, so that indexing goes on beside it; what
    changed meanwhile gets no description. What was bought is kept even when the run fails or is
    stopped; then `stop()` ends the requests that are under way. Raises ModelError.
    """
    changed = 0
    described = describe(
        units,
        complete,
        model=model,
        cache=State(settings.data_dir).values,
        config_dir=settings.config_dir,
        progress=progress,
        stop=stop,
    )
    waiting: list[Described] = []
    try:
        with closing(described):
            for one in described:
                waiting.append(one)
                if len(waiting) >= ROWS_PER_COMMIT:
                    changed += _write(location, waiting)
                    waiting.clear()
    finally:
        if waiting:
            changed += _write(location, waiting)
        if changed:
            with _writer(location) as writer:
                writer.tidy()
    return changed


def _write(location: Location, described: Sequence[Described]) -> int:
    from codeqa.store.comments import write_comments

    with _writer(location) as writer:
        return write_comments(writer, described, fast_embedding())


@contextmanager
def _writer(location: Location) -> Iterator[Writer]:
    """A writer to the index as it is, which is held meanwhile."""
    from codeqa.store.writer import Writer

    with hold(location):
        meta = Tables.open(location).meta()
        yield Writer.open(location, meta.parser, meta.vector)
