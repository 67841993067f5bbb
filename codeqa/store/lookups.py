"""Searches of the unit tables by text and by vector, and the units that they found, read from
the tables or from a copy in memory.

A search names rows and scores only: LanceDB reads a row's columns in many small pieces, which
costs more than to find it, so each row is read once for all the searches that found it. To read
the 230 candidates of one search from LanceDB takes 10 to 15 ms of processor time; of the copy
nothing needs to be made anew.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeqa.errors import IndexFormatError
from codeqa.store.filters import Filter
from codeqa.store.meta import REBUILD_HINT
from codeqa.store.reader import Key, Snapshot, run_on_loop
from codeqa.store.records import columns_of, units_of
from codeqa.store.schema import ALL_ROWS, UNIT_TABLES
from codeqa.types import Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MOST_BYTES = 80_000_000
"""Text of all indexed files up to which their units are kept in memory. The copy takes about three
times as much: 85 MB for Jenkins, 28 MB of text in 12,100 files."""

KEEP_AFTER = 1.0
"""Seconds that a version has been searched before it is copied: a command that searches once is
over by then, and what an indexing run is still writing has another version."""

LOOKED_UP_BY = ("id", "path", "name_key")
"""Columns by whose values units are found in the copy as well."""

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
    where: Filter | None = None


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Units of `table` whose `column` lies nearest to `vector`; those without one are left out."""

    table: str
    column: str
    vector: np.ndarray
    limit: int
    where: Filter | None = None


_log = logging.getLogger(__name__)


async def scored(snapshot: Snapshot, search: TextSearch | VectorSearch) -> dict[int, float]:
    """Row id → score of what `search` finds: BM25, or 1 - cosine distance.

    Raises IndexFormatError when a vector does not have its column's dimension.
    """
    query: Any = snapshot.tables[search.table].query()
    whole = False
    if search.limit < 1:
        return {}
    if isinstance(search, TextSearch):
        from lancedb.query import MatchQuery

        if not search.query.strip():
            return {}
        match: Any = MatchQuery
        query, column = query.nearest_to_text(match(search.query, "search_text")), "_score"
    else:
        record = snapshot.meta.vector if search.column == "vector" else snapshot.meta.refined
        if record is None or not search.vector.any():
            return {}
        if search.vector.shape != (record.dimension,):
            raise IndexFormatError(
                f"The question's vector has {search.vector.size} dimensions, "
                f"the index holds vectors of {record}.",
                REBUILD_HINT,
            )
        whole = (search.table, search.column) in snapshot.indexed
        query = query.nearest_to(search.vector.astype("float32")).column(search.column)
        query, column = query.distance_type("cosine").nprobes(NPROBES), "_distance"
        query = query if whole else query.refine_factor(REFINE)
    if search.where and (condition := search.where.sql()):
        query = query.where(condition)
    rows = await query.select([column]).with_row_id().limit(search.limit).to_arrow()
    found = zip(rows["_rowid"].to_pylist(), rows[column].to_pylist(), strict=True)
    if column == "_score":
        return dict(found)
    # IVF_SQ gives the squared distance of the unit vectors, which is twice the cosine distance.
    part = 0.5 if whole else 1.0
    return {row: 1.0 - part * distance for row, distance in found if distance is not None}


async def read_units(
    snapshot: Snapshot, wanted: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, Unit]]:
    """Table → row id → unit, read from the tables."""

    async def read(table: str, rows: Sequence[int]) -> dict[int, Unit]:
        if not rows:
            return {}
        query = snapshot.tables[table].take_row_ids(list(rows)).select(list(columns_of(table)))
        found = await query.with_row_id().to_arrow()
        return dict(zip(found["_rowid"].to_pylist(), units_of(found), strict=True))

    units = await asyncio.gather(*(read(table, rows) for table, rows in wanted.items()))
    return dict(zip(wanted, units, strict=True))


class UnitCache:
    """A copy of the units of the version that is searched, made in the background once that
    pays; another version has it put away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: Key | None = None
        self._first = 0.0
        """When this version was first searched; infinite once copying it has begun."""
        self._tables: Mapping[str, CachedUnits] = {}

    def of(self, snapshot: Snapshot) -> Mapping[str, CachedUnits]:
        """Unit table → its copy, of exactly this snapshot; empty while there is none."""
        with self._lock:
            now = time.monotonic()
            if self._key != snapshot.key:
                # Also by a search that is late with an older version: the newer is copied again.
                self._key, self._first, self._tables = snapshot.key, now, {}
            elif now - self._first >= KEEP_AFTER:
                self._first = math.inf
                threading.Thread(target=self._fill, args=(snapshot,), name="units").start()
            return self._tables

    def _fill(self, snapshot: Snapshot) -> None:
        """Read every unit unless that is too much: 0.4 s for 60,000."""
        try:
            found = run_on_loop(_all_units(snapshot))
        except Exception:  # a rebuild dropped its tables; searches read LanceDB as before
            _log.debug("the units were not copied into memory", exc_info=True)
            return
        tables = {table: CachedUnits(rows) for table, rows in found.items()}
        with self._lock:
            if self._key == snapshot.key:
                self._tables = tables


async def _all_units(snapshot: Snapshot) -> dict[str, pa.Table]:
    files = snapshot.tables["files"].query().where("status = 'indexed'").select(["size"])
    if sum((await files.limit(ALL_ROWS).to_arrow())["size"].to_pylist()) > MOST_BYTES:
        return {}
    found = []
    for table in UNIT_TABLES:
        query = snapshot.tables[table].query().select([*columns_of(table), "name_key"])
        found.append(query.with_row_id().limit(ALL_ROWS).to_arrow())
    return dict(zip(UNIT_TABLES, await asyncio.gather(*found), strict=True))


class CachedUnits:
    """The units of one table, by row id and by what they are looked up by."""

    def __init__(self, rows: pa.Table) -> None:
        ids = rows["_rowid"].to_pylist()
        self._units = dict(zip(ids, units_of(rows), strict=True))
        self._rows: dict[str, dict[str, list[int]]] = {}
        for column in LOOKED_UP_BY:
            own = self._rows[column] = {}
            for row, value in zip(ids, rows[column].to_pylist(), strict=True):
                own.setdefault(value, []).append(row)

    def at(self, rows: Sequence[int]) -> dict[int, Unit]:
        """Row id → unit; all of `rows` are of this table."""
        return {row: self._units[row] for row in rows}

    def having(self, column: str, values: Sequence[str], limit: int) -> list[Unit]:
        """The first units with one of `values` in `column`, which is one of LOOKED_UP_BY."""
        known = self._rows[column]
        rows = sorted(row for value in set(values) for row in known.get(value, ()))
        return [self._units[row] for row in rows[:limit]]
