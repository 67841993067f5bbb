"""The two passes over a repository.

The first indexes every file's text and symbols in batches, each with its commit. Workers parse
ahead and one thread embeds and writes, so that at most two batches and the workers' results are in
memory at a time.

The second makes vectors of the embedding that the user chose. Their column exists only once one is
chosen; the writer keeps the vectors of units whose text stays the same, so that none is paid for
twice.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any, Protocol

from codeqa.embeddings.registry import Embedding
from codeqa.parsing.pool import NICENESS, FileResult, parse_many
from codeqa.repository.classify import role_of
from codeqa.repository.walk import FileEntry, Walk
from codeqa.settings import Settings
from codeqa.store.location import Location
from codeqa.store.records import SKIPPED, Batch, FileRecord
from codeqa.store.schema import REFINED, UNIT_TABLES, one_of, read_rows, record_of, vector_array
from codeqa.store.writer import TableWriter, keep_descriptions
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np

BATCH_ROWS = 20_000
"""Units and edges in one batch at most; keeps memory bounded by rows, not by files."""
FIRST_FILES = 20
"""Files of the first batch, so that something can be searched at once; the size doubles with each
batch, up to the setting."""
TIME_RESOLUTION_NS = 2_000_000_000
"""Coarsest step of file times in use (FAT). A file that changed so shortly before it was read may
have changed again within the same step, unseen by its size and time; such files are compared by
content, as git does with its index."""
PACKER = "codeqa.store.records:pack_rows"
_ORDER = {"source": 0, "vendored": 2, "generated": 2}
"""Role → when its files are read; others have 1."""
REFINED_ROWS, REFINED_FILES = 512, 20
"""Vectors of the chosen embedding in one commit, and their files, at most: what a killed run pays
for twice."""


def make_plan(
    files: Walk, manifest: Mapping[str, FileRecord], checked_ns: int
) -> tuple[list[FileEntry], list[str], list[FileRecord]]:
    """Return the files to read, source first, paths that are gone, and rows of new skipped files.

    A file is unchanged if it has the size and time of its row and changed before `checked_ns`, the
    start of the last completed run.
    """
    trusted_ns, now, none = checked_ns - TIME_RESOLUTION_NS, time.time(), FileRecord("")

    def same(entry: FileEntry) -> bool:
        row = manifest.get(entry.path, none)
        changed_ns = max(entry.mtime_ns, entry.ctime_ns)  # programs can set the first back
        return bool(row.hash) and _looks_same(row, entry) and changed_ns < trusted_ns

    to_read = [entry for entry in files.files if not same(entry)]
    to_read.sort(key=lambda entry: (_ORDER.get(role_of(entry.path), 1), entry.path))
    skipped = [
        FileRecord(item.path, status=SKIPPED, reason=item.reason, indexed_at=now)
        for item in files.skipped
        if manifest.get(item.path, none).reason != item.reason
    ]
    present = {item.path for item in files.files} | {item.path for item in files.skipped}
    return to_read, sorted(manifest.keys() - present), skipped


def _looks_same(record: FileRecord, file: FileEntry | FileRecord) -> bool:
    return (record.size, record.mtime_ns) == (file.size, file.mtime_ns)


@dataclass(slots=True)
class Outcome:
    """Numbers of files in a pass."""

    removed: int
    read: int
    """Files that were opened, changed or not."""
    changed: int = 0
    unchanged: int = 0
    wrote: bool = False
    """Anything was written."""


class Builder(Protocol):
    """Read files and write their rows: LocalBuilder, or the one of `codeqa_server`."""

    beside: bool
    """Whether a first index becomes visible only once it is complete."""

    def running(self, location: Location) -> AbstractContextManager[None]:
        """Hold what a run needs."""

    def read(
        self,
        settings: Settings,
        entries: Sequence[FileEntry],
        manifest: Mapping[str, FileRecord],
        writer: TableWriter,
        progress: Callable[[Progress], None],
    ) -> Iterator[Batch]:
        """Read and parse `entries`; those with their hash in `manifest` are unchanged."""

    def commit(
        self, writer: TableWriter, batch: Batch, replaced: Sequence[str], fast: Embedding | None
    ) -> None:
        """Put the rows of a batch in place of those of the files `replaced`."""

    def tidy(self, writer: TableWriter, progress: Callable[[Progress], None]) -> None:
        """Build the indices of the tables."""


class LocalBuilder:
    """Build on this machine: worker processes parse, this one writes."""

    beside = False

    def running(self, location: Location) -> AbstractContextManager[None]:
        return nullcontext()

    def read(
        self,
        settings: Settings,
        entries: Sequence[FileEntry],
        manifest: Mapping[str, FileRecord],
        writer: TableWriter,
        progress: Callable[[Progress], None],
    ) -> Iterator[Batch]:
        batch, batch_files = Batch(), min(FIRST_FILES, settings.batch_files)
        results: Any = parse_many(
            writer.location.root,
            entries,
            workers=settings.worker_count,
            max_file_bytes=settings.max_file_bytes,
            hashes={path: record.hash for path, record in manifest.items() if record.hash},
            packer=PACKER,
        )
        with closing(results):
            for done, result in enumerate(results, 1):
                progress(Progress("indexing", done, len(entries), result.path))
                add_result(batch, result)
                if len(batch.files) >= batch_files or batch.rows >= BATCH_ROWS:
                    batch_files = min(2 * batch_files, settings.batch_files)
                    yield batch
                    batch = Batch()
        yield batch

    def commit(
        self, writer: TableWriter, batch: Batch, replaced: Sequence[str], fast: Embedding | None
    ) -> None:
        writer.write(batch, embed(writer, batch, fast))

    def tidy(self, writer: TableWriter, progress: Callable[[Progress], None]) -> None:
        writer.tidy()


# The order of the writes keeps the index valid whatever ends the pass (ARCHITECTURE.md, Data).
def build(
    settings: Settings,
    files: Walk,
    writer: TableWriter,
    fast: Embedding | None,
    progress: Callable[[Progress], None],
    builder: Builder,
) -> Outcome:
    """Bring the tables up to `files` by `builder`."""
    manifest = writer.manifest()
    to_read, removed, skipped = make_plan(files, manifest, writer.checked_ns)
    outcome = Outcome(len(removed), len(to_read))
    pending = Future[None]()
    pending.set_result(None)
    touched: list[FileRecord] = []

    def begin() -> None:
        if not outcome.wrote:
            writer.begin(manifest)
            if not writer.meta.complete:
                writer.update_meta(expected=len(files.files))
            outcome.wrote = True

    if writer.meta.dirty or removed or skipped:
        begin()
        writer.remove(removed)
        if skipped:
            writer.write(Batch(files=skipped))
    progress(Progress("indexing", 0, outcome.read))
    batches: Any = builder.read(settings, to_read, manifest, writer, progress)
    with closing(batches), ThreadPoolExecutor(1, thread_name_prefix="codeqa-write") as thread:
        for batch in batches:
            touched += _touched(batch, manifest)
            if batch.files:
                outcome.changed += len(batch.files)
                begin()
                pending.result()
                replaced = [file.path for file in batch.files if file.path in manifest]
                pending = thread.submit(builder.commit, writer, batch, replaced, fast)
    pending.result()
    if touched:
        begin()
        writer.write_files(touched)
    outcome.unchanged = len(files.files) - outcome.changed
    return outcome


def _touched(batch: Batch, manifest: Mapping[str, FileRecord]) -> Iterator[FileRecord]:
    """Yield the new rows of files whose time changed and whose content did not."""
    for file in batch.unchanged:
        row = manifest[file.path]
        if not _looks_same(row, file):
            yield replace(row, size=file.size, mtime_ns=file.mtime_ns)


def embed(writer: TableWriter, batch: Batch, fast: Embedding | None) -> dict[str, np.ndarray]:
    """Return the fast vectors of each unit table's rows; keep the descriptions of methods."""
    keep_descriptions(writer, batch)
    vectors = {}
    for table in UNIT_TABLES:
        if fast and batch.tables[table]:
            vectors[table] = fast.embed_passages(batch.tables[table]["code"])
    return vectors


def add_result(batch: Batch, result: FileResult) -> None:
    """Add the result of one file."""
    record = FileRecord(
        path=result.path,
        hash=result.hash,
        size=result.size,
        mtime_ns=result.mtime_ns,
        role=result.role,
        indexed_at=time.time(),
    )
    if result.unchanged:
        batch.unchanged.append(record)
    elif result.packed is None:
        batch.files.append(replace(record, status=SKIPPED, reason=result.reason))
    else:
        batch.add(record, result.packed)


# One loop: each round takes first the files that questions need by then.
def refine_units(
    writer: TableWriter,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    enough: threading.Event,
    urgent: Set[str],
) -> None:
    """Embed the units that lack a vector of `embedding`, `batch` texts per call, until `enough`.

    Units of the files `urgent`, which may grow meanwhile, come first, then the first unit of each
    file, then the others, source code before the rest. Vectors of another embedding are dropped
    first. Raises EmbeddingError; what was committed stays.
    """
    import numpy as np
    import pyarrow as pa

    record = record_of(embedding)
    if record and writer.meta.refined != record:
        writer.refine_with(record)
    lacking = _lacking(writer)
    total, done, sorted_for = len(lacking), 0, 0
    if not total:
        return
    progress(Progress("embedding", 0, total, embedding.name))
    threads = min(4, max(1, (os.cpu_count() or 1) // 2))
    with writer.growing(), ThreadPool(threads, _lower_priority) as pool:
        while lacking:
            if len(urgent) > sorted_for:
                sorted_for, first = len(urgent), set(urgent)
                lacking.sort(key=lambda unit: unit[0] not in first)
            ids = _ids_together(lacking)
            del lacking[: len(ids)]
            texts = _texts(writer, ids)
            calls = [texts[at : at + batch] for at in range(0, len(texts), batch)]
            parts: list[np.ndarray] = []
            for vectors in pool.imap(embedding.embed_passages, calls):
                parts.append(vectors)
                done += len(vectors)
                progress(Progress("embedding", done, total, embedding.name))
                if enough.is_set():
                    break
            vectors = np.concatenate(parts)
            for table in UNIT_TABLES:  # each takes those of its own units
                handle = writer.tables[table]
                column = vector_array(vectors, handle.schema.field(REFINED).type)
                rows = pa.table([ids[: len(vectors)], column], names=["id", REFINED])
                handle.merge_insert("id").when_matched_update_all().execute(rows)
            if done < total and enough.is_set():
                return
        writer.tidy()


def _lower_priority() -> None:
    """Lower the priority of this thread."""
    if sys.platform == "linux":  # elsewhere it would be that of the whole server
        os.nice(NICENESS)


def _lacking(writer: TableWriter) -> list[tuple[str, str]]:
    """Return path and id of the units without a vector, the first unit of each file first."""
    columns = {name: name for name in ("path", "start_line", "id", "role")}
    columns["lacks"] = f"{REFINED} IS NULL"
    rows = []
    for table in UNIT_TABLES:
        rows += read_rows(writer.tables[table], columns).to_pylist()
    rows.sort(key=lambda row: (row["path"], row["start_line"], row["id"]))
    heads = {row["path"]: row["id"] for row in reversed(rows)}
    rows.sort(key=lambda row: (heads[row["path"]] != row["id"], row["role"] != "source"))
    return [(row["path"], row["id"]) for row in rows if row["lacks"]]


def _ids_together(lacking: Sequence[tuple[str, str]]) -> list[str]:
    """Return the ids of the first units, as many as are committed together."""
    paths: set[str] = set()
    ids = []
    for path, identity in lacking[:REFINED_ROWS]:
        paths.add(path)
        if len(paths) > REFINED_FILES:
            break
        ids.append(identity)
    return ids


def _texts(writer: TableWriter, ids: Sequence[str]) -> list[str]:
    texts: dict[str, str] = {}
    for table in UNIT_TABLES:
        rows = read_rows(writer.tables[table], ("id", "code"), one_of("id", ids))
        texts.update(zip(rows["id"].to_pylist(), rows["code"].to_pylist(), strict=True))
    return [texts[identity] for identity in ids]
