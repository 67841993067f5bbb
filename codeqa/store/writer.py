"""The writing side of the tables: one writer at a time, which holds the lock.

The order within a batch is what keeps the index valid whenever the process dies:

1. files that are replaced lose their hash in the manifest (they must be read again),
2. units and edges are written, one commit per table,
3. the manifest's rows are written.

A file whose row stands in the manifest with a hash is therefore complete. Rows of a batch
that died between 2 and 3 belong to no such file; `begin` removes them after a run that
did not end, so that files new to the manifest can always be plainly added.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from codeqa.errors import IndexFormatError
from codeqa.store.filters import one_of
from codeqa.store.location import Location
from codeqa.store.meta import (
    META_TABLE,
    EmbeddingRecord,
    Meta,
    generation_tables,
    read_meta,
    table_name,
    table_names,
    write_meta,
)
from codeqa.store.records import Batch, Columns, FileRecord
from codeqa.store.schema import (
    REFINED,
    UNIT_TABLES,
    VECTOR_DIMENSION,
    refined_field,
    table_schema,
    vector_array,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.table import Table

UNINDEXED_SHARE = 0.02
"""Share of a table outside its full-text index from which on that is built anew: a search
reads those rows one by one, about 10 µs each, and scores them by the words of the others.
Building takes 0.3 s for 10,000 rows, 2 s for 60,000."""

UNINDEXED_ROWS = 50
"""As many rows may always wait for the next build."""

FRAGMENTS = 100
"""Fragments of a table from which on they are merged."""

OLD_VERSIONS = 50
"""Versions nobody reads any more from which on their files are removed."""

KEEP_VERSIONS = timedelta(hours=1)
"""Younger versions stay, so that no open reader loses the one it is reading."""

VECTOR_INDEX_ROWS = 50_000
"""Rows from which on brute force is too slow (44 ms at 50,000) and IVF_SQ is built."""

MAX_TOKEN = 64
"""Longest token in the full-text index; longer ones are data, not names."""

ALL_ROWS = 2**31
"""Limit of a query that wants every row; LanceDB stops at 10 without one."""

PATHS_PER_DELETE = 1_000
"""Paths named in one condition; longer SQL slows its parser."""


@dataclass(slots=True)
class Writer:
    """Writes to the tables of one generation."""

    database: Any
    meta: Meta
    generation: int
    tables: dict[str, Table]
    previous: dict[str, Table]
    """Unit tables of the generation that a rebuild replaces: their refined vectors serve."""
    fresh: bool = False
    """These tables were created by this writer and hold nothing that it did not write."""
    known: set[str] = field(default_factory=set)
    """Paths that have rows."""
    began: bool = False

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

        `parser` fingerprints what extracts the rows, `vector` is the fast embedding.
        When either differs from what the tables hold, or on `rebuild`, a new generation
        is written beside the one that readers use; one that a dead run left is continued.
        """
        import lancedb

        database = lancedb.connect(location.tables, read_consistency_interval=timedelta(0))
        try:
            meta = read_meta(database)
        except IndexFormatError:
            meta = _start_again(database, parser, vector)
        wanted = f"{parser} {vector}"
        if meta is None:
            database.drop_all_tables()
            meta = write_meta(database, None, Meta(parser=parser, vector=vector, dirty=True))
        else:
            stale = (meta.parser, meta.vector) != (parser, vector)
            other = bool(meta.building) and meta.building_key != wanted
            if rebuild or other or (stale and not meta.building):
                number = max(meta.generation, meta.building) + 1 if rebuild or stale else 0
                new = replace(meta, building=number, building_key=wanted, dirty=True)
                meta = write_meta(database, meta, new)
        generation = meta.building or meta.generation
        _drop_others(database, {meta.generation, generation})
        previous = {}
        if generation != meta.generation:
            have = set(table_names(database))  # a run may have died before it made them
            for table in UNIT_TABLES:
                if (name := table_name(table, meta.generation)) in have:
                    previous[table] = database.open_table(name)
        tables, fresh = _open_tables(database, generation, vector, meta.refined)
        return cls(database, meta, generation, tables, previous, fresh)

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
        self.known = {path for path, record in manifest.items() if record.status == "indexed"}
        if self.meta.dirty and not self.fresh:
            for table in ("methods", "classes", "edges"):
                column = self.tables[table].search().select(["path"]).limit(ALL_ROWS).to_arrow()
                orphans = set(column["path"].unique().to_pylist()) - self.known
                self._delete(table, sorted(orphans))
        if not self.meta.dirty:
            self._write_meta(dirty=True)
        self.began = True

    def write(self, batch: Batch, vectors: dict[str, np.ndarray] | None = None) -> None:
        """Commit one batch; rows of its files that are gone are deleted with it.

        `vectors` gives, per unit table, the fast embedding of each row (n, dimension).
        """
        replaced = [record.path for record in batch.files if record.path in self.known]
        self.invalidate(replaced)
        for table, columns in (("methods", batch.methods), ("classes", batch.classes)):
            self._commit(table, columns, replaced, (vectors or {}).get(table))
        self._commit("edges", batch.edges, replaced)
        self.write_files(batch.files)
        self.known.update(record.path for record in batch.files)

    def _commit(
        self,
        table: str,
        columns: Columns,
        replaced: Sequence[str],
        vectors: np.ndarray | None = None,
    ) -> None:
        if not columns and not replaced:
            return
        handle = self.tables[table]
        if not columns:
            self._delete(table, replaced)
            return
        given = {}
        if vectors is not None:
            given["vector"] = vector_array(vectors, handle.schema.field("vector").type)
        if REFINED in handle.schema.names:
            source = self.previous.get(table) or (handle if replaced else None)
            if source is not None and REFINED in source.schema.names:
                given[REFINED] = _carried(source, columns)
        data = _arrow(handle.schema, columns, given)
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
        """Build the indices, or build them anew, and merge fragments, where that pays.

        Building an index anew costs no more than updating it would, and leaves the data
        where it is.
        """
        _merge_fragments(self.database.open_table(META_TABLE))
        for name, handle in self.tables.items():
            _merge_fragments(handle)
            unindexed = {
                index.columns[0]: int(index.num_unindexed_rows or 0)
                for index in handle.list_indices()
            }
            share = int(handle.count_rows() * UNINDEXED_SHARE)
            limit = -1 if self.first_build else max(UNINDEXED_ROWS, share)
            wanted = {column: _index_config(column) for column in _indexed_columns(name)}
            wanted.update(_vector_indices(handle))
            for column, config in wanted.items():
                if unindexed.get(column, limit + 1) > limit:
                    handle.create_index(column, config=config, replace=True)

    def finish(self, checked_ns: int, parser: str, vector: EmbeddingRecord | None) -> None:
        """Note that a pass over the repository is complete; a rebuild becomes current."""
        self._write_meta(
            generation=self.generation,
            building=0,
            building_key="",
            complete=True,
            dirty=False,
            checked_ns=checked_ns,
            updated_at=time.time(),
            parser=parser,
            vector=vector,
        )
        # A reader in the middle of a query on tables that go here asks again (Tables).
        self.previous.clear()
        _drop_others(self.database, {self.generation})

    @property
    def checked_ns(self) -> int:
        """Start of the last completed pass over these tables; 0 when there was none."""
        return 0 if self.first_build else self.meta.checked_ns

    # Refining

    def prepare_refined(self, record: EmbeddingRecord) -> dict[str, list[str]]:
        """Make the column ready for `record`; returns ids of units without a vector by table.

        Vectors of another embedding are dropped; the rows themselves stay as they are.
        """
        if self.meta.refined != record:
            self._write_meta(refined=None)
            for table in UNIT_TABLES:
                handle = self.tables[table]
                if REFINED in handle.schema.names:
                    handle.drop_columns([REFINED])
                handle.add_columns(refined_field(record.dimension))
            self.tables["files"].update(where="tier = 'refined'", values={"tier": "fast"})
            self._write_meta(refined=record)
        lacking = {}
        for table in UNIT_TABLES:
            query = self.tables[table].search().where(f"{REFINED} IS NULL")
            rows = query.select(["id", "role"]).limit(ALL_ROWS).to_arrow().to_pylist()
            rows.sort(key=lambda row: (row["role"] != "source", row["id"]))
            lacking[table] = [row["id"] for row in rows]
        return lacking

    def texts(self, table: str, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Ids and texts to embed of the units `ids` of `table`."""
        query = self.tables[table].search().where(one_of("id", ids)).select(["id", "code"])
        rows = query.limit(len(ids)).to_arrow()
        return rows["id"].to_pylist(), rows["code"].to_pylist()

    def write_refined(self, table: str, ids: Sequence[str], parts: Sequence[np.ndarray]) -> None:
        """Commit the vectors of the units `ids`."""
        import numpy as np
        import pyarrow as pa

        handle = self.tables[table]
        kind = handle.schema.field(REFINED).type
        vectors = vector_array(np.concatenate(parts), kind)
        rows = pa.table([pa.array(ids), vectors], names=["id", REFINED])
        handle.merge_insert("id").when_matched_update_all().execute(rows)

    def finish_refined(self) -> None:
        """Note in the manifest that every unit has its vector, and tidy up."""
        where = "status = 'indexed' AND tier = 'fast'"
        self.tables["files"].update(where=where, values={"tier": "refined"})
        self.tidy()

    def _write_meta(self, **changes: Any) -> None:
        self.meta = write_meta(self.database, self.meta, replace(self.meta, **changes))


def _start_again(database: Any, parser: str, vector: EmbeddingRecord | None) -> Meta:
    """Meta for a database that this version cannot read: tables of another number."""
    numbers = [int(name.rpartition("_")[2]) for name in table_names(database) if "s_" in name]
    database.drop_table(META_TABLE, ignore_missing=True)
    generation = max([1, *numbers]) + 1
    meta = Meta(generation=generation, parser=parser, vector=vector, dirty=True)
    return write_meta(database, None, meta)


def _drop_others(database: Any, wanted: set[int]) -> None:
    keep = {name for number in wanted for name in generation_tables(number).values()}
    for name in table_names(database):
        if name != META_TABLE and name not in keep:
            database.drop_table(name, ignore_missing=True)


def _open_tables(
    database: Any,
    generation: int,
    vector: EmbeddingRecord | None,
    refined: EmbeddingRecord | None,
) -> tuple[dict[str, Table], bool]:
    """The tables of `generation`, and whether all of them were made just now."""
    have = set(table_names(database))
    dimension = vector.dimension if vector else VECTOR_DIMENSION
    tables: dict[str, Table] = {}
    for table, name in generation_tables(generation).items():
        if name in have:
            handle = database.open_table(name)
        else:
            handle = database.create_table(name, schema=table_schema(table, dimension))
        if table in UNIT_TABLES:
            if refined and REFINED not in handle.schema.names:
                handle.add_columns(refined_field(refined.dimension))
            if not handle.list_indices():
                handle.create_index("search_text", config=_index_config("search_text"))
        tables[table] = handle
    return tables, not have.intersection(generation_tables(generation).values())


def _arrow(schema: pa.Schema, columns: Columns, given: dict[str, pa.Array]) -> pa.Table:
    """Columns as an Arrow table of `schema`; what is in neither argument is null."""
    import pyarrow as pa

    rows = len(next(iter(columns.values()), ()))
    arrays = []
    for column in schema:
        if column.name in given:
            arrays.append(given[column.name])
        elif column.name in columns:
            arrays.append(pa.array(columns[column.name], column.type))
        else:
            arrays.append(pa.nulls(rows, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


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


def _indexed_columns(table: str) -> tuple[str, ...]:
    if table == "files":
        return ()
    if table == "edges":
        return ("id", "name", "path")
    return ("search_text", "id", "path", "name_key", "language", "kind", "role")


def _index_config(column: str) -> Any:
    from lancedb.index import FTS, Bitmap, BTree

    if column == "search_text":
        return FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            max_token_length=MAX_TOKEN,
        )
    return Bitmap() if column in ("language", "kind", "role") else BTree()


def _vector_indices(handle: Table) -> dict[str, Any]:
    """Vector columns that hold too many vectors for brute force, with their index."""
    from lancedb.index import IvfSq

    columns = [column for column in ("vector", REFINED) if column in handle.schema.names]
    return {
        column: IvfSq(distance_type="cosine")
        for column in columns
        if handle.count_rows() >= VECTOR_INDEX_ROWS
        and handle.count_rows(f"{column} IS NOT NULL") >= VECTOR_INDEX_ROWS
    }


def _merge_fragments(handle: Table) -> None:
    """Merge many small fragments, and drop old versions, once there are enough of either."""
    stats: Any = handle.stats()
    oldest_kept = datetime.now() - KEEP_VERSIONS
    old = sum(version["timestamp"] < oldest_kept for version in handle.list_versions())
    if int(stats["fragment_stats"]["num_fragments"]) > FRAGMENTS or old > OLD_VERSIONS:
        handle.optimize(cleanup_older_than=KEEP_VERSIONS)


def _parts(paths: Sequence[str]) -> Iterable[Sequence[str]]:
    return (paths[at : at + PATHS_PER_DELETE] for at in range(0, len(paths), PATHS_PER_DELETE))
