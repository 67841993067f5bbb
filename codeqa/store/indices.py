"""The indices on the tables' columns, and merging fragments: done where that pays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
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

OLD_VERSIONS = 20, 100
"""Versions nobody reads any more from which on they are removed and the fragments merged: in a
small table and in one of 100,000 rows and more. That takes a tenth of a second for each thousand
rows; each version that stays makes every update and every search a little slower."""

KEEP_VERSIONS = timedelta(seconds=20)
"""A version stays for so long after another one took its place. An open reader goes on to the new
one within a second, reads all of 300,000 units in four, and asks again when it was too late."""

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
        rows = handle.count_rows()
        share = int(rows * UNINDEXED_SHARE)
        limits = dict.fromkeys(_COLUMNS[name], max(UNINDEXED_ROWS, share))
        for column in {"vector", REFINED}.intersection(handle.schema.names):
            filled = handle.count_rows(f"{column} IS NOT NULL") if rows >= VECTOR_INDEX_ROWS else 0
            if filled >= VECTOR_INDEX_ROWS:
                limits[column] = max(UNINDEXED_VECTORS, share)
        if rows <= UNINDEXED_ROWS:  # as soon read as looked up
            limits = {column: limits[column] for column in limits if column == "search_text"}
        for column, limit in limits.items():
            if every or unindexed.get(column, limit + 1) > limit:
                handle.create_index(column, config=index_config(column), replace=True)


def merge_fragments(handle: Table) -> None:
    """Merge small fragments and remove old versions, once there are enough of these."""
    made = [version["timestamp"] for version in handle.list_versions()]
    now = datetime.now()
    # Each version was current until the next one was made.
    current = [first for first, after in pairwise([*made, now]) if after > now - KEEP_VERSIONS]
    # Merging makes versions of its own while time goes on: what is current now stays meanwhile.
    limit = min(current, default=now) - KEEP_VERSIONS
    few, many = OLD_VERSIONS
    if sum(one < limit for one in made) > min(max(few, handle.count_rows() // 1_000), many):
        handle.optimize(cleanup_older_than=now - limit)


def index_config(column: str) -> Any:
    """LanceDB's configuration of the index on `column`."""
    from lancedb.index import FTS, Bitmap, BTree, IvfSq

    if column == "search_text":
        return FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            max_token_length=MAX_TOKEN,
        )
    if column in ("vector", REFINED):
        return IvfSq(distance_type="cosine")
    return Bitmap() if column in ("language", "kind", "role") else BTree()
