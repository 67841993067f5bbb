"""One indexing run at a time: a lock held by the system, and a note that says who holds it.

The lock itself is the operating system's, so that it ends with its process however that
ends. The note beside it is for people only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from codeqa.errors import IndexBusyError
from codeqa.store.location import Location, write_atomically

POLL_SECONDS = 0.2
GRACE_SECONDS = 0.3
"""How long even a run that does not wait tries: a look at the status holds the lock for
a moment."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds an index: process, host, since when (seconds since the epoch)."""

    pid: int = 0
    host: str = ""
    since: float = 0.0

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        began = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host}, since {began}"


@contextlib.contextmanager
def hold(
    location: Location,
    *,
    wait: bool = True,
    waiting: Callable[[Holder], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Hold the index of `location`.

    While another run holds it, `waiting` is told once who that is. Raises IndexBusyError
    when `wait` is false or `cancelled` says to give up.
    """
    lock = FileLock(_path(location))
    until = time.monotonic() + GRACE_SECONDS
    told = False
    while True:
        try:
            lock.acquire(timeout=POLL_SECONDS, poll_interval=0.05)
            break
        except Timeout:
            holder = _note(location)
            given_up = cancelled is not None and cancelled()
            if given_up or (not wait and time.monotonic() > until):
                raise IndexBusyError(
                    f"The index of {location.root} is being written by {holder}.",
                    "Wait until that run ends, or end it.",
                ) from None
            if waiting is not None and not told and time.monotonic() > until:
                waiting(holder)
                told = True
    try:
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        write_atomically(_note_path(location), json.dumps(note))
        yield
    finally:
        with contextlib.suppress(OSError):
            _note_path(location).unlink()
        lock.release()


def holder_of(location: Location) -> Holder | None:
    """Who holds the index now; None when nobody does."""
    if not _path(location).exists():
        return None
    lock = FileLock(_path(location))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _note(location)
    lock.release()
    return None


def _path(location: Location) -> Path:
    return location.folder / "lock"


def _note_path(location: Location) -> Path:
    return location.folder / "lock.json"


def _note(location: Location) -> Holder:
    try:
        note = json.loads(_note_path(location).read_text(encoding="utf-8"))
        return Holder(int(note["pid"]), str(note["host"]), float(note["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Holder()
