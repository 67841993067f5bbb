"""The one place where tests wait: no test depends on how fast the machine is.

What is tested sets an event, or a condition is polled here. `PATIENCE` ends a test whose condition
never comes; tests pass and fail the same with any long one. `AT_ONCE` is the limit of what never
ends by itself: a server that stays silent, a file that holds its reader up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 120.0
"""Seconds after which a test fails that waits for something."""
AT_ONCE = 0.0
"""Seconds of a limit that is over when it begins."""
LOOK_AGAIN = 0.01
"""Seconds between two looks at a condition."""

T = TypeVar("T")


def until(met: Callable[[], T]) -> T:
    """Return what `met` gives once that is true in a condition. Raises AssertionError when it never
    is."""
    end = time.monotonic() + PATIENCE
    while not (result := met()):
        assert time.monotonic() < end, f"{met} did not come true in {PATIENCE:.0f} seconds"
        time.sleep(LOOK_AGAIN)
    return result


class Clock:
    """Stands in for the module `time` of what is tested: time passes when a test says so, or where
    somebody sleeps."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    time = perf_counter = process_time = thread_time = monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)  # formats of dates and the like
