"""What an index holds and what is being done with it, as the page and every answer say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from codeqa.errors import CodeQAError, IndexMissingError
from codeqa.indexing.lock import holder_of
from codeqa.indexing.record import read_record
from codeqa.settings import Settings
from codeqa.store.location import Location
from codeqa.store.records import SKIPPED, Counts, FileRecord
from codeqa.store.tables import Tables
from codeqa.types import IndexStatus

INTERRUPTED = "The last run was interrupted; the next one completes it."


def read_status(settings: Settings, location: Location) -> IndexStatus:
    """What the index of `location` holds and what any process is doing with it now.

    Raises nothing because of the index: one that cannot be read has the state `failed`.
    """
    held = holder_of(location) is not None
    record = read_record(location)
    empty = IndexStatus(str(location.root), location.name, "missing")
    try:
        tables = Tables.open(location)
        meta, counts, files = tables.meta(), tables.counts(), tables.files()
    except IndexMissingError:
        state = "indexing" if held else ("failed" if record.error else "missing")
        return replace(empty, state=state, progress=record.progress, error=record.error)
    except CodeQAError as failure:
        state = "indexing" if held else "failed"
        return replace(empty, state=state, progress=record.progress, error=str(failure))
    state, error = _state(held, record.state, record.error, meta.complete, meta.dirty)
    embedding, embedded = _embedding(settings, tables, counts)
    return IndexStatus(
        repository=str(location.root),
        name=location.name,
        state=state,
        files=counts.files,
        units=counts.units,
        references=counts.references,
        embedded=embedded,
        embedding=embedding,
        skipped=count_reasons(files),
        updated_at=meta.updated_at,
        progress=record.progress if held else None,
        error=error,
    )


def count_reasons(files: Iterable[FileRecord]) -> dict[str, int]:
    """Reason → number of files that are skipped for it, the most first."""
    counted = Counter(file.reason for file in files if file.status == SKIPPED)
    return dict(counted.most_common())


def _state(held: bool, state: str, error: str, complete: bool, dirty: bool) -> tuple[str, str]:
    if held:
        return (state if state in ("indexing", "refining") else "indexing"), ""
    if state in ("indexing", "refining") or (dirty and not error):
        error = INTERRUPTED
    return ("ready" if complete else "failed"), error


def _embedding(settings: Settings, tables: Tables, counts: Counts) -> tuple[str, int]:
    """Name of the embedding in use and how many units have a vector of it."""
    meta = tables.meta()
    if settings.embedding:
        same = meta.refined is not None and meta.refined.name == settings.embedding
        return settings.embedding, counts.refined if same else 0
    return (meta.vector.name, counts.embedded) if meta.vector else ("", 0)
