"""The two passes over a repository.

The first reads every file's text and symbols, in batches that are committed one by one. The
repository as it is is compared with the manifest as it was; workers parse ahead, this process
makes columns of what they send, and one thread embeds and writes, so that at most two batches and
what the workers have finished are in memory at a time.

The second makes vectors of the embedding that the user chose. Their column exists only once one is
chosen; the writer carries its vectors over wherever a unit's text stays the same, so that none is
paid for twice.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.registry import Embedding
from codeqa.parsing.pool import NICENESS, FileResult, parse_many
from codeqa.repository.classify import role_of
from codeqa.repository.walk import FileEntry, Walk
from codeqa.settings import Settings
from codeqa.store.records import SKIPPED, Batch, FileRecord
from codeqa.store.schema import REFINED, UNIT_TABLES, one_of, read_rows, record_of, vector_array
from codeqa.store.writer import Writer, keep_comments
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np

BATCH_ROWS = 20_000
"""Units and edges in one batch at most; keeps memory bounded by rows, not by files."""

FIRST_FILES = 20
"""Files of the first batch, so that something can be searched at once; each is twice as large as
the one before, up to the setting."""

TIME_RESOLUTION_NS = 2_000_000_000
"""Coarsest step of file times in use (FAT). A file that changed so shortly before it was
read may have changed again within the same step, unseen by its size and time; such files
are compared by content, as git does with its index."""

PACKER = "codeqa.store.records:pack_rows"
_LAST = {"source": 0, "vendored": 2, "generated": 2}

REFINED_ROWS, REFINED_FILES = 512, 20
"""Vectors of the chosen embedding in one commit, and files that they are of, at most: what a
killed run pays for twice."""


def make_plan(
    found: Walk, manifest: Mapping[str, FileRecord], checked_ns: int
) -> tuple[list[FileEntry], list[str], list[FileRecord]]:
    """Compare `found` with `manifest`: the files to read, in the order of their use; the paths that
    are no longer in the repository; and rows for files that are newly left out.

    `checked_ns` is the start of the last completed run: what changed before it, and still
    has the size and time of its row, is unchanged.
    """
    trusted_ns, now, none = checked_ns - TIME_RESOLUTION_NS, time.time(), FileRecord("")

    def same(entry: FileEntry) -> bool:
        known = manifest.get(entry.path, none)
        changed_ns = max(entry.mtime_ns, entry.ctime_ns)  # who writes can set the first back
        return bool(known.hash) and _looks_same(known, entry) and changed_ns < trusted_ns

    read = [entry for entry in found.files if not same(entry)]
    read.sort(key=lambda entry: (_LAST.get(role_of(entry.path), 1), entry.path))
    skipped = [
        FileRecord(item.path, status=SKIPPED, reason=item.reason, indexed_at=now)
        for item in found.skipped
        if manifest.get(item.path, none).reason != item.reason
    ]
    present = {item.path for item in found.files} | {item.path for item in found.skipped}
    return read, sorted(manifest.keys() - present), skipped


def _looks_same(record: FileRecord, file: FileEntry | FileRecord) -> bool:
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
    engine: Any = None,
) -> Outcome:
    """Bring the tables up to `found`, by `engine` if there is one; what ends it leaves a valid
    index."""
    manifest = writer.manifest()
    to_read, removed, skipped = make_plan(found, manifest, writer.checked_ns)
    outcome = Outcome(len(removed), len(to_read))
    pending: Future[None] | None = None
    touched: list[FileRecord] = []

    def begin() -> None:
        if not outcome.wrote:
            writer.begin(manifest)
            if not writer.meta.complete:
                writer.update_meta(expected=len(found.files))
            outcome.wrote = True

    def write(full: Batch) -> None:
        if engine:
            engine.commit(writer, full, [one.path for one in full.files if one.path in manifest])
        else:
            writer.write(full, embed(writer, full, fast))

    if writer.meta.dirty or removed or skipped:
        begin()
        writer.remove(removed)
        if skipped:
            writer.write(Batch(files=skipped))
    progress(Progress("indexing", 0, outcome.read))
    read = engine.read if engine else read_here
    batches: Any = read(settings, to_read, manifest, writer, progress)
    with closing(batches), ThreadPoolExecutor(1, thread_name_prefix="codeqa-write") as thread:
        for batch in batches:
            for new in batch.unchanged:
                old = manifest[new.path]
                if not _looks_same(old, new):
                    touched.append(replace(old, size=new.size, mtime_ns=new.mtime_ns))
            if batch.files:
                outcome.changed += len(batch.files)
                begin()
                if pending:
                    pending.result()
                pending = thread.submit(write, batch)
    if pending:
        pending.result()
    if touched:
        begin()
        writer.write_files(touched)
    outcome.unchanged = len(found.files) - outcome.changed
    return outcome


def read_here(
    settings: Settings,
    entries: Sequence[FileEntry],
    manifest: Mapping[str, FileRecord],
    writer: Writer,
    progress: Callable[[Progress], None],
) -> Iterator[Batch]:
    """Read and parse `entries` in worker processes."""
    batch, batch_files = Batch(), min(FIRST_FILES, settings.batch_files)
    results: Any = parse_many(
        writer.location.root,
        entries,
        workers=settings.worker_count,
        max_file_bytes=settings.max_file_bytes,
        known={path: record.hash for path, record in manifest.items() if record.hash},
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


def embed(writer: Writer, batch: Batch, fast: Embedding | None) -> dict[str, np.ndarray]:
    """The fast vectors of each unit table's rows, with the descriptions that methods had."""
    keep_comments(writer, batch)
    filled = {table: batch.tables[table] for table in UNIT_TABLES if batch.tables[table]}
    if fast is None:
        return {}
    return {table: fast.embed_passages(rows["code"]) for table, rows in filled.items()}


def add_result(batch: Batch, result: FileResult) -> None:
    """Add what became of one file."""
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


def refine_units(
    writer: Writer,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    enough: threading.Event,
    asked: Set[str],
) -> None:
    """Embed the units that lack a vector of the chosen `embedding`, `batch` texts per call, all of
    them or until `enough` is set.

    The units of files that are in `asked`, which may grow meanwhile, come first, then the first
    unit of each file, then the others; in each of these source code before the rest. Another
    embedding than the column holds empties the column first. Raises EmbeddingError; what was
    committed stays.
    """
    import numpy as np
    import pyarrow as pa

    if (record := record_of(embedding)) and writer.meta.refined != record:
        writer.refine_with(record)
    lacking = _lacking(writer)
    total, done, known = len(lacking), 0, 0
    if not total:
        return
    progress(Progress("embedding", 0, total, embedding.name))
    threads = min(4, max(1, (os.cpu_count() or 1) // 2))
    with writer.growing(), ThreadPool(threads, _make_way) as pool:
        while lacking:
            if len(asked) > known:
                known, first = len(asked), set(asked)
                lacking.sort(key=lambda unit: unit[0] not in first)
            ids = _ids_together(lacking)
            del lacking[: len(ids)]
            texts = _texts(writer, ids)
            parts = [texts[at : at + batch] for at in range(0, len(texts), batch)]
            made: list[np.ndarray] = []
            for vectors in pool.imap(embedding.embed_passages, parts):
                made.append(vectors)
                done += len(vectors)
                progress(Progress("embedding", done, total, embedding.name))
                if enough.is_set():
                    break
            vectors = np.concatenate(made)
            for table in UNIT_TABLES:  # each takes those of its own units
                handle = writer.tables[table]
                column = vector_array(vectors, handle.schema.field(REFINED).type)
                found = pa.table([ids[: len(vectors)], column], names=["id", REFINED])
                handle.merge_insert("id").when_matched_update_all().execute(found)
            if done < total and enough.is_set():
                return
        writer.tidy()


def _make_way() -> None:
    """Lower the priority of this thread, where the system has such a thing: elsewhere it would be
    that of the whole server."""
    if sys.platform == "linux":
        os.nice(NICENESS)


def _lacking(writer: Writer) -> list[tuple[str, str]]:
    """Path and id of the units without a vector of the chosen embedding: the first unit of each
    file, those of source code first, then the others alike."""
    columns = {name: name for name in ("path", "start_line", "id", "role")}
    columns["lacks"], rows = f"{REFINED} IS NULL", []
    for table in UNIT_TABLES:
        rows += read_rows(writer.tables[table], columns).to_pylist()
    rows.sort(key=lambda row: (row["path"], row["start_line"], row["id"]))
    heads = {row["path"]: row["id"] for row in reversed(rows)}
    rows.sort(key=lambda row: (heads[row["path"]] != row["id"], row["role"] != "source"))
    return [(row["path"], row["id"]) for row in rows if row["lacks"]]


def _ids_together(lacking: Sequence[tuple[str, str]]) -> list[str]:
    """Those of the first units, as many as are committed together."""
    paths: set[str] = set()
    ids = []
    for path, identity in lacking[:REFINED_ROWS]:
        paths.add(path)
        if len(paths) > REFINED_FILES:
            break
        ids.append(identity)
    return ids


def _texts(writer: Writer, ids: Sequence[str]) -> list[str]:
    found: dict[str, str] = {}
    for table in UNIT_TABLES:
        rows = read_rows(writer.tables[table], ("id", "code"), one_of("id", ids))
        found.update(zip(rows["id"].to_pylist(), rows["code"].to_pylist(), strict=True))
    return [found[identity] for identity in ids]
