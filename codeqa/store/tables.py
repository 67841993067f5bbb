"""The reading side of the tables.

A `Tables` may be kept open as long as one likes and shared by threads: it sees new
commits within READ_INTERVAL, and the tables of a rebuild once that is complete.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from codeqa.errors import IndexFormatError, IndexMissingError
from codeqa.store.filters import Filter, both, one_of, quote
from codeqa.store.location import Location
from codeqa.store.meta import (
    REBUILD_HINT,
    EmbeddingRecord,
    Meta,
    read_meta,
    record_of,
    table_name,
)
from codeqa.store.records import Counts, FileRecord, reference_of, unit_of
from codeqa.store.schema import (
    CLASS_COLUMNS,
    REFERENCE_COLUMNS,
    REFINED,
    TABLES,
    UNIT_COLUMNS,
    UNIT_TABLES,
)
from codeqa.types import TEXT_KINDS, Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    from lancedb.table import Table

READ_INTERVAL = 1.0
"""Seconds after which a reader looks for new commits; finding none costs under 1 ms."""

LIST_LIMIT = 1_000_000
"""Rows of a listing that has no limit of its own; LanceDB would stop at 10."""

NPROBES = 50
"""Partitions searched of a vector index: recall@10 of 1.00 with REFINE on 100,000 rows."""
REFINE = 2
"""Candidates re-scored exactly, as a multiple of the limit."""

T = TypeVar("T")


class Tables:
    """One repository's index, for reading."""

    def __init__(self, location: Location, expected: EmbeddingRecord | None = None) -> None:
        self.location = location
        self._expected = expected
        self._lock = threading.Lock()
        self._checked = 0.0
        self._handles: dict[str, Table] = {}
        self._counts: tuple[tuple[int, ...], Counts] | None = None
        import lancedb

        self._database = lancedb.connect(
            location.tables, read_consistency_interval=timedelta(seconds=READ_INTERVAL)
        )
        self._meta = self._read_meta()
        self._open_handles()

    @classmethod
    def open(cls, location: Location, *, expected: EmbeddingRecord | None = None) -> Tables:
        """Open the index of `location`.

        `expected` is the fast embedding in use; the `vector` column must be of it.
        Raises IndexMissingError when nothing was indexed and IndexFormatError when
        the index is of another format, embedding or dimension.
        """
        return cls(location, expected)

    def _read_meta(self) -> Meta:
        meta = read_meta(self._database)
        if meta is None:
            raise self._missing()
        if self._expected is not None and meta.vector != self._expected:
            raise IndexFormatError(
                f"The index holds vectors of {meta.vector or 'no embedding'}, "
                f"but {self._expected} is in use.",
                REBUILD_HINT,
            )
        self._checked = time.monotonic()
        return meta

    def _missing(self) -> IndexMissingError:
        return IndexMissingError(
            f"{self.location.root} has not been indexed yet.",
            f"Run `codeqa index {self.location.root}`.",
        )

    def _open_handles(self) -> None:
        try:
            self._handles = {
                table: self._database.open_table(table_name(table, self._meta.generation))
                for table in TABLES
            }
        except Exception as error:
            if not self._meta.complete:  # its first run died before it made the tables
                raise self._missing() from None
            raise IndexFormatError(f"The index cannot be read: {error}.", REBUILD_HINT) from error
        record = self._meta.vector
        for table in UNIT_TABLES:
            column = self._handles[table].schema.field("vector").type
            if record is not None and column.list_size != record.dimension:
                raise IndexFormatError(
                    f"The index says that vectors have {record.dimension} dimensions, "
                    f"its table {table} holds {column.list_size}.",
                    REBUILD_HINT,
                )

    def meta(self) -> Meta:
        """The database's account of itself, at most READ_INTERVAL old."""
        with self._lock:
            if time.monotonic() - self._checked >= READ_INTERVAL:
                meta = self._read_meta()
                switched = meta.generation != self._meta.generation
                self._meta = meta
                if switched:
                    self._open_handles()
            return self._meta

    def _read(self, table: str, action: Callable[[Table], T]) -> T:
        """Run `action` on the current table; once more when a rebuild dropped it meanwhile."""
        self.meta()
        handle = self._handles[table]
        try:
            return action(handle)
        except Exception:
            with self._lock:
                self._meta = self._read_meta()
                self._open_handles()
                handle = self._handles[table]
            return action(handle)

    def _rows(
        self, table: str, columns: Sequence[str], where: str, limit: int = LIST_LIMIT
    ) -> list[dict[str, Any]]:
        def action(handle: Table) -> list[dict[str, Any]]:
            query = handle.search().select(list(columns)).limit(limit)
            return list((query.where(where) if where else query).to_arrow().to_pylist())

        return self._read(table, action)

    # Units

    def full_text(
        self, table: str, query: str, limit: int, where: Filter | None = None
    ) -> list[tuple[Unit, float]]:
        """Units of `table` that hold any token of `query`, with BM25 scores, best first.

        `query` is tokens joined by blanks (`tokens.search_tokens`); any text is safe.
        """
        from lancedb.query import MatchQuery

        if not query.strip() or limit < 1:
            return []

        def action(handle: Table) -> list[dict[str, Any]]:
            match: Any = MatchQuery
            search = handle.search(match(query, "search_text"), query_type="fts")
            search = search.select([*_columns(table), "_score"]).limit(limit)
            if condition := (where.sql() if where else ""):
                search = search.where(condition, prefilter=True)
            return list(search.to_arrow().to_pylist())

        rows = self._read(table, action)
        return _ordered((unit_of(row), float(row["_score"])) for row in rows)

    def nearest(
        self,
        table: str,
        column: str,
        vector: np.ndarray,
        limit: int,
        where: Filter | None = None,
    ) -> list[tuple[Unit, float]]:
        """Units of `table` whose `column` lies nearest to `vector`: 1 - cosine distance.

        Units without a vector are left out. Raises IndexFormatError when `vector` does
        not have the column's dimension.
        """
        meta = self.meta()
        record = meta.vector if column == "vector" else meta.refined
        if record is None or limit < 1 or not vector.any():
            return []
        if vector.shape != (record.dimension,):
            raise IndexFormatError(
                f"The question's vector has {vector.size} dimensions, "
                f"the index holds vectors of {record}.",
                REBUILD_HINT,
            )

        def action(handle: Table) -> list[dict[str, Any]]:
            search: Any = handle.search(vector.astype("float32"), vector_column_name=column)
            search = search.distance_type("cosine").nprobes(NPROBES).refine_factor(REFINE)
            search = search.select([*_columns(table), "_distance"]).limit(limit)
            condition = both(where.sql() if where else "", f"{column} IS NOT NULL")
            return list(search.where(condition, prefilter=True).to_arrow().to_pylist())

        try:
            rows = [row for row in self._read(table, action) if row["_distance"] is not None]
        except Exception:
            if (self._meta.vector, self._meta.refined) == (meta.vector, meta.refined):
                raise
            return []  # the column was emptied for another embedding meanwhile
        return _ordered((unit_of(row), 1.0 - float(row["_distance"])) for row in rows)

    def named(
        self, keys: Sequence[str], limit: int = 200, where: Filter | None = None
    ) -> list[Unit]:
        """Units of both tables whose name has one of `keys` (`tokens.name_key`)."""
        condition = both(one_of("name_key", keys), where.sql() if where else "")
        return self._units(condition, limit) if keys else []

    def in_file(self, path: str) -> list[Unit]:
        """Units of one file, by line."""
        return self._units(f"path = {quote(path)}")

    def by_ids(self, ids: Sequence[str]) -> list[Unit]:
        """Units with these ids, in the order of `ids`; unknown ids are left out."""
        if not ids:
            return []
        found = {unit.id: unit for unit in self._units(one_of("id", ids))}
        return [found[identity] for identity in dict.fromkeys(ids) if identity in found]

    def units(self, where: Filter | None = None) -> list[Unit]:
        """All units that `where` lets through, by path and line; holds them all in memory."""
        return self._units(where.sql() if where else "")

    def _units(self, condition: str, limit: int = LIST_LIMIT) -> list[Unit]:
        units = [
            unit_of(row)
            for table in UNIT_TABLES
            for row in self._rows(table, _columns(table), condition, limit)
        ]
        units.sort(key=lambda unit: (unit.path, unit.start_line, -unit.end_line, unit.id))
        return units[:limit]

    # References

    def references_named(self, name: str, limit: int = 500) -> list[Reference]:
        """Places where exactly `name` is called, used, imported or inherited from."""
        return self._references(f"name = {quote(name)}", limit)

    def count_references(self, name: str) -> int:
        """How many such places there are in all."""
        return self._read("edges", lambda edges: int(edges.count_rows(f"name = {quote(name)}")))

    def references_in(self, path: str) -> list[Reference]:
        """References that stand in one file, by line."""
        return self._references(f"path = {quote(path)}", LIST_LIMIT)

    def _references(self, condition: str, limit: int) -> list[Reference]:
        rows = self._rows("edges", REFERENCE_COLUMNS, condition, limit)
        rows.sort(key=lambda row: (row["path"], row["line"], row["column"], row["kind"]))
        return [reference_of(row) for row in rows]

    # Files and numbers

    def files(self) -> list[FileRecord]:
        """The manifest by path: indexed and skipped files."""
        rows = self._rows("files", FileRecord.__slots__, "")
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)

    def file(self, path: str) -> FileRecord | None:
        """The manifest's row of `path`; None when it is unknown."""
        rows = self._rows("files", FileRecord.__slots__, f"path = {quote(path)}", 1)
        return FileRecord(**rows[0]) if rows else None

    def files_at(self, paths: Sequence[str]) -> dict[str, FileRecord]:
        """The manifest's rows of several files by path; unknown ones are left out."""
        if not paths:
            return {}
        rows = self._rows("files", FileRecord.__slots__, one_of("path", paths))
        return {row["path"]: FileRecord(**row) for row in rows}

    def counts(self) -> Counts:
        """What the index holds; remembered until a table changes."""
        meta = self.meta()
        versions = tuple(self._read(name, lambda table: int(table.version)) for name in TABLES)
        if self._counts and self._counts[0] == versions:
            return self._counts[1]
        text = one_of("kind", sorted(TEXT_KINDS))
        classes = self._count("classes")
        documents = self._count("classes", text)
        counts = Counts(
            files=self._count("files", "status = 'indexed'"),
            methods=self._count("methods"),
            classes=classes - documents,
            documents=documents,
            references=self._count("edges"),
            embedded=self._vectors("vector") if meta.vector else 0,
            refined=self._vectors(REFINED) if meta.refined else 0,
        )
        self._counts = (versions, counts)
        return counts

    def _count(self, table: str, condition: str | None = None) -> int:
        return self._read(table, lambda handle: int(handle.count_rows(condition)))

    def _vectors(self, column: str) -> int:
        return sum(self._count(table, f"{column} IS NOT NULL") for table in UNIT_TABLES)

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Columns that hold vectors, each with the embedding that made them.

        A column of the fast embedding in another version than this one is left out: its
        vectors cannot be compared with a question's. The next indexing run rebuilds it.
        """
        from codeqa.embeddings import fast_embedding

        meta = self.meta()
        fast = record_of(fast_embedding())
        found = []
        if meta.vector is not None and (
            fast is None or fast.name != meta.vector.name or fast == meta.vector
        ):
            found.append(("vector", meta.vector))
        if meta.refined is not None:
            found.append((REFINED, meta.refined))
        return found


def _columns(table: str) -> tuple[str, ...]:
    return CLASS_COLUMNS if table == "classes" else UNIT_COLUMNS


def _ordered(scored: Iterator[tuple[Unit, float]]) -> list[tuple[Unit, float]]:
    """Best first; equal scores by place, so that the same index gives the same list."""
    return sorted(scored, key=lambda pair: (-pair[1], pair[0].path, pair[0].start_line))
