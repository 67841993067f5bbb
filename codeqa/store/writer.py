"""The writing side of the tables: one writer at a time, which holds the lock.

The order within a batch is what keeps the index valid whenever the process dies:

1. files that are replaced lose their hash in the manifest (they must be read again),
2. units and edges are written, one commit per table,
3. the manifest's rows are written.

A file whose row stands in the manifest with a hash is therefore complete. Rows that
a run wrote before it died between 2 and 3 belong to a file without a row in the manifest;
`begin` removes them, so that files new to the manifest can always be plainly added.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from codeqa.store.damage import note_files
from codeqa.store.filters import one_of
from codeqa.store.indices import build_indices, merge_fragments
from codeqa.store.location import Location, connect
from codeqa.store.meta import (
    META_TABLE,
    EmbeddingRecord,
    Meta,
    choose_generation,
    drop_other_generations,
    open_generation,
    open_tables,
    write_meta,
)
from codeqa.store.records import INDEXED, Batch, Columns, FileRecord
from codeqa.store.schema import ALL_ROWS, REFINED, vector_array

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.table import Table

DESCRIBED = "llm_comment != ''"
"""Rows with a description."""
PATHS_PER_STATEMENT = 1_000
"""Paths named in one condition; longer ones slow LanceDB's parser of SQL."""


@dataclass(slots=True)
class Writer:
    """Writes to the tables of one generation."""

    location: Location
    database: Any
    meta: Meta
    generation: int
    tables: dict[str, Table]
    previous: dict[str, Table]
    """Those of the generation that a rebuild replaces: their refined vectors serve."""
    fresh: bool = False
    """These tables were created by this writer and hold nothing that it did not write."""
    known: set[str] = field(default_factory=set)
    """Paths that have rows."""
    described: Table | None = None
    """The methods whose rows are replaced, when any of them has a description (`begin`)."""

    @classmethod
    def open(
        cls,
        location: Location,
        parser: str = "",
        vector: EmbeddingRecord | None = None,
        *,
        rebuild: bool = False,
    ) -> Writer:
        """Open the tables for writing, creating them where there are none.

        `parser` is the version of what extracts the rows, `vector` is the fast embedding.
        When either differs from what the tables hold, or on `rebuild`, a new generation
        is written beside the one that readers use; one that a dead run left is continued.
        """
        database = connect(location, read_consistency_interval=timedelta(0))
        meta = choose_generation(database, parser, vector, rebuild)
        generation = meta.building or meta.generation
        drop_other_generations(database, {meta.generation, generation})
        rebuilding = generation != meta.generation
        previous = open_tables(database, meta.generation) if rebuilding else {}
        tables, fresh = open_generation(
            database, generation, vector, meta.refined, meta.complete and not rebuilding
        )
        return cls(location, database, meta, generation, tables, previous, fresh)

    @property
    def first_build(self) -> bool:
        """No pass over the repository has been completed on these tables."""
        return bool(self.meta.building) or not self.meta.complete

    def manifest(self) -> dict[str, FileRecord]:
        """All rows of the manifest by path."""
        rows = self.tables["files"].to_arrow().to_pylist()
        return {row["path"]: FileRecord(**row) for row in rows}

    def begin(self, manifest: Mapping[str, FileRecord]) -> None:
        """Prepare for writing; after a run that did not end, remove rows without a file."""
        self.known = {path for path, record in manifest.items() if record.status == INDEXED}
        old = self.previous.get("methods")
        if old is None and self.known:
            old = self.tables["methods"]
        self.described = old if old is not None and old.count_rows(DESCRIBED) else None
        if self.meta.dirty and not self.fresh:
            for table in ("methods", "classes", "edges"):
                column = self.tables[table].search().select(["path"]).limit(ALL_ROWS).to_arrow()
                orphans = set(column["path"].unique().to_pylist()) - self.known
                self._delete(table, sorted(orphans))
        if not self.meta.dirty:
            self.update_meta(dirty=True)

    def write(self, batch: Batch, vectors: dict[str, np.ndarray] | None = None) -> None:
        """Commit one batch; rows of its files that are gone are deleted with it.

        `vectors` gives, per unit table, the fast embedding of each row (n, dimension).
        """
        replaced = [record.path for record in batch.files if record.path in self.known]
        self.invalidate(replaced)
        for table, columns in batch.tables.items():
            self._commit(table, columns, replaced, (vectors or {}).get(table))
        self.write_files(batch.files)
        self.known.update(record.path for record in batch.files)

    def _commit(
        self,
        table: str,
        columns: Columns,
        replaced: Sequence[str],
        vectors: np.ndarray | None = None,
    ) -> None:
        if not columns:
            self._delete(table, replaced)
            return
        import pyarrow as pa

        handle = self.tables[table]
        given = {}
        if vectors is not None:
            given["vector"] = vector_array(vectors, handle.schema.field("vector").type)
        if REFINED in handle.schema.names:
            source = self.previous.get(table) or (handle if replaced else None)
            if source is not None and REFINED in source.schema.names:
                given[REFINED] = _carried(source, columns)
        unknown = [None] * len(columns["id"])
        data = pa.Table.from_pydict(
            {name: given.get(name, columns.get(name, unknown)) for name in handle.schema.names},
            schema=handle.schema,
        )
        if not replaced:
            handle.add(data)
            return
        merge = handle.merge_insert("id").when_matched_update_all()
        merge = merge.when_not_matched_insert_all()
        merge = merge.when_not_matched_by_source_delete(one_of("path", replaced))
        merge.execute(data, on_bad_vectors="null")

    def invalidate(self, paths: Sequence[str]) -> None:
        """Make the next run read `paths` again unless this one completes them."""
        for part in _parts(paths):
            self.tables["files"].update(where=one_of("path", part), values={"hash": ""})

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files with all their rows."""
        self.invalidate([path for path in paths if path in self.known])
        for table in ("methods", "classes", "edges", "files"):
            self._delete(table, paths)
        self.known.difference_update(paths)

    def write_files(self, records: Iterable[FileRecord]) -> None:
        """Write rows of the manifest."""
        rows = [asdict(record) for record in records]
        if not rows:
            return
        import pyarrow as pa

        table = self.tables["files"]
        data = pa.Table.from_pylist(rows, schema=table.schema)
        if self.fresh:
            table.add(data)
            return
        merge = table.merge_insert("path").when_matched_update_all()
        merge.when_not_matched_insert_all().execute(data)

    def _delete(self, table: str, paths: Sequence[str]) -> None:
        for part in _parts(paths):
            self.tables[table].delete(one_of("path", part))

    def tidy(self) -> None:
        """Build the indices, or build them anew, and merge fragments, where that pays."""
        merge_fragments(self.database.open_table(META_TABLE))
        for handle in self.tables.values():
            merge_fragments(handle)
        build_indices(self.tables, every=self.first_build)

    def finish(self, checked_ns: int, parser: str, vector: EmbeddingRecord | None) -> None:
        """Note that a pass over the repository is complete; a rebuild becomes current."""
        note_files(self.location)
        self.update_meta(
            generation=self.generation,
            building=0,
            building_key="",
            complete=True,
            dirty=False,
            refining=False,
            checked_ns=checked_ns,
            updated_at=time.time(),
            parser=parser,
            vector=vector,
        )
        # A reader in the middle of a query on tables that go here asks again (Tables).
        self.previous.clear()
        drop_other_generations(self.database, {self.generation})

    @property
    def checked_ns(self) -> int:
        """Start of the last completed pass over these rows; 0 when there was none."""
        return 0 if self.first_build else self.meta.checked_ns

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Meanwhile vectors are committed a few at a time (`Meta.growing`)."""
        self.update_meta(refining=True)
        try:
            yield
        finally:
            note_files(self.location)
            self.update_meta(refining=False)

    def update_meta(self, **changes: Any) -> None:
        """Commit changed fields of `meta`."""
        self.meta = write_meta(self.database, replace(self.meta, **changes))


def _carried(source: Table, columns: Columns) -> pa.Array:
    """Refined vectors that `source` holds for the same id and the same text, else null.

    An edit then costs the provider only the units whose text it changed.
    """
    import pyarrow as pa

    condition = one_of("path", sorted(set(columns["path"])))
    query = source.search().where(f"({condition}) AND {REFINED} IS NOT NULL")
    old = query.select(["id", "code", REFINED]).limit(ALL_ROWS).to_arrow().combine_chunks()
    place = {
        pair: row
        for row, pair in enumerate(zip(old["id"].to_pylist(), old["code"].to_pylist(), strict=True))
    }
    rows = [place.get(pair) for pair in zip(columns["id"], columns["code"], strict=True)]
    kind = source.schema.field(REFINED).type
    if not place:
        return pa.nulls(len(rows), kind)
    vectors = old[REFINED].combine_chunks()
    return vectors.take(pa.array(rows, pa.int64()))


def _parts(paths: Sequence[str]) -> Iterable[Sequence[str]]:
    return (
        paths[at : at + PATHS_PER_STATEMENT] for at in range(0, len(paths), PATHS_PER_STATEMENT)
    )
