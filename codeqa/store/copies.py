"""A copy in memory of the version of an index that is searched.

To read the 230 candidates of one search from LanceDB takes 10 to 15 ms of processor time, and each
of the dozen looks for references that a question needs 3 to 8 ms; of a copy nothing needs to be
made anew.
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
"""Text of all indexed files up to which their units are kept in memory. The copy takes about three
times as much: 85 MB for Jenkins, 28 MB of text in 12,100 files."""

KEEP_AFTER = 1.0
"""Seconds that a version has been searched before it is copied: a command that searches once is
over by then, and what an indexing run is still writing has another version."""

LOOKED_UP_BY = ("id", "path", "name_key")
"""Columns by whose values units are found in the copy as well."""

_log = logging.getLogger(__name__)


class CopyCache:
    """A copy of the version that is searched, made in the background once that pays; another
    version has it put away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: Key | None = None
        self._first = 0.0
        """When this version was first searched; infinite once copying it has begun."""
        self._copy: Copy | None = None

    def of(self, snapshot: Snapshot) -> Copy | None:
        """The copy of exactly this snapshot; None while there is none."""
        with self._lock:
            now = time.monotonic()
            if self._key != snapshot.key:
                # Also by a search that is late with an older version: the newer is copied again.
                self._key, self._first, self._copy = snapshot.key, now, None
            elif now - self._first >= KEEP_AFTER:
                self._first = math.inf
                threading.Thread(target=self._fill, args=(snapshot,), name="copy").start()
            return self._copy

    def _fill(self, snapshot: Snapshot) -> None:
        """Read all of it unless that is too much: 0.4 s for 60,000 units."""
        try:
            rows = run_on_loop(_all_rows(snapshot))
        except Exception:  # a rebuild dropped its tables; searches read LanceDB as before
            _log.debug("the index was not copied into memory", exc_info=True)
            return
        if rows:
            references = CachedReferences(rows.pop("edges"))
            copy = Copy({table: CachedUnits(own) for table, own in rows.items()}, references)
            with self._lock:
                if self._key == snapshot.key:
                    self._copy = copy
        give_back_memory()  # what was only read to be copied


async def _all_rows(snapshot: Snapshot) -> dict[str, pa.Table]:
    files = await snapshot.rows("files", ["size"], f"status = {quote(INDEXED)}")
    if sum(files["size"].to_pylist()) > MOST_BYTES:
        return {}
    wanted = {one: [*columns_of(one), "name_key"] for one in UNIT_TABLES}
    wanted["edges"] = [*REFERENCE_COLUMNS]
    read = (snapshot.rows(one, columns, ids=True) for one, columns in wanted.items())
    return dict(zip(wanted, await asyncio.gather(*read), strict=True))


@dataclass(frozen=True, slots=True)
class Copy:
    """One version of an index in memory."""

    units: Mapping[str, CachedUnits]
    """By their table."""
    references: CachedReferences


class CachedUnits:
    """The units of one table, by row id and by what they are looked up by."""

    def __init__(self, rows: pa.Table) -> None:
        ids = rows["_rowid"].to_pylist()
        self.units = dict(zip(ids, units_of(rows), strict=True))
        self._rows: dict[str, dict[str, list[int]]] = {}
        for column in LOOKED_UP_BY:
            own = self._rows[column] = {}
            for row, value in zip(ids, rows[column].to_pylist(), strict=True):
                own.setdefault(value, []).append(row)

    def having(self, column: str, values: Sequence[str], limit: int) -> list[Unit]:
        """The first units with one of `values` in `column`, which is one of LOOKED_UP_BY."""
        known = self._rows[column]
        rows = sorted(row for value in set(values) for row in known.get(value, ()))
        return [self.units[row] for row in rows[:limit]]


class CachedReferences:
    """The references of one version, in columns, each text held once."""

    LOOKED_UP_BY = ("path", "name")

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np
        import pyarrow as pa

        self._plain = rows.select(REFERENCE_COLUMNS).schema
        held = [one.dictionary_encode() if one.type == pa.string() else one for one in rows.columns]
        rows = pa.table(held, rows.column_names).combine_chunks().unify_dictionaries()
        self._rows = rows.select(REFERENCE_COLUMNS)
        self._places: dict[str, dict[str, np.ndarray]] = {}
        for column in self.LOOKED_UP_BY:
            texts = rows[column].combine_chunks()
            values = texts.dictionary.to_pylist()
            codes = texts.indices.to_numpy()
            order = np.lexsort((rows["_rowid"].to_numpy(), codes))
            ends = np.bincount(codes, minlength=len(values)).cumsum()
            self._places[column] = dict(zip(values, np.split(order, ends[:-1]), strict=False))

    def having(self, wanted: Mapping[str, Sequence[str]], limit: int) -> list[Reference]:
        """The first references that have in each column one of the values, by place; one of the
        columns at least is one of LOOKED_UP_BY."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        first = next(column for column in self.LOOKED_UP_BY if column in wanted)
        known = self._places[first]
        found = [known[value] for value in {*wanted[first]} if value in known]
        if not found:
            return []
        rows = self._rows.take(pa.array(np.concatenate(found))).cast(self._plain)
        for column in wanted.keys() - {first}:
            rows = rows.filter(pc.field(column).isin([*wanted[column]]))
        return by_place(rows.slice(0, limit))


def by_place(rows: pa.Table) -> list[Reference]:
    """The reference of each of `rows`, by place."""
    found = list(map(Reference, *(rows[name].to_pylist() for name in REFERENCE_COLUMNS)))
    return sorted(found, key=lambda one: (one.path, one.line, one.column, one.kind))
