"""Define the columns of the tables, the database's own state (`Meta`), and filters as SQL.

`methods` and `classes` hold units, `edges` references, `files` the manifest, as `Unit`, `Reference`
and `FileRecord` have them; `meta` holds the fields of `Meta`. A rebuild never overwrites: it writes
tables of the next generation beside the current ones (`methods_2`, …) and then switches with a
single commit to `meta`.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from codeqa.errors import IndexFormatError
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table
    from pydantic import TypeAdapter

    from codeqa.embeddings.registry import Embedding

FORMAT_VERSION = 1  # raise it when columns or their meaning change: older indices are rebuilt

ROWS_VERSION = "5"
"""Raise it when a file produces other rows than before: an older index is then read anew from the
files. `tests/golden/rows.json` notices such a change."""

REFINED = "vector_refined"
REPOSITORY = "repository"  # column of collections: the short id of a repository
PREFIXED = ("path", "id", "unit_id", "target")  # begin with it in collections

UNIT_TABLES = ("methods", "classes")
TABLES = ("methods", "classes", "edges", "files")

ALL_ROWS = 2**31  # limit of a query that wants every row; LanceDB stops at 10 without one

VECTOR_DIMENSION = 512  # width of the `vector` column while no fast embedding says otherwise

CLASS_COLUMNS: tuple[str, ...] = Unit.__slots__  # columns of `classes` that make a Unit

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

META_TABLE = "meta"
REBUILD_HINT = "Run `codeqa index` on the repository: it rebuilds the tables."


def table_schema(table: str, dimension: int = VECTOR_DIMENSION) -> pa.Schema:
    """Return the schema of any of TABLES; `vector` of a unit table is `dimension` wide."""
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
    """Return the type of a vector column."""
    import pyarrow as pa

    # Half precision: half the disk and search time of float32 at the same recall.
    return pa.list_(pa.float16(), dimension)


def refined_field(dimension: int) -> pa.Field:
    """Return the column of the embedding that the user chose, which exists only once one is."""
    import pyarrow as pa

    return pa.field(REFINED, vector_type(dimension))


def vector_array(vectors: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return vectors (n, dimension) as an array of `kind`; ValueError on another dimension."""
    import pyarrow as pa

    if vectors.ndim != 2 or vectors.shape[1] != kind.list_size:
        raise ValueError(f"vectors of shape {vectors.shape} do not fit {kind}")
    flat = pa.array(vectors.astype("float16", copy=False).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, kind.list_size)


@dataclass(frozen=True, slots=True)
class EmbeddingRecord:
    """Which embedding a vector column holds."""

    name: str
    version: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} (version {self.version}, {self.dimension} dimensions)"


def record_of(embedding: Embedding | None) -> EmbeddingRecord | None:
    """Return what is stored about `embedding`."""
    if embedding is None:
        return None
    return EmbeddingRecord(embedding.name, embedding.version, embedding.dimension)


@dataclass(frozen=True, slots=True)
class Copied:
    """The state of one repository's copy in a collection."""

    stamp: int = -1  # of its own index (`stamp_of`) when it was copied; -1 for copy again
    complete: bool = False  # as in Meta
    expected: int = 0  # as in Meta
    columns: tuple[str, ...] = ()  # vectors that can be compared with the other repositories'
    problem: str = ""  # why its own index could not be read, so that it is not asked


@dataclass(frozen=True, slots=True)
class Meta:
    """The state of the database."""

    format: int = FORMAT_VERSION
    identity: str = ""  # random: a database that was deleted and made again has another
    generation: int = 1  # tables that readers use
    building: int = 0  # tables that a rebuild is writing; 0 for none
    building_key: str = ""  # what that rebuild is for; a run for something else starts it again
    expected: int = 0  # all files of the first pass, those read before included
    complete: bool = False  # the current generation's first pass was finished once
    dirty: bool = False  # a run that writes has begun and has not ended
    refining: bool = False  # a run adds vectors of the chosen embedding, a few at a time
    parser: str = ""  # version of what extracted the rows (`ROWS_VERSION`)
    checked_ns: int = 0  # start of the last completed run, as file times are written
    updated_at: float = 0.0  # end of the last completed run, seconds since the epoch
    versions: tuple[int, ...] = ()
    """Versions of TABLES after the last run; others come from another program. (): none noted."""
    vector: EmbeddingRecord | None = None
    refined: EmbeddingRecord | None = None
    members: Mapping[str, Copied] = field(default_factory=dict)
    """Repositories of a collection, by their short ids."""

    @property
    def growing(self) -> bool:
        """Return whether versions follow quickly and each only adds to the one before."""
        return self.refining or not self.complete


def unreadable(error: Exception | str) -> IndexFormatError:
    """Return the error to raise when the database cannot be read."""
    reason = str(error).split("\n", 1)[0].split(", /", 1)[0][:200]
    return IndexFormatError(f"The index cannot be read: {reason}.", REBUILD_HINT)


def refuse_functions(schema: pa.Schema) -> None:
    """Raise IndexFormatError for a table that names embedding functions; ours never do.

    LanceDB would call them with keys of the environment, at an address from the table.
    """
    if b"embedding_functions" in (schema.metadata or {}):
        raise unreadable("its tables name functions, so that somebody else made them")


def is_damage(error: IndexFormatError) -> bool:
    """Return whether unreadable tables must be made anew, not only read again."""
    # A missing right, too many open files or a failing disk pass, or are for people to mend.
    codes = {int(code) for code in re.findall(r"\(os error (\d+)\)", str(error.__cause__))}
    return codes <= {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}


def read_meta(database: DBConnection) -> Meta | None:
    """Read the state; None when nothing was ever written here. Raises IndexFormatError."""
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
            f"but this version of CodeQA reads format {FORMAT_VERSION}.",
            REBUILD_HINT,
        )
    try:
        return _meta_type().validate_python(values)
    except ValueError as error:
        raise unreadable("its table meta holds other values than were written") from error


@functools.cache
def _meta_type() -> TypeAdapter[Meta]:
    from pydantic import TypeAdapter

    return TypeAdapter(Meta)


def write_meta(database: DBConnection, meta: Meta) -> Meta:
    """Commit `meta` in one step; return it."""
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


def read_rows(handle: Table, columns: Iterable[str], where: str = "") -> pa.Table:
    """Return columns of the rows that meet the condition `where`, as `Snapshot.rows` does."""
    query = handle.search().select(columns if isinstance(columns, dict) else list(columns))
    if where:
        query = query.where(where)
    return query.limit(ALL_ROWS).to_arrow()


def table_names(database: DBConnection) -> list[str]:
    """Return the names of all tables of the database."""
    return list(database.list_tables(limit=10_000).tables)


def generation_tables(generation: int) -> dict[str, str]:
    """Return table → its name in `generation`."""
    ending = "" if generation == 1 else f"_{generation}"
    return {table: table + ending for table in TABLES}


# Conditions on units, as SQL that no value can break out of

PLACE = re.compile(r"(.+?)(?:(?::|#|\s+lines?\s+)L?(\d{1,9}(?:-L?\d{0,9})?)(?::\d{1,9})?:?)?")
"""A path, and lines of it as editors, compilers, grep and agents write them."""
_FILE_ADDRESS = re.compile(r"file:(?://(?:localhost(?=/))?)?")
_GLOB = re.compile(r"[*?]")
_WILDCARD = re.compile(r"(\*\*/|\*\*|\*|\?)")
_MEANING = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

MOST_WILDCARDS = 32  # of one glob: each grows the automaton, and a thousand are refused


@dataclass(frozen=True, slots=True)
class Filter:
    """Which units a search may return; empty fields let everything through.

    A path without `*` and `?` is a prefix (`src/`, `src/app.py`); with them it is a glob over the
    whole path, in which `*` and `?` stay within a folder and `**` crosses folders. Wildcards after
    the first MOST_WILDCARDS are letters.
    """

    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    excluded_languages: tuple[str, ...] = ()
    excluded_kinds: tuple[str, ...] = ()

    def sql(self) -> str:
        """Return the SQL condition, '' for none."""
        listed = (("language", self.languages), ("kind", self.kinds), ("role", self.roles))
        parts = [one_of(column, values) for column, values in listed if values]
        if self.paths:
            parts.append("(" + " OR ".join(map(_path_condition, self.paths)) + ")")
        parts += [f"NOT ({_path_condition(path)})" for path in self.excluded_paths]
        excluded = (("language", self.excluded_languages), ("kind", self.excluded_kinds))
        parts += [f"NOT ({one_of(column, values)})" for column, values in excluded if values]
        return " AND ".join(parts)


def quote(value: str) -> str:
    """Return `value` as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def all_of(*conditions: str) -> str:
    """Return the conditions, but for '', joined by AND."""
    return " AND ".join(filter(None, conditions))


def one_of(column: str, values: Iterable[str]) -> str:
    """Return `column IN (…)`; false when `values` is empty."""
    quoted = ", ".join(map(quote, values))
    return f"{column} IN ({quoted})" if quoted else "false"


def clean_path(written: str) -> str:
    """Return a path with `/` between its parts, without quotes, `file://` and lines after it."""
    path = written.strip(" \t\r\n`'\"").replace("\\", "/").replace("\0", "")
    if address := _FILE_ADDRESS.match(path):
        path = unquote(path[address.end() :])
    match = PLACE.fullmatch(path)
    return match[1] if match else path


def path_below(path: str, root: Path) -> str | None:
    """Return an absolute path relative to `root`; None for one outside, and a relative one."""
    for spelled in (path, os.path.realpath(path) if path.startswith("/") else ""):
        if f"{spelled}/".startswith(f"{root.as_posix()}/"):
            return spelled[len(root.as_posix()) + 1 :]
    return None


def plain_path(written: str, root: Path | None = None) -> str:
    """Return a path that people or models wrote as the index has it.

    That is relative to `root`, with `/` and without `.` and `..`; '' for the root itself. A folder
    keeps a `/` at its end.
    """
    path = clean_path(written)
    if root and (inside := path_below(path, root)) is not None:
        path = inside
    plain = posixpath.normpath(path).strip("/") if path.strip("/") else ""
    if plain in ("", "."):
        return ""
    return f"{plain}/" if path.endswith("/") else plain


def path_patterns(path: str, *, prefix: bool = True) -> tuple[str, ...]:
    """Return the patterns that match a plain path as a file or folder at any depth; none for ''.

    With `prefix` it is also the beginning of a path.
    """
    if not path:
        return ()
    if _GLOB.search(path):
        return (path, f"**/{path}")
    bare = path.rstrip("/")
    patterns = (f"**/{bare}/**", f"**/{bare}")
    return (path,) + patterns if prefix else patterns


def _path_condition(pattern: str) -> str:
    """Return the condition that a path begins with `pattern`, or wholly matches it as a glob."""
    if not _GLOB.search(pattern):
        return f"starts_with(path, {quote(pattern)})"
    expression = ""
    # Every other part is a wildcard.
    for number, part in enumerate(_WILDCARD.split(pattern, maxsplit=MOST_WILDCARDS)):
        expression += _MEANING[part] if number % 2 else re.escape(part)
    return f"regexp_like(path, {quote(f'^{expression}$')})"
