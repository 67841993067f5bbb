"""The steps of a turn, each timed and told as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from codeqa.types import Event

STEPS = (
    "embed", "load", "classify", "topic", "features", "policy", "prune", "retrieve",
    "before_generation", "generate", "after_generation", "persist",
)  # fmt: skip
"""S3's twelve steps in their order (S3.08)."""

_T = TypeVar("_T")
Stepped = Generator[Event, None, _T]
"""Work that yields events, that of its own end last, and its result."""


class Steps:
    """The steps of one turn so far: name and milliseconds, in order."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, float]] = []

    def run(self, name: str, work: Callable[[], _T]) -> Stepped[_T]:
        """Do `work` as the step `name`."""
        started = time.perf_counter()
        result = work()
        yield self.note(name, started)
        return result

    def follow(self, name: str, work: Generator[Event, None, _T]) -> Stepped[_T]:
        """The same for work that has events of its own."""
        started = time.perf_counter()
        result = yield from work
        yield self.note(name, started)
        return result

    def note(self, name: str, started: float) -> Event:
        """Note that the step ends now which began at `started` (`time.perf_counter`)."""
        took = (time.perf_counter() - started) * 1000
        self.taken.append((name, took))
        return Event("step", {"name": name, "milliseconds": round(took, 2)})

    def as_data(self) -> list[dict[str, Any]]:
        """As they are kept and told."""
        return [{"name": name, "milliseconds": round(took, 2)} for name, took in self.taken]
