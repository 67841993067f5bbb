"""The reading side of the tables: units, references, files and numbers by what is asked.

A `Tables` may be kept open as long as one likes and shared by threads (see `reader`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.errors import EmbeddingError, IndexFormatError
from codeqa.store.filters import Filter, both, one_of, quote
from codeqa.store.location import Location
from codeqa.store.meta import REBUILD_HINT, EmbeddingRecord, Meta, record_of
from codeqa.store.reader import Reader
from codeqa.store.records import INDEXED, Counts, FileRecord, reference_of, unit_of
from codeqa.store.schema import (
    ALL_ROWS,
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

NPROBES = 50
"""Partitions searched of a vector index: recall@10 of 1.00 with REFINE on 100,000 rows."""
REFINE = 2
"""Candidates re-scored exactly, as a multiple of the limit."""


class Tables:
    """One repository's index, for reading."""

    def __init__(self, location: Location, expected: EmbeddingRecord | None = None) -> None:
        self.location = location
        self._reader = Reader(location, expected)
        self._counts: tuple[tuple[int, ...], Counts] | None = None

    @classmethod
    def open(cls, location: Location, *, expected: EmbeddingRecord | None = None) -> Tables:
        """Open the index of `location`.

        `expected` is the fast embedding in use; the `vector` column must be of it.
        Raises IndexMissingError when nothing was indexed and IndexFormatError when
        the index is of another format, embedding or dimension.
        """
        return cls(location, expected)

    def meta(self) -> Meta:
        """The database's account of itself, at most `reader.READ_INTERVAL` old."""
        return self._reader.meta()

    def verify(self) -> None:
        """Read a row of each table. Raises IndexFormatError when that fails."""
        self._reader.verify()

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

        rows = self._reader.read(table, action)
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
            rows = [row for row in self._reader.read(table, action) if row["_distance"] is not None]
        except Exception:
            now = self.meta()
            if (now.vector, now.refined) == (meta.vector, meta.refined):
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

    def _units(self, condition: str, limit: int = ALL_ROWS) -> list[Unit]:
        units = [
            unit_of(row)
            for table in UNIT_TABLES
            for row in self._reader.rows(table, _columns(table), condition, limit)
        ]
        units.sort(key=lambda unit: (unit.path, unit.start_line, -unit.end_line, unit.id))
        return units[:limit]

    # References

    def references_named(self, name: str, limit: int = 500) -> list[Reference]:
        """Places where exactly `name` is called, used, imported or inherited from."""
        return self._references(f"name = {quote(name)}", limit)

    def count_references(self, name: str) -> int:
        """How many such places there are in all."""
        return self._reader.read(
            "edges", lambda edges: int(edges.count_rows(f"name = {quote(name)}"))
        )

    def references_in(self, path: str) -> list[Reference]:
        """References that stand in one file, by line."""
        return self._references(f"path = {quote(path)}", ALL_ROWS)

    def _references(self, condition: str, limit: int) -> list[Reference]:
        rows = self._reader.rows("edges", REFERENCE_COLUMNS, condition, limit)
        rows.sort(key=lambda row: (row["path"], row["line"], row["column"], row["kind"]))
        return [reference_of(row) for row in rows]

    # Files and numbers

    def files(self) -> list[FileRecord]:
        """The manifest by path: indexed and skipped files."""
        rows = self._reader.rows("files", FileRecord.__slots__, "")
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)

    def file(self, path: str) -> FileRecord | None:
        """The manifest's row of `path`; None when it is unknown."""
        rows = self._reader.rows("files", FileRecord.__slots__, f"path = {quote(path)}", 1)
        return FileRecord(**rows[0]) if rows else None

    def files_at(self, paths: Sequence[str]) -> dict[str, FileRecord]:
        """The manifest's rows of several files by path; unknown ones are left out."""
        if not paths:
            return {}
        rows = self._reader.rows("files", FileRecord.__slots__, one_of("path", paths))
        return {row["path"]: FileRecord(**row) for row in rows}

    def counts(self) -> Counts:
        """What the index holds; remembered until a table changes."""
        meta = self.meta()
        versions = tuple(
            self._reader.read(name, lambda table: int(table.version)) for name in TABLES
        )
        if self._counts and self._counts[0] == versions:
            return self._counts[1]
        text = one_of("kind", sorted(TEXT_KINDS))
        classes = self._count("classes")
        documents = self._count("classes", text)
        counts = Counts(
            files=self._count("files", f"status = {quote(INDEXED)}"),
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
        return self._reader.read(table, lambda handle: int(handle.count_rows(condition)))

    def _vectors(self, column: str) -> int:
        return sum(self._count(table, f"{column} IS NOT NULL") for table in UNIT_TABLES)

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Columns that hold vectors, each with the embedding that made them.

        A column of the fast embedding in another version than this one is left out: its
        vectors cannot be compared with a question's. The next indexing run rebuilds it.
        """
        from codeqa.embeddings import fast_embedding

        meta = self.meta()
        try:
            fast = record_of(fast_embedding())
        except EmbeddingError:
            fast = None  # whoever asks for its query side hears why
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
