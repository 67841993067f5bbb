"""Rows that a rebuild takes over from the tables it replaces, for a new fast embedding.

The rows stay what they are when only the vectors are of another table or version: nothing is
read or parsed again, and readers use the old tables until the new ones are complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codeqa.store.meta import EmbeddingRecord, Meta, table_name
from codeqa.store.schema import ALL_ROWS, TABLES, UNIT_TABLES, vector_array
from codeqa.store.writer import Writer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BATCH_ROWS = 8_192
"""Rows copied in one commit, with their vectors some 30 MB."""

Embed = Callable[[list[str]], "np.ndarray"]


def can_carry(meta: Meta, parser: str, vector: EmbeddingRecord | None) -> bool:
    """Whether the rebuild that `meta` says is under way differs by its vectors alone."""
    return bool(meta.building) and meta.parser == parser and meta.vector != vector


def carry_over(writer: Writer, embed: Embed | None, progress: Callable[[int, int], None]) -> None:
    """Copy all rows of the tables in use into those of the rebuild, with new vectors.

    `embed` gives the vectors (n, dimension) of the `code` of n units, None for no vectors;
    `progress` hears the units done and in all after each commit, and may raise to end it.
    The manifest comes last and at once, so that a copy that was ended begins anew.
    """
    if writer.tables["files"].count_rows():
        return  # a run that died later has done it
    generation = writer.meta.generation
    sources = {table: writer.database.open_table(table_name(table, generation)) for table in TABLES}
    total = sum(sources[table].count_rows() for table in UNIT_TABLES)
    done = 0
    progress(done, total)
    for table in TABLES:  # `files`, the manifest, is the last
        target = writer.tables[table]
        target.delete("true")
        for batch in sources[table].search().limit(ALL_ROWS).to_batches(BATCH_ROWS):
            if not batch.num_rows:
                continue
            target.add(_copied(batch, target.schema, embed))
            if table in UNIT_TABLES:
                done += batch.num_rows
                progress(done, total)
    # What is written from now on may replace rows that are there, and rows of files that the
    # manifest does not know, a killed run's, have come along: `begin` removes them.
    writer.fresh, writer.carried = False, True


def _copied(batch: pa.RecordBatch, schema: pa.Schema, embed: Embed | None) -> pa.Table:
    """Rows of `batch` in `schema`, `vector` made anew of `code`."""
    import pyarrow as pa

    arrays = []
    for column in schema:
        if column.name != "vector":
            arrays.append(batch.column(column.name).cast(column.type))
        elif embed is None:
            arrays.append(pa.nulls(batch.num_rows, column.type))
        else:
            arrays.append(vector_array(embed(batch.column("code").to_pylist()), column.type))
    return pa.Table.from_arrays(arrays, schema=schema)
