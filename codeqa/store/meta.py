"""What the database says about itself: format, embeddings, which tables are current.

A rebuild never overwrites: it writes tables of the next generation beside the current
ones and then switches with a single commit to `meta`. The first generation's tables are
called `methods`, `classes`, `edges`, `files`; later ones end in `_2`, `_3`, ….
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from codeqa.errors import IndexFormatError
from codeqa.store.schema import FORMAT_VERSION, TABLES

if TYPE_CHECKING:
    from lancedb.db import DBConnection

    from codeqa.embeddings import Embedding

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
    complete: bool = False
    """The current generation's first pass was finished once."""
    dirty: bool = False
    """A run that writes has begun and has not ended."""
    parser: str = ""
    """Fingerprint of the code and data that extracted the rows."""
    checked_ns: int = 0
    """Start of the last completed run, as file times are written."""
    updated_at: float = 0.0
    """End of the last completed run, seconds since the epoch."""
    vector: EmbeddingRecord | None = None
    refined: EmbeddingRecord | None = None


def table_name(table: str, generation: int) -> str:
    """Name in the database of `table` in `generation`."""
    return table if generation == 1 else f"{table}_{generation}"


def unreadable(error: Exception | str) -> IndexFormatError:
    """The error to raise when the database fails to read what it once wrote."""
    reason = str(error).split("\n", 1)[0].split(", /", 1)[0][:200]
    return IndexFormatError(f"The index cannot be read: {reason}.", REBUILD_HINT)


def read_meta(database: DBConnection) -> Meta | None:
    """Read the state; None when nothing was ever written here.

    Raises IndexFormatError when it cannot be read or is of another format.
    """
    if META_TABLE not in table_names(database):
        return None
    try:
        rows = database.open_table(META_TABLE).to_arrow().to_pylist()
        values: dict[str, Any] = {row["key"]: json.loads(row["value"]) for row in rows}
    except Exception as error:
        raise unreadable(error) from error
    if values.get("format") != FORMAT_VERSION:
        raise IndexFormatError(
            f"The index has format {values.get('format', 'unknown')}, "
            f"this version of CodeQA reads format {FORMAT_VERSION}.",
            REBUILD_HINT,
        )
    for name in ("vector", "refined"):
        if values.get(name):
            values[name] = EmbeddingRecord(**values[name])
    return replace(Meta(), **{key: values[key] for key in Meta.__slots__ if key in values})


def write_meta(database: DBConnection, old: Meta | None, new: Meta) -> Meta:
    """Commit what differs between `old` and `new` in one step; returns `new`."""
    before = asdict(old) if old else {}
    rows = [
        {"key": key, "value": json.dumps(value)}
        for key, value in asdict(new).items()
        if old is None or before[key] != value
    ]
    if not rows:
        return new
    import pyarrow as pa

    # This schema never changes, whatever the format.
    text = [pa.field(name, pa.string(), nullable=False) for name in ("key", "value")]
    data = pa.Table.from_pylist(rows, schema=pa.schema(text))
    if old is None and META_TABLE not in table_names(database):
        database.create_table(META_TABLE, data)
    else:
        table = database.open_table(META_TABLE)
        merge = table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(data)
    return new


def table_names(database: DBConnection) -> list[str]:
    """Names of all tables of the database."""
    return list(database.list_tables(limit=10_000).tables)


def generation_tables(generation: int) -> dict[str, str]:
    """Table → its name in `generation`."""
    return {table: table_name(table, generation) for table in TABLES}
