"""Write the tables of an index: one table writer at a time, which holds the lock.

The order within a batch keeps the index valid whenever the process dies:

1. files that are replaced lose their hash in the manifest (they must be read again),
2. units and edges are written, one commit per table,
3. the manifest's rows are written.

A file whose row in the manifest has a hash is therefore complete. When a run dies between 2 and 3,
the rows it wrote belong to a file without a row in the manifest. `begin` removes them, so that
files new to the manifest can always simply be added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from codeqa.embeddings.registry import Embedding
from codeqa.errors import IndexFormatError
from codeqa.extensions import load_extension
from codeqa.store.location import Location, connect
from codeqa.store.records import INDEXED, Batch, Columns, FileRecord, search_text, units_of
from codeqa.store.schema import (
    META_TABLE,
    REFINED,
    REPOSITORY,
    TABLES,
    UNIT_TABLES,
    VECTOR_DIMENSION,
    EmbeddingRecord,
    Meta,
    all_of,
    generation_tables,
    is_damage,
    one_of,
    read_meta,
    read_rows,
    record_of,
    refined_field,
    refuse_functions,
    table_names,
    table_schema,
    unreadable,
    vector_array,
    write_meta,
)
from codeqa.text.tokens import search_tokens
from codeqa.text.unit_text import decode, encode, unit_text
from codeqa.types import Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.table import Table

HAS_DESCRIPTION = "llm_comment != ''"
"""Rows with a description."""
PATHS_PER_STATEMENT = 1_000
"""Paths named in one condition; longer ones slow LanceDB's parser of SQL."""

UNINDEXED_SHARE = 0.02
"""Largest share of a table that may be missing from its full-text index before that is rebuilt. A
search reads the missing rows one by one, about 10 µs each, and scores them by the words of the
others. A rebuild takes 0.3 s for 10,000 rows, 2 s for 60,000."""

UNINDEXED_ROWS = 50
"""So many rows may always wait for the next rebuild."""

OLD_VERSIONS = 20, 100
"""Versions nobody reads any more that a small table may have, and one of 100,000 rows, before they
are removed and the fragments merged. That takes a tenth of a second for each thousand rows; each
old version makes every update and every search a little slower."""

KEEP_VERSIONS = timedelta(seconds=20)
"""Time that a version stays after the next one was made. An open reader goes on to the new version
within a second, reads all of 300,000 units in four, and reads again when it was too late."""

VECTOR_INDEX_ROWS = 5_000
"""Rows that a table needs before IVF_SQ is built. Brute force takes 1 ms of processor time for each
thousand rows; the index takes 3 ms for 30,000 and finds 99 of their 100 nearest. Building it takes
0.4 s for 30,000."""

MAX_TOKEN = 64
"""Longest token in the full-text index; longer ones are data, not names."""

_FEW_VALUES = ("language", "kind", "role", REPOSITORY)
_COLUMNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(UNIT_TABLES, ("search_text", "id", "path", "name_key", *_FEW_VALUES)),
    "edges": ("id", "name", "path", REPOSITORY),
    "files": (REPOSITORY,),
}
"""Table → those of its columns that always have an index."""


@dataclass(slots=True)
class TableWriter:
    """Writes rows to the tables of one generation."""

    location: Location
    database: Any
    meta: Meta
    generation: int
    tables: dict[str, Table]
    previous: dict[str, Table]
    """Tables of the generation that a rebuild replaces; their refined vectors are reused."""
    fresh: bool = False
    """Whether this writer created the tables, so that they hold only its own rows."""
    stored_paths: set[str] = field(default_factory=set)
    """Paths that have rows."""
    descriptions_source: Table | None = None
    """Table `methods` with the rows to replace, if any of them has a description (`begin`)."""

    @classmethod
    def open(
        cls,
        location: Location,
        parser: str = "",
        vector: EmbeddingRecord | None = None,
        *,
        rebuild: bool = False,
        beside: bool = False,
        collection: bool = False,
    ) -> TableWriter:
        """Open the tables for writing; create them where there are none.

        `parser` is the version of the code that extracts the rows, `vector` is the fast embedding.
        When either differs from what the tables hold, or on `rebuild`, a new generation is written
        beside the one that readers use; one that a dead run left is continued. With `beside` this
        also holds for the first generation, so that nobody reads it before it is complete. Tables
        of a `collection` have the column REPOSITORY. Raises StorageError for an object store that
        loses commits.
        """
        if not location.tables_are_local:
            load_extension("check_commits")(location)
        database = connect(location, read_consistency_interval=timedelta(0))
        meta = choose_generation(database, parser, vector, rebuild, beside)
        generation = meta.building or meta.generation
        drop_other_generations(database, {meta.generation, generation})
        rebuilding = generation != meta.generation
        previous = existing_tables(database, meta.generation) if rebuilding else {}
        tables = existing_tables(database, generation)
        writer = cls(location, database, meta, generation, tables, previous, fresh=not tables)
        writer._make_tables(vector.dimension if vector else VECTOR_DIMENSION, collection)
        return writer

    def _make_tables(self, dimension: int, collection: bool) -> None:
        """Make the tables, columns and indices that are missing.

        Raises IndexFormatError when a table is missing although a pass over them was completed.
        """
        for table, name in generation_tables(self.generation).items():
            if table in self.tables:
                continue
            if not self.first_build:
                raise unreadable(f"the table {name} is gone")
            self.database.drop_table(name, ignore_missing=True)
            schema = table_schema(table, dimension)
            if collection:
                schema = schema.append(schema.field("path").with_name(REPOSITORY))
            self.tables[table] = self.database.create_table(name, schema=schema)
        for table in UNIT_TABLES:
            handle = self.tables[table]
            if self.meta.refined and REFINED not in handle.schema.names:
                handle.add_columns(refined_field(self.meta.refined.dimension))
            if not handle.list_indices():
                create_index(handle, "search_text")

    @property
    def first_build(self) -> bool:
        """Return whether no pass over the repository has been completed on these tables."""
        return bool(self.meta.building) or not self.meta.complete

    def manifest(self) -> dict[str, FileRecord]:
        """Return all rows of the manifest by path."""
        rows = read_rows(self.tables["files"], FileRecord.__slots__).to_pylist()
        return {row["path"]: FileRecord(**row) for row in rows}

    def begin(self, manifest: Mapping[str, FileRecord]) -> None:
        """Prepare for writing; remove rows without a file that a run left when it died."""
        indexed = (path for path, record in manifest.items() if record.status == INDEXED)
        self.stored_paths = set(indexed)
        methods = self.previous.get("methods")
        if methods is None and self.stored_paths:
            methods = self.tables["methods"]
        self.descriptions_source = None
        if methods is not None and methods.count_rows(HAS_DESCRIPTION):
            self.descriptions_source = methods
        if self.meta.dirty and not self.fresh:
            for table in ("methods", "classes", "edges"):
                paths = read_rows(self.tables[table], ["path"])["path"].unique()
                self._delete(table, sorted(set(paths.to_pylist()) - self.stored_paths))
        if not self.meta.dirty:
            self.update_meta(dirty=True)

    def write(self, batch: Batch, vectors: dict[str, np.ndarray] | None = None) -> None:
        """Commit one batch; rows of its files that are gone are deleted with it.

        `vectors` gives, per unit table, the fast embedding of each row (n, dimension).
        """
        paths = [record.path for record in batch.files]
        replaced = [path for path in paths if path in self.stored_paths]
        self.invalidate(replaced)
        for table, columns in batch.tables.items():
            self._commit(table, columns, replaced, (vectors or {}).get(table))
        self.write_files(batch.files)
        self.stored_paths.update(paths)

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
        values: dict[str, Any] = dict(columns)
        if vectors is not None:
            values["vector"] = vector_array(vectors, handle.schema.field("vector").type)
        if REFINED in handle.schema.names:
            source = self.previous.get(table)
            if source is None and replaced:
                source = handle
            if source is not None and REFINED in source.schema.names:
                values[REFINED] = _stored_vectors(source, columns)
        nulls = [None] * len(columns["id"])
        complete = {name: values.get(name, nulls) for name in handle.schema.names}
        self.put(table, pa.Table.from_pydict(complete, schema=handle.schema), replaced)

    def put(self, table: str, data: pa.Table, replaced: Sequence[str]) -> None:
        """Commit rows of one table; all other rows of the files `replaced` are deleted."""
        handle, manifest = self.tables[table], table == "files"
        if not replaced and (self.fresh or not manifest):
            handle.add(data)
            return
        merge = handle.merge_insert("path" if manifest else "id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        merge = merge.when_not_matched_by_source_delete(one_of("path", replaced))
        merge.execute(data, on_bad_vectors="null")

    def invalidate(self, paths: Sequence[str]) -> None:
        """Let the next run read `paths` again unless this run completes them."""
        for part in _parts(paths):
            self.tables["files"].update(where=one_of("path", part), values={"hash": ""})

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files with all their rows."""
        self.invalidate([path for path in paths if path in self.stored_paths])
        for table in TABLES:
            self._delete(table, paths)
        self.stored_paths.difference_update(paths)

    def write_files(self, records: Iterable[FileRecord]) -> None:
        """Write rows of the manifest."""
        rows = [asdict(record) for record in records]
        if not rows:
            return
        import pyarrow as pa

        self.put("files", pa.Table.from_pylist(rows, schema=self.tables["files"].schema), ())

    def _delete(self, table: str, paths: Sequence[str]) -> None:
        for part in _parts(paths):
            self.tables[table].delete(one_of("path", part))

    def refine_with(self, record: EmbeddingRecord) -> None:
        """Make the column of the chosen embedding anew and empty, for vectors of `record`.

        The other columns of the rows stay as they are.
        """
        with self.growing():
            self.update_meta(refined=None)
            for table in UNIT_TABLES:
                handle = self.tables[table]
                if REFINED in handle.schema.names:
                    handle.drop_columns([REFINED])
                handle.add_columns(refined_field(record.dimension))
            self.update_meta(refined=record)

    def tidy(self, create: Callable[[Table, str], None] | None = None) -> None:
        """Rebuild indices, with `create` if it is set, and merge fragments, where that pays."""
        tidy_tables(self.database, self.tables, self.first_build, create or create_index)

    def finish(self, checked_ns: int, parser: str, vector: EmbeddingRecord | None) -> None:
        """Store that a pass over the repository is complete; a rebuild becomes current."""
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
            versions=self._versions(),
        )
        # A reader in the middle of a query on the dropped tables reads again (`TableReader.ask`).
        self.previous.clear()
        drop_other_generations(self.database, {self.generation})

    @property
    def checked_ns(self) -> int:
        """Return when the last completed pass over these rows began; 0 when there was none."""
        return 0 if self.first_build else self.meta.checked_ns

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Note in `meta` that vectors are committed a few at a time meanwhile (`Meta.growing`)."""
        self.update_meta(refining=True)
        try:
            yield
        finally:
            self.update_meta(refining=False, versions=self._versions())

    def _versions(self) -> tuple[int, ...]:
        """Return the versions of the tables.

        Empty for a collection: its indices are built without the lock.
        """
        if REPOSITORY in self.tables["files"].schema.names:
            return ()
        return tuple(self.tables[table].version for table in TABLES)

    def update_meta(self, **changes: Any) -> None:
        """Commit changed fields of `meta`."""
        self.meta = write_meta(self.database, replace(self.meta, **changes))


def _stored_vectors(source: Table, columns: Columns) -> pa.Array:
    """Return the refined vectors that `source` has for the same ids and texts, else null.

    An edit then costs the provider only the units whose text it changed.
    """
    import pyarrow as pa

    vectors, numbers = _stored_values(source, columns, "code", REFINED, f"{REFINED} IS NOT NULL")
    if not len(vectors):
        return pa.nulls(len(numbers), vectors.type)
    return vectors.take(pa.array(numbers, pa.int64()))


def _stored_values(
    source: Table, columns: Columns, text: str, value: str, condition: str
) -> tuple[pa.Array, list[int | None]]:
    """Read the column `value` of `source`, and find which row is that of each row of `columns`.

    Rows of the files in `columns` that meet `condition` are read. Return their values, and for each
    row of `columns` the number of the value with the same id and `text`, or None.
    """
    inside = all_of(one_of("path", sorted(set(columns["path"]))), condition)
    rows = read_rows(source, ("id", text, value), inside).combine_chunks()
    keys = zip(rows["id"].to_pylist(), rows[text].to_pylist(), strict=True)
    numbers = {key: number for number, key in enumerate(keys)}
    new_keys = zip(columns["id"], columns[text], strict=True)
    return rows[value].combine_chunks(), list(map(numbers.get, new_keys))


def _parts(paths: Sequence[str]) -> Iterable[Sequence[str]]:
    starts = range(0, len(paths), PATHS_PER_STATEMENT)
    return (paths[at : at + PATHS_PER_STATEMENT] for at in starts)


# Generations: a run may be killed after any step, and the next run can open what it left.


def choose_generation(
    database: Any, parser: str, vector: EmbeddingRecord | None, rebuild: bool, beside: bool
) -> Meta:
    """Commit and return the meta that says which generation this run writes.

    It writes the current one while its rows were made with `parser` and `vector`, else the next
    one, and with `beside` also when there is none yet. A rebuild that a dead run left is continued
    if it was made with the same two.
    """
    building_key = f"{parser} {vector}"
    try:
        meta = read_meta(database)
    except IndexFormatError as error:
        if not is_damage(error):
            raise
        meta = None
    if meta is None:
        database.drop_all_tables()
        meta = Meta(identity=uuid4().hex, parser=parser, vector=vector, dirty=True)
        building = 2 if beside else 0
        return write_meta(database, replace(meta, building=building, building_key=building_key))
    stale = (meta.parser, meta.vector) != (parser, vector)
    other_build = meta.building and meta.building_key != building_key
    if rebuild or other_build or (stale and not meta.building):
        building = max(meta.generation, meta.building) + 1 if rebuild or stale else 0
        changed = replace(meta, building=building, building_key=building_key, dirty=True)
        return write_meta(database, changed)
    return meta


def drop_other_generations(database: Any, generations: set[int]) -> None:
    """Drop every table but `meta` and those of `generations`."""
    keep = {META_TABLE}
    for number in generations:
        keep.update(generation_tables(number).values())
    for name in table_names(database):
        if name not in keep:
            database.drop_table(name, ignore_missing=True)


def existing_tables(database: Any, generation: int) -> dict[str, Table]:
    """Return the tables of `generation` that exist.

    A run may have died before it made one, or meanwhile: then there is a folder without a version.
    """
    handles = {}
    for table, name in generation_tables(generation).items():
        try:
            handles[table] = database.open_table(name)
        except ValueError as error:
            if "not found" not in str(error):
                raise
        else:
            refuse_functions(handles[table].schema)
    return handles


# Indices and fragments


def create_index(handle: Table, column: str) -> None:
    """Build or rebuild the index on `column`."""
    handle.create_index(column, config=index_config(column), replace=True)


def tidy_tables(
    database: Any,
    tables: Mapping[str, Table],
    every: bool = False,
    create: Callable[[Table, str], None] = create_index,
) -> None:
    """Merge fragments, and build indices as `build_indices` does."""
    for handle in (database.open_table(META_TABLE), *tables.values()):
        merge_fragments(handle)
    build_indices(tables, every, create)


def build_indices(
    tables: Mapping[str, Table], every: bool, create: Callable[[Table, str], None]
) -> None:
    """Build indices that are missing or lack many rows; `every`: all indices.

    Rebuilding an index costs no more than updating it, and leaves the data where it is.
    """
    for name, handle in tables.items():
        lacking = {
            index.columns[0]: int(index.num_unindexed_rows or 0) for index in handle.list_indices()
        }
        rows = handle.count_rows()
        limit = max(UNINDEXED_ROWS, int(rows * UNINDEXED_SHARE))
        for column in _columns_to_index(name, handle, rows):
            if every or lacking.get(column, limit + 1) > limit:
                create(handle, column)


def _columns_to_index(name: str, handle: Table, rows: int) -> list[str]:
    """Return the columns that get an index in the table `name` with so many `rows`."""
    columns = list(_COLUMNS[name])
    if rows <= UNINDEXED_ROWS:  # reading them is as fast as looking them up
        columns = [column for column in columns if column == "search_text"]
    if rows >= VECTOR_INDEX_ROWS:
        columns += ["vector", REFINED]
    columns = [column for column in columns if column in handle.schema.names]
    for column in {"vector", REFINED}.intersection(columns):
        if handle.count_rows(f"{column} IS NOT NULL") < VECTOR_INDEX_ROWS:
            columns.remove(column)
    return columns


def merge_fragments(handle: Table) -> None:
    """Merge small fragments and remove old versions, once there are many old versions."""
    times = [version["timestamp"] for version in handle.list_versions()]
    now = datetime.now()
    # Each version was current until the next one was made.
    intervals = pairwise(times + [now])
    current = [start for start, end in intervals if end > now - KEEP_VERSIONS]
    # Merging makes versions of its own while time goes on: what is current now stays meanwhile.
    limit = min(current, default=now) - KEEP_VERSIONS
    few, many = OLD_VERSIONS
    if sum(time < limit for time in times) > min(max(few, handle.count_rows() // 1_000), many):
        handle.optimize(cleanup_older_than=now - limit)


def index_config(column: str) -> Any:
    """Return LanceDB's configuration of the index on `column`."""
    from lancedb.index import FTS, Bitmap, BTree, IvfSq

    if column == "search_text":
        return FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            max_token_length=MAX_TOKEN,
        )
    if column in ("vector", REFINED):
        return IvfSq(distance_type="cosine")
    return Bitmap() if column in _FEW_VALUES else BTree()


# Descriptions join the text that is embedded and searched (`code`, `search_text`). A description
# belongs to the source that it was written for: a row whose source changed loses it.


def write_descriptions(
    writer: TableWriter, pairs: Sequence[tuple[Unit, str]], fast: Embedding | None = None
) -> int:
    """Set the descriptions of methods in one commit; return how many rows changed.

    The vectors of a changed row are replaced: those of `fast`, if the index holds such, at once;
    the others are dropped, and refining adds them later. Methods that are gone or have another
    source by now are left alone.
    """
    import pyarrow as pa

    descriptions = {unit.id: (unit.source_code, text) for unit, text in pairs}
    handle = writer.tables["methods"]
    rows = read_rows(handle, handle.schema.names, one_of("id", descriptions))
    changed = []
    for row, unit in zip(rows.to_pylist(), units_of(rows), strict=True):
        source, description = descriptions[unit.id]
        if row["llm_comment"] == description or unit.source_code != source:
            continue
        row |= dict.fromkeys({"vector", REFINED} & row.keys(), None)
        words = _with_words(search_text(unit), description)
        row |= {"llm_comment": description, "code": unit_text(unit, description)}
        row["search_text"] = words
        changed.append(row)
    if not changed:
        return 0
    data = pa.Table.from_pylist(changed, schema=handle.schema)
    if fast is not None and record_of(fast) == writer.meta.vector:
        column = handle.schema.get_field_index("vector")
        kind = handle.schema.field(column).type
        vectors = vector_array(fast.embed_passages([row["code"] for row in changed]), kind)
        data = data.set_column(column, handle.schema.field(column), vectors)
    handle.merge_insert("id").when_matched_update_all().execute(data, on_bad_vectors="null")
    return len(changed)


def keep_descriptions(writer: TableWriter, batch: Batch) -> None:
    """Give the methods of `batch` the descriptions of stored rows with the same id and source.

    Call it before `batch` is embedded and written.
    """
    columns = batch.tables["methods"]
    source = writer.descriptions_source
    if source is None or not columns:
        return
    descriptions, numbers = _stored_values(
        source, columns, "source_code", "llm_comment", HAS_DESCRIPTION
    )
    for row, number in enumerate(numbers):
        if number is None:
            continue
        description, fields = descriptions[number].as_py(), decode(columns["code"][row])
        doc = "\n".join(filter(None, (description, fields.doc_comment)))
        columns["llm_comment"][row] = description
        columns["code"][row] = encode(replace(fields, doc_comment=doc))
        columns["search_text"][row] = _with_words(columns["search_text"][row], description)


def _with_words(text: str, description: str) -> str:
    """Return the tokens of a unit followed by those of its description."""
    return " ".join([text] + search_tokens(description))
