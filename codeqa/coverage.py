"""What of a repository was searched, and whether its files are still as they were indexed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from codeqa.store import FileRecord, Tables

FRESH_FILES = 10
"""Files of the best hits whose state on disk is looked at; one stat each."""


def changed_files(tables: Tables, paths: Iterable[str]) -> dict[str, str]:
    """Files among the first FRESH_FILES of `paths` that differ from the manifest, and how.

    Size and time of change decide, as for the next indexing run; nothing is read.
    """
    records = tables.files_at(list(dict.fromkeys(paths))[:FRESH_FILES])
    states = {path: file_state(tables.location.root, record) for path, record in records.items()}
    return {path: state for path, state in states.items() if state}


def file_state(root: Path, record: FileRecord) -> str:
    """'' for a file that is as it was indexed, else `changed` or `deleted`."""
    try:
        status = os.lstat(root / record.path)
    except OSError:
        return "deleted"
    same = status.st_size == record.size and status.st_mtime_ns == record.mtime_ns
    return "" if same else "changed"


def coverage(tables: Tables, columns: Collection[str], trouble: str = "") -> str:
    """What was searched: files, and by text, symbols and the vectors of `columns`."""
    counts = tables.counts()
    if tables.meta().complete:
        files = f"{counts.files:,} of {counts.files:,} files"
    else:
        files = f"{counts.files:,} files so far, indexing goes on"
    filled = {"vector": counts.embedded, "vector_refined": counts.refined}
    parts = [
        f"vectors of {record.name} for {filled[column]:,} of {counts.units:,} units"
        for column, record in tables.vector_columns()
        if column in columns
    ]
    if trouble:
        parts.append(f"vectors left out: {trouble.rstrip('.')}")
    return f"{files}, text and symbols; {'; '.join(parts) or 'no vectors'}"
