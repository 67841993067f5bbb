"""Searches of the unit tables by text and by vector, asked side by side; rows by their ids.

A search names rows and scores only: LanceDB reads a row's columns in many small pieces, which
costs more than to find it, so each row is read once for all the searches that found it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeqa.errors import IndexFormatError
from codeqa.store.meta import REBUILD_HINT, Meta
from codeqa.store.reader import Snapshot
from codeqa.store.records import columns_of, units_of
from codeqa.types import Unit

if TYPE_CHECKING:
    import numpy as np

NPROBES = 50
"""Partitions searched of a vector index, which has one per 4,096 rows: all of them up to 200,000
rows. Of 16 partitions 8 hold only 91 % of the 70 nearest units of a question."""

REFINE = 2
"""Candidates that are compared exactly, as a multiple of the limit, where some rows are not in
the index yet. Where all are the index's own distances do: 8 bits a dimension, .0007 off, 99 of
the 100 nearest; to refine them would take 2 ms more of a table's 2 ms."""


@dataclass(frozen=True, slots=True)
class TextSearch:
    """BM25 over `search_text`: units of `table` that hold any token of `query`."""

    table: str
    query: str
    """Tokens joined by blanks (`tokens.search_tokens`); any text is safe."""
    limit: int
    where: str = ""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Units of `table` whose `column` lies nearest to `vector`; those without one are left out."""

    table: str
    column: str
    vector: np.ndarray
    limit: int
    where: str = ""


Scored = dict[int, float]
"""Row id → score, higher is better."""
Taken = dict[str, dict[int, Unit]]
"""Table → row id → unit."""


async def scored(snapshot: Snapshot, search: TextSearch | VectorSearch) -> Scored:
    """The rows that `search` finds: BM25 scores, or 1 - cosine distance.

    Raises IndexFormatError when a vector does not have its column's dimension.
    """
    if not _possible(snapshot.meta, search):
        return {}
    query: Any = snapshot.tables[search.table].query()
    whole = False
    if isinstance(search, TextSearch):
        from lancedb.query import MatchQuery

        match: Any = MatchQuery
        query, column = query.nearest_to_text(match(search.query, "search_text")), "_score"
    else:
        whole = (search.table, search.column) in snapshot.indexed
        query = query.nearest_to(search.vector.astype("float32")).column(search.column)
        query, column = query.distance_type("cosine").nprobes(NPROBES), "_distance"
        query = query if whole else query.refine_factor(REFINE)
    if search.where:
        query = query.where(search.where)
    rows = await query.select([column]).with_row_id().limit(search.limit).to_arrow()
    found = zip(rows["_rowid"].to_pylist(), rows[column].to_pylist(), strict=True)
    if column == "_score":
        return dict(found)
    # IVF_SQ gives the squared distance of the unit vectors, which is twice the cosine distance.
    part = 0.5 if whole else 1.0
    return {row: 1.0 - part * distance for row, distance in found if distance is not None}


def _possible(meta: Meta, search: TextSearch | VectorSearch) -> bool:
    """Whether there is anything to search for, and to search in."""
    if isinstance(search, TextSearch):
        return search.limit > 0 and bool(search.query.strip())
    record = meta.vector if search.column == "vector" else meta.refined
    if record is None or search.limit < 1 or not search.vector.any():
        return False
    if search.vector.shape != (record.dimension,):
        raise IndexFormatError(
            f"The question's vector has {search.vector.size} dimensions, "
            f"the index holds vectors of {record}.",
            REBUILD_HINT,
        )
    return True


def rows_of(
    searches: Sequence[TextSearch | VectorSearch], found: Sequence[Scored]
) -> dict[str, list[int]]:
    """Table → ids of all the rows that were found there, in ascending order."""
    wanted: dict[str, set[int]] = {}
    for search, rows in zip(searches, found, strict=True):
        wanted.setdefault(search.table, set()).update(rows)
    return {table: sorted(rows) for table, rows in wanted.items()}


async def taken(snapshot: Snapshot, wanted: dict[str, list[int]]) -> Taken:
    """The units with these row ids, read from the tables."""

    async def take(table: str, rows: list[int]) -> dict[int, Unit]:
        if not rows:
            return {}
        query = snapshot.tables[table].take_row_ids(rows).select(list(columns_of(table)))
        found = await query.with_row_id().to_arrow()
        return dict(zip(found["_rowid"].to_pylist(), units_of(found), strict=True))

    units = await asyncio.gather(*(take(table, rows) for table, rows in wanted.items()))
    return dict(zip(wanted, units, strict=True))
