"""The named steps of a turn, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from codeqa.types import Event

T = TypeVar("T")


class Steps(list[dict[str, Any]]):
    """Those that have ended, as {name, milliseconds}."""

    def do(self, name: str, work: Callable[[], T]) -> Generator[Event, None, T]:
        """Do `work` as the step `name`; yields that it has ended."""
        started = time.perf_counter()
        value = work()
        yield self._end(name, started)
        return value

    def follow(self, name: str, work: Generator[Event, None, T]) -> Generator[Event, None, T]:
        """The same for work that tells of what happens meanwhile."""
        started = time.perf_counter()
        value = yield from work
        yield self._end(name, started)
        return value

    def _end(self, name: str, started: float) -> Event:
        took = (time.perf_counter() - started) * 1000
        self.append({"name": name, "milliseconds": round(took, 2)})
        return Event("step", self[-1])
