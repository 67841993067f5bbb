"""Parsing many files in worker processes: which worker gets what, and what comes back.

The workers are plain child processes rather than `multiprocessing`'s: those import the
caller's main module again, and start with the working directory on their import path, so that
`codeqa index .` inside a hostile repository would run its `multiprocessing.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from codeqa.errors import RepositoryError
from codeqa.parsing.worker import PARSER_FAILED, READY, FileOutcome, receive, send, unpack_parsed
from codeqa.repository.walk import FileEntry
from codeqa.types import ParsedFile

SECONDS_PER_FILE = 30.0
"""A megabyte of source parses in 0.2 s; what takes this long hangs."""

BATCH_FILES = 8
BATCH_BYTES = 200_000
BATCH_PATH_BYTES = 8_192
"""A worker is sent at most two batches ahead: little is lost when it dies, and the two
always fit a pipe's buffer, so that sending never waits."""

FILES_PER_WORKER = 16
"""Fewer files do not pay for starting another worker (some 0.2 s)."""

_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split({separator!r}); "
    "from codeqa.parsing.worker import run_worker; run_worker()"
)


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file. One of `parsed` (`packed`), `reason` and `unchanged` is set."""

    path: str
    size: int
    mtime_ns: int
    hash: str
    """blake2b of the content, 16 bytes in hexadecimal; '' when it could not be read."""
    role: str
    reason: str = ""
    """Why the file is not indexed."""
    masked: int = 0
    """Secret-looking strings that were replaced by asterisks."""
    unchanged: bool = False
    """The content has the hash that the caller knew."""
    parsed: ParsedFile | None = None
    packed: Any = None
    """What the caller's own packer made of the ParsedFile."""


def parse_many(
    root: Path,
    entries: Iterable[FileEntry],
    *,
    workers: int,
    max_file_bytes: int,
    known: Mapping[str, str] | None = None,
    packer: str = "",
    seconds_per_file: float = SECONDS_PER_FILE,
) -> Iterator[FileResult]:
    """Read, judge and parse `entries` below `root`, in the order in which results come.

    `known` maps paths to hashes: a file with that very content is not parsed again.
    `packer` names a function (`worker.named_function`) that the workers apply to each
    ParsedFile; what it returns comes as `packed` in the place of `parsed`. A file that
    ends its worker or takes longer than `seconds_per_file` is skipped, and the rest goes
    on. Closing the iterator, or any exception in its consumer, ends the workers.
    Raises RepositoryError when no worker can be started.
    """
    waiting = deque(entries)
    if not waiting:
        return
    count = max(1, min(workers, -(-len(waiting) // FILES_PER_WORKER)))
    pool = WorkerPool((os.fspath(root), max_file_bytes, seconds_per_file, packer), count)
    try:
        yield from _serve(pool, waiting, known or {})
    finally:
        pool.close()


def _serve(
    pool: WorkerPool, waiting: deque[FileEntry], known: Mapping[str, str]
) -> Iterator[FileResult]:
    while waiting or pool.busy:
        for worker in pool.workers:
            while waiting and len(worker.assigned) < 2:
                worker.assign(_next_batch(waiting), known)
        worker, outcome = pool.answers.get()
        if outcome == READY:
            worker.ready = True
            continue
        if outcome is None:
            lost = worker.unanswered
            pool.replace(worker)
            if not lost:
                continue
            waiting.extendleft(reversed(lost[1:]))
            entry = lost[0]
            result = FileResult(entry.path, entry.size, entry.mtime_ns, "", "", PARSER_FAILED)
        else:
            worker.answered()
            result = _result(outcome, pool.packs)
        yield result


def _result(outcome: FileOutcome, packs: bool) -> FileResult:
    fields, packed = outcome[:8], outcome[8]
    if packs or packed is None:
        return FileResult(*fields, packed=packed)
    return FileResult(*fields, parsed=unpack_parsed(packed))


def _next_batch(waiting: deque[FileEntry]) -> list[FileEntry]:
    batch = [waiting.popleft()]
    size, names = batch[0].size, len(batch[0].path)
    while waiting and len(batch) < BATCH_FILES:
        size += waiting[0].size
        names += 4 * len(waiting[0].path)
        if size > BATCH_BYTES or names > BATCH_PATH_BYTES:
            break
        batch.append(waiting.popleft())
    return batch


@dataclass(slots=True, eq=False)
class Worker:
    """One process and the batches of files that it has not answered yet."""

    process: subprocess.Popen[bytes]
    ready: bool = False
    """Its imports are done."""
    assigned: deque[list[FileEntry]] = field(default_factory=deque)
    """Its batches; the first is being worked on."""

    @property
    def unanswered(self) -> list[FileEntry]:
        """Files it was sent and has not answered, the one in work first."""
        return [entry for batch in self.assigned for entry in batch]

    def assign(self, batch: list[FileEntry], known: Mapping[str, str]) -> None:
        """Send one more batch."""
        self.assigned.append(batch)
        # A worker that died meanwhile is noticed by its reader.
        with suppress(OSError, ValueError):
            assert self.process.stdin is not None
            send(
                self.process.stdin,
                tuple((entry.path, known.get(entry.path, "")) for entry in batch),
            )

    def answered(self) -> None:
        """The file in work came back."""
        del self.assigned[0][0]
        if not self.assigned[0]:
            self.assigned.popleft()


class WorkerPool:
    """The worker processes, each with a thread that reads its answers into one queue.

    Raises RepositoryError when no process can be started.
    """

    def __init__(self, start: tuple[str, int, float, str], count: int) -> None:
        self._start_message = start
        self.packs = bool(start[3])
        # Bounded: a slow consumer stops the workers instead of filling the memory.
        self.answers: Queue[tuple[Worker, Any]] = Queue(maxsize=4 * count)
        """The outcomes; None for a worker that ended."""
        self._closing = False
        self.workers: list[Worker] = []
        try:
            for _ in range(count):
                self.workers.append(self._start_worker())
        except OSError as error:
            self.close()
            raise RepositoryError(
                f"No worker process starts: {error.strerror}.",
                "Free memory or processes, or set CODEQA_WORKERS=1.",
            ) from None

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return any(worker.assigned for worker in self.workers)

    def replace(self, worker: Worker) -> None:
        """Start another process for one that ended.

        Raises RepositoryError when it ended before its imports were done: so would the next.
        """
        _end(worker.process)
        if not worker.ready:
            raise RepositoryError(
                "The parsing processes end as soon as they are started.",
                "`codeqa doctor` says what is missing.",
            )
        self.workers[self.workers.index(worker)] = self._start_worker()

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        self._closing = True
        for worker in self.workers:
            _end(worker.process)
        with suppress(Empty):
            while True:  # a reader may wait for room
                self.answers.get_nowait()

    def _start_worker(self) -> Worker:
        # The same import path as here, without the entry that means "working directory".
        path = [entry for entry in sys.path if Path(entry).is_absolute()]
        package_parent = str(Path(__file__).resolve().parents[2])
        if package_parent not in path:
            path.append(package_parent)
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                _BOOT.format(separator=os.pathsep),
                os.pathsep.join(path),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).parent,
            # Ctrl-C reaches the parent alone, which then ends its workers.
            start_new_session=True,
        )
        worker = Worker(process)
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            send(process.stdin, self._start_message)
        threading.Thread(
            target=self._read, args=(worker, process.stdout), name="codeqa-parse", daemon=True
        ).start()
        return worker

    def _read(self, worker: Worker, stream: IO[bytes]) -> None:
        outcome: Any = READY
        with stream:
            while outcome is not None:
                try:
                    outcome = receive(stream)
                except (OSError, ValueError, EOFError, TypeError):
                    outcome = None
                if self._closing:
                    return
                self.answers.put((worker, outcome))


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.kill()
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    with suppress(subprocess.SubprocessError):
        process.wait(timeout=10)
