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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import Empty, Queue

from codeqa.errors import RepositoryError
from codeqa.parsing.worker import PARSER_FAILED, READY, FileResult, receive, send
from codeqa.repository.walk import FileEntry

SECONDS_PER_FILE = 30.0
"""A megabyte of source parses in 0.2 s; what takes this long hangs."""

FILES_AT_ONCE = 8
"""Files that a worker is sent together, so that it waits for us once for all of them."""

FILES_PER_WORKER = 16
"""Fewer files do not pay for starting another worker (some 0.2 s)."""

_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split({separator!r}); "
    "from codeqa.parsing.worker import run_worker; run_worker()"
)


def parse_many(
    root: Path,
    entries: Iterable[FileEntry],
    *,
    workers: int,
    max_file_bytes: int,
    known: Mapping[str, str] | None = None,
    packer: str = "codeqa.parsing.worker:pack_parsed",
    seconds_per_file: float = SECONDS_PER_FILE,
) -> Iterator[FileResult]:
    """Read, judge and parse `entries` below `root`, in the order in which results come.

    `known` maps paths to hashes: a file with that very content is not parsed again.
    `packer` names a function (`worker.named_function`) that the workers apply to each
    ParsedFile; what it returns comes as `packed`. A file that ends its worker or takes longer
    than `seconds_per_file` is skipped, and the rest goes on. Closing the iterator, or any
    exception in its consumer, ends the workers.
    Raises RepositoryError when no worker can be started.
    """
    waiting = list(entries)
    count = min(max(1, workers), -(-len(waiting) // FILES_PER_WORKER))
    start = (os.fspath(root), max_file_bytes, seconds_per_file, packer)
    pool = _WorkerPool(start, waiting, known or {}, count)
    try:
        for _ in waiting:
            result = pool.results.get()
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        pool.close()


class _WorkerPool:
    """The worker processes, each with a thread that serves it and starts another when it dies."""

    def __init__(
        self,
        start: tuple[str, int, float, str],
        waiting: list[FileEntry],
        known: Mapping[str, str],
        count: int,
    ) -> None:
        self._start_message = start
        self._waiting = iter(waiting)  # the threads share it
        self._known = known
        # Bounded: a slow consumer stops the workers instead of filling the memory.
        self.results: Queue[FileResult | Exception] = Queue(maxsize=4 * count)
        self._closing = False
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads = [
            threading.Thread(target=self._serve, name="codeqa-parse", daemon=True)
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        self._closing = True
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            while thread.is_alive():
                with suppress(Empty):  # the thread may wait for room
                    self.results.get(timeout=0.01)

    def _serve(self) -> None:
        files: list[FileEntry] = []
        try:
            while not self._closing and self._converse(files):
                pass  # the process died: the next one goes on
        except Exception as error:
            self.results.put(error)

    def _converse(self, files: list[FileEntry]) -> bool:
        """Have one process parse until no file waits, or until it dies: then True.

        `files` are those that it, or the one before it, was sent, the one in work first.
        """
        process = _start_process()
        self._processes.append(process)
        requests, answers = process.stdin, process.stdout
        assert requests is not None and answers is not None
        try:
            send(requests, self._start_message)
            if receive(answers) != READY:  # so would the next
                raise RepositoryError(
                    "The parsing processes end as soon as they are started.",
                    "`codeqa doctor` says what is missing.",
                )
            while not self._closing:
                files += [] if files else islice(self._waiting, FILES_AT_ONCE)
                if not files:
                    break
                send(requests, tuple((file.path, self._known.get(file.path, "")) for file in files))
                while files and not self._closing:
                    answer, file = receive(answers), files.pop(0)
                    if answer is None:
                        failed = FileResult(file.path, file.size, file.mtime_ns)
                        self.results.put(failed._replace(reason=PARSER_FAILED))
                        return True
                    self.results.put(FileResult(*answer))
            return False
        finally:
            process.kill()
            with suppress(OSError):  # what was not sent yet cannot be
                requests.close()
            answers.close()
            process.wait()


def _start_process() -> subprocess.Popen[bytes]:
    # The same import path as here, without the entry that means "working directory".
    path = [entry for entry in sys.path if Path(entry).is_absolute()]
    package_parent = str(Path(__file__).resolve().parents[2])
    if package_parent not in path:
        path.append(package_parent)
    boot = _BOOT.format(separator=os.pathsep)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", boot, os.pathsep.join(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).parent,
            # Ctrl-C reaches the parent alone, which then ends its workers. In a session of their
            # own Linux would share the processor between the sessions, whatever their priority.
            process_group=0,
        )
    except OSError as error:
        raise RepositoryError(
            f"No worker process starts: {error.strerror}.",
            "Free memory or processes, or set CODEQA_WORKERS=1.",
        ) from None
