"""The named steps of a turn, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from codeqa.types import Event


class Steps(list[dict[str, Any]]):
    """Those that have ended, as {name, milliseconds}."""

    _told = 0

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """What is done inside is the step `name`; one that fails is none."""
        started = time.perf_counter()
        yield
        took = (time.perf_counter() - started) * 1000
        self.append({"name": name, "milliseconds": round(took, 2)})

    def ended(self) -> Iterator[Event]:
        """A `step` event for each that ended since this was asked last."""
        while self._told < len(self):
            self._told += 1
            yield Event("step", self[self._told - 1])
