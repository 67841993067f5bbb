"""Read an open database, which follows new commits and rebuilds.

It may stay open and be shared by threads: it sees new commits within READ_INTERVAL, or
GROWING_INTERVAL, and the tables of a rebuild once that is complete. A snapshot reads the same
versions of all tables, whatever is written meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from codeqa.errors import IndexFormatError, IndexMissingError
from codeqa.store.location import HASH_CHARACTERS, Location, connect
from codeqa.store.schema import (
    ALL_ROWS,
    PREFIXED,
    REFINED,
    REPOSITORY,
    UNIT_TABLES,
    Filter,
    Meta,
    all_of,
    generation_tables,
    is_damage,
    one_of,
    read_meta,
    refuse_functions,
    table_schema,
    unreadable,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

READ_INTERVAL = 0.2  # seconds between checks for new commits; a fresh edit is found that late
REMOTE_INTERVAL = 3.0  # the same for tables in an object store, where each check is a request
GROWING_INTERVAL = 5.0
"""The same while a run commits every second: what was read of one version should serve several
questions, which take three times as long on a new one."""
YOUNG_SECONDS = 2.0  # age below which two commits may bear the same time on disk

SWITCHES = 3  # rebuilds that may end while a reader opens its tables

VERSIONS_PER_CONNECTION = 20
"""Versions that one connection opens: it keeps metadata, indices and open files of each, up to
7 GB; a new connection reads them again in some 20 ms."""

T = TypeVar("T")

Key = tuple[str, int, tuple[int, ...]]  # database, generation and versions of the tables


@dataclass(frozen=True)
class Scope:
    """The repositories of a collection that are read; without `names` any tables as they are.

    In a collection paths and ids begin with the short id of a repository. Callers see and give the
    repository's name instead.
    """

    names: Mapping[str, str]  # short id of a repository → its name

    @functools.cached_property
    def condition(self) -> str:
        """Return the SQL condition on the rows of every table; '' for all."""
        return one_of(REPOSITORY, self.names) if self.names else ""

    @functools.cached_property
    def repo_ids(self) -> Mapping[str, str]:
        """Map each repository's name to its short id."""
        return {name: repo_id for repo_id, name in self.names.items()}

    def stored(self, text: str) -> str:
        """Return a path or an id as the tables have it."""
        name, slash, rest = text.partition("/")
        return self.repo_ids.get(name, name) + slash + rest

    def stored_filter(self, where: Filter) -> Filter:
        """Return `where` for stored paths; one without a repository's name is within each."""
        if not self.names:
            return where
        paths = tuple(map(self._stored_pattern, where.paths))
        excluded_paths = tuple(map(self._stored_pattern, where.excluded_paths))
        return replace(where, paths=paths, excluded_paths=excluded_paths)

    def _stored_pattern(self, pattern: str) -> str:
        if pattern.partition("/")[0] in self.repo_ids:
            return self.stored(pattern)
        return f"*/{pattern}" if {"*", "?"}.intersection(pattern) else f"*/{pattern}**"

    def named(self, rows: pa.Table) -> pa.Table:
        """Return `rows` of the tables with repositories' names in paths and ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.names:
            return rows
        for number, column in enumerate(rows.schema):
            if column.name in PREFIXED and column.type == pa.string():
                texts = rows[number].combine_chunks()
                ids = pc.utf8_slice_codeunits(texts, 0, HASH_CHARACTERS).dictionary_encode()
                distinct = [self.names.get(id_, "") for id_ in ids.dictionary.to_pylist()]
                names = pa.array(distinct, pa.string()).take(ids.indices)
                rest = pc.utf8_slice_codeunits(texts, HASH_CHARACTERS)
                rows = rows.set_column(number, column, pc.binary_join_element_wise(names, rest, ""))
        return rows


UNSCOPED = Scope({})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of every table."""

    meta: Meta
    tables: dict[str, AsyncTable]
    key: Key
    indexed: frozenset[tuple[str, str]]  # table, column whose vectors are all in an IVF_SQ index
    scope: Scope = UNSCOPED

    async def rows(
        self, table: str, columns: Any, where: str = "", limit: int = ALL_ROWS, *, ids: bool = False
    ) -> pa.Table:
        """Return columns of the rows that meet the condition `where`, with row ids if `ids`.

        `columns` are names, or a dict of names and their values in SQL.
        """
        query = self.tables[table].query().select(columns).limit(limit)
        if condition := all_of(self.scope.condition, where):
            query = query.where(condition)
        if ids:
            query = query.with_row_id()
        return self.scope.named(await query.to_arrow())


class TableReader:
    """The tables of the current generation.

    Raises, as all its methods do, IndexMissingError when nothing was indexed and
    IndexFormatError when the index is of another format or damaged.
    """

    scope = UNSCOPED

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._checked = 0.0
        self._seen: tuple[int, ...] = ()
        self.failed = False  # something could not be read since this was reset
        self._snapshot: Snapshot
        self._connect()
        self._open()

    def snapshot(self, *, anew: bool = False) -> Snapshot:
        """Return the tables as they were an interval ago at most; `anew`: as they are now."""
        with self._lock:
            interval = READ_INTERVAL if self._location.tables_are_local else REMOTE_INTERVAL
            if self._snapshot.meta.growing:
                interval = GROWING_INTERVAL
            if anew or time.monotonic() - self._checked >= interval:
                self._open(None if anew else self._snapshot)
            return self._snapshot

    def look_again(self) -> None:
        """Let the next snapshot see everything that has been written until now."""
        with self._lock:
            self._checked = 0.0

    def ask(self, action: Callable[[Snapshot], Coroutine[Any, Any, T]]) -> T:
        """Run `action` on a snapshot; once more when a rebuild dropped its tables meanwhile."""
        try:
            return run_on_loop(action(self.snapshot()))
        except IndexFormatError:
            raise
        except Exception:
            snapshot = self.snapshot(anew=True)
            try:
                return run_on_loop(action(snapshot))
            except Exception as error:
                self.note_failure()
                raise unreadable(error) from error

    def note_failure(self) -> None:
        """Note that something could not be read."""
        self.failed = True

    def arrow(
        self, table: str, columns: Iterable[str], where: str = "", limit: int = ALL_ROWS
    ) -> pa.Table:
        """Return columns of rows, as `Snapshot.rows` does."""
        select = columns if isinstance(columns, dict) else list(columns)
        return self.ask(lambda snapshot: snapshot.rows(table, select, where, limit))

    def one_of(self, column: str, values: Iterable[str]) -> str:
        """Return the condition that `column` has one of `values`, as callers see it."""
        return one_of(column, map(self.scope.stored, values) if column in PREFIXED else values)

    def _connect(self) -> None:
        import lancedb

        if self._location.tables_are_local and not os.path.lexists(self._location.tables):
            raise self._missing()  # LanceDB would make the folder
        # Both connections leave a table that they opened at its version: a snapshot.
        try:
            self._database = connect(self._location)
        except (FileExistsError, NotADirectoryError) as error:
            raise unreadable(error) from error
        self._connection = run_on_loop(lancedb.connect_async(self._location.tables))
        self._versions_opened = 0

    def _open(self, before: Snapshot | None = None) -> None:
        """Open the current tables, or keep those of `before` where nothing changed."""
        stamp = self._stamp()
        if before is not None and stamp and stamp == self._seen:
            self._checked = time.monotonic()
            return
        if self._versions_opened >= VERSIONS_PER_CONNECTION:
            self._connect()
        for switch in range(SWITCHES + 1):
            meta = read_meta(self._database)
            if meta is None:
                raise self._missing()
            self._checked = time.monotonic()
            try:
                self._snapshot = run_on_loop(self._read_snapshot(meta, before))
                self._seen = stamp
                return
            except Exception as error:
                if not meta.complete:  # its first run died before it made the tables
                    raise self._missing() from None
                if switch == SWITCHES:
                    if isinstance(error, IndexFormatError):
                        raise
                    raise unreadable(error) from error

    def _missing(self) -> IndexMissingError:
        root = self._location.root
        return IndexMissingError(f"{root} has not been indexed yet.", f"Run `codeqa index {root}`.")

    def _stamp(self) -> tuple[int, ...]:
        """Return when each table was last written; () where that is unknown or too recent to tell.

        Two commits may bear the same time. It takes 60 µs.
        """
        folder = Path(self._location.tables)
        try:
            tables = sorted(folder.glob("*.lance/_versions"))
            times = tuple(folder.stat().st_mtime_ns for folder in tables)
        except OSError:  # somewhere else, or being replaced
            return ()
        young = (time.time() - YOUNG_SECONDS) * 1e9
        return times if max(times, default=young) < young else ()

    async def _read_snapshot(self, meta: Meta, before: Snapshot | None) -> Snapshot:
        names = generation_tables(meta.generation)
        handles = await asyncio.gather(*map(self._connection.open_table, names.values()))
        versions = await asyncio.gather(*(handle.version() for handle in handles))
        key = (meta.identity, meta.generation, tuple(versions))
        if before is not None and before.key == key:
            return Snapshot(meta, before.tables, key, before.indexed)
        schemas = await asyncio.gather(*(handle.schema() for handle in handles))
        for table, schema in zip(names, schemas, strict=True):
            refuse_functions(schema)
            columns = set(table_schema(table).names)
            if meta.refined and table in UNIT_TABLES:
                columns.add(REFINED)
            if missing := columns - set(schema.names):
                raise unreadable(f"the table {table} has lost {', '.join(sorted(missing))}")
        self._versions_opened += 1
        tables = dict(zip(names, handles, strict=True))
        indexed = {
            (table, index.columns[0])
            for table in UNIT_TABLES
            for index in await tables[table].list_indices()
            if index.index_type == "IvfSq" and not index.num_unindexed_rows
        }
        return Snapshot(meta, tables, key, frozenset(indexed))


class ScopedReader(TableReader):
    """The repositories `scope` of a collection that `reader` reads."""

    def __init__(self, reader: TableReader, scope: Scope) -> None:
        self._reader, self.scope = reader, scope

    def snapshot(self, *, anew: bool = False) -> Snapshot:
        """Return the snapshot of the collection, restricted to `scope`."""
        return replace(self._reader.snapshot(anew=anew), scope=self.scope)

    def look_again(self) -> None:
        """Let the collection's next snapshot see everything that has been written until now."""
        self._reader.look_again()

    def note_failure(self) -> None:
        """Note that something in the collection could not be read."""
        self._reader.note_failure()


def run_on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of `coroutine`, run on the event loop that LanceDB has in a thread.

    That takes about half of the processor time of LanceDB's blocking calls. Raises what the
    coroutine raises; not to be called on the loop itself.
    """
    from lancedb.background_loop import LOOP

    run: Callable[[Coroutine[Any, Any, T]], T] = LOOP.run
    return run(coroutine)


def give_back_memory() -> None:
    """Give back memory that LanceDB's threads freed, where glibc can: 125 MB in 30 ms."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def damage(location: Location, *, thorough: bool = True) -> str:
    """Return why an index that no run writes must be rebuilt from the files; '' if it need not be.

    `thorough` reads every row and every index (2 s for 470,000 references); after a run that died
    this is always done. Tables on another machine are not checked.
    """
    folder = Path(location.tables)
    if not location.tables_are_local or not os.path.lexists(folder):
        return ""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    try:
        reader = TableReader(location)
        meta, (*_, versions) = reader.snapshot().meta, reader.snapshot().key
        died = meta.dirty or meta.growing
        if not died and meta.versions not in ((), versions):
            return "another program has written into its tables"
        if thorough or died:
            reader.ask(_read_all)
    except IndexFormatError as error:
        return error.message if is_damage(error) else ""
    except (IndexMissingError, OSError, RuntimeError):
        return ""
    return ""


async def _read_all(snapshot: Snapshot) -> None:
    for handle in snapshot.tables.values():
        async for _ in await handle.query().to_batches():
            pass
        for index in await handle.list_indices():
            await handle.prewarm_index(index.name)
        await handle.list_versions()  # writing goes back to earlier ones
