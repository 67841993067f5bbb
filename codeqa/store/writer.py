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

DESCRIBED = "llm_comment != ''"
"""Rows with a description."""
PATHS_PER_STATEMENT = 1_000
"""Paths named in one condition; longer ones slow LanceDB's parser of SQL."""

UNINDEXED_SHARE = 0.02
"""Share of a table outside its full-text index from which on that is built anew: a search
reads those rows one by one, about 10 µs each, and scores them by the words of the others.
Building takes 0.3 s for 10,000 rows, 2 s for 60,000."""

UNINDEXED_ROWS = 50
"""As many rows may always wait for the next build."""

OLD_VERSIONS = 20, 100
"""Versions nobody reads any more from which on they are removed and the fragments merged: in a
small table and in one of 100,000 rows and more. That takes a tenth of a second for each thousand
rows; each version that stays makes every update and every search a little slower."""

KEEP_VERSIONS = timedelta(seconds=20)
"""A version stays for so long after another one took its place. An open reader goes on to the new
one within a second, reads all of 300,000 units in four, and asks again when it was too late."""

VECTOR_INDEX_ROWS = 5_000
"""Rows from which on IVF_SQ is built: brute force takes 1 ms of processor time for each thousand
of them, the index 3 ms for 30,000, of whose 70 nearest it finds 99 of 100. Building takes 0.4 s
for 30,000."""

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
        beside: bool = False,
        collection: bool = False,
    ) -> Writer:
        """Open the tables for writing, creating them where there are none.

        `parser` is the version of what extracts the rows, `vector` is the fast embedding.
        When either differs from what the tables hold, or on `rebuild`, a new generation
        is written beside the one that readers use; one that a dead run left is continued.
        Raises StorageError for an object store that loses commits.
        `beside`: a first one as well, so that nothing of it is seen before its end.
        Those of a `collection` have the column REPOSITORY.
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
        """Make the tables, columns and indices that are missing. Raises IndexFormatError when a
        table is although a pass over them was complete."""
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
        for handle in map(self.tables.__getitem__, UNIT_TABLES):
            if self.meta.refined and REFINED not in handle.schema.names:
                handle.add_columns(refined_field(self.meta.refined.dimension))
            if not handle.list_indices():
                create_index(handle, "search_text")

    @property
    def first_build(self) -> bool:
        """No pass over the repository has been completed on these tables."""
        return bool(self.meta.building) or not self.meta.complete

    def manifest(self) -> dict[str, FileRecord]:
        """All rows of the manifest by path."""
        rows = read_rows(self.tables["files"], FileRecord.__slots__).to_pylist()
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
                paths = read_rows(self.tables[table], ["path"])["path"].unique()
                self._delete(table, sorted({*paths.to_pylist()} - self.known))
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
        self.put(table, data, replaced)

    def put(self, table: str, data: pa.Table, replaced: Sequence[str]) -> None:
        """Commit rows of one table; of the files `replaced` no others stay."""
        handle, manifest = self.tables[table], table == "files"
        if not replaced and (self.fresh or not manifest):
            handle.add(data)
            return
        merge = handle.merge_insert("path" if manifest else "id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
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

        self.put("files", pa.Table.from_pylist(rows, schema=self.tables["files"].schema), ())

    def _delete(self, table: str, paths: Sequence[str]) -> None:
        for part in _parts(paths):
            self.tables[table].delete(one_of("path", part))

    def refine_with(self, record: EmbeddingRecord) -> None:
        """Let the column of the chosen embedding hold vectors of `record`: it is emptied of others;
        the rows themselves stay as they are."""
        with self.growing():
            self.update_meta(refined=None)
            for table in UNIT_TABLES:
                handle = self.tables[table]
                if REFINED in handle.schema.names:
                    handle.drop_columns([REFINED])
                handle.add_columns(refined_field(record.dimension))
            self.update_meta(refined=record)

    def tidy(self, create: Callable[[Table, str], None] | None = None) -> None:
        """Build the indices anew, by `create` if given, and merge fragments, where that pays."""
        tidy_tables(self.database, self.tables, self.first_build, create or create_index)

    def finish(self, checked_ns: int, parser: str, vector: EmbeddingRecord | None) -> None:
        """Note that a pass over the repository is complete; a rebuild becomes current."""
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
            self.update_meta(refining=False, versions=self._versions())

    def _versions(self) -> tuple[int, ...]:
        """None of a collection, whose indices are built when nobody holds it."""
        alone = REPOSITORY not in self.tables["files"].schema.names
        return tuple(self.tables[table].version for table in TABLES if alone)

    def update_meta(self, **changes: Any) -> None:
        """Commit changed fields of `meta`."""
        self.meta = write_meta(self.database, replace(self.meta, **changes))


def _carried(source: Table, columns: Columns) -> pa.Array:
    """Refined vectors that `source` holds for the same id and the same text, else null.

    An edit then costs the provider only the units whose text it changed.
    """
    import pyarrow as pa

    old, place = _kept(source, columns, "code", REFINED, f"{REFINED} IS NOT NULL")
    if not len(old):
        return pa.nulls(len(place), old.type)
    return old.take(pa.array(place, pa.int64()))


def _kept(
    source: Table, columns: Columns, text: str, value: str, condition: str
) -> tuple[pa.Array, list[int | None]]:
    """What `source` holds as `value` of the files of `columns` where `condition` holds, and for
    each row of `columns` the place there of the same id with the same `text`, None for none."""
    inside = all_of(one_of("path", sorted({*columns["path"]})), condition)
    old = read_rows(source, ("id", text, value), inside).combine_chunks()
    pairs = zip(old["id"].to_pylist(), old[text].to_pylist(), strict=True)
    places = {pair: place for place, pair in enumerate(pairs)}
    wanted = zip(columns["id"], columns[text], strict=True)
    return old[value].combine_chunks(), [places.get(pair) for pair in wanted]


def _parts(paths: Sequence[str]) -> Iterable[Sequence[str]]:
    starts = range(0, len(paths), PATHS_PER_STATEMENT)
    return (paths[at : at + PATHS_PER_STATEMENT] for at in starts)


# Generations: every step may be the last one of a killed run, and each leaves what the next run can
# open.


def choose_generation(
    database: Any, parser: str, vector: EmbeddingRecord | None, rebuild: bool, beside: bool
) -> Meta:
    """Commit and return the meta that says which generation this run writes.

    The current one while `parser` and `vector` are what its rows were made with, else the
    next, a first one too if `beside`; a rebuild for the same two that a dead run left goes on.
    """
    wanted = f"{parser} {vector}"
    try:
        meta = read_meta(database)
    except IndexFormatError as error:
        if not is_damage(error):
            raise
        meta = None
    if meta is None:
        database.drop_all_tables()
        new = Meta(identity=uuid4().hex, parser=parser, vector=vector, dirty=True)
        return write_meta(database, replace(new, building=2 * beside, building_key=wanted))
    stale = (meta.parser, meta.vector) != (parser, vector)
    other = bool(meta.building) and meta.building_key != wanted
    if rebuild or other or (stale and not meta.building):
        number = max(meta.generation, meta.building) + 1 if rebuild or stale else 0
        new = replace(meta, building=number, building_key=wanted, dirty=True)
        return write_meta(database, new)
    return meta


def drop_other_generations(database: Any, wanted: set[int]) -> None:
    """Drop every table but `meta` and those of the generations `wanted`."""
    keep = {name for number in wanted for name in generation_tables(number).values()}
    for name in table_names(database):
        if name != META_TABLE and name not in keep:
            database.drop_table(name, ignore_missing=True)


def existing_tables(database: Any, generation: int) -> dict[str, Table]:
    """The tables of `generation` that are there.

    A run may have died before it made one, or while it did: its folder is there, no version.
    """
    found = {}
    for table, name in generation_tables(generation).items():
        try:
            found[table] = database.open_table(name)
        except ValueError as error:
            if "not found" not in str(error):
                raise
        else:
            refuse_functions(found[table].schema)
    return found


# Indices and fragments


def create_index(handle: Table, column: str) -> None:
    """Build the index on `column`, or build it anew."""
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
    """Build what is missing, and build anew what many rows are not in; `every`: all of them.

    Building an index anew costs no more than updating it would, and leaves the data where
    it is.
    """
    for name, handle in tables.items():
        unindexed = {
            index.columns[0]: int(index.num_unindexed_rows or 0) for index in handle.list_indices()
        }
        rows = handle.count_rows()
        limit = max(UNINDEXED_ROWS, int(rows * UNINDEXED_SHARE))
        few = rows <= UNINDEXED_ROWS  # as soon read as looked up
        columns = [one for one in _COLUMNS[name] if one == "search_text" or not few]
        columns = [one for one in columns if one in handle.schema.names]
        for column in {"vector", REFINED}.intersection(handle.schema.names):
            if rows >= VECTOR_INDEX_ROWS <= handle.count_rows(f"{column} IS NOT NULL"):
                columns.append(column)
        for column in columns:
            if every or unindexed.get(column, limit + 1) > limit:
                create(handle, column)


def merge_fragments(handle: Table) -> None:
    """Merge small fragments and remove old versions, once there are enough of these."""
    made = [version["timestamp"] for version in handle.list_versions()]
    now = datetime.now()
    # Each version was current until the next one was made.
    current = [first for first, after in pairwise([*made, now]) if after > now - KEEP_VERSIONS]
    # Merging makes versions of its own while time goes on: what is current now stays meanwhile.
    limit = min(current, default=now) - KEEP_VERSIONS
    few, many = OLD_VERSIONS
    if sum(one < limit for one in made) > min(max(few, handle.count_rows() // 1_000), many):
        handle.optimize(cleanup_older_than=now - limit)


def index_config(column: str) -> Any:
    """LanceDB's configuration of the index on `column`."""
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


# Descriptions, which join the text that is embedded and searched (`code`, `search_text`): one
# belongs to the source that it was written for, so a row whose source changed loses it.


def write_comments(
    writer: Writer, described: Sequence[tuple[Unit, str]], fast: Embedding | None = None
) -> int:
    """Set the descriptions of methods; returns how many rows changed. One commit.

    The vectors of a changed row are made anew: those of `fast`, if the index holds such, here;
    the others are dropped, and refining fills them again. Methods that are gone or have another
    source by now are left alone.
    """
    import pyarrow as pa

    comments = {unit.id: (unit.source_code, text) for unit, text in described}
    handle = writer.tables["methods"]
    found = read_rows(handle, handle.schema.names, one_of("id", comments))
    changed = []
    for row, unit in zip(found.to_pylist(), units_of(found), strict=True):
        source, comment = comments[unit.id]
        if row["llm_comment"] == comment or unit.source_code != source:
            continue
        row |= dict.fromkeys({"vector", REFINED} & row.keys(), None)
        words = _with_words(search_text(unit), comment)
        row |= {"llm_comment": comment, "code": unit_text(unit, comment), "search_text": words}
        changed.append(row)
    if not changed:
        return 0
    data = pa.Table.from_pylist(changed, schema=handle.schema)
    if fast is not None and record_of(fast) == writer.meta.vector:
        place = handle.schema.get_field_index("vector")
        kind = handle.schema.field(place).type
        vectors = vector_array(fast.embed_passages([row["code"] for row in changed]), kind)
        data = data.set_column(place, handle.schema.field(place), vectors)
    handle.merge_insert("id").when_matched_update_all().execute(data, on_bad_vectors="null")
    return len(changed)


def keep_comments(writer: Writer, batch: Batch) -> None:
    """Give the methods of `batch` the descriptions that rows of the same id and source have.

    To be called before `batch` is embedded and written.
    """
    columns = batch.tables["methods"]
    old = writer.described
    if old is None or not columns:
        return
    comments, places = _kept(old, columns, "source_code", "llm_comment", DESCRIBED)
    for place, known in enumerate(places):
        if known is None:
            continue
        comment, fields = comments[known].as_py(), decode(columns["code"][place])
        doc = "\n".join(part for part in (comment, fields.doc_comment) if part)
        columns["llm_comment"][place] = comment
        columns["code"][place] = encode(replace(fields, doc_comment=doc))
        columns["search_text"][place] = _with_words(columns["search_text"][place], comment)


def _with_words(text: str, comment: str) -> str:
    """Tokens of a unit with those of its description."""
    return " ".join([text, *search_tokens(comment)])
