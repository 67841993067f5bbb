"""The first pass: every file's text and symbols, in batches that are committed one by one.

The repository as it is is compared with the manifest as it was. Workers parse ahead, this
process makes columns of what they send, and one thread embeds and writes, so that at most two
batches and what the workers have finished are in memory at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from codeqa.embeddings.base import Embedding
from codeqa.parsing.pool import parse_many
from codeqa.parsing.worker import FileResult
from codeqa.repository.roles import role_of
from codeqa.repository.walk import FileEntry, Walk
from codeqa.settings import Settings
from codeqa.store.comments import keep_comments
from codeqa.store.records import SKIPPED, Batch, FileRecord
from codeqa.store.schema import UNIT_TABLES
from codeqa.store.writer import Writer
from codeqa.types import Progress

BATCH_ROWS = 20_000
"""Units and edges in one batch at most; keeps memory bounded by rows, not by files."""

FIRST_FILES = 20
"""Files of the first batch, so that something can be searched at once; each is twice as large as
the one before, up to the setting."""

TIME_RESOLUTION_NS = 2_000_000_000
"""Coarsest step of file times in use (FAT). A file that changed so shortly before it was
read may have changed again within the same step, unseen by its size and time; such files
are compared by content, as git does with its index."""

_LAST = {"source": 0, "vendored": 2, "generated": 2}


class Plan(NamedTuple):
    """What has to be done."""

    read: list[FileEntry]
    """Files to read, in the order of their use."""
    removed: list[str]
    """Paths that are in the manifest and no longer in the repository."""
    skipped: list[FileRecord]
    """Rows for files that are newly left out by name, size or kind."""


def make_plan(found: Walk, manifest: Mapping[str, FileRecord], checked_ns: int) -> Plan:
    """Compare `found` with `manifest`.

    `checked_ns` is the start of the last completed run: what changed before it, and still
    has the size and time of its row, is unchanged.
    """
    read: list[FileEntry] = []
    skipped: list[FileRecord] = []
    trusted_ns = checked_ns - TIME_RESOLUTION_NS
    for entry in found.files:
        record = manifest.get(entry.path)
        same = record is not None and record.hash and _looks_same(record, entry)
        if not same or entry.mtime_ns >= trusted_ns:
            read.append(entry)
    read.sort(key=lambda entry: (_LAST.get(role_of(entry.path), 1), entry.path))
    now = time.time()
    for item in found.skipped:
        record = manifest.get(item.path)
        if record is None or (record.status, record.reason) != (SKIPPED, item.reason):
            skipped.append(
                FileRecord(item.path, status=SKIPPED, reason=item.reason, indexed_at=now)
            )
    present = {item.path for item in found.files} | {item.path for item in found.skipped}
    return Plan(read, sorted(manifest.keys() - present), skipped)


def _looks_same(record: FileRecord, file: FileEntry | FileResult) -> bool:
    return (record.size, record.mtime_ns) == (file.size, file.mtime_ns)


@dataclass(slots=True)
class Outcome:
    """What the pass met, in files."""

    removed: int
    read: int
    """Opened, be they changed or not."""
    changed: int = 0
    unchanged: int = 0
    wrote: bool = False
    """Anything was written."""


def build(
    settings: Settings,
    found: Walk,
    writer: Writer,
    fast: Embedding | None,
    progress: Callable[[Progress], None],
) -> Outcome:
    """Bring the tables up to `found`; whatever ends it leaves a valid index."""
    manifest = writer.manifest()
    plan = make_plan(found, manifest, writer.checked_ns)
    outcome = Outcome(len(plan.removed), len(plan.read))
    batch = Batch()
    pending: Future[None] | None = None
    touched: list[FileRecord] = []
    batch_files = min(FIRST_FILES, settings.batch_files)

    def begin() -> None:
        if not outcome.wrote:
            writer.begin(manifest)
            if not writer.meta.complete:
                writer.update_meta(expected=len(found.files))
            outcome.wrote = True

    def write(full: Batch) -> None:
        keep_comments(writer, full)
        vectors = None
        if fast is not None:
            filled = {table: full.tables[table] for table in UNIT_TABLES if full.tables[table]}
            vectors = {table: fast.embed_passages(rows["code"]) for table, rows in filled.items()}
        writer.write(full, vectors)

    if writer.meta.dirty or plan.removed or plan.skipped:
        begin()
        writer.remove(plan.removed)
        if plan.skipped:
            writer.write(Batch(files=plan.skipped))
    progress(Progress("indexing", 0, outcome.read))
    results: Any = parse_many(
        found.root,
        plan.read,
        workers=settings.worker_count,
        max_file_bytes=settings.max_file_bytes,
        known={path: record.hash for path, record in manifest.items() if record.hash},
        packer="codeqa.store.records:pack_rows",
    )
    with closing(results), ThreadPoolExecutor(1, thread_name_prefix="codeqa-write") as thread:
        for done, result in enumerate(results, 1):
            progress(Progress("indexing", done, outcome.read, result.path))
            if result.unchanged:
                old = manifest[result.path]
                if not _looks_same(old, result):
                    touched.append(replace(old, size=result.size, mtime_ns=result.mtime_ns))
                continue
            outcome.changed += 1
            _append(batch, result)
            if len(batch.files) >= batch_files or batch.rows >= BATCH_ROWS:
                begin()
                batch_files = min(2 * batch_files, settings.batch_files)
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
    outcome.unchanged = len(found.files) - outcome.changed
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
        batch.add(record, result.packed)
