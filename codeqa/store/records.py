"""Convert parsed files to columns of the tables, and rows of the tables to values.

A batch travels as plain lists, one per column: a worker process can hand them over cheaply, and
Arrow takes them without looking at each row.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.store.schema import CLASS_COLUMNS, REFERENCE_COLUMNS, UNIT_COLUMNS, UNIT_TABLES
from codeqa.text.tokens import name_key, search_tokens
from codeqa.text.unit_text import unit_text
from codeqa.types import ParsedFile, Reference, Unit

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, list[Any]]

NAME_REPEATS = 2
"""How often the name stands in `search_text` before the text: a definition of a word then
outweighs a body of like length that mentions it once."""
LONGEST_LINE = 5_000  # characters of a line that are searched; beyond them it is data
PATH_WORDS = 4  # last segments of the path whose words are searched; further up says little

INDEXED = "indexed"
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One row of the manifest: a file that is indexed, or skipped with a reason."""

    path: str
    hash: str = ""  # of the content; '' means that the file must be read again
    size: int = 0
    mtime_ns: int = 0
    language: str = ""
    role: str = ""
    tier: str = "fast"  # no longer used; a column of this format
    status: str = INDEXED
    reason: str = ""
    units: int = 0
    references: int = 0
    replaced: int = 0
    broken: bool = False
    indexed_at: float = 0.0

    def state_below(self, root: Path) -> str:
        """Return `changed` or `deleted` by size and time of change on disk; '' for neither."""
        try:
            status = os.lstat(root / self.path)
        except OSError:
            return "deleted"
        same = status.st_size == self.size and status.st_mtime_ns == self.mtime_ns
        return "" if same else "changed"


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """Numbers of files, units, references and vectors in an index."""

    files: int = 0
    methods: int = 0
    classes: int = 0
    documents: int = 0
    references: int = 0
    embedded: int = 0  # units with a vector of the fast embedding
    refined: int = 0  # units with a vector of the chosen embedding

    @property
    def units(self) -> int:
        return self.methods + self.classes + self.documents


Packed = tuple[dict[str, Any], dict[str, Columns]]
"""Fields of a file's FileRecord; table → the file's rows in it."""


@dataclass(slots=True)
class Batch:
    """Files parsed together: columns of each table, ready to be written."""

    files: list[FileRecord] = field(default_factory=list)
    unchanged: list[FileRecord] = field(default_factory=list)  # new size and time, same content
    tables: dict[str, Columns] = field(
        default_factory=lambda: {table: {} for table in ("methods", "classes", "edges")}
    )

    @property
    def rows(self) -> int:
        """Return how many units and edges the batch holds."""
        return sum(len(columns.get("id", ())) for columns in self.tables.values())

    def add(self, record: FileRecord, packed: Packed) -> None:
        """Add one file; `packed` completes its `record`."""
        fields, tables = packed
        for table in UNIT_TABLES:
            if columns := tables.get(table):
                # Equal for all rows of a file, so the worker does not send it with each of them.
                columns["file_hash"] = [record.hash] * len(columns["id"])
        self.join(Batch([replace(record, **fields)], tables=tables))

    def join(self, other: Batch) -> None:
        """Add the files of another one."""
        self.files += other.files
        self.unchanged += other.unchanged
        for table, columns in other.tables.items():
            for name, values in columns.items():
                self.tables.setdefault(table, {}).setdefault(name, []).extend(values)


def pack_rows(parsed: ParsedFile) -> Packed:
    """Return the rows of a file, made of what `marshal` takes; it runs in the worker."""
    methods = [unit for unit in parsed.units if unit.is_method]
    classes = [unit for unit in parsed.units if not unit.is_method]
    fields = {
        "language": parsed.language,
        "units": len(parsed.units),
        "references": len(parsed.references),
        "replaced": parsed.replaced_bytes,
        "broken": parsed.has_errors,
    }
    return fields, {
        "methods": _unit_columns(methods, UNIT_COLUMNS),
        "classes": _unit_columns(classes, CLASS_COLUMNS),
        "edges": _edge_columns(parsed.path, parsed.references),
    }


def _unit_columns(units: Sequence[Unit], names: Sequence[str]) -> Columns:
    if not units:
        return {}
    columns: Columns = {name: [getattr(unit, name) for unit in units] for name in names}
    columns["name_key"] = [name_key(unit.name) for unit in units]
    columns["code"] = [unit_text(unit) for unit in units]
    columns["search_text"] = [search_text(unit) for unit in units]
    columns["llm_comment"] = [""] * len(units)
    return columns


def _edge_columns(path: str, references: Sequence[Reference]) -> Columns:
    if not references:
        return {}
    first = first_edge(path)
    columns: Columns = {
        name: [getattr(reference, name) for reference in references] for name in REFERENCE_COLUMNS
    }
    columns["id"] = list(range(first, first + len(references)))
    return columns


def first_edge(path: str) -> int:
    """Return the number of a file's first edge, a hash of its path; the others count on from it.

    62 bits: the ranges of 100,000 files with 1,000 edges each meet with a chance of 1e-6.
    """
    digest = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def search_text(unit: Unit) -> str:
    """Return the text for the full-text index: tokens joined by blanks.

    Words of the path, owner and name come first, then the source with its doc comment. Of a class
    only the head and its members' signatures: their bodies are rows of their own, and a long class
    would otherwise match everything a little.
    """
    parts = ["/".join(unit.path.rsplit("/", PATH_WORDS)[-PATH_WORDS:]), unit.class_name]
    parts.extend([unit.name] * NAME_REPEATS)
    if unit.head_end_line and unit.head_end_line < unit.end_line:
        head = unit.source_code.split("\n", unit.head_end_line - unit.start_line + 1)
        parts.extend(head[: unit.head_end_line - unit.start_line + 1])
        parts.extend(unit.method_declarations)
    else:
        parts.append(unit.source_code)
    text = "\n".join(parts)
    if len(text) > LONGEST_LINE:
        text = "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))
    return " ".join(map(_tokens, _WORD.findall(text)))


_WORD = re.compile(r"\w+")  # cuts where `tokens.words` cuts, but for underscores around a word


@lru_cache(maxsize=200_000)
def _tokens(word: str) -> str:
    # Cached because source repeats its words: four times as fast, with some 30 MB at most.
    return " ".join(search_tokens(word))


def columns_of(table: str) -> tuple[str, ...]:
    """Return the columns of a unit table that make a Unit."""
    return CLASS_COLUMNS if table == "classes" else UNIT_COLUMNS


def units_of(rows: pa.Table) -> list[Unit]:
    """Return the unit of each row of a table with at least `columns_of`."""
    # Column by column: half of the time that a dict for each row would take.
    values: dict[str, Iterable[Any]] = {
        name: rows[name].to_pylist() for name in Unit.__slots__ if name in rows.schema.names
    }
    values.setdefault("constructor_declaration", repeat(""))
    values["method_declarations"] = map(tuple, values.get("method_declarations", repeat(())))
    return list(map(Unit, *(values[name] for name in Unit.__slots__)))
