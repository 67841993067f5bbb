"""The column of refined vectors: those of the embedding that the user chose.

It exists only once an embedding is chosen and is filled after the first pass; the writer
carries a vector over wherever a unit's text stays the same, so that none is paid for twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeqa.store.filters import one_of
from codeqa.store.meta import EmbeddingRecord
from codeqa.store.schema import ALL_ROWS, REFINED, UNIT_TABLES, refined_field, vector_array
from codeqa.store.writer import Writer

if TYPE_CHECKING:
    import numpy as np


def prepare_refined(writer: Writer, record: EmbeddingRecord) -> dict[str, list[str]]:
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


def texts_of(writer: Writer, table: str, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ids and texts to embed of the units `ids` of `table`."""
    query = writer.tables[table].search().where(one_of("id", ids)).select(["id", "code"])
    rows = query.limit(len(ids)).to_arrow()
    return rows["id"].to_pylist(), rows["code"].to_pylist()


def write_refined(
    writer: Writer, table: str, ids: Sequence[str], parts: Sequence[np.ndarray]
) -> None:
    """Commit the vectors of the units `ids`. Raises ValueError on another dimension."""
    import numpy as np
    import pyarrow as pa

    handle = writer.tables[table]
    kind = handle.schema.field(REFINED).type
    vectors = vector_array(np.concatenate(parts), kind)
    rows = pa.table([pa.array(ids), vectors], names=["id", REFINED])
    handle.merge_insert("id").when_matched_update_all().execute(rows)


def finish_refined(writer: Writer) -> None:
    """Note in the manifest that every unit has its vector, and tidy up."""
    where = "status = 'indexed' AND tier = 'fast'"
    writer.tables["files"].update(where=where, values={"tier": "refined"})
    writer.tidy()
