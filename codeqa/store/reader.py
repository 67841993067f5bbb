"""An open database for reading, which follows new commits and rebuilds.

It may be kept open as long as one likes and shared by threads: it sees new commits within
READ_INTERVAL, or GROWING_INTERVAL, and the tables of a rebuild once that is complete. What is
asked of one snapshot is answered from the same versions of all tables, whatever is written
meanwhile.
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

READ_INTERVAL = 0.2
"""Seconds after which a reader looks for new commits: who waits for an edit to be found waits for
this as well."""
REMOTE_INTERVAL = 3.0
"""The same for tables in an object store, where each look is a request."""
GROWING_INTERVAL = 5.0
"""The same while a first run, or one that makes vectors, commits something every second: what has
been read of a version serves several questions; each takes three times as long on a new one."""
YOUNG_SECONDS = 2.0
"""Age below which two commits may bear the same time on disk."""

SWITCHES = 3
"""Rebuilds that may end while a reader opens its tables."""

VERSIONS_PER_CONNECTION = 20
"""Versions that are opened by one connection. It remembers metadata, indices and open files of
every version that was read, up to 7 GB of them; a new connection reads them again in some 20 ms."""

T = TypeVar("T")

Key = tuple[str, int, tuple[int, ...]]
"""Which database, generation and versions of the tables: equal as long as nothing changes."""


@dataclass(frozen=True)
class Scope:
    """The part of a collection that is read: what its repositories have in REPOSITORY, and what
    they are called wherever a path or an id is told or taken. Without `names` it is all there is,
    as it lies there."""

    names: Mapping[str, str]

    @functools.cached_property
    def condition(self) -> str:
        """On the rows of every table; '' for all."""
        return one_of(REPOSITORY, self.names) if self.names else ""

    @functools.cached_property
    def ends(self) -> Mapping[str, str]:
        """What each is called → what it has in REPOSITORY."""
        return {name: end for end, name in self.names.items()}

    def held(self, text: str) -> str:
        """A path or an id as the tables have it."""
        name, slash, rest = text.partition("/")
        return self.ends.get(name, name) + slash + rest

    def filtered(self, where: Filter) -> Filter:
        """`where` on the rows as the tables have them. A path that does not begin with a repository
        is one within each."""
        if not self.names:
            return where

        def joined(pattern: str) -> str:
            if pattern.partition("/")[0] in self.ends:
                return self.held(pattern)
            return f"*/{pattern}" if {*"*?"}.intersection(pattern) else f"*/{pattern}**"

        paths, excluded = map(joined, where.paths), map(joined, where.excluded_paths)
        return replace(where, paths=tuple(paths), excluded_paths=tuple(excluded))

    def told(self, rows: pa.Table) -> pa.Table:
        """`rows` of the tables with paths and ids as they are told."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for place, column in enumerate(rows.schema if self.names else ()):
            if column.name in PREFIXED and column.type == pa.string():
                texts = rows[place].combine_chunks()
                ends = pc.utf8_slice_codeunits(texts, 0, HASH_CHARACTERS).dictionary_encode()
                called = [self.names.get(end, "") for end in ends.dictionary.to_pylist()]
                names = pa.array(called, pa.string()).take(ends.indices)
                rest = pc.utf8_slice_codeunits(texts, HASH_CHARACTERS)
                told = pc.binary_join_element_wise(names, rest, "")
                rows = rows.set_column(place, column, told)
        return rows


WHOLE = Scope({})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of every table."""

    meta: Meta
    tables: dict[str, AsyncTable]
    key: Key
    indexed: frozenset[tuple[str, str]]
    """Tables and columns whose vectors are all of them in an index (IVF_SQ)."""
    scope: Scope = WHOLE

    async def rows(
        self, table: str, columns: Any, where: str = "", limit: int = ALL_ROWS, *, ids: bool = False
    ) -> pa.Table:
        """These columns of the rows that meet the condition `where`, with their row ids if `ids`.
        `columns` are names, or names with what is in them in SQL."""
        query = self.tables[table].query().select(columns).limit(limit)
        if condition := all_of(self.scope.condition, where):
            query = query.where(condition)
        return self.scope.told(await (query.with_row_id() if ids else query).to_arrow())


class Reader:
    """The tables of the current generation.

    Raises, as all its methods do, IndexMissingError when nothing was indexed and
    IndexFormatError when the index is of another format or damaged.
    """

    scope = WHOLE

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._checked = 0.0
        self._seen: tuple[int, ...] = ()
        self.failed = False
        """Something could not be read since this was reset."""
        self._snapshot: Snapshot
        self._connect()
        self._open()

    def snapshot(self, *, anew: bool = False) -> Snapshot:
        """The tables as they were at most READ_INTERVAL ago, GROWING_INTERVAL while they grow;
        opened `anew` as they are now."""
        with self._lock:
            interval = READ_INTERVAL if self._location.tables_are_local else REMOTE_INTERVAL
            interval = GROWING_INTERVAL if self._snapshot.meta.growing else interval
            if anew or time.monotonic() - self._checked >= interval:
                self._open(None if anew else self._snapshot)
            return self._snapshot

    def look_again(self) -> None:
        """Let the next snapshot be of now."""
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
        self.failed = True

    def arrow(
        self, table: str, columns: Iterable[str], where: str = "", limit: int = ALL_ROWS
    ) -> pa.Table:
        """What `Snapshot.rows` gives."""
        chosen = columns if isinstance(columns, dict) else list(columns)
        return self.ask(lambda snapshot: snapshot.rows(table, chosen, where, limit))

    def one_of(self, column: str, values: Iterable[str]) -> str:
        """The condition that `column` is told as one of `values`."""
        return one_of(column, map(self.scope.held, values) if column in PREFIXED else values)

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
        """Open the tables that are current, again when a rebuild drops them meanwhile.

        Where nothing changed since `before` its tables are kept.
        """
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
                    ours = isinstance(error, IndexFormatError)
                    raise (error if ours else unreadable(error)) from error

    def _missing(self) -> IndexMissingError:
        root = self._location.root
        return IndexMissingError(f"{root} has not been indexed yet.", f"Run `codeqa index {root}`.")

    def _stamp(self) -> tuple[int, ...]:
        """When each table was last written; () where that is not known, or too short ago for the
        clock of the disk to tell what has been seen: a look at the folders takes 60 µs."""
        folder = Path(self._location.tables)
        try:
            tables = sorted(folder.glob("*.lance/_versions"))
            times = tuple(one.stat().st_mtime_ns for one in tables)
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
            wanted = {*table_schema(table).names}
            if meta.refined and table in UNIT_TABLES:
                wanted.add(REFINED)
            if lost := wanted - {*schema.names}:
                raise unreadable(f"the table {table} has lost {', '.join(sorted(lost))}")
        self._versions_opened += 1
        tables = dict(zip(names, handles, strict=True))
        indexed = {
            (table, index.columns[0])
            for table in UNIT_TABLES
            for index in await tables[table].list_indices()
            if index.index_type == "IvfSq" and not index.num_unindexed_rows
        }
        return Snapshot(meta, tables, key, frozenset(indexed))


class ScopedReader(Reader):
    """What `reader` reads, of the part `scope`."""

    def __init__(self, reader: Reader, scope: Scope) -> None:
        self._reader, self.scope = reader, scope

    def snapshot(self, *, anew: bool = False) -> Snapshot:
        return replace(self._reader.snapshot(anew=anew), scope=self.scope)

    def look_again(self) -> None:
        self._reader.look_again()

    def note_failure(self) -> None:
        self._reader.note_failure()


def run_on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, run on the one event loop that LanceDB has in a thread.

    Asking there for all that a search needs costs about half of the processor time of LanceDB's
    blocking calls, one thread each. Raises what the coroutine raises; not to be called on the loop
    itself.
    """
    from lancedb.background_loop import LOOP

    run: Callable[[Coroutine[Any, Any, T]], T] = LOOP.run
    return run(coroutine)


def give_back_memory() -> None:
    """Give freed memory back to the system, where the C library can (glibc). It keeps what each of
    LanceDB's threads freed: after 245 edits 205 of 263 MB, of which this took 125 in 30 ms."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def damage(location: Location, *, thorough: bool = True) -> str:
    """Why the index of `location`, which no run writes now, has to be made anew from the files, in
    words; '' when it need not be. `thorough` reads every row and every index, 2 s for 470,000
    references, as is always done behind a run that died.

    Tables on another machine are not for this one to delete.
    """

    async def read_all(snapshot: Snapshot) -> None:
        for handle in snapshot.tables.values():
            async for _ in await handle.query().to_batches():
                pass
            for index in await handle.list_indices():
                await handle.prewarm_index(index.name)
            await handle.list_versions()  # writing goes back to earlier ones

    folder = Path(location.tables)
    if not location.tables_are_local or not os.path.lexists(folder):
        return ""
    if not folder.is_dir():
        return f"{folder} is no folder"
    try:
        reader = Reader(location)
        meta, (*_, versions) = reader.snapshot().meta, reader.snapshot().key
        died = meta.dirty or meta.growing
        if not died and meta.versions not in ((), versions):
            return "another program has written into its tables"
        if thorough or died:
            reader.ask(read_all)
    except IndexFormatError as error:
        return error.message if is_damage(error) else ""
    except (IndexMissingError, OSError, RuntimeError):
        return ""
    return ""
