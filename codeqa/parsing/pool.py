"""Parsing many files in worker processes: which worker gets what, and what comes back."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeqa.parsing.crew import Crew
from codeqa.parsing.worker import PARSER_FAILED, READY, FileOutcome, unpack
from codeqa.repository.walk import FileEntry
from codeqa.types import ParsedFile, Skipped

SECONDS_PER_FILE = 30.0
"""A megabyte of source parses in 0.2 s; what takes this long hangs."""

BATCH_FILES = 8
BATCH_BYTES = 200_000
BATCH_PATH_BYTES = 8_192
"""A worker is sent at most two batches ahead: little is lost when it dies, and the two
always fit a pipe's buffer, so that sending never waits."""

FILES_PER_WORKER = 16
"""Fewer files do not pay for starting another worker (some 0.2 s)."""


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

    @property
    def skipped(self) -> Skipped | None:
        """The file as a skipped one, when it is."""
        return Skipped(self.path, self.reason) if self.reason else None


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
    crew = Crew((os.fspath(root), max_file_bytes, seconds_per_file, packer), count)
    try:
        yield from _serve(crew, waiting, known or {})
    finally:
        crew.close()


def _serve(crew: Crew, waiting: deque[FileEntry], known: Mapping[str, str]) -> Iterator[FileResult]:
    while waiting or crew.busy:
        for worker in crew.workers:
            while waiting and worker.batches < 2:
                worker.assign(_next_batch(waiting), known)
        answer = crew.answer()
        if answer is None:
            continue
        worker, outcome = answer
        if outcome == READY:
            worker.begin()
            continue
        if outcome is None:
            lost = worker.unanswered
            crew.replace(worker)
            if not lost:
                continue
            waiting.extendleft(reversed(lost[1:]))
            entry = lost[0]
            result = FileResult(entry.path, entry.size, entry.mtime_ns, "", "", PARSER_FAILED)
        else:
            worker.answered()
            result = _result(outcome, crew.packs)
        paused = time.monotonic()
        yield result
        crew.forgive(time.monotonic() - paused)


def _result(outcome: FileOutcome, packs: bool) -> FileResult:
    fields, packed = outcome[:8], outcome[8]
    if packs or packed is None:
        return FileResult(*fields, packed=packed)
    return FileResult(*fields, parsed=unpack(packed))


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
