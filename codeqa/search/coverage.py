"""Say how much of a repository a search covers, and which of its files changed on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from codeqa.indexing.runs import holder_of, is_paused
from codeqa.store import Tables

FRESH_FILES = 10
"""Files of the best hits whose state on disk is checked; one stat each."""


def changed_files(tables: Tables, paths: Iterable[str]) -> dict[str, str]:
    """Return which of the first FRESH_FILES of `paths` differ from the manifest, and how."""
    records = tables.files_at(list(dict.fromkeys(paths))[:FRESH_FILES])
    states = {}
    for path, record in records.items():
        root, inside = tables.place_of(path)
        states[path] = replace(record, path=inside).state_below(root)
    return {path: state for path, state in states.items() if state}


def shortfall(tables: Tables) -> str:
    """Return a sentence for an answer while the first index is built; '' once it is complete."""
    rest = "is being indexed"
    if not holder_of(tables.location):
        tables.look_again()  # the run may have ended just now
        rest = "is not indexed yet; run `codeqa index` to continue"
    elif is_paused(tables.location):
        rest = "is not indexed yet, because indexing is paused"
    meta, files = tables.meta(), tables.counts().files
    if meta.complete:
        return ""
    return f"Answered from {files:,} of {meta.expected:,} files; the rest {rest}."


def coverage(tables: Tables, columns: Collection[str], trouble: str = "") -> str:
    """Return a sentence on what was searched: by words and names, and by vectors of `columns`."""
    counts, meta = tables.counts(), tables.meta()
    total, so_far = (counts.files, "") if meta.complete else (meta.expected, " so far")
    files = f"{counts.files:,} of {total:,} files{so_far}"
    if tables.location.snapshot_of:
        files += f" of {tables.location.name}"
    embedded = {"vector": counts.embedded, "vector_refined": counts.refined}
    parts = [
        f"by meaning ({record.name}): {embedded[column]:,} of {counts.units:,} pieces"
        for column, record in tables.vector_columns()
        if column in columns
    ]
    if trouble:
        parts.append(f"by meaning left out: {trouble.rstrip('.')}")
    return f"{files}, by words and names; {'; '.join(parts) or 'not by meaning'}"
