"""Generations of the tables: which one a run writes, and opening, making, dropping them.

Readers use one generation while a rebuild writes the next beside it (`meta` says which).
Every step may be the last one of a killed run, and each leaves what the next run can open.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from codeqa.errors import IndexFormatError
from codeqa.store.indices import index_config
from codeqa.store.meta import (
    META_TABLE,
    EmbeddingRecord,
    Meta,
    generation_tables,
    read_meta,
    table_name,
    table_names,
    unreadable,
    write_meta,
)
from codeqa.store.schema import (
    REFINED,
    TABLES,
    UNIT_TABLES,
    VECTOR_DIMENSION,
    refined_field,
    table_schema,
)

if TYPE_CHECKING:
    from lancedb.table import Table

_NUMBERED = re.compile(rf"(?:{'|'.join(TABLES)})_(\d+)")


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
        return _beside_unreadable(database, parser, vector)
    if meta is None:
        database.drop_all_tables()
        new = Meta(identity=uuid4().hex, parser=parser, vector=vector, dirty=True)
        return write_meta(database, None, new)
    wanted = f"{parser} {vector}"
    stale = (meta.parser, meta.vector) != (parser, vector)
    other = bool(meta.building) and meta.building_key != wanted
    if rebuild or other or (stale and not meta.building):
        number = max(meta.generation, meta.building) + 1 if rebuild or stale else 0
        new = replace(meta, building=number, building_key=wanted, dirty=True)
        meta = write_meta(database, meta, new)
    return meta


def _beside_unreadable(database: Any, parser: str, vector: EmbeddingRecord | None) -> Meta:
    """Meta for a database that this version cannot read: tables of a number not in use."""
    numbers = [
        int(found[1]) for name in table_names(database) if (found := _NUMBERED.fullmatch(name))
    ]
    database.drop_table(META_TABLE, ignore_missing=True)
    generation = max([1, *numbers]) + 1
    identity = uuid4().hex
    meta = Meta(identity=identity, generation=generation, parser=parser, vector=vector, dirty=True)
    return write_meta(database, None, meta)


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
    have = set(table_names(database))
    dimension = vector.dimension if vector else VECTOR_DIMENSION
    tables: dict[str, Table] = {}
    for table, name in generation_tables(generation).items():
        handle = _open(database, name) if name in have else None
        if handle is None:
            if complete:
                raise unreadable(f"the table {name} is gone")
            database.drop_table(name, ignore_missing=True)
            handle = database.create_table(name, schema=table_schema(table, dimension))
        if table in UNIT_TABLES:
            if refined and REFINED not in handle.schema.names:
                handle.add_columns(refined_field(refined.dimension))
            if not handle.list_indices():
                handle.create_index("search_text", config=index_config("search_text"))
        tables[table] = handle
    return tables, not have.intersection(generation_tables(generation).values())


def open_unit_tables(database: Any, generation: int) -> dict[str, Table]:
    """The unit tables of `generation` that are there: a run may have died before making them."""
    have = set(table_names(database))
    names = {table: table_name(table, generation) for table in UNIT_TABLES}
    opened = {table: _open(database, name) for table, name in names.items() if name in have}
    return {table: handle for table, handle in opened.items() if handle is not None}


def _open(database: Any, name: str) -> Table | None:
    """The table, or None when a run died while it made it: its folder is there, no version."""
    try:
        return database.open_table(name)  # type: ignore[no-any-return]
    except ValueError as error:
        if "not found" not in str(error):
            raise
    return None
