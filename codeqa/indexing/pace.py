"""How fast a provider may be asked: fewer requests at once, and a pause, when it says so."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 120.0
"""Seconds after a refusal that says no time, doubled each time; a limit per minute is over by
then. A provider that says a time is left alone for that long."""
LONGEST_WAIT = 900.0
"""Seconds that a provider may ask to wait for; longer is a quota of the day, not a rate."""
PATIENCE = 6
"""Pauses in a row without one answer in between, after which nothing more is hoped for."""


class Pace:
    """The number of requests that may run, and when the next may start; used by one thread.

    A refusal halves the number, as many answers as it allows raise it by one.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.allowed = self._most = max(1, most)
        self._clock = clock
        self._resume = clock()
        self._refused = 0
        self._answered = 0

    def answered(self) -> None:
        """A request was answered."""
        self._refused = 0
        self._answered += 1
        if self._answered >= self.allowed < self._most:
            self.allowed, self._answered = self.allowed + 1, 0

    def refused(self, seconds: float = 0.0) -> bool:
        """A request was refused for its rate, with the `seconds` to wait or 0; whether to go on.

        Those refused during a pause, which were under way when it began, are one refusal.
        """
        if seconds > LONGEST_WAIT:
            return False
        if not self.left():
            if self._refused == PATIENCE:
                return False
            self._refused += 1
            self.allowed, self._answered = max(1, self.allowed // 2), 0
        pause = seconds or min(FIRST_PAUSE * 2.0 ** (self._refused - 1), LONGEST_PAUSE)
        self._resume = max(self._resume, self._clock() + pause)
        return True

    def left(self) -> float:
        """Seconds until the next request may start; 0 when it may now."""
        return max(0.0, self._resume - self._clock())
