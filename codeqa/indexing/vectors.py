"""The fast embedding of the rows: in the workers that parse where it can be, else here.

The table that CodeQA brings along encodes in the processes that parse: there a unit's fields
are at hand, every core takes part, and what travels is the finished row. Any other fast
embedding is asked by this process, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codeqa.embeddings import Embedding, worker_table
from codeqa.indexing.status import CancelledError
from codeqa.store.meta import EmbeddingRecord, Meta, table_name
from codeqa.store.records import PACKED_VECTORS, Batch
from codeqa.store.schema import ALL_ROWS, TABLES, UNIT_TABLES, vector_array
from codeqa.store.writer import Writer
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FEW_FILES = 200
"""Files up to which this process encodes: a worker needs 0.15 s for numpy and the table, and
here both are loaded already; 200 files take about as long."""

BATCH_ROWS = 8_192
"""Rows copied in one commit, with their vectors some 30 MB."""


def packer_for(fast: Embedding | None, files: int) -> str:
    """Name of the packer with which workers make rows of `files` files (`parse_many`)."""
    folder = worker_table(fast) if files > FEW_FILES else ""
    if folder:
        return f"codeqa.store.records:packer_with_vectors={folder}"
    return "codeqa.store.records:pack_rows"


def take_vectors(
    fast: Embedding | None, batch: Batch, described: Sequence[int] = ()
) -> dict[str, np.ndarray] | None:
    """The vectors (n, dimension) of each table's rows, taken out of `batch` or made here.

    `described` are places of methods whose text changed after a worker made their vector.
    """
    if fast is None:
        return None
    import numpy as np

    found = {}
    for table, columns in (("methods", batch.methods), ("classes", batch.classes)):
        if not columns:
            continue
        packed = columns.pop(PACKED_VECTORS, None)
        if packed is None:
            found[table] = fast.embed_passages(columns["code"])
        else:
            flat = np.frombuffer(b"".join(packed), np.float16)
            found[table] = flat.reshape(-1, fast.dimension)
            if described and columns is batch.methods:
                texts = [columns["code"][place] for place in described]
                found[table] = found[table].copy()  # what came from the worker is read-only
                found[table][list(described)] = fast.embed_passages(texts)
    return found


def can_reembed(meta: Meta, parser: str, vector: EmbeddingRecord | None) -> bool:
    """Whether the rebuild that `meta` says is under way differs by its vectors alone."""
    return bool(meta.building) and meta.parser == parser and meta.vector != vector


def reembed(
    writer: Writer,
    fast: Embedding | None,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> None:
    """Copy all rows of the tables in use into those of the rebuild, with the vectors of `fast`.

    The manifest comes last and at once, so that a copy that was ended begins anew. Raises
    EmbeddingError and CancelledError.
    """
    if writer.tables["files"].count_rows():
        return  # a run that died later has done it
    generation = writer.meta.generation
    sources = {table: writer.database.open_table(table_name(table, generation)) for table in TABLES}
    total = sum(sources[table].count_rows() for table in UNIT_TABLES)
    done = 0

    def report() -> None:
        if cancelled():
            raise CancelledError
        progress(Progress("embedding", done, total, fast.name if fast else ""))

    report()
    for table in TABLES:  # `files`, the manifest, is the last
        target = writer.tables[table]
        target.delete("true")
        for batch in sources[table].search().limit(ALL_ROWS).to_batches(BATCH_ROWS):
            if not batch.num_rows:
                continue
            target.add(_copied(batch, target.schema, fast))
            if table in UNIT_TABLES:
                done += batch.num_rows
                report()
    # What is written from now on may replace rows that are there, and rows of files that the
    # manifest does not know, a killed run's, have come along: `begin` removes them.
    writer.fresh, writer.carried = False, True


def _copied(batch: pa.RecordBatch, schema: pa.Schema, fast: Embedding | None) -> pa.Table:
    """Rows of `batch` in `schema`, `vector` made anew of `code`."""
    import pyarrow as pa

    arrays = []
    for column in schema:
        if column.name != "vector":
            arrays.append(batch.column(column.name).cast(column.type))
        elif fast is None:
            arrays.append(pa.nulls(batch.num_rows, column.type))
        else:
            vectors = fast.embed_passages(batch.column("code").to_pylist())
            arrays.append(vector_array(vectors, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)
