"""All that was ever asked together, in one set of tables: what is copied there of each repository's
own index.

Its rows lie there as they do in their own tables, vectors included, but that each has the end of
its repository's id in a column, by which searches are narrowed before they begin, and before its
paths and ids, where who asks reads a name (`reader.Scope`). What is copied is a copy: a file is
replaced when it, a description or a vector of it differs, in the write order of `writer`.

Scores depend on every row of the tables they are counted in. Who may not see all repositories is
therefore answered from tables that hold what they may see alone, one set of them for each choice.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import shutil
import threading
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, IndexBusyError, IndexMissingError
from codeqa.indexing.indexer import Listener
from codeqa.indexing.runs import RunRecorder, hold, refusals_explained
from codeqa.settings import Settings
from codeqa.store import Location, Tables, list_locations
from codeqa.store.location import connect, end_of, remove, stamp_of, tables_of
from codeqa.store.reader import Reader, Scope, ScopedReader, damage
from codeqa.store.records import FileRecord, first_edge
from codeqa.store.schema import (
    PREFIXED,
    REFINED,
    REPOSITORY,
    TABLES,
    UNIT_TABLES,
    Copied,
    Meta,
    one_of,
    quote,
    read_meta,
    read_rows,
    record_of,
)
from codeqa.store.writer import Writer, existing_tables, tidy_tables
from codeqa.types import Progress

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_EDGES = 100_000
"""References, of which there are most, that are committed together, of one repository or many."""
COMMIT_FILES = 1_000
"""Files that are read together, at most: they are named in one condition."""
UNIT_STATE = "path", "id", "llm_comment"
"""What of a unit may change while its file does not, beside its vectors."""
LAYOUT = "2"
"""Raised whenever rows of a collection become others than before: it is then filled anew."""
MOST_ALONE = 8
"""Repositories of which what was read for one definition after another is remembered."""
MOST_CHOICES = 8
"""Choices of repositories whose tables are kept, those asked last; all of them not counted."""
WHOLE = "all"


class Collection:
    """One for all the questions of a process, which read parts, by what each repository has in
    REPOSITORY. Nothing is read or made before something is asked of it."""

    def __init__(self, settings: Settings, name: str = WHOLE) -> None:
        folder, id_ = settings.data_dir / "collections" / name, f"collection-{name}"
        self.settings, self.name = settings, name
        self.location = Location(folder, id_, folder, tables_of(settings, folder, id_))
        self.looked_at = set[str]()
        """Ids of those whose files were looked at since this process began."""
        self.alone = functools.lru_cache(MOST_ALONE)(
            lambda one, name: Tables(self.location, self.part({one: name}))
        )
        """One repository for what is read for one definition after another."""
        self.trouble = ""
        """Why nothing could be copied when that was tried last."""
        self._tidying: threading.Thread | None = None
        self._sound = False
        self._reader: Reader | None = None

    def held(self) -> Mapping[str, Copied]:
        """What it has of each repository."""
        meta = Meta()
        with contextlib.suppress(CodeQAError):  # it made room, or is damaged
            self._reader = self._reader or Reader(self.location)
            meta = self._reader.snapshot().meta
        return meta.members if meta.parser == LAYOUT else {}

    def part(self, names: Mapping[str, str]) -> ScopedReader:
        """What is read of those that it has, by what they are called."""
        assert self._reader, "what is held has been read"
        return ScopedReader(self._reader, Scope(names))

    def copy(
        self,
        places: Mapping[str, Location],
        wait: float = math.inf,
        progress: Listener = lambda _: None,
    ) -> bool:
        """Copy what is new in the own indices of `places`. Who else copies is waited for `wait`
        seconds; False where that goes on."""
        suspect = self._reader is not None and self._reader.failed
        if self._sound and not suspect and not _stale(self.held(), places):
            return True
        end = time.monotonic() + wait

        def waiting(holder: str) -> None:
            if time.monotonic() > end:
                raise IndexBusyError(f"They are put together by {holder}.")

        try:
            if not self.location.folder.is_dir():
                self._make_room()
            self.location.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.location.folder)
            with hold(self.location, waiting=waiting), refusals_explained():
                if suspect:  # what cannot be read is not always what reading all of it finds
                    shutil.rmtree(self.location.tables, ignore_errors=True)
                elif not self._sound:
                    self.mend(thorough=False)
                self._sound = False
                known = {end_of(one.id) for one in list_locations(self.settings, "repos", "revs/*")}
                with RunRecorder(self.location, progress, lambda: "", lambda: False) as told:
                    self._fill(places, known | places.keys(), told)
                self._sound, self.trouble = True, ""
        except IndexBusyError:
            return False
        except CodeQAError as error:
            self.trouble = str(error)
        if self._reader:
            self._reader.failed = False
            self._reader.look_again()
        self._tidy_behind()
        return True

    def mend(self, *, thorough: bool = True) -> str:
        """Delete damaged tables, which are then filled anew; what was wrong, '' for nothing."""
        found = damage(self.location, thorough=thorough)
        if found:
            shutil.rmtree(self.location.tables)
        return found

    def _make_room(self) -> None:
        """Delete the tables of the choice that was asked longest ago, where there are too many."""
        kept = [one for one in collections(self.settings) if one.name != WHOLE]
        kept.sort(key=lambda one: -one.location.folder.stat().st_mtime)
        for old in kept[MOST_CHOICES - 1 :]:
            with contextlib.suppress(IndexBusyError), hold(old.location, wait=False):
                remove(self.settings, old.location)

    def _fill(
        self, asked: Mapping[str, Location], known: Container[str], progress: Listener
    ) -> None:
        """Bring what there is of the repositories `asked` up to their own indices, and remove what
        is of none that is `known`.

        Indices are only built with the first rows; later `tidy` does. Raises what `progress` and
        LanceDB raise; what was committed stays valid.
        """
        vector = record_of(fast_embedding())
        writer = Writer.open(self.location, LAYOUT, vector, collection=True)
        before = {} if writer.fresh else writer.meta.members
        gone = [one for one in before if one not in known]
        wanted = _stale(before, asked)
        if not (wanted or gone or writer.meta.dirty):
            return
        if writer.meta.dirty and not writer.fresh:
            writer.begin(writer.manifest())
        held = {one: copied for one, copied in before.items() if one in known}
        held |= {one: replace(held.get(one, Copied()), stamp=-1) for one in wanted}
        # From now on they are there, in part, also when this is killed.
        writer.update_meta(dirty=True, members=held)
        for handle in writer.tables.values() if gone else ():
            handle.delete(one_of(REPOSITORY, gone))
        waiting = list[Any]()
        for number, one in enumerate(wanted):
            # Without its name: others ask other repositories, and see how far this is.
            progress(Progress("putting repositories together", number, len(wanted)))
            stamp = stamp_of(asked[one])
            try:
                own = Reader(asked[one])
                meta = own.snapshot().meta
                record, ours = meta.refined, writer.meta.refined
                chosen = ours is None or (record and record.name == self.settings.embedding)
                if record and record != ours and chosen:
                    _commit(writer, waiting)
                    writer.refine_with(record)
                    # Of the others those vectors are gone: all of them are looked at again.
                    held = {key: replace(each, stamp=-1, columns=()) for key, each in held.items()}
                made = {"vector": (meta.vector, vector), REFINED: (record, writer.meta.refined)}
                columns = tuple(key for key, (has, ours) in made.items() if has and has == ours)
                for rows in _changed(writer, own, one, columns, new=one not in before):
                    waiting.append(rows)
                    if sum(len(each["edges"]) for each in waiting) >= COMMIT_EDGES:
                        _commit(writer, waiting)
                done = meta.complete and not meta.dirty
                held[one] = Copied(stamp if done else -1, meta.complete, meta.expected, columns)
            except CodeQAError as error:
                again = stamp if isinstance(error, IndexMissingError) else -1
                held[one] = replace(held[one], stamp=again, problem=str(error))
        _commit(writer, waiting)
        if writer.first_build:
            progress(Progress("building the text index", 0, 0))
            writer.tidy()
        for handle in writer.tables.values() if gone else ():  # nothing of it stays on disk
            handle.optimize(cleanup_older_than=timedelta(milliseconds=1))
        writer.update_meta(members=held)
        writer.finish(0, LAYOUT, vector)

    def tidy(self) -> None:
        """Build the indices anew and merge fragments, where that pays; rows may be copied
        meanwhile. Raises what LanceDB raises when that is in the way."""
        database = connect(self.location, read_consistency_interval=timedelta(0))
        if meta := read_meta(database):
            tidy_tables(database, existing_tables(database, meta.generation))

    def _tidy_behind(self) -> None:
        """Behind the questions: at a million units it takes minutes."""

        def work() -> None:
            # Something else may be written meanwhile: then it is done after the next copy.
            with contextlib.suppress(Exception), hold(beside, wait=False):
                self.tidy()

        beside = replace(self.location, folder=self.location.folder / "tidying")
        if self._sound and not (self._tidying and self._tidying.is_alive()):
            beside.folder.mkdir(exist_ok=True)
            self._tidying = threading.Thread(target=work, name="collection", daemon=True)
            self._tidying.start()

    def close(self, timeout: float) -> None:
        """Wait for what is done behind the questions, once."""
        behind, self._tidying = self._tidying, None
        if behind:
            behind.join(timeout)


def collection_of(settings: Settings, choice: Sequence[Location]) -> Collection:
    """Return the collection for who may see the repositories of `choice` alone."""
    ids = "\n".join(sorted(one.id for one in choice))
    return Collection(settings, hashlib.blake2b(ids.encode(), digest_size=16).hexdigest())


def collections(settings: Settings) -> list[Collection]:
    """Those that lie in the data folder."""
    every = (settings.data_dir / "collections").glob("*/")
    return [Collection(settings, folder.name) for folder in sorted(every)]


def forget_removed(settings: Settings) -> None:
    """Take out of every collection what is of no repository any more."""
    for collection in collections(settings):
        collection.copy({})
        collection.close(0)


def _stale(held: Mapping[str, Copied], asked: Mapping[str, Location]) -> list[str]:
    """Those of `asked` whose own indices hold something else than was copied of them."""
    return [one for one, at in asked.items() if one not in held or held[one].stamp != stamp_of(at)]


def _commit(writer: Writer, waiting: list[dict[str, pa.Table]]) -> None:
    import pyarrow as pa

    if waiting:
        rows = {table: pa.concat_tables([one[table] for one in waiting]) for table in TABLES}
        paths = rows["files"]["path"].to_pylist()
        replaced = [path for path in paths if path in writer.known]
        writer.invalidate(replaced)
        for table in TABLES:
            writer.put(table, rows[table], replaced)
        waiting.clear()


def _changed(
    writer: Writer, own: Reader, one: str, columns: Sequence[str], *, new: bool
) -> Iterator[dict[str, pa.Table]]:
    """What differs between a repository's `own` index and the rows of `one`, some files at a time;
    what is gone is removed."""
    changed, gone = set[str](), set[str]()
    for table in ("files", *UNIT_TABLES):
        names: Sequence[str] = FileRecord.__slots__ if table == "files" else UNIT_STATE
        flags = {key: f"{key} IS NOT NULL" for key in columns if table != "files"}
        here = own.arrow(table, _sql_of(one, names) | flags)
        there = here.slice(0, 0)
        if not new:
            held = {key: f"`{key}`" for key in names} | flags
            there = read_rows(writer.tables[table], held, f"{REPOSITORY} = {quote(one)}")
        keys = [*here.schema.names]
        changed |= {*here.join(there, keys, join_type="left anti")["path"].to_pylist()}
        gone |= {*there.join(here, keys, join_type="left anti")["path"].to_pylist()}
        if table == "files":
            present = {*here["path"].to_pylist()}
            writer.known |= {*there["path"].to_pylist()}
    writer.remove(sorted(gone - present))
    paths = sorted(changed | gone & present)
    for at in range(0, len(paths), COMMIT_FILES):
        part = paths[at : at + COMMIT_FILES]
        inside = one_of("path", (path[len(one) + 1 :] for path in part))
        inside = "" if len(part) == len(present) else inside
        # The manifest first: what is written meanwhile then differs from it, and is copied next.
        yield {table: _rows(writer, own, table, inside, one, columns) for table in TABLES[::-1]}


def _rows(
    writer: Writer, own: Reader, table: str, inside: str, one: str, columns: Sequence[str]
) -> pa.Table:
    """The rows of `table` that are `inside`, as the collection has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = writer.tables[table].schema
    left = {"vector", REFINED}.difference(columns)
    wanted = _sql_of(one, [key for key in schema.names if key not in left])
    if table == "edges":
        wanted["id"] = "id"
    rows = own.arrow(table, wanted, inside)
    for place, field in enumerate(schema):
        if field.name in left:
            rows = rows.add_column(place, field, pa.nulls(len(rows), field.type))
    if table == "edges":  # numbered by their paths, which others have as well
        rows = rows.set_column(0, "id", pc.bit_wise_xor(rows["id"], first_edge(one)))
    return rows.cast(schema)


def _sql_of(one: str, names: Iterable[str]) -> dict[str, str]:
    """Columns of a repository's own tables as the collection has them, in SQL."""
    told = {REPOSITORY: quote(one)}
    for key in PREFIXED:
        told[key] = f"coalesce({quote(f'{one}/')} || nullif({key}, ''), '')"
    return {key: told.get(key, f"`{key}`") for key in names}
