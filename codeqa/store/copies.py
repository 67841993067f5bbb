"""Keep a copy in memory of the version of an index that is searched.

Reading the 230 candidates of one search from LanceDB takes 10 to 15 ms of processor time, and each
of the dozen lookups of references that a question needs takes 3 to 8 ms: a copy saves both.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeqa.store.reader import Key, Snapshot, give_back_memory, run_on_loop
from codeqa.store.records import INDEXED, columns_of, units_of
from codeqa.store.schema import REFERENCE_COLUMNS, UNIT_TABLES, quote
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MOST_BYTES = 80_000_000
"""Largest text of all indexed files whose units are kept in memory. The copy takes about three
times as much: 85 MB for Jenkins, 28 MB of text in 12,100 files."""

KEEP_AFTER = 1.0
"""Seconds that a version must have been searched before it is copied: a command that searches once
has ended by then, and a version that an indexing run is still writing has been replaced."""

LOOKUPS = 512
"""Lookups of references whose results are kept: a walk asks for one file again and again."""

LOOKED_UP_BY = ("id", "path", "name_key")
"""Columns by whose values units can be looked up in the copy."""

_log = logging.getLogger(__name__)


class CopyCache:
    """A copy of the version that is searched, made in the background once that pays.

    It is dropped as soon as another version is searched.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: Key | None = None
        self._first = 0.0
        """When this version was first searched; infinite once copying it has begun."""
        self._copy: Copy | None = None

    def of(self, snapshot: Snapshot) -> Copy | None:
        """Return the copy of exactly this snapshot; None while there is none."""
        with self._lock:
            now = time.monotonic()
            if self._key != snapshot.key:
                # A late search of an older version lands here too: the newer one is copied again.
                self._key, self._first, self._copy = snapshot.key, now, None
            elif now - self._first >= KEEP_AFTER:
                self._first = math.inf
                threading.Thread(target=self._fill, args=(snapshot,), name="copy").start()
            return self._copy

    def make(self, snapshot: Snapshot) -> None:
        """Copy the snapshot now, unless it is too large, for a walk of very many lookups."""
        self.of(snapshot)
        with self._lock:
            due, self._first = self._first != math.inf, math.inf
        if due:
            self._fill(snapshot)

    def _fill(self, snapshot: Snapshot) -> None:
        """Copy the snapshot unless it is too large: 0.4 s for 60,000 units."""
        try:
            rows = run_on_loop(_all_rows(snapshot))
        except Exception:  # a rebuild dropped its tables; searches read LanceDB as before
            _log.debug("the index was not copied into memory", exc_info=True)
            return
        if rows:
            references = CachedReferences(rows.pop("edges"))
            units = {table: CachedUnits(unit_rows) for table, unit_rows in rows.items()}
            with self._lock:
                if self._key == snapshot.key:
                    self._copy = Copy(units, references)
        give_back_memory()  # the Arrow tables that were read


async def _all_rows(snapshot: Snapshot) -> dict[str, pa.Table]:
    files = await snapshot.rows("files", ["size"], f"status = {quote(INDEXED)}")
    if sum(files["size"].to_pylist()) > MOST_BYTES:
        return {}
    columns = {table: [*columns_of(table), "name_key"] for table in UNIT_TABLES}
    columns["edges"] = list(REFERENCE_COLUMNS)
    reads = (snapshot.rows(table, names, ids=True) for table, names in columns.items())
    return dict(zip(columns, await asyncio.gather(*reads), strict=True))


@dataclass(frozen=True, slots=True)
class Copy:
    """One version of an index in memory."""

    units: Mapping[str, CachedUnits]
    """Table → its units."""
    references: CachedReferences


class CachedUnits:
    """The units of one table, by row id and by their values in LOOKED_UP_BY."""

    def __init__(self, rows: pa.Table) -> None:
        ids = rows["_rowid"].to_pylist()
        self.units = dict(zip(ids, units_of(rows), strict=True))
        self._rows: dict[str, dict[str, list[int]]] = {}
        for column in LOOKED_UP_BY:
            ids_by_value = self._rows[column] = {}
            for row, value in zip(ids, rows[column].to_pylist(), strict=True):
                ids_by_value.setdefault(value, []).append(row)

    def having(self, column: str, values: Sequence[str], limit: int) -> list[Unit]:
        """Return the first units with one of `values` in `column`, one of LOOKED_UP_BY."""
        ids_by_value, ids = self._rows[column], list[int]()
        for value in set(values):
            ids += ids_by_value.get(value, ())
        return [self.units[row] for row in sorted(ids)[:limit]]


class CachedReferences:
    """The references of one version, in columns, each text held once."""

    LOOKED_UP_BY = ("path", "name")

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np
        import pyarrow as pa

        self._plain = rows.select(REFERENCE_COLUMNS).schema
        for number, column in enumerate(rows.columns):
            if column.type == pa.string():
                name = rows.column_names[number]
                rows = rows.set_column(number, name, column.dictionary_encode())
        rows = rows.combine_chunks().unify_dictionaries()
        self._rows = rows.select(REFERENCE_COLUMNS)
        self._numbers: dict[str, dict[str, np.ndarray]] = {}
        """Column of LOOKED_UP_BY → value → numbers of the rows with it."""
        for column in self.LOOKED_UP_BY:
            texts = rows[column].combine_chunks()
            values = texts.dictionary.to_pylist()
            codes = texts.indices.to_numpy()
            order = np.lexsort((rows["_rowid"].to_numpy(), codes))
            ends = np.bincount(codes, minlength=len(values)).cumsum()
            self._numbers[column] = dict(zip(values, np.split(order, ends[:-1]), strict=False))

        self._looked_up: dict[object, list[Reference]] = {}

    def having(self, columns: Mapping[str, Sequence[str]], limit: int) -> list[Reference]:
        """Return the first references with one of the values in each column, sorted by place.

        At least one of the columns is one of LOOKED_UP_BY.
        """
        key = (*((column, *values) for column, values in columns.items()), limit)
        if (references := self._looked_up.get(key)) is None:
            references = self._matching(columns, limit)
            if len(self._looked_up) >= LOOKUPS:
                self._looked_up.clear()
            self._looked_up[key] = references
        return list(references)

    def _matching(self, values: Mapping[str, Sequence[str]], limit: int) -> list[Reference]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        first = next(column for column in self.LOOKED_UP_BY if column in values)
        numbers = self._numbers[first]
        matching = [numbers[value] for value in set(values[first]) if value in numbers]
        if not matching:
            return []
        rows = self._rows.take(pa.array(np.concatenate(matching))).cast(self._plain)
        for column in values.keys() - {first}:
            rows = rows.filter(pc.field(column).isin(list(values[column])))
        return by_place(rows.slice(0, limit))


def by_place(rows: pa.Table) -> list[Reference]:
    """Return the reference of each row, sorted by path and line."""
    columns = [rows[name].to_pylist() for name in REFERENCE_COLUMNS]
    references = map(Reference, *columns)
    return sorted(references, key=lambda edge: (edge.path, edge.line, edge.column, edge.kind))
