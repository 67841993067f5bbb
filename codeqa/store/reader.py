"""An open database for reading, which follows new commits and rebuilds.

It may be kept open as long as one likes and shared by threads: it sees new commits within
READ_INTERVAL, and the tables of a rebuild once that is complete.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from codeqa.errors import IndexFormatError, IndexMissingError
from codeqa.store.location import Location
from codeqa.store.meta import (
    REBUILD_HINT,
    EmbeddingRecord,
    Meta,
    read_meta,
    table_name,
    unreadable,
)
from codeqa.store.schema import ALL_ROWS, TABLES, UNIT_TABLES

if TYPE_CHECKING:
    from lancedb.table import Table

READ_INTERVAL = 1.0
"""Seconds after which a reader looks for new commits; finding none costs under 1 ms."""

SWITCHES = 3
"""Rebuilds that may end while a reader opens its tables."""

T = TypeVar("T")


class Reader:
    """The tables of the current generation.

    `expected` is the fast embedding in use, None for no matter which. Raises, as all its
    methods do, IndexMissingError when nothing was indexed and IndexFormatError when the
    index is of another format, embedding or dimension.
    """

    def __init__(self, location: Location, expected: EmbeddingRecord | None) -> None:
        self._location = location
        self._expected = expected
        self._lock = threading.Lock()
        self._checked = 0.0
        self._handles: dict[str, Table] = {}
        self._meta: Meta
        import lancedb

        self._database = lancedb.connect(
            location.tables, read_consistency_interval=timedelta(seconds=READ_INTERVAL)
        )
        self._open()

    def meta(self) -> Meta:
        """The database's account of itself, at most READ_INTERVAL old."""
        with self._lock:
            if time.monotonic() - self._checked >= READ_INTERVAL:
                meta = self._read_meta()
                if meta.generation == self._meta.generation:
                    self._meta = meta
                else:
                    self._open()
            return self._meta

    def read(self, table: str, action: Callable[[Table], T]) -> T:
        """Run `action` on the current table; once more when a rebuild dropped it meanwhile."""
        self.meta()
        handle = self._handles[table]
        try:
            return action(handle)
        except Exception:
            with self._lock:
                self._open()
                handle = self._handles[table]
            try:
                return action(handle)
            except Exception as error:
                raise unreadable(error) from error

    def verify(self) -> None:
        """Read one row of each table. Raises IndexFormatError when that fails."""
        for table in TABLES:
            self.read(table, lambda handle: handle.search().limit(1).to_arrow())

    def rows(
        self, table: str, columns: Sequence[str], where: str, limit: int = ALL_ROWS
    ) -> list[dict[str, Any]]:
        """Rows of `table` that meet the condition `where` ('' for all), as dicts."""

        def action(handle: Table) -> list[dict[str, Any]]:
            query = handle.search().select(list(columns)).limit(limit)
            return list((query.where(where) if where else query).to_arrow().to_pylist())

        return self.read(table, action)

    def _open(self) -> None:
        """Open the tables that are current, again when a rebuild drops them meanwhile."""
        for _ in range(SWITCHES):
            self._meta = self._read_meta()
            try:
                self._open_handles()
                return
            except IndexFormatError:
                if self._read_meta().generation == self._meta.generation:
                    raise
        self._meta = self._read_meta()
        self._open_handles()

    def _read_meta(self) -> Meta:
        meta = read_meta(self._database)
        if meta is None:
            raise self._missing()
        if self._expected is not None and meta.vector != self._expected:
            raise IndexFormatError(
                f"The index holds vectors of {meta.vector or 'no embedding'}, "
                f"but {self._expected} is in use.",
                REBUILD_HINT,
            )
        self._checked = time.monotonic()
        return meta

    def _missing(self) -> IndexMissingError:
        return IndexMissingError(
            f"{self._location.root} has not been indexed yet.",
            f"Run `codeqa index {self._location.root}`.",
        )

    def _open_handles(self) -> None:
        try:
            self._handles = {
                table: self._database.open_table(table_name(table, self._meta.generation))
                for table in TABLES
            }
        except Exception as error:
            if not self._meta.complete:  # its first run died before it made the tables
                raise self._missing() from None
            raise unreadable(error) from error
        record = self._meta.vector
        for table in UNIT_TABLES:
            column = self._handles[table].schema.field("vector").type
            if record is not None and column.list_size != record.dimension:
                raise IndexFormatError(
                    f"The index says that vectors have {record.dimension} dimensions, "
                    f"its table {table} holds {column.list_size}.",
                    REBUILD_HINT,
                )
