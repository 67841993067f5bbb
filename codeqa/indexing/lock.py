"""One indexing run at a time: a lock held by the system, and a note that says who holds it.

The lock itself is the operating system's, so that it ends with its process however that
ends. The note beside it is for people only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from codeqa.errors import IndexBusyError
from codeqa.store.location import Location, write_atomically

GRACE_SECONDS = 0.3
"""How long even a run that does not wait tries: a look at the status holds the lock for
a moment."""


@contextlib.contextmanager
def hold(
    location: Location, *, wait: bool = True, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Hold the index of `location`.

    While another run holds it, `waiting` is told now and then who that is, and may raise to give
    up. Raises IndexBusyError when `wait` is false.
    """
    lock = _lock(location)
    with contextlib.suppress(OSError):
        Path(lock.lock_file).rmdir()  # a folder in its place, which nobody could ever hold
    while not lock.is_locked:
        try:
            lock.acquire(timeout=GRACE_SECONDS, poll_interval=0.05)
        except Timeout:
            if not wait:
                raise IndexBusyError(
                    f"The index of {location.root} is being written by {_noted(location)}.",
                    "Wait until that run ends, or end it.",
                ) from None
            waiting(_noted(location))
    note = location.folder / "holder"
    try:
        began = time.strftime("%H:%M:%S")
        write_atomically(note, f"process {os.getpid()} on {socket.gethostname()}, since {began}")
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
        lock.release()


def holder_of(location: Location) -> str:
    """Who holds the index now: process, host and since when; '' when nobody does."""
    lock = _lock(location)
    if not Path(lock.lock_file).exists():
        return ""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _noted(location)
    except OSError:  # no run can hold what cannot be opened for writing
        return ""
    lock.release()
    return ""


def _lock(location: Location) -> FileLock:
    return FileLock(location.folder / "lock")


def _noted(location: Location) -> str:
    try:
        return (location.folder / "holder").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return "another process"
