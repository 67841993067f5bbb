"""The second pass: vectors of the embedding that the user chose, for units that lack one.

Their column exists only once an embedding is chosen; the writer carries a vector over wherever a
unit's text stays the same, so that none is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codeqa.embeddings import Embedding
from codeqa.indexing.status import CancelledError
from codeqa.store.filters import one_of
from codeqa.store.meta import EmbeddingRecord, record_of
from codeqa.store.schema import ALL_ROWS, REFINED, UNIT_TABLES, refined_field, vector_array
from codeqa.store.writer import Writer
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np

COMMIT_ROWS = 512
"""Vectors in one commit: what a killed run pays for twice."""


def refine_units(
    writer: Writer,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> int:
    """Embed what lacks a vector, `batch` texts per call; returns how many units that were.

    Another embedding than the column holds empties the column first. Raises
    EmbeddingError and CancelledError; what was committed stays.
    """
    record = record_of(embedding)
    assert record is not None
    lacking = _prepare(writer, record)
    total = sum(len(ids) for ids in lacking.values())
    done = 0
    if total:
        progress(Progress("embedding", 0, total, embedding.name))
    for table, ids in lacking.items():
        for first in range(0, len(ids), COMMIT_ROWS):
            part, texts = _texts_of(writer, table, ids[first : first + COMMIT_ROWS])
            made = []
            for at in range(0, len(texts), batch):
                if cancelled():
                    raise CancelledError
                made.append(embedding.embed_passages(texts[at : at + batch]))
                done += len(made[-1])
                progress(Progress("embedding", done, total, embedding.name))
            _write(writer, table, part, made)
    if total:
        _finish(writer)
    return total


def _prepare(writer: Writer, record: EmbeddingRecord) -> dict[str, list[str]]:
    """Make the column ready for `record`; returns ids of units without a vector by table.

    Vectors of another embedding are dropped; the rows themselves stay as they are.
    """
    if writer.meta.refined != record:
        writer.update_meta(refined=None)
        for table in UNIT_TABLES:
            handle = writer.tables[table]
            if REFINED in handle.schema.names:
                handle.drop_columns([REFINED])
            handle.add_columns(refined_field(record.dimension))
        writer.tables["files"].update(where="tier = 'refined'", values={"tier": "fast"})
        writer.update_meta(refined=record)
    lacking = {}
    for table in UNIT_TABLES:
        query = writer.tables[table].search().where(f"{REFINED} IS NULL")
        rows = query.select(["id", "role"]).limit(ALL_ROWS).to_arrow().to_pylist()
        rows.sort(key=lambda row: (row["role"] != "source", row["id"]))
        lacking[table] = [row["id"] for row in rows]
    return lacking


def _texts_of(writer: Writer, table: str, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ids and texts to embed of the units `ids` of `table`."""
    query = writer.tables[table].search().where(one_of("id", ids)).select(["id", "code"])
    rows = query.limit(len(ids)).to_arrow()
    return rows["id"].to_pylist(), rows["code"].to_pylist()


def _write(writer: Writer, table: str, ids: Sequence[str], parts: Sequence[np.ndarray]) -> None:
    """Commit the vectors of the units `ids`. Raises ValueError on another dimension."""
    import numpy as np
    import pyarrow as pa

    handle = writer.tables[table]
    kind = handle.schema.field(REFINED).type
    vectors = vector_array(np.concatenate(parts), kind)
    rows = pa.table([pa.array(ids), vectors], names=["id", REFINED])
    handle.merge_insert("id").when_matched_update_all().execute(rows)


def _finish(writer: Writer) -> None:
    """Note in the manifest that every unit has its vector, and tidy up."""
    where = "status = 'indexed' AND tier = 'fast'"
    writer.tables["files"].update(where=where, values={"tier": "refined"})
    writer.tidy()
