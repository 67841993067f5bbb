"""The first pass: every file's text and symbols, in batches that are committed one by one.

Workers parse ahead, this process makes columns of what they send, and one thread writes,
so that at most two batches and what the workers have finished are in memory at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from codeqa.embeddings import Embedding
from codeqa.indexing.plan import Plan
from codeqa.indexing.status import CancelledError
from codeqa.indexing.vectors import packer_for, take_vectors
from codeqa.parsing.pool import parse_many
from codeqa.parsing.worker import FileResult
from codeqa.settings import Settings
from codeqa.store.comments import keep_comments
from codeqa.store.location import Location
from codeqa.store.records import SKIPPED, Batch, FileRecord, FileRows, append_rows
from codeqa.store.writer import Writer
from codeqa.types import Progress

BATCH_ROWS = 20_000
"""Units and edges in one batch at most; keeps memory bounded by rows, not by files."""


@dataclass(slots=True)
class Outcome:
    """What the pass met, in files."""

    changed: int = 0
    unchanged: int = 0
    wrote: bool = False


def build(
    settings: Settings,
    location: Location,
    writer: Writer,
    plan: Plan,
    manifest: Mapping[str, FileRecord],
    fast: Embedding | None,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> Outcome:
    """Carry out `plan`. Raises CancelledError; whatever ends it leaves a valid index."""
    outcome = Outcome(unchanged=plan.unchanged)
    batch = Batch()
    pending: Future[None] | None = None
    touched: list[FileRecord] = []
    total = len(plan.read)
    began = False

    def begin() -> None:
        nonlocal began
        if not began:
            writer.begin(manifest)
            began = outcome.wrote = True

    def write(full: Batch) -> None:
        changed = keep_comments(writer, full)
        writer.write(full, take_vectors(fast, full, changed))

    if writer.meta.dirty or plan.removed or plan.skipped:
        begin()
        writer.remove(plan.removed)
        if plan.skipped:
            writer.write(Batch(files=[_stamped(record) for record in plan.skipped]))
    progress(Progress("indexing", 0, total))
    results: Any = parse_many(
        location.root,
        plan.read,
        workers=settings.worker_count,
        max_file_bytes=settings.max_file_bytes,
        known=plan.known,
        packer=packer_for(fast, total),
    )
    with closing(results), ThreadPoolExecutor(1, thread_name_prefix="codeqa-write") as thread:
        for done, result in enumerate(results, 1):
            if cancelled():
                raise CancelledError
            progress(Progress("indexing", done, total, result.path))
            if result.unchanged:
                outcome.unchanged += 1
                old = manifest[result.path]
                if (old.size, old.mtime_ns) != (result.size, result.mtime_ns):
                    touched.append(replace(old, size=result.size, mtime_ns=result.mtime_ns))
                continue
            outcome.changed += 1
            _append(batch, result)
            if len(batch.files) >= settings.batch_files or batch.rows >= BATCH_ROWS:
                begin()
                if pending is not None:
                    pending.result()
                pending, batch = thread.submit(write, batch), Batch()
    if pending is not None:
        pending.result()
    if batch.files:
        begin()
        write(batch)
    if touched:
        begin()
        writer.write_files(touched)
    return outcome


def _append(batch: Batch, result: FileResult) -> None:
    record = FileRecord(
        path=result.path,
        hash=result.hash,
        size=result.size,
        mtime_ns=result.mtime_ns,
        role=result.role,
        indexed_at=time.time(),
    )
    if result.packed is None:
        batch.files.append(replace(record, status=SKIPPED, reason=result.reason))
    else:
        append_rows(batch, record, FileRows(*result.packed))


def _stamped(record: FileRecord) -> FileRecord:
    return replace(record, indexed_at=time.time())
