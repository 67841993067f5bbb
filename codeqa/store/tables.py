"""Read units, references, files and counts from the tables of an index.

A search returns row ids and scores only. LanceDB reads a row's columns in many small pieces, which
costs more than finding the row, so each row is read once for all the searches that hit it.
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
from codeqa.store.catalogue import Catalogue, file_records
from codeqa.store.copies import CachedReferences, CopyCache
from codeqa.store.location import Location
from codeqa.store.reader import Snapshot, TableReader
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
"""Partitions of a vector index that are searched. There is one per 4,096 rows, so that all are
searched up to 200,000 rows: 8 of 16 hold only 91 % of the 70 units nearest to a question."""

REFINE = 2
"""Candidates that are compared exactly, as a multiple of the limit, while some rows are not in the
index yet. Once all are, the index's own distances suffice (8 bits a dimension, .0007 off, 99 of the
100 nearest): refining would add 2 ms to a table's 2 ms."""


@dataclass(frozen=True, slots=True)
class TextSearch:
    """A BM25 search in `search_text` for units of `table` that hold any token of `query`."""

    table: str
    query: str
    """Tokens joined by spaces (`tokens.search_tokens`); any text is safe."""
    limit: int
    where: Filter | None = None


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """A search for the units of `table` whose vector in `column` is nearest to `vector`."""

    table: str
    column: str
    vector: np.ndarray
    limit: int
    where: Filter | None = None


class Tables:
    """One repository's index, for reading.

    Opening it raises IndexMissingError when nothing was indexed, and IndexFormatError when the
    index has another format or is damaged.
    """

    def __init__(self, location: Location, reader: TableReader | None = None) -> None:
        self.location = location
        self._reader = reader or TableReader(location)
        self._cache = CopyCache()
        self._catalogue: tuple[object, Catalogue] | None = None

    def meta(self) -> Meta:
        """Return the state of the database, at most `reader.READ_INTERVAL` old."""
        return self._reader.snapshot().meta

    def version(self) -> object:
        """Return a value that stays equal as long as nothing is written."""
        return self._reader.snapshot().key

    @property
    def notices(self) -> tuple[str, ...]:
        """Return sentences that every answer from these tables must show."""
        return ()

    def around(self, path: str) -> Tables:
        """Return the tables of the repository that holds `path`, whose names its code can use."""
        return self

    def place_of(self, path: str) -> tuple[Path, str]:
        """Return the folder of the repository that holds `path`, and the path inside it.

        Raises NotFoundError where that is not one repository.
        """
        return self.location.root, path

    def plain_path(self, written: str) -> str:
        """Return a path that a person or model wrote as the index has it; '' for the root."""
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
        """Let the next call see everything that has been written until now."""
        self._reader.look_again()

    # Units

    def find(self, search: TextSearch | VectorSearch) -> list[tuple[Unit, float]]:
        """Return the units that one search finds with their scores, best first."""
        return self.best([search])[0]

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        """Return what each of `searches`, all run at the same time, finds, best first.

        Raises IndexFormatError when a vector does not have its column's dimension.
        """

        async def action(snapshot: Snapshot) -> list[list[tuple[Unit, float]]]:
            runs = (scored(snapshot, search, self._sql(search.where)) for search in searches)
            scores = await asyncio.gather(*runs)
            results = [(search.table, rows) for search, rows in zip(searches, scores, strict=True)]
            if copy := self._cache.of(snapshot):
                units = {table: cached.units for table, cached in copy.units.items()}
            else:
                ids: dict[str, set[int]] = {table: set() for table in UNIT_TABLES}
                for table, rows in results:
                    ids[table] |= rows.keys()
                units = await read_units(snapshot, ids)
            return [_ranked(rows, units[table]) for table, rows in results]

        return self._reader.ask(action)

    def named(
        self, keys: Sequence[str], limit: int = 200, where: Filter | None = None
    ) -> list[Unit]:
        """Return the units whose name has one of `keys` (`tokens.name_key`)."""
        return self._having("name_key", keys, limit, where)

    def in_file(self, path: str) -> list[Unit]:
        """Return the units of one file, sorted by line."""
        return self._having("path", [path])

    def by_ids(self, ids: Sequence[str]) -> list[Unit]:
        """Return the units with these ids, in the order of `ids`; unknown ids are left out."""
        units = {unit.id: unit for unit in self._having("id", ids)}
        return [units[identity] for identity in dict.fromkeys(ids) if identity in units]

    def units(self, where: Filter | None = None) -> list[Unit]:
        """Return all units that meet `where`, sorted by path and line; holds them in memory."""
        return self._units(self._sql(where))

    def holding(self, expression: str, limit: int) -> list[Unit]:
        """Return up to `limit` units whose code matches a regular expression: 30 ms for 12,000."""
        return self._units(f"regexp_like(source_code, {quote(expression)})", limit)

    def _sql(self, where: Filter | None) -> str:
        """Return `where` as a condition on the rows, '' for none."""
        return self._reader.scope.stored_filter(where).sql() if where else ""

    def _having(
        self, column: str, values: Sequence[str], limit: int = ALL_ROWS, where: Filter | None = None
    ) -> list[Unit]:
        if not values:
            return []
        narrowed = self._sql(where)
        if not narrowed and (copy := self._cache.of(self._reader.snapshot())):
            units: list[Unit] = []
            for table in copy.units.values():
                units += table.having(column, values, limit)
            return _by_place(units)[:limit]
        return self._units(all_of(self._reader.one_of(column, values), narrowed), limit)

    def _units(self, condition: str, limit: int = ALL_ROWS) -> list[Unit]:
        units: list[Unit] = []
        for table in UNIT_TABLES:
            units += units_of(self._reader.arrow(table, columns_of(table), condition, limit))
        return _by_place(units)[:limit]

    # References

    def references(self, *, limit: int = ALL_ROWS, **columns: Sequence[str]) -> list[Reference]:
        """Return up to `limit` references with one of the values in each column, sorted by place.

        `references(name=["run"], path=["a.py"])`, for example.
        """
        copy = self._cache.of(self._reader.snapshot())
        if copy and not columns.keys().isdisjoint(CachedReferences.LOOKED_UP_BY):
            return copy.references.having(columns, limit)
        condition = all_of(*starmap(self._reader.one_of, columns.items()))
        return list(self.catalogue().references(condition, limit))

    def copy_now(self) -> None:
        """Copy an index that is not too large into memory, for thousands of lookups."""
        self._cache.make(self._reader.snapshot())

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        """Return the path, name and module of up to `limit` references to another module.

        A class that stands in the module's name is left out.
        """
        columns = ("path", "name", "module")
        rows = self._reader.arrow("edges", columns, "module != ''", limit).to_pylist()
        return {(row["path"], row["name"], row["module"].partition("#")[0]) for row in rows}

    def reference_rows(self, columns: Sequence[str], limit: int) -> pa.Table:
        """Return these columns of up to `limit` references, in no order."""
        return self._reader.arrow("edges", columns, "", limit)

    # Files and counts

    def files(self) -> list[FileRecord]:
        """Return the manifest, which lists indexed and skipped files, sorted by path."""
        return file_records(self.catalogue().manifest)

    def skipped(self) -> list[FileRecord]:
        """Return the manifest's rows of skipped files, sorted by path."""
        return self.catalogue().skipped

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        """Return up to `limit` of the indexed files that meet `where`, which has no kinds."""
        if where.roles and where == Filter(roles=where.roles):  # what every question needs
            import pyarrow.compute as pc

            role = pc.field("role").isin(list(where.roles))
            rows = self.catalogue().files.filter(role).slice(0, limit)
        else:
            condition = all_of(f"status = {quote(INDEXED)}", self._sql(where))
            rows = self._reader.arrow("files", FileRecord.__slots__, condition, limit)
        return [FileRecord(**row) for row in rows.to_pylist()]

    def file(self, path: str) -> FileRecord | None:
        """Return the manifest's row of `path`; None when it is unknown."""
        return self.files_at([path]).get(path)

    def files_at(self, paths: Sequence[str]) -> dict[str, FileRecord]:
        """Return the manifest's rows of several files by path; unknown paths are left out."""
        return self.catalogue().records(paths) if paths else {}

    def counts(self) -> IndexCounts:
        """Return how much the index holds; cached until a table changes."""
        return self.catalogue().counts

    def catalogue(self) -> Catalogue:
        """Return all paths, languages and names, held in memory until a table changes."""
        snapshot = self._reader.snapshot()
        key = (snapshot.key, snapshot.meta.vector, snapshot.meta.refined)
        entry = self._catalogue
        if entry is None or entry[0] != key:
            self._catalogue = entry = (key, Catalogue(self._reader))
        return entry[1]

    def holds(self, where: Filter) -> bool:
        """Return whether any unit meets `where`."""
        condition = self._sql(where)
        matches = (self._reader.arrow(table, ("id",), condition, 1) for table in UNIT_TABLES)
        return any(rows.num_rows for rows in matches)

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Return the columns that hold vectors, each with the embedding that made them.

        A column that another version of the fast embedding made is left out: its vectors cannot be
        compared with a question's. The next indexing run rebuilds it.
        """
        from codeqa.embeddings.registry import fast_embedding

        meta = self.meta()
        try:
            fast = record_of(fast_embedding())
        except EmbeddingError:
            fast = None  # embedding the question will report the error
        columns = {"vector": meta.vector, REFINED: meta.refined}
        if fast and meta.vector and fast.name == meta.vector.name and fast != meta.vector:
            del columns["vector"]
        return [(column, record) for column, record in columns.items() if record]


def _ranked(scores: dict[int, float], units: dict[int, Unit]) -> list[tuple[Unit, float]]:
    """Return units and scores, best first; place decides between equals, for a stable order."""
    pairs = [(units[row], score) for row, score in scores.items() if row in units]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].path, pair[0].start_line))


def _by_place(units: list[Unit]) -> list[Unit]:
    """Sort by path and line, so that the same index gives the same list."""
    return sorted(units, key=lambda unit: (unit.path, unit.start_line, -unit.end_line, unit.id))


def open_once(location: Location) -> Callable[[], Tables]:
    """Return a function that opens the index at its first call and returns the same tables later.

    It raises what `Tables` does until the index is there.
    """
    return functools.cache(lambda: Tables(location))


async def scored(
    snapshot: Snapshot, search: TextSearch | VectorSearch, condition: str
) -> dict[int, float]:
    """Map the ids of the rows that `search` finds to their scores: BM25, or 1 - cosine distance.

    The rows meet `condition`. Raises IndexFormatError when a vector does not have its column's
    dimension.
    """
    query: Any = snapshot.tables[search.table].query()
    is_indexed = False
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
                f"but the index holds vectors of {record}.",
                REBUILD_HINT,
            )
        # In a million rows the index alone finds 95.4 % of the ten nearest, refined 99.6 %.
        is_indexed = (search.table, search.column) in snapshot.indexed and not snapshot.scope.names
        query = query.nearest_to(search.vector.astype("float32")).column(search.column)
        query, column = query.distance_type("cosine").nprobes(NPROBES), "_distance"
        if snapshot.scope.names:  # their rows may lie in other partitions than the nearest
            query = query.maximum_nprobes(0)
        query = query if is_indexed else query.refine_factor(REFINE)
    if condition := all_of(snapshot.scope.condition, condition):
        query = query.where(condition)
    rows = await query.select([column]).with_row_id().limit(search.limit).to_arrow()
    scores = dict(zip(rows["_rowid"].to_pylist(), rows[column].to_pylist(), strict=True))
    if column == "_score":
        return scores
    # IVF_SQ gives the squared distance of the unit vectors, which is twice the cosine distance.
    part = 0.5 if is_indexed else 1.0
    return {row: 1.0 - part * distance for row, distance in scores.items() if distance is not None}


async def read_units(
    snapshot: Snapshot, ids: Mapping[str, Iterable[int]]
) -> dict[str, dict[int, Unit]]:
    """Read units by table → row ids; return table → row id → unit."""

    async def read(table: str, row_ids: list[int]) -> dict[int, Unit]:
        if not row_ids:
            return {}
        query = snapshot.tables[table].take_row_ids(row_ids).select(list(columns_of(table)))
        rows = snapshot.scope.named(await query.with_row_id().to_arrow())
        return dict(zip(rows["_rowid"].to_pylist(), units_of(rows), strict=True))

    units = await asyncio.gather(*(read(table, sorted(rows)) for table, rows in ids.items()))
    return dict(zip(ids, units, strict=True))
