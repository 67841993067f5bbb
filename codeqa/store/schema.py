"""The Arrow schemas of the four tables and of `meta`.

`methods` and `classes` hold units, `edges` references, `files` the manifest. What each
column means stands beside it; `Unit`, `Reference` and `FileRecord` mirror them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FORMAT_VERSION = 1
"""Raised whenever a table's columns or their meaning change: an older index is rebuilt."""

REFINED = "vector_refined"

UNIT_TABLES = ("methods", "classes")
TABLES = ("methods", "classes", "edges", "files")

ALL_ROWS = 2**31
"""Limit of a query that wants every row; LanceDB stops at 10 without one."""

VECTOR_DIMENSION = 512
"""Width of the `vector` column while no fast embedding says otherwise."""

UNIT_COLUMNS = (
    "id",
    "path",
    "language",
    "kind",
    "name",
    "qualified_name",
    "class_name",
    "signature",
    "doc_comment",
    "source_code",
    "start_line",
    "end_line",
    "head_end_line",
    "role",
)
"""Columns of both unit tables that make a Unit."""

CLASS_COLUMNS = (*UNIT_COLUMNS, "constructor_declaration", "method_declarations")

REFERENCE_COLUMNS = (
    "path",
    "line",
    "column",
    "name",
    "kind",
    "unit_id",
    "receiver",
    "module",
    "target",
    "confidence",
)


def unit_schema(table: str, dimension: int = VECTOR_DIMENSION) -> pa.Schema:
    """Schema of `methods` or `classes`, `vector` being `dimension` wide."""
    import pyarrow as pa

    fields = [
        _text("id"),
        _text("path"),
        _text("language"),
        _text("kind"),
        _text("name"),
        _text("qualified_name"),
        _text("class_name"),
        _text("name_key"),
        _text("signature"),
        _text("doc_comment"),
        _text("source_code"),
        pa.field("start_line", pa.int32(), nullable=False),
        pa.field("end_line", pa.int32(), nullable=False),
        pa.field("head_end_line", pa.int32(), nullable=False),
        _text("role"),
        _text("code"),
        _text("search_text"),
        _text("file_hash"),
        _text("llm_comment"),
        pa.field("vector", vector_type(dimension)),
    ]
    if table == "classes":
        fields[-1:-1] = [
            _text("constructor_declaration"),
            pa.field("method_declarations", pa.list_(pa.string()), nullable=False),
        ]
    return pa.schema(fields)


def vector_type(dimension: int) -> pa.DataType:
    """Half precision: half the disk and search time of float32 at the same recall."""
    import pyarrow as pa

    return pa.list_(pa.float16(), dimension)


def refined_field(dimension: int) -> pa.Field:
    """The column of the embedding that the user chose; it exists only once one is."""
    import pyarrow as pa

    return pa.field(REFINED, vector_type(dimension))


def vector_array(vectors: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Vectors (n, dimension) as an array of `kind`. Raises ValueError on another dimension."""
    import pyarrow as pa

    if vectors.ndim != 2 or vectors.shape[1] != kind.list_size:
        raise ValueError(f"vectors of shape {vectors.shape} do not fit {kind}")
    flat = pa.array(vectors.astype("float16", copy=False).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, kind.list_size)


def edge_schema() -> pa.Schema:
    """Schema of `edges`."""
    import pyarrow as pa

    return pa.schema(
        [
            _integer("id"),
            _text("path"),
            pa.field("line", pa.int32(), nullable=False),
            pa.field("column", pa.int32(), nullable=False),
            _text("name"),
            _text("kind"),
            _text("unit_id"),
            _text("receiver"),
            _text("module"),
            _text("target"),
            pa.field("confidence", pa.float32(), nullable=False),
        ]
    )


def file_schema() -> pa.Schema:
    """Schema of `files`, the manifest."""
    import pyarrow as pa

    return pa.schema(
        [
            _text("path"),
            _text("hash"),
            _integer("size"),
            _integer("mtime_ns"),
            _text("language"),
            _text("role"),
            _text("tier"),
            _text("status"),
            _text("reason"),
            _integer("units"),
            _integer("references"),
            _integer("replaced"),
            pa.field("broken", pa.bool_(), nullable=False),
            pa.field("indexed_at", pa.float64(), nullable=False),
        ]
    )


def table_schema(table: str, dimension: int = VECTOR_DIMENSION) -> pa.Schema:
    """Schema of any of TABLES."""
    if table == "edges":
        return edge_schema()
    if table == "files":
        return file_schema()
    return unit_schema(table, dimension)


def meta_schema() -> pa.Schema:
    """One row per key; `value` is JSON. This schema never changes, whatever the format."""
    import pyarrow as pa

    return pa.schema(
        [
            _text("key"),
            _text("value"),
        ]
    )


def _text(name: str) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, pa.string(), nullable=False)


def _integer(name: str) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, pa.int64(), nullable=False)
