"""A copy of the units in memory, for a database that is searched again and again.

To read the 230 candidates of one search from LanceDB takes 10 to 15 ms of processor time, from
this copy 1.5 ms. It stands for one version of the tables and is put away with it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeqa.store.reader import Key, Snapshot, run_on_loop
from codeqa.store.records import columns_of, units_of
from codeqa.store.schema import ALL_ROWS, UNIT_TABLES
from codeqa.types import Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MOST_BYTES = 128_000_000
"""Text of all indexed files up to which their units are kept in memory. The copy takes about one
and a half times as much: 70 MB for 45 MB of text, 1.1 million lines."""

KEEP_AFTER = 1.0
"""Seconds that a version has been searched before it is copied: a command that searches once is
over by then, and what an indexing run is still writing has another version."""

_log = logging.getLogger(__name__)


class UnitCache:
    """The copy of the current version, made in the background once that pays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: tuple[Key, float] | None = None
        self._copied: Key | None = None
        """The version that was copied, or is being copied, or is not to be."""
        self._resident: tuple[Key, CachedUnits] | None = None

    def of(self, snapshot: Snapshot) -> CachedUnits | None:
        """The copy of exactly this snapshot; None while there is none."""
        found = self._resident
        if found is not None and found[0] == snapshot.key:
            return found[1]
        with self._lock:
            now = time.monotonic()
            if self._first is None or self._first[0] != snapshot.key:
                # Also by a search that is late with an older version: the newer is copied again.
                self._first, self._copied, self._resident = (snapshot.key, now), None, None
            elif self._copied != snapshot.key and now - self._first[1] >= KEEP_AFTER:
                self._copied = snapshot.key
                threading.Thread(target=self.keep, args=(snapshot,), name="units").start()
        return None

    def keep(self, snapshot: Snapshot) -> None:
        """Copy `snapshot` unless it is too large."""
        try:
            if run_on_loop(_text_bytes(snapshot)) <= MOST_BYTES:
                cached = CachedUnits.load(snapshot)
                with self._lock:
                    if self._first is None or self._first[0] == snapshot.key:
                        self._resident = (snapshot.key, cached)
        except Exception:  # a rebuild dropped its tables; searches read LanceDB as before
            _log.debug("the units were not copied into memory", exc_info=True)


async def _text_bytes(snapshot: Snapshot) -> int:
    """Size of all indexed files."""
    query = snapshot.tables["files"].query().where("status = 'indexed'").select(["size"])
    rows = await query.limit(ALL_ROWS).to_arrow()
    return sum(rows["size"].to_pylist())


class CachedUnits:
    """All units of one snapshot; made by `load`."""

    def __init__(self, rows: dict[str, pa.Table]) -> None:
        self._tables = {table: _Rows(own) for table, own in rows.items()}

    @classmethod
    def load(cls, snapshot: Snapshot) -> CachedUnits:
        """Read every unit: 0.4 s for 60,000."""

        async def read(table: str) -> pa.Table:
            query = snapshot.tables[table].query().select([*columns_of(table), "name_key"])
            return await query.with_row_id().limit(ALL_ROWS).to_arrow()

        async def read_all() -> list[pa.Table]:
            return await asyncio.gather(*map(read, UNIT_TABLES))

        return cls(dict(zip(UNIT_TABLES, run_on_loop(read_all()), strict=True)))

    def units(self, table: str, rows: Sequence[int]) -> dict[int, Unit]:
        """The units of `table` with these row ids, all of them of this snapshot."""
        return self._tables[table].at(rows)

    def named(self, keys: Sequence[str], limit: int) -> list[Unit]:
        """Units whose name has one of `keys` (`tokens.name_key`), `limit` of each table."""
        return [unit for own in self._tables.values() for unit in own.named(keys, limit)]


class _Rows:
    """The rows of one table, by row id and by the key of their name."""

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np

        rows = rows.combine_chunks()
        self._ids: np.ndarray = rows["_rowid"].to_numpy()
        if np.any(self._ids[1:] < self._ids[:-1]):
            rows = rows.sort_by("_rowid").combine_chunks()
            self._ids = rows["_rowid"].to_numpy()
        self._places: dict[str, list[int]] = {}
        for place, key in enumerate(rows["name_key"].to_pylist()):
            self._places.setdefault(key, []).append(place)
        self._rows = rows.drop_columns(["name_key"])

    def at(self, rows: Sequence[int]) -> dict[int, Unit]:
        import numpy as np

        wanted = np.array(rows, np.uint64)
        units = units_of(self._rows.take(np.searchsorted(self._ids, wanted)))
        return dict(zip(rows, units, strict=True))

    def named(self, keys: Sequence[str], limit: int) -> list[Unit]:
        places = sorted(place for key in set(keys) for place in self._places.get(key, ()))
        return units_of(self._rows.take(places[:limit])) if places else []
