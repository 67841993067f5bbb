"""The reading side of the tables: units, references, files and numbers by what is asked.

A `Tables` may be kept open as long as one likes and shared by threads (see `reader`).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from codeqa.errors import EmbeddingError
from codeqa.store.catalogue import Catalogue
from codeqa.store.filters import Filter, one_of, quote
from codeqa.store.location import Location
from codeqa.store.lookups import TextSearch, UnitCache, VectorSearch, read_units, scored
from codeqa.store.meta import EmbeddingRecord, Meta, record_of
from codeqa.store.reader import Reader, Snapshot
from codeqa.store.records import INDEXED, FileRecord, IndexCounts, columns_of, units_of
from codeqa.store.schema import ALL_ROWS, REFINED, UNIT_TABLES
from codeqa.types import Reference, Unit


class Tables:
    """One repository's index, for reading."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._reader = Reader(location)
        self._cache = UnitCache()
        self._catalogue: tuple[object, Catalogue] | None = None

    @classmethod
    def open(cls, location: Location) -> Tables:
        """Open the index of `location`.

        Raises IndexMissingError when nothing was indexed and IndexFormatError when the index
        is of another format or damaged.
        """
        return cls(location)

    def meta(self) -> Meta:
        """The database's account of itself, at most `reader.READ_INTERVAL` old."""
        return self._reader.snapshot().meta

    def version(self) -> object:
        """Equal as long as nothing was written; as old as what is asked now."""
        return self._reader.snapshot().key

    @property
    def notices(self) -> tuple[str, ...]:
        """What every answer from here must say, as sentences."""
        return ()

    def around(self, path: str) -> Tables:
        """What holds all that code in `path` can refer to by name: its repository."""
        return self

    def place_of(self, path: str) -> tuple[Path, str]:
        """The folder of the repository that `path` lies in, and the path there.

        Raises NotFoundError where that is not one repository.
        """
        return self.location.root, path

    def look_again(self) -> None:
        """See at the next question what was written until now, however short ago."""
        self._reader.look_again()

    def read_all(self) -> None:
        """Read every row and every index once: 2 s for 470,000 references and what defines them.

        Raises IndexFormatError when that fails.
        """

        async def action(snapshot: Snapshot) -> None:
            for handle in snapshot.tables.values():
                async for _ in await handle.query().to_batches():
                    pass
                for index in await handle.list_indices():
                    await handle.prewarm_index(index.name)

        self._reader.ask(action)

    # Units

    def find(self, search: TextSearch | VectorSearch) -> list[tuple[Unit, float]]:
        """What one search finds, best first."""
        return self.best([search])[0]

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        """What each of `searches` finds, best first, all asked at the same time.

        Raises IndexFormatError when a vector does not have its column's dimension.
        """

        async def action(snapshot: Snapshot) -> list[list[tuple[Unit, float]]]:
            found = await asyncio.gather(*(scored(snapshot, search) for search in searches))
            asked = list(zip(searches, found, strict=True))
            wanted = {
                table: sorted(
                    {row for search, rows in asked if search.table == table for row in rows}
                )
                for table in UNIT_TABLES
            }
            if cached := self._cache.of(snapshot):
                units = {table: cached[table].at(rows) for table, rows in wanted.items()}
            else:
                units = await read_units(snapshot, wanted)
            return [_ranked(rows, units[search.table]) for search, rows in asked]

        return self._reader.ask(action)

    def named(
        self, keys: Sequence[str], limit: int = 200, where: Filter | None = None
    ) -> list[Unit]:
        """Units of both tables whose name has one of `keys` (`tokens.name_key`)."""
        return self._having("name_key", keys, limit, where)

    def in_file(self, path: str) -> list[Unit]:
        """Units of one file, by line."""
        return self._having("path", [path])

    def by_ids(self, ids: Sequence[str]) -> list[Unit]:
        """Units with these ids, in the order of `ids`; unknown ids are left out."""
        found = {unit.id: unit for unit in self._having("id", ids)}
        return [found[identity] for identity in dict.fromkeys(ids) if identity in found]

    def units(self, where: Filter | None = None) -> list[Unit]:
        """All units that `where` lets through, by path and line; holds them all in memory."""
        return self._units(where.sql() if where else "")

    def _having(
        self, column: str, values: Sequence[str], limit: int = ALL_ROWS, where: Filter | None = None
    ) -> list[Unit]:
        if not values:
            return []
        narrowed = where.sql() if where else ""
        if not narrowed and (cached := self._cache.of(self._reader.snapshot())):
            found = [one for own in cached.values() for one in own.having(column, values, limit)]
            return _placed(found)[:limit]
        return self._units(" AND ".join(filter(None, (one_of(column, values), narrowed))), limit)

    def _units(self, condition: str, limit: int = ALL_ROWS) -> list[Unit]:
        units = [
            unit
            for table in UNIT_TABLES
            for unit in units_of(self._reader.arrow(table, columns_of(table), condition, limit))
        ]
        return _placed(units)[:limit]

    # References

    def references(self, *, limit: int = ALL_ROWS, **wanted: Sequence[str]) -> list[Reference]:
        """Up to `limit` references that have in each of these columns one of the values, by place:
        `references(kind=["call"], path=["a.py"])`."""
        condition = " AND ".join(one_of(column, values) for column, values in wanted.items())
        return list(self.catalogue().references(condition, limit))

    def references_named(self, name: str, limit: int = 500) -> list[Reference]:
        """Places where exactly `name` is called, used, imported or inherited from."""
        return self.references(name=[name], limit=limit)

    def references_decided(self, units: Sequence[Unit]) -> list[Reference]:
        """Places that their own file decides to mean one of `units`."""
        paths = list(dict.fromkeys(unit.path for unit in units))
        return self.references(path=paths, target=[unit.id for unit in units]) if units else []

    def references_in(self, path: str) -> list[Reference]:
        """References that stand in one file, by line."""
        return self.references(path=[path])

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        """Up to `limit` places that name something of another module, each as (path, name, module
        without the class in it)."""
        columns = ("path", "name", "module")
        rows = self._reader.arrow("edges", columns, "module != ''", limit).to_pylist()
        return {(one["path"], one["name"], one["module"].partition("#")[0]) for one in rows}

    # Files and numbers

    def files(self) -> list[FileRecord]:
        """The manifest by path: indexed and skipped files."""
        rows = self.catalogue().manifest.to_pylist()
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        """Up to `limit` of the indexed files that `where`, which has no kinds, lets through."""
        if where.roles and where == Filter(roles=where.roles):  # as every question asks
            rows = self.catalogue().indexed_in(where.roles).slice(0, limit)
        else:
            condition = " AND ".join(filter(None, (f"status = {quote(INDEXED)}", where.sql())))
            rows = self._reader.arrow("files", FileRecord.__slots__, condition, limit)
        return [FileRecord(**row) for row in rows.to_pylist()]

    def file(self, path: str) -> FileRecord | None:
        """The manifest's row of `path`; None when it is unknown."""
        return self.files_at([path]).get(path)

    def files_at(self, paths: Sequence[str]) -> dict[str, FileRecord]:
        """The manifest's rows of several files by path; unknown ones are left out."""
        return self.catalogue().records(paths) if paths else {}

    def counts(self) -> IndexCounts:
        """What the index holds; remembered until a table changes."""
        return self.catalogue().counts

    def catalogue(self) -> Catalogue:
        """All paths, languages and names, in memory; remembered until a table changes."""
        snapshot = self._reader.snapshot()
        key = (snapshot.key, snapshot.meta.vector, snapshot.meta.refined)
        known = self._catalogue
        if known is None or known[0] != key:
            self._catalogue = known = (key, Catalogue(self._reader))
        return known[1]

    def holds(self, where: Filter) -> bool:
        """Whether `where` lets any unit through."""
        condition = where.sql()
        return any(
            self._reader.arrow(table, ("id",), condition, 1).num_rows for table in UNIT_TABLES
        )

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Columns that hold vectors, each with the embedding that made them.

        A column of the fast embedding in another version than this one is left out: its
        vectors cannot be compared with a question's. The next indexing run rebuilds it.
        """
        from codeqa.embeddings.registry import fast_embedding

        meta = self.meta()
        try:
            fast = record_of(fast_embedding())
        except EmbeddingError:
            fast = None  # whoever asks for its query side hears why
        columns = {"vector": meta.vector, REFINED: meta.refined}
        if fast and meta.vector and fast.name == meta.vector.name and fast != meta.vector:
            del columns["vector"]
        return [(column, record) for column, record in columns.items() if record]


def _ranked(scores: dict[int, float], units: dict[int, Unit]) -> list[tuple[Unit, float]]:
    """Best first; equal scores by place, so that the same index gives the same list."""
    found = [(units[row], score) for row, score in scores.items() if row in units]
    return sorted(found, key=lambda pair: (-pair[1], pair[0].path, pair[0].start_line))


def _placed(units: list[Unit]) -> list[Unit]:
    """By path and line, so that the same index gives the same list."""
    return sorted(units, key=lambda unit: (unit.path, unit.start_line, -unit.end_line, unit.id))


def open_once(location: Location) -> Callable[[], Tables]:
    """Give a function that opens the index on its first call and hands out the same tables ever
    after. It raises what `Tables.open` raises, until the index is there."""
    return functools.cache(lambda: Tables.open(location))
