"""How far a run is, written where another process can read it: `progress.json`."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from codeqa.store.location import Location, write_atomically
from codeqa.types import Progress

WRITE_SECONDS = 0.5
"""Pause between two writes; the page asks about once a second."""


@dataclass(frozen=True, slots=True)
class Record:
    """The last thing a run said of itself."""

    state: str = ""
    """`indexing` · `refining` · `ready` · `failed`."""
    progress: Progress | None = None
    error: str = ""
    at: float = 0.0


class Recorder:
    """Writes the record of one run, and passes progress on to `listener`."""

    def __init__(self, location: Location, listener: Callable[[Progress], None] | None) -> None:
        self._path = _path(location)
        self._listener = listener
        self._state = "indexing"
        self._written = 0.0
        self._phase = ""

    def state(self, state: str, error: str = "") -> None:
        """Say what the run does now; `ready` and `failed` end it."""
        self._state = state
        self._write(Record(state, None, error, time.time()))

    def __call__(self, progress: Progress) -> None:
        if self._listener is not None:
            self._listener(progress)
        now = time.monotonic()
        if progress.phase != self._phase or now - self._written >= WRITE_SECONDS:
            self._phase, self._written = progress.phase, now
            self._write(Record(self._state, progress, "", time.time()))

    def _write(self, record: Record) -> None:
        # A full disk must not turn a progress display into a failure.
        with contextlib.suppress(OSError):
            write_atomically(self._path, json.dumps(asdict(record)))


def read_record(location: Location) -> Record:
    """The last record; an empty one when there is none that can be read."""
    try:
        values = json.loads(_path(location).read_text(encoding="utf-8"))
        if values["progress"] is not None:
            values["progress"] = Progress(**values["progress"])
        return Record(**values)
    except (OSError, ValueError, KeyError, TypeError):
        return Record()


def _path(location: Location) -> Path:
    return location.folder / "progress.json"
