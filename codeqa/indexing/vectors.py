"""Vectors of the rows: those of the fast embedding in the first pass, those of the embedding
that the user chose in the second.

The table that CodeQA brings along encodes in the processes that parse: there a unit's fields
are at hand, every core takes part, and what travels is the finished row. The column of the
chosen embedding exists only once one is chosen; the writer carries its vectors over wherever a
unit's text stays the same, so that none is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.embeddings import Embedding, shipped_table
from codeqa.store.filters import one_of
from codeqa.store.meta import record_of
from codeqa.store.records import PACKED_VECTORS, Batch
from codeqa.store.schema import (
    ALL_ROWS,
    REFINED,
    UNIT_TABLES,
    refined_field,
    vector_array,
)
from codeqa.store.writer import Writer
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np

FEW_FILES = 200
"""Files up to which this process encodes: a worker needs 0.15 s for numpy and the table, and
here both are loaded already; 200 files take about as long."""

REFINED_ROWS = 512
"""Vectors of the chosen embedding in one commit: what a killed run pays for twice."""


def packer_for(files: int) -> str:
    """Name of the packer with which workers make rows of `files` files (`parse_many`)."""
    if files > FEW_FILES and (folder := shipped_table()):
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
    for table in UNIT_TABLES:
        columns = batch.tables[table]
        if not columns:
            continue
        packed = columns.pop(PACKED_VECTORS, None)
        if packed is None:
            found[table] = fast.embed_passages(columns["code"])
        else:
            flat = np.frombuffer(b"".join(packed), np.float16)
            found[table] = flat.reshape(-1, fast.dimension)
            if described and table == "methods":
                texts = [columns["code"][place] for place in described]
                found[table] = found[table].copy()  # what came from the worker is read-only
                found[table][list(described)] = fast.embed_passages(texts)
    return found


def refine_units(
    writer: Writer,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    enough: Callable[[], bool],
) -> None:
    """Embed the units that lack a vector of the chosen `embedding`, `batch` texts per call, all of
    them or until `enough`.

    Another embedding than the column holds empties the column first. Raises EmbeddingError, and
    ValueError for vectors of another dimension; what was committed stays.
    """
    import numpy as np
    import pyarrow as pa

    _prepare_column(writer, embedding)
    lacking = {table: _lacking(writer.tables[table]) for table in UNIT_TABLES}
    total = sum(map(len, lacking.values()))
    if not total:
        return
    done = 0
    progress(Progress("embedding", 0, total, embedding.name))
    for table, ids in lacking.items():
        handle = writer.tables[table]
        for first in range(0, len(ids), REFINED_ROWS):
            query = handle.search().where(one_of("id", ids[first : first + REFINED_ROWS]))
            rows = query.select(["id", "code"]).limit(REFINED_ROWS).to_arrow()
            texts = rows["code"].to_pylist()
            made: list[np.ndarray] = []
            for at in range(0, len(texts), batch):
                if made and enough():
                    break
                made.append(embedding.embed_passages(texts[at : at + batch]))
                done += len(made[-1])
                progress(Progress("embedding", done, total, embedding.name))
            vectors = vector_array(np.concatenate(made), handle.schema.field(REFINED).type)
            ids_made = rows["id"].slice(0, len(vectors))
            found = pa.table([ids_made, vectors], names=["id", REFINED])
            handle.merge_insert("id").when_matched_update_all().execute(found)
            if done < total and enough():
                return
    where = "status = 'indexed' AND tier = 'fast'"
    writer.tables["files"].update(where=where, values={"tier": "refined"})
    writer.tidy()


def _prepare_column(writer: Writer, embedding: Embedding) -> None:
    """Drop vectors of another embedding; the rows themselves stay as they are."""
    record = record_of(embedding)
    if writer.meta.refined == record:
        return
    writer.update_meta(refined=None)
    for table in UNIT_TABLES:
        handle = writer.tables[table]
        if REFINED in handle.schema.names:
            handle.drop_columns([REFINED])
        handle.add_columns(refined_field(embedding.dimension))
    writer.tables["files"].update(where="tier = 'refined'", values={"tier": "fast"})
    writer.update_meta(refined=record)


def _lacking(handle: Any) -> list[str]:
    """Ids of the units of a table without a vector, those of source code first."""
    query = handle.search().where(f"{REFINED} IS NULL").select(["id", "role"])
    rows = query.limit(ALL_ROWS).to_arrow().to_pylist()
    rows.sort(key=lambda row: (row["role"] != "source", row["id"]))
    return [row["id"] for row in rows]
