"""The reading side of the tables: units, references, files and numbers by what is asked.

A search names rows and scores only: LanceDB reads a row's columns in many small pieces, which
costs more than to find it, so each row is read once for all the searches that found it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.errors import EmbeddingError, IndexFormatError
from codeqa.store.catalogue import Catalogue
from codeqa.store.copies import CachedReferences, CopyCache
from codeqa.store.location import Location
from codeqa.store.reader import Reader, Snapshot
from codeqa.store.records import INDEXED, FileRecord, IndexCounts, columns_of, units_of
from codeqa.store.schema import (
    ALL_ROWS,
    REBUILD_HINT,
    REFINED,
    UNIT_TABLES,
    EmbeddingRecord,
    Filter,
    Meta,
    all_of,
    plain_path,
    quote,
    record_of,
)
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

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


class Tables:
    """One repository's index, for reading.

    To open it raises IndexMissingError when nothing was indexed and IndexFormatError when the
    index is of another format or damaged.
    """

    def __init__(self, location: Location, reader: Reader | None = None) -> None:
        self.location = location
        self._reader = reader or Reader(location)
        self._cache = CopyCache()
        self._catalogue: tuple[object, Catalogue] | None = None

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

    def plain_path(self, written: str) -> str:
        """Return a path, as people and models write it, as the index has it: '' for the root."""
        if written in self.catalogue().paths:
            return written
        return plain_path(written, self.location.root)

    def plain_filter(self, where: Filter) -> Filter:
        """Return `where` with its paths as the index has them; the root restricts nothing."""
        return replace(
            where,
            paths=tuple(filter(None, map(self.plain_path, where.paths))),
            excluded_paths=tuple(filter(None, map(self.plain_path, where.excluded_paths))),
        )

    def look_again(self) -> None:
        """See at the next question what was written until now, however short ago."""
        self._reader.look_again()

    # Units

    def find(self, search: TextSearch | VectorSearch) -> list[tuple[Unit, float]]:
        """What one search finds, best first."""
        return self.best([search])[0]

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        """What each of `searches` finds, best first, all asked at the same time.

        Raises IndexFormatError when a vector does not have its column's dimension.
        """

        async def action(snapshot: Snapshot) -> list[list[tuple[Unit, float]]]:
            found = await asyncio.gather(
                *(scored(snapshot, one, self._sql(one.where)) for one in searches)
            )
            asked = list(zip(searches, found, strict=True))
            if copy := self._cache.of(snapshot):
                return [_ranked(rows, copy.units[one.table].units) for one, rows in asked]
            wanted: dict[str, set[int]] = {table: set() for table in UNIT_TABLES}
            for one, rows in asked:
                wanted[one.table] |= rows.keys()
            units = await read_units(snapshot, wanted)
            return [_ranked(rows, units[one.table]) for one, rows in asked]

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
        return self._units(self._sql(where))

    def _sql(self, where: Filter | None) -> str:
        """`where` as a condition on the rows, '' for none."""
        return self._reader.scope.stored_filter(where).sql() if where else ""

    def _having(
        self, column: str, values: Sequence[str], limit: int = ALL_ROWS, where: Filter | None = None
    ) -> list[Unit]:
        if not values:
            return []
        narrowed = self._sql(where)
        if not narrowed and (copy := self._cache.of(self._reader.snapshot())):
            tables = copy.units.values()
            found = [one for own in tables for one in own.having(column, values, limit)]
            return _placed(found)[:limit]
        return self._units(all_of(self._reader.one_of(column, values), narrowed), limit)

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
        `references(name=["run"], path=["a.py"])`."""
        copy = self._cache.of(self._reader.snapshot())
        if copy and not wanted.keys().isdisjoint(CachedReferences.LOOKED_UP_BY):
            return copy.references.having(wanted, limit)
        condition = all_of(*starmap(self._reader.one_of, wanted.items()))
        return list(self.catalogue().references(condition, limit))

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        """Up to `limit` places that name something of another module, each as (path, name, module
        without the class in it)."""
        columns = ("path", "name", "module")
        rows = self._reader.arrow("edges", columns, "module != ''", limit).to_pylist()
        return {(one["path"], one["name"], one["module"].partition("#")[0]) for one in rows}

    def reference_rows(self, columns: Sequence[str], limit: int) -> pa.Table:
        """These columns of up to `limit` references, in no order."""
        return self._reader.arrow("edges", columns, "", limit)

    # Files and numbers

    def files(self) -> list[FileRecord]:
        """The manifest by path: indexed and skipped files."""
        rows = self.catalogue().manifest.to_pylist()
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)

    def skipped(self) -> list[FileRecord]:
        """The rows of the manifest that are of skipped files, by path."""
        return self.catalogue().skipped

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        """Up to `limit` of the indexed files that `where`, which has no kinds, lets through."""
        if where.roles and where == Filter(roles=where.roles):  # as every question asks
            import pyarrow.compute as pc

            role = pc.field("role").isin(list(where.roles))
            rows = self.catalogue().files.filter(role).slice(0, limit)
        else:
            condition = all_of(f"status = {quote(INDEXED)}", self._sql(where))
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
        condition = self._sql(where)
        found = (self._reader.arrow(table, ("id",), condition, 1) for table in UNIT_TABLES)
        return any(rows.num_rows for rows in found)

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
    after. It raises what `Tables` does, until the index is there."""
    return functools.cache(lambda: Tables(location))


async def scored(
    snapshot: Snapshot, search: TextSearch | VectorSearch, condition: str
) -> dict[int, float]:
    """Row id → score of what `search` finds where `condition` holds: BM25, or 1 - cosine distance.

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
        # Of a million rows the index alone finds .954 of the ten nearest, refined .996.
        whole = (search.table, search.column) in snapshot.indexed and not snapshot.scope.names
        query = query.nearest_to(search.vector.astype("float32")).column(search.column)
        query, column = query.distance_type("cosine").nprobes(NPROBES), "_distance"
        if snapshot.scope.names:  # whose rows may lie in other partitions than the nearest
            query = query.maximum_nprobes(0)
        query = query if whole else query.refine_factor(REFINE)
    if condition := all_of(snapshot.scope.condition, condition):
        query = query.where(condition)
    rows = await query.select([column]).with_row_id().limit(search.limit).to_arrow()
    found = zip(rows["_rowid"].to_pylist(), rows[column].to_pylist(), strict=True)
    if column == "_score":
        return dict(found)
    # IVF_SQ gives the squared distance of the unit vectors, which is twice the cosine distance.
    part = 0.5 if whole else 1.0
    return {row: 1.0 - part * distance for row, distance in found if distance is not None}


async def read_units(
    snapshot: Snapshot, wanted: Mapping[str, Iterable[int]]
) -> dict[str, dict[int, Unit]]:
    """Table → row id → unit, read from the tables."""

    async def read(table: str, rows: Iterable[int]) -> dict[int, Unit]:
        if not (places := sorted(rows)):
            return {}
        query = snapshot.tables[table].take_row_ids(places).select(list(columns_of(table)))
        found = snapshot.scope.named(await query.with_row_id().to_arrow())
        return dict(zip(found["_rowid"].to_pylist(), units_of(found), strict=True))

    units = await asyncio.gather(*(read(table, rows) for table, rows in wanted.items()))
    return dict(zip(wanted, units, strict=True))
