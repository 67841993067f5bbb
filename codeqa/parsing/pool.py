"""Read, classify and parse many files in worker processes, in the order of results.

The workers are plain child processes rather than `multiprocessing`'s: those import the
caller's main module again, and start with the working directory on their import path, so that
`codeqa index .` inside a hostile repository would run its `multiprocessing.py`.

Both sides speak over the child's standard input and output: messages of plain tuples, each an
eight-byte length and then `marshal`'s form. Dataclasses would cost the receiving process
several times as much, and it is the one that everything waits for.
"""

from __future__ import annotations

import errno
import faulthandler
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from queue import Empty, Queue
from typing import IO, Any, NamedTuple

from codeqa import folders
from codeqa.errors import RepositoryError
from codeqa.parsing import parse_file
from codeqa.repository.classify import classify
from codeqa.repository.walk import FileEntry, read_with_status
from codeqa.types import ParsedFile, Skipped

SECONDS_PER_FILE = 30.0
"""A megabyte of source parses in 0.2 s; what takes this long hangs."""
FILES_AT_ONCE = 8
"""Files that a worker is sent together, so that it waits for us once for all of them."""
FILES_PER_WORKER = 16
"""Fewer files do not pay for starting another worker (some 0.2 s)."""
NICENESS = 5
"""Parsing makes way for everything else on the machine."""
PARSER_FAILED = "the parser failed on it"

_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split({separator!r}); "
    "from codeqa.parsing.pool import run_worker; run_worker()"
)


class FileResult(NamedTuple):
    """The result for one file. One of `packed`, `reason` and `unchanged` is set."""

    path: str
    size: int = 0
    mtime_ns: int = 0
    hash: str = ""
    """blake2b of the content, 16 bytes in hexadecimal; '' when it could not be read."""
    role: str = ""
    reason: str = ""
    """Why the file is not indexed."""
    masked: int = 0
    """Secret-looking strings that were replaced by asterisks."""
    unchanged: bool = False
    """The content has the hash that the caller knew."""
    packed: Any = None
    """What the packer made of the ParsedFile."""


def parse_many(
    root: Path,
    entries: Iterable[FileEntry],
    *,
    workers: int,
    max_file_bytes: int,
    hashes: Mapping[str, str] | None = None,
    packer: str = "dataclasses:asdict",
) -> Iterator[FileResult]:
    """Read, classify and parse `entries` below `root`, in the order in which results come.

    `hashes` maps paths to hashes: a file with that very content is not parsed again. `packer` names
    a function that the workers apply to each ParsedFile, and whose result `marshal` takes. A file
    that ends its worker or takes longer than `SECONDS_PER_FILE` is skipped, and the rest goes on.
    Closing the iterator, or any exception in its consumer, ends the workers.
    Raises RepositoryError when no worker can be started.
    """
    files = list(entries)
    count = min(max(1, workers), -(-len(files) // FILES_PER_WORKER))
    folder = folders.FOUND.get(str(root))
    start = (os.fspath(root), folder, max_file_bytes, SECONDS_PER_FILE, packer)
    pool = _WorkerPool(start, files, hashes or {}, count)
    try:
        for _ in files:
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
        start: tuple[str, str | None, int, float, str],
        files: list[FileEntry],
        hashes: Mapping[str, str],
        count: int,
    ) -> None:
        self._start_message = start
        self._files = iter(files)  # the threads share it
        self._hashes = hashes
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
        """Let one process parse until no file is left; return whether it died before.

        `files` were sent to it or its predecessor, the one in work first.
        """
        process = _start_process()
        self._processes.append(process)
        requests, answers = process.stdin, process.stdout
        assert requests is not None and answers is not None
        try:
            _send(requests, self._start_message)
            if _receive(answers) != ():  # its greeting; the next would fail too
                raise RepositoryError(
                    "The worker processes that parse files stop as soon as they start.",
                    "Install CodeQA again.",
                )
            while not self._closing:
                files += [] if files else islice(self._files, FILES_AT_ONCE)
                if not files:
                    break
                request = ((file.path, self._hashes.get(file.path, "")) for file in files)
                _send(requests, tuple(request))
                while files and not self._closing:
                    answer, file = _receive(answers), files.pop(0)
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
    path.append(str(Path(__file__).resolve().parents[2]))
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
        hint = "Free memory or processes, or set CODEQA_WORKERS=1."
        raise RepositoryError(f"No worker process can start: {error.strerror}.", hint) from None


def _send(stream: IO[bytes], message: tuple[Any, ...]) -> None:
    """Write one message; a process that is gone is noticed when it does not answer."""
    data = marshal.dumps(message)
    with suppress(OSError):
        stream.write(len(data).to_bytes(8, "little") + data)
        stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    """Read one message; None when the other side is gone, or sends something else."""
    with suppress(EOFError, MemoryError, OSError, OverflowError, TypeError, ValueError):
        return marshal.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    return None


# In the worker process.


def run_worker() -> None:
    """Serve until the standard input ends, which it also does when the parent dies.

    A file that takes too long ends the process, even where a parser hangs.
    """
    with suppress(OSError):
        os.nice(NICENESS)
    messages, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that prints may break the protocol
    root, folder, max_file_bytes, seconds, packer_name = _receive(messages)
    if folder is not None:
        folders.FOUND[root] = folder
    packer = resolve_name(packer_name)
    _send(results, ())
    while (files := _receive(messages)) is not None:
        for path, known_hash in files:
            faulthandler.dump_traceback_later(seconds, exit=True)  # to nowhere
            result = _parse_entry(Path(root), path, max_file_bytes, known_hash, packer)
            faulthandler.cancel_dump_traceback_later()
            _send(results, tuple(result))


def _parse_entry(
    root: Path, path: str, max_file_bytes: int, known_hash: str, packer: Callable[[ParsedFile], Any]
) -> FileResult:
    """Read and parse one file; return a result whatever it holds."""
    try:
        data, status = read_with_status(root, path, max_bytes=max_file_bytes)
    except OSError as error:
        reason = f"unreadable: {error.strerror or type(error).__name__}"
        if error.errno == errno.EFBIG:
            reason = f"larger than {max_file_bytes:,} bytes"
        return FileResult(path, reason=reason)
    digest = blake2b(data, digest_size=16).hexdigest()
    result = FileResult(path, len(data), status.st_mtime_ns, digest)
    if digest == known_hash:
        return result._replace(unchanged=True)
    try:
        verdict = classify(path, data)
        if isinstance(verdict, Skipped):
            return result._replace(reason=verdict.reason)
        parsed = parse_file(path, data, verdict)
        return result._replace(role=verdict, masked=parsed.masked, packed=packer(parsed))
    except Exception:  # one file must never end the run
        return result._replace(reason=PARSER_FAILED)
