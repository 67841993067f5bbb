"""What the database says about itself: format, embeddings, which tables are current.

A rebuild never overwrites: it writes tables of the next generation beside the current
ones and then switches with a single commit to `meta`. The first generation's tables are
called `methods`, `classes`, `edges`, `files`; later ones end in `_2`, `_3`, ….

Choosing, making and dropping a generation: every step may be the last one of a killed run, and
each leaves what the next run can open.
"""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from codeqa.errors import IndexFormatError
from codeqa.store.indices import index_config
from codeqa.store.schema import (
    FORMAT_VERSION,
    REFINED,
    TABLES,
    UNIT_TABLES,
    VECTOR_DIMENSION,
    refined_field,
    table_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table
    from pydantic import TypeAdapter

    from codeqa.embeddings.base import Embedding

META_TABLE = "meta"
REBUILD_HINT = "Run `codeqa index` on the repository: it rebuilds the tables."


@dataclass(frozen=True, slots=True)
class EmbeddingRecord:
    """Which embedding a vector column holds."""

    name: str
    version: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} (version {self.version}, {self.dimension} dimensions)"


def record_of(embedding: Embedding | None) -> EmbeddingRecord | None:
    """What is stored about `embedding`."""
    if embedding is None:
        return None
    return EmbeddingRecord(embedding.name, embedding.version, embedding.dimension)


@dataclass(frozen=True, slots=True)
class Meta:
    """The state of the database."""

    format: int = FORMAT_VERSION
    identity: str = ""
    """Made up with the database: one that was deleted and made again is another one."""
    generation: int = 1
    """Tables that readers use."""
    building: int = 0
    """Tables that a rebuild is writing; 0 for none."""
    building_key: str = ""
    """What that rebuild is for; a run that wants something else starts it again."""
    expected: int = 0
    """Files that are to be read until the first pass is complete, with those read before."""
    complete: bool = False
    """The current generation's first pass was finished once."""
    dirty: bool = False
    """A run that writes has begun and has not ended."""
    refining: bool = False
    """A run is making vectors of the chosen embedding, and commits them a few at a time."""
    parser: str = ""
    """Version of what extracted the rows (`ROWS_VERSION`)."""
    checked_ns: int = 0
    """Start of the last completed run, as file times are written."""
    updated_at: float = 0.0
    """End of the last completed run, seconds since the epoch."""
    vector: EmbeddingRecord | None = None
    refined: EmbeddingRecord | None = None

    @property
    def growing(self) -> bool:
        """New versions follow each other, of which none changes what earlier ones hold."""
        return self.refining or not self.complete


def unreadable(error: Exception | str) -> IndexFormatError:
    """The error to raise when the database fails to read what it once wrote."""
    reason = str(error).split("\n", 1)[0].split(", /", 1)[0][:200]
    return IndexFormatError(f"The index cannot be read: {reason}.", REBUILD_HINT)


def refuse_functions(schema: pa.Schema) -> None:
    """Raises IndexFormatError for a table that names functions: before it writes, LanceDB makes and
    calls them, with keys of the environment and an address of whoever made the table. Ours name
    none."""
    if b"embedding_functions" in (schema.metadata or {}):
        raise unreadable("its tables name functions, so that somebody else made them")


def read_meta(database: DBConnection) -> Meta | None:
    """Read the state; None when nothing was ever written here.

    Raises IndexFormatError when it cannot be read or is of another format.
    """
    if META_TABLE not in table_names(database):
        return None
    try:
        table = database.open_table(META_TABLE)
        refuse_functions(table.schema)
        rows = table.to_arrow().to_pylist()
        values: dict[str, Any] = {row["key"]: json.loads(row["value"]) for row in rows}
    except Exception as error:
        raise unreadable(error) from error
    if values.get("format") != FORMAT_VERSION:
        raise IndexFormatError(
            f"The index has format {values.get('format', 'unknown')}, "
            f"this version of CodeQA reads format {FORMAT_VERSION}.",
            REBUILD_HINT,
        )
    try:
        return _checked().validate_python(values)
    except ValueError as error:
        raise unreadable("its table meta holds other values than were written") from error


@functools.cache
def _checked() -> TypeAdapter[Meta]:
    """Reads a Meta from its fields; raises ValueError for one of another type."""
    from pydantic import TypeAdapter

    return TypeAdapter(Meta)


def write_meta(database: DBConnection, meta: Meta) -> Meta:
    """Commit `meta` in one step; returns it."""
    import pyarrow as pa

    # This schema never changes, whatever the format.
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("key", "value")])
    rows = [{"key": key, "value": json.dumps(value)} for key, value in asdict(meta).items()]
    data = pa.Table.from_pylist(rows, schema=schema)
    if META_TABLE not in table_names(database):
        database.create_table(META_TABLE, data)
    else:
        table = database.open_table(META_TABLE)
        merge = table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(data)
    return meta


def table_names(database: DBConnection) -> list[str]:
    """Names of all tables of the database."""
    return list(database.list_tables(limit=10_000).tables)


def generation_tables(generation: int) -> dict[str, str]:
    """Table → its name in `generation`."""
    ending = "" if generation == 1 else f"_{generation}"
    return {table: table + ending for table in TABLES}


def choose_generation(
    database: Any, parser: str, vector: EmbeddingRecord | None, rebuild: bool
) -> Meta:
    """Commit and return the meta that says which generation this run writes.

    The current one while `parser` and `vector` are what its rows were made with, else the
    next; a rebuild for the same two that a dead run left is continued.
    """
    try:
        meta = read_meta(database)
    except IndexFormatError:
        meta = None
    if meta is None:
        database.drop_all_tables()
        new = Meta(identity=uuid4().hex, parser=parser, vector=vector, dirty=True)
        return write_meta(database, new)
    wanted = f"{parser} {vector}"
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


def open_generation(
    database: Any,
    generation: int,
    vector: EmbeddingRecord | None,
    refined: EmbeddingRecord | None,
    complete: bool = False,
) -> tuple[dict[str, Table], bool]:
    """The tables of `generation`, made where missing, and whether all were made just now.

    Raises IndexFormatError when one is missing although a run over them was `complete`.
    """
    tables = open_tables(database, generation)
    fresh = not tables
    dimension = vector.dimension if vector else VECTOR_DIMENSION
    for table, name in generation_tables(generation).items():
        if table in tables:
            continue
        if complete:
            raise unreadable(f"the table {name} is gone")
        database.drop_table(name, ignore_missing=True)
        tables[table] = database.create_table(name, schema=table_schema(table, dimension))
    for handle in map(tables.__getitem__, UNIT_TABLES):
        if refined and REFINED not in handle.schema.names:
            handle.add_columns(refined_field(refined.dimension))
        if not handle.list_indices():
            handle.create_index("search_text", config=index_config("search_text"))
    return tables, fresh


def open_tables(database: Any, generation: int) -> dict[str, Table]:
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
