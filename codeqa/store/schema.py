"""The Arrow schemas of the four tables and of `meta`.

`methods` and `classes` hold units, `edges` references, `files` the manifest. What each
column means stands beside it; `Unit`, `Reference` and `FileRecord` mirror them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FORMAT_VERSION = 1
"""Raised whenever a table's columns or their meaning change: an older index is rebuilt."""

ROWS_VERSION = "1"
"""Raised whenever some file becomes other rows than before: an older index is then read anew from
the files. `tests/golden/rows.json` notices such a change."""

REFINED = "vector_refined"

UNIT_TABLES = ("methods", "classes")
TABLES = ("methods", "classes", "edges", "files")

ALL_ROWS = 2**31
"""Limit of a query that wants every row; LanceDB stops at 10 without one."""

VECTOR_DIMENSION = 512
"""Width of the `vector` column while no fast embedding says otherwise."""

CLASS_COLUMNS: tuple[str, ...] = Unit.__slots__
"""Columns of `classes` that make a Unit."""

UNIT_COLUMNS = tuple(
    name for name in CLASS_COLUMNS if name not in ("constructor_declaration", "method_declarations")
)
"""Columns of `methods` that make a Unit: those two fields are empty there."""

REFERENCE_COLUMNS: tuple[str, ...] = Reference.__slots__

_TEXT, _NUMBER, _LINE = "string", "int64", "int32"
_UNITS = {
    **dict.fromkeys(("id", "path", "language", "kind", "name", "qualified_name"), _TEXT),
    **dict.fromkeys(("class_name", "name_key", "signature", "doc_comment", "source_code"), _TEXT),
    **dict.fromkeys(("start_line", "end_line", "head_end_line"), _LINE),
    **dict.fromkeys(("role", "code", "search_text", "file_hash", "llm_comment"), _TEXT),
}
_EDGES = {
    "id": _NUMBER,
    "path": _TEXT,
    **dict.fromkeys(("line", "column"), _LINE),
    **dict.fromkeys(("name", "kind", "unit_id", "receiver", "module", "target"), _TEXT),
    "confidence": "float32",
}
_FILES = {
    **dict.fromkeys(("path", "hash"), _TEXT),
    **dict.fromkeys(("size", "mtime_ns"), _NUMBER),
    **dict.fromkeys(("language", "role", "tier", "status", "reason"), _TEXT),
    **dict.fromkeys(("units", "references", "replaced"), _NUMBER),
    "broken": "bool_",
    "indexed_at": "float64",
}
"""Column → its Arrow type, in the order of the columns; none of them is null."""


def table_schema(table: str, dimension: int = VECTOR_DIMENSION) -> pa.Schema:
    """Schema of any of TABLES; `vector` of a unit table is `dimension` wide."""
    import pyarrow as pa

    plain = {"edges": _EDGES, "files": _FILES}.get(table, _UNITS)
    fields = [pa.field(name, getattr(pa, kind)(), nullable=False) for name, kind in plain.items()]
    if table == "classes":
        texts = pa.list_(pa.string())
        fields.append(pa.field("constructor_declaration", pa.string(), nullable=False))
        fields.append(pa.field("method_declarations", texts, nullable=False))
    if table in UNIT_TABLES:
        fields.append(pa.field("vector", vector_type(dimension)))
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
