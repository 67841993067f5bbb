"""The indices on the tables' columns, and merging fragments: done where that pays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from codeqa.store.schema import REFINED

if TYPE_CHECKING:
    from lancedb.table import Table

UNINDEXED_SHARE = 0.02
"""Share of a table outside its full-text index from which on that is built anew: a search
reads those rows one by one, about 10 µs each, and scores them by the words of the others.
Building takes 0.3 s for 10,000 rows, 2 s for 60,000."""

UNINDEXED_ROWS = 50
"""As many rows may always wait for the next build."""

FRAGMENTS = 100
"""Fragments of a table from which on they are merged."""

OLD_VERSIONS = 50
"""Versions nobody reads any more from which on their files are removed."""

KEEP_VERSIONS = timedelta(hours=1)
"""Younger versions stay, so that no open reader loses the one it is reading."""

VECTOR_INDEX_ROWS = 5_000
"""Rows from which on IVF_SQ is built: brute force takes 1 ms of processor time for each thousand
of them, the index 3 ms for 30,000, of whose 70 nearest it finds 99 of 100. Building takes 0.4 s
for 30,000."""

UNINDEXED_VECTORS = 1_000
"""Vectors outside of their index from which on it is built anew: those are compared one by one."""

MAX_TOKEN = 64
"""Longest token in the full-text index; longer ones are data, not names."""

_COLUMNS = {
    "methods": ("search_text", "id", "path", "name_key", "language", "kind", "role"),
    "classes": ("search_text", "id", "path", "name_key", "language", "kind", "role"),
    "edges": ("id", "name", "path"),
    "files": (),
}
"""Table → columns that always have an index."""


def build_indices(tables: Mapping[str, Table], *, every: bool) -> None:
    """Build what is missing, and build anew what many rows are not in; `every`: all of them.

    Building an index anew costs no more than updating it would, and leaves the data where
    it is.
    """
    for name, handle in tables.items():
        unindexed = {
            index.columns[0]: int(index.num_unindexed_rows or 0) for index in handle.list_indices()
        }
        share = int(handle.count_rows() * UNINDEXED_SHARE)
        rows = max(UNINDEXED_ROWS, share)
        wanted = {column: (index_config(column), rows) for column in _COLUMNS[name]}
        for column, config in _vector_indices(handle).items():
            wanted[column] = (config, max(UNINDEXED_VECTORS, share))
        for column, (config, limit) in wanted.items():
            if every or unindexed.get(column, limit + 1) > limit:
                handle.create_index(column, config=config, replace=True)


def merge_fragments(handle: Table) -> None:
    """Merge many small fragments, and drop old versions, once there are enough of either."""
    stats: Any = handle.stats()
    oldest_kept = datetime.now() - KEEP_VERSIONS
    old = sum(version["timestamp"] < oldest_kept for version in handle.list_versions())
    if int(stats["fragment_stats"]["num_fragments"]) > FRAGMENTS or old > OLD_VERSIONS:
        handle.optimize(cleanup_older_than=KEEP_VERSIONS)


def index_config(column: str) -> Any:
    """LanceDB's configuration of the index on `column`."""
    from lancedb.index import FTS, Bitmap, BTree

    if column == "search_text":
        return FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            max_token_length=MAX_TOKEN,
        )
    return Bitmap() if column in ("language", "kind", "role") else BTree()


def _vector_indices(handle: Table) -> dict[str, Any]:
    """Vector columns that hold too many vectors for brute force, with their index."""
    from lancedb.index import IvfSq

    columns = [column for column in ("vector", REFINED) if column in handle.schema.names]
    return {
        column: IvfSq(distance_type="cosine")
        for column in columns
        if handle.count_rows() >= VECTOR_INDEX_ROWS
        and handle.count_rows(f"{column} IS NOT NULL") >= VECTOR_INDEX_ROWS
    }
