"""Allow one indexing run at a time, and record its progress.

The lock is the operating system's, so that it ends with its process however that ends; the file
`holder` beside it is for people only. Other processes read the progress in `progress.json`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from codeqa.errors import CodeQAError, IndexBusyError, IndexMissingError, StorageError
from codeqa.folders import make_private
from codeqa.metrics import measure
from codeqa.settings import Settings
from codeqa.store import FileRecord, Location, Tables
from codeqa.store.location import read_note, write_atomically
from codeqa.types import IndexStatus, Progress

GRACE_SECONDS = 0.3
"""Time that even a run that does not wait tries to get the lock: `holder_of` takes it briefly."""
WRITE_SECONDS = 0.5
"""Pause between two writes of a run's progress; the page requests it about once a second."""
REFUSALS = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS
INTERRUPTED = "The last run was interrupted; the next one completes it."
CANCELLED = "Indexing was cancelled; the next run completes it."
RUNNING = ("indexing", "refining", "paused")
PAUSE_SECONDS = 0.05
"""Pause between two checks of a paused run whether it may go on."""
SKIPPED_PATHS = 500
"""Skipped files that are named for each reason."""


@contextlib.contextmanager
def hold(
    location: Location, *, wait: bool = True, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Hold the index of `location`.

    While another run holds it, calls `waiting` with the name of that run, which may raise to give
    up, or raises IndexBusyError when `wait` is false.
    """
    lock = _lock(location)
    if Path(lock.lock_file).is_dir():  # not made by CodeQA
        shutil.rmtree(lock.lock_file)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=GRACE_SECONDS, poll_interval=0.05)
        except Timeout:
            if not wait:
                raise IndexBusyError(
                    f"The index of {location.root} is being written by {_holder(location)}.",
                    "Wait for that run to end, or stop it.",
                ) from None
            waiting(_holder(location))
    note = location.folder / "holder"
    try:
        began = time.strftime("%H:%M:%S")
        write_atomically(note, f"process {os.getpid()} on {socket.gethostname()}, since {began}")
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
        make_private(*location.folder.parents[: 2 if location.snapshot_of else 1], deep=False)
        make_private(location.folder)
        if location.tables_are_local:
            make_private(Path(location.tables))
        lock.release()


def holder_of(location: Location) -> str:
    """Return who holds the index now: process, host and since when; '' when nobody does."""
    lock = _lock(location)
    if not Path(lock.lock_file).exists():
        return ""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _holder(location)
    except OSError:  # no run can hold a lock that cannot be opened for writing
        return ""
    lock.release()
    return ""


def _lock(location: Location) -> FileLock:
    return FileLock(location.folder / "lock", mode=0o600)


def _holder(location: Location) -> str:
    with contextlib.suppress(OSError, ValueError):
        return (location.folder / "holder").read_text(encoding="utf-8")
    return "another process"


class CancelledError(CodeQAError, code="cancelled", http_status=409):
    """A run that ends because it was cancelled; what was committed stays."""


def read_status(
    settings: Settings, location: Location, tables: Callable[[], Tables] | None = None
) -> IndexStatus:
    """Return what the index of `location` holds and what any process is doing with it now.

    `tables` opens it, where it is open already. An index that cannot be read is `failed`.
    """
    is_running, record = bool(holder_of(location)), read_run(location)
    doing = record.state if record.state in RUNNING else "indexing"
    status = IndexStatus(
        repository=str(location.root),
        name=location.name,
        state=doing if is_running else "missing",
        progress=record.progress if is_running else None,
        seconds_left=record.seconds_left if is_running else 0.0,
    )
    try:
        index = tables() if tables else Tables(location)
        meta, counts, skipped = index.meta(), index.counts(), index.skipped()
    except CodeQAError as failure:
        error = record.error if isinstance(failure, IndexMissingError) else str(failure)
        state = "failed" if error and not is_running else status.state
        return replace(status, state=state, error=error)
    error = "" if is_running else record.error
    if not is_running:
        stopped = record.state in RUNNING + ("stopped",) or (meta.dirty and not error)
        error = error or (INTERRUPTED if stopped else "")
        state = "ready" if meta.complete else "stopped" if stopped else "failed"
        status = replace(status, state=state)
    vector, embedded = meta.vector, counts.embedded
    if settings.embedding:
        vector = meta.refined
        embedded = counts.refined if vector and vector.name == settings.embedding else 0
    return replace(
        status,
        files=counts.files,
        units=counts.units,
        references=counts.references,
        embedded=embedded,
        embedding=settings.embedding or (vector.name if vector else ""),
        skipped=count_reasons(skipped),
        updated_at=meta.updated_at,
        checked_at=record.at if record.state == "ready" else meta.updated_at,
        error=" ".join(filter(None, (error,) + index.notices)),
    )


def noted_state(location: Location) -> str:
    """Return the state of `read_status` as the last run noted it, '' where it noted none."""
    record = read_run(location)
    if holder_of(location):
        return record.state if record.state in RUNNING else "indexing"
    if not record.state and location.tables_are_local and not Path(location.tables).exists():
        return "missing"
    return "ready" if record.state == "ready" else ""


def count_reasons(skipped: Iterable[FileRecord]) -> dict[str, int]:
    """Return reason → number of skipped files, the most first."""
    return dict(Counter(file.reason for file in skipped).most_common())


def skipped_paths(skipped: Iterable[FileRecord]) -> dict[str, list[str]]:
    """Return reason → the first SKIPPED_PATHS of the files skipped for it, by path."""
    paths: dict[str, list[str]] = {}
    for file in skipped:
        paths.setdefault(file.reason, []).append(file.path)
    return {reason: sorted(files)[:SKIPPED_PATHS] for reason, files in paths.items()}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The last state that a run noted."""

    state: str = ""
    """`indexing` · `refining` · `paused` · `ready` · `stopped` · `failed`."""
    progress: Progress | None = None
    seconds_left: float = 0.0
    """An estimate until the phase of `progress` ends; 0 while it is unknown."""
    error: str = ""
    at: float = 0.0


class RunRecorder:
    """Writes the record of one run during a `with`, and passes its progress on to `listener`.

    A call, one for each step of the run, waits while `paused()`, and raises CancelledError with the
    sentence that `ended()` gives, unless that is ''.
    """

    def __init__(
        self,
        location: Location,
        listener: Callable[[Progress], None],
        ended: Callable[[], str],
        paused: Callable[[], bool],
    ) -> None:
        self._path = location.folder / "progress.json"
        self._listener = listener
        self._ended = ended
        self._paused = paused
        self._written = self._began = self._entered = 0.0
        self._phase = ""

    def __enter__(self) -> RunRecorder:
        self._entered = time.monotonic()
        self.state("indexing")
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if error is None:
            self.state("ready")
        elif isinstance(error, CancelledError):
            self.state("stopped", error.message)
        elif isinstance(error, CodeQAError):
            self.state("failed", str(error))
        elif isinstance(error, Exception):
            self.state("failed", f"Unexpected {type(error).__name__}: {error}.")
        else:  # Ctrl-C
            self.state("stopped", INTERRUPTED)
        end = {"ready": "done", "failed": "error"}.get(self._state, "stopped")
        measure("index_run_seconds", time.monotonic() - self._entered, end=end)

    def state(self, state: str, error: str = "") -> None:
        """Note what the run does now."""
        self._state = state
        self._write(RunRecord(state, error=error, at=time.time()))

    def __call__(self, progress: Progress) -> None:
        self._wait(progress)
        self._listener(progress)
        now = time.monotonic()
        if progress.phase != self._phase:
            self._phase, self._began, self._written = progress.phase, now, 0.0
        if now - self._written >= WRITE_SECONDS:
            self._written, seconds = now, 0.0
            if progress.far_enough:
                seconds = (now - self._began) / progress.done * (progress.total - progress.done)
            self._write(RunRecord(self._state, progress, seconds, at=time.time()))

    def _wait(self, progress: Progress) -> None:
        """Wait while the run is paused. Raises CancelledError when it is to end."""
        if self._paused() and not self._ended():
            began = time.monotonic()
            self._listener(replace(progress, phase=f"{progress.phase}, paused"))
            self._write(RunRecord("paused", progress, at=time.time()))
            while self._paused() and not self._ended():
                time.sleep(PAUSE_SECONDS)
            self._written = 0.0
            self._began += time.monotonic() - began
        reason = self._ended()
        if reason:
            raise CancelledError(reason)

    def _write(self, record: RunRecord) -> None:
        # A full disk must not turn a progress display into a failure.
        with contextlib.suppress(OSError):
            write_atomically(self._path, json.dumps(asdict(record)))


@contextlib.contextmanager
def refusals_explained() -> Iterator[None]:
    """Raise StorageError where the disk or a quota is full, or the folder is read-only."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # the latter is LanceDB's
        for reason in map(os.strerror, REFUSALS):
            if reason in str(error):
                raise StorageError(
                    f"The index cannot be written: {reason}.",
                    "Free some space, or set CODEQA_DATA to another folder, and index again; the "
                    "files indexed so far are kept.",
                ) from error
        raise


def read_run(location: Location) -> RunRecord:
    """Return the last record; an empty one when there is none that can be read."""
    note: dict[str, Any] = read_note(location.folder / "progress.json")
    try:
        if note.get("progress"):
            note["progress"] = Progress(**note["progress"])
        return RunRecord(**note)
    except TypeError:  # of another version
        return RunRecord()


def is_paused(location: Location) -> bool:
    """Return whether a run, in any process, holds the index and is paused."""
    return read_run(location).state == "paused" and bool(holder_of(location))
