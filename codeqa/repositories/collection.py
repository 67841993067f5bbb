"""Copy the rows of several repositories into one set of tables, so that one search covers them all.

A column holds the short id of each row's repository. Searches are narrowed by it, and paths and ids
begin with it, where users read the repository's name (`reader.Scope`). A file is copied again when
it, a description or a vector of it differs, in the write order of `writer`.

Scores depend on every row of the tables that they are computed in. So a user who may not see all
repositories is answered from tables that hold only those: one set for each choice.
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
from typing import TYPE_CHECKING

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, IndexBusyError, IndexMissingError
from codeqa.indexing.indexer import Listener
from codeqa.indexing.runs import RunRecorder, hold, refusals_explained
from codeqa.settings import Settings
from codeqa.store import Location, Tables, list_locations
from codeqa.store.location import connect, remove, short_id, stamp_of, tables_of
from codeqa.store.reader import Scope, ScopedReader, TableReader, damage
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
from codeqa.store.writer import TableWriter, existing_tables, tidy_tables
from codeqa.types import Progress

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_EDGES = 100_000  # references, the most frequent rows, that are committed together
COMMIT_FILES = 1_000  # files read together: they are named in one condition
UNIT_STATE = "path", "id", "llm_comment"  # columns that may change while the unit's file does not
LAYOUT = "2"  # raise it when the rows of a collection change: collections are then filled anew
MOST_ALONE = 8  # repositories whose own tables stay open for lookups of single definitions
MOST_CHOICES = 8  # choices whose tables stay on disk, those asked last; WHOLE not counted
WHOLE = "all"


class Collection:
    """The tables of one choice of repositories; nothing is read or made before the first use."""

    def __init__(self, settings: Settings, name: str = WHOLE) -> None:
        folder, id_ = settings.data_dir / "collections" / name, f"collection-{name}"
        self.settings, self.name = settings, name
        self.location = Location(folder, id_, folder, tables_of(settings, folder, id_))
        self.looked_at = set[str]()
        """Ids of the repositories whose files this process has compared with their index."""
        self.alone = functools.lru_cache(MOST_ALONE)(
            lambda repo_id, name: Tables(self.location, self.part({repo_id: name}))
        )
        """Tables of one repository, by its short id and its name."""
        self.trouble = ""  # why the last attempt to copy failed; '' where it did not
        self._tidying: threading.Thread | None = None
        self._sound = False
        """Whether the tables were checked, and all that was copied since then is complete."""
        self._reader: TableReader | None = None

    def copies(self) -> Mapping[str, Copied]:
        """Return the state of each repository's copy, by its short id."""
        meta = Meta()
        with contextlib.suppress(CodeQAError):  # deleted to make room, or damaged
            self._reader = self._reader or TableReader(self.location)
            meta = self._reader.snapshot().meta
        return meta.members if meta.parser == LAYOUT else {}

    def part(self, names: Mapping[str, str]) -> ScopedReader:
        """Return a reader of some repositories: short id → name."""
        assert self._reader, "copies() opens it"
        return ScopedReader(self._reader, Scope(names))

    def copy(
        self,
        locations: Mapping[str, Location],
        wait: float = math.inf,
        progress: Listener = lambda _: None,
    ) -> bool:
        """Copy what changed in the indices at `locations`; a failure is noted in `trouble`.

        Returns False where another process or thread copies for longer than `wait` seconds.
        """
        suspect = self._reader is not None and self._reader.failed
        if self._sound and not suspect and not _stale(self.copies(), locations):
            return True
        deadline = time.monotonic() + wait

        def waiting(holder: str) -> None:
            if time.monotonic() > deadline:
                raise IndexBusyError(f"The repositories are being combined by {holder}.")

        try:
            if not self.location.folder.is_dir():
                self._make_room()
            self.location.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.location.folder)
            with hold(self.location, waiting=waiting), refusals_explained():
                if suspect:  # reading every row does not find all damage
                    shutil.rmtree(self.location.tables, ignore_errors=True)
                elif not self._sound:
                    self.mend(thorough=False)
                self._sound = False
                indexed = list_locations(self.settings, "repos", "revs/*")
                repo_ids = {short_id(location.id) for location in indexed} | locations.keys()
                with RunRecorder(self.location, progress, lambda: "", lambda: False) as recorder:
                    self._fill(locations, repo_ids, recorder)
                self._sound, self.trouble = True, ""
        except IndexBusyError:
            return False
        except CodeQAError as error:
            self.trouble = str(error)
        if self._reader:
            self._reader.failed = False
            self._reader.look_again()
        self._start_tidying()
        return True

    def mend(self, *, thorough: bool = True) -> str:
        """Delete damaged tables, so that they are filled anew; return the damage, '' for none."""
        problem = damage(self.location, thorough=thorough)
        if problem:
            shutil.rmtree(self.location.tables)
        return problem

    def _make_room(self) -> None:
        """Delete the collections that were not used for longest, if there are too many."""
        choices = [choice for choice in collections(self.settings) if choice.name != WHOLE]
        choices.sort(key=lambda choice: choice.location.folder.stat().st_mtime, reverse=True)
        for oldest in choices[MOST_CHOICES - 1 :]:
            with contextlib.suppress(IndexBusyError), hold(oldest.location, wait=False):
                remove(self.settings, oldest.location)

    # Not split up: all tables must be complete before the collection is marked complete.
    def _fill(
        self, locations: Mapping[str, Location], repo_ids: Container[str], progress: Listener
    ) -> None:
        """Copy what changed in the indices at `locations`, and remove all but `repo_ids`.

        Only the first rows get indices here; later `tidy` builds them. Raises what `progress` and
        LanceDB raise; what was committed stays valid.
        """
        vector = record_of(fast_embedding())
        writer = TableWriter.open(self.location, LAYOUT, vector, collection=True)
        before = {} if writer.fresh else writer.meta.members
        removed = [repo_id for repo_id in before if repo_id not in repo_ids]
        stale = _stale(before, locations)
        if not (stale or removed or writer.meta.dirty):
            return
        if writer.meta.dirty and not writer.fresh:
            writer.begin(writer.manifest())
        copies = {repo_id: copied for repo_id, copied in before.items() if repo_id in repo_ids}
        for repo_id in stale:
            copies[repo_id] = replace(copies.get(repo_id, Copied()), stamp=-1)
        # A run that is killed from here on leaves a part of each behind.
        writer.update_meta(dirty=True, members=copies)
        if removed:
            for handle in writer.tables.values():
                handle.delete(one_of(REPOSITORY, removed))
        copier = _Copier(writer, copies, self.settings.embedding)
        for number, repo_id in enumerate(stale):
            # Without its name: users of other repositories see this progress.
            progress(Progress("putting repositories together", number, len(stale)))
            copier.copy(repo_id, locations[repo_id], first=repo_id not in before)
        copier.commit()
        if writer.first_build:
            progress(Progress("building the text index", 0, 0))
            writer.tidy()
        if removed:
            for handle in writer.tables.values():  # nothing of them stays on disk
                handle.optimize(cleanup_older_than=timedelta(milliseconds=1))
        writer.update_meta(members=copies)
        writer.finish(0, LAYOUT, vector)

    def tidy(self) -> None:
        """Build indices and merge fragments where that pays. Raises what LanceDB raises."""
        database = connect(self.location, read_consistency_interval=timedelta(0))
        if meta := read_meta(database):
            tidy_tables(database, existing_tables(database, meta.generation))

    def _start_tidying(self) -> None:
        """Tidy in the background: at a million units it takes minutes."""
        lock = replace(self.location, folder=self.location.folder / "tidying")

        def work() -> None:
            # Where another write is in the way, the next copy starts this again.
            with contextlib.suppress(Exception), hold(lock, wait=False):
                self.tidy()

        if self._sound and not (self._tidying and self._tidying.is_alive()):
            lock.folder.mkdir(exist_ok=True)
            self._tidying = threading.Thread(target=work, name="collection", daemon=True)
            self._tidying.start()

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for the background work."""
        tidying, self._tidying = self._tidying, None
        if tidying:
            tidying.join(timeout)


def collection_of(settings: Settings, choice: Sequence[Location]) -> Collection:
    """Return the collection that holds the repositories of `choice` alone."""
    ids = "\n".join(sorted(location.id for location in choice))
    return Collection(settings, hashlib.blake2b(ids.encode(), digest_size=16).hexdigest())


def collections(settings: Settings) -> list[Collection]:
    """Return the collections in the data folder."""
    folders = sorted((settings.data_dir / "collections").glob("*/"))
    return [Collection(settings, folder.name) for folder in folders]


def forget_removed(settings: Settings) -> None:
    """Remove repositories without an index from every collection."""
    for collection in collections(settings):
        collection.copy({})
        collection.close(0)


def _stale(copies: Mapping[str, Copied], locations: Mapping[str, Location]) -> list[str]:
    """Return the repositories whose own index changed since it was copied."""
    none = Copied(-2)  # stamp_of gives none below 0
    return [id_ for id_, at in locations.items() if copies.get(id_, none).stamp != stamp_of(at)]


class _Copier:
    """Copies the rows of one repository after another, and commits those of several together."""

    def __init__(self, writer: TableWriter, copies: dict[str, Copied], embedding: str) -> None:
        self._writer, self._copies, self._embedding = writer, copies, embedding
        self._waiting: list[dict[str, pa.Table]] = []

    def copy(self, repo_id: str, location: Location, *, first: bool) -> None:
        """Copy what differs in the index at `location`, all of it the `first` time.

        Notes in the copies what came of it. Raises what LanceDB raises.
        """
        stamp = stamp_of(location)
        try:
            own = TableReader(location)
            meta = own.snapshot().meta
            columns = self._comparable_vectors(meta)
            for rows in _changed(self._writer, own, repo_id, columns, first=first):
                self._waiting.append(rows)
                if sum(len(tables["edges"]) for tables in self._waiting) >= COMMIT_EDGES:
                    self.commit()
            if not meta.complete or meta.dirty:
                stamp = -1
            self._copies[repo_id] = Copied(stamp, meta.complete, meta.expected, columns)
        except CodeQAError as error:
            if not isinstance(error, IndexMissingError):
                stamp = -1
            self._copies[repo_id] = replace(self._copies[repo_id], stamp=stamp, problem=str(error))

    def _comparable_vectors(self, meta: Meta) -> tuple[str, ...]:
        """Return the vector columns of an index that were made as those of the collection.

        An index with vectors of the embedding in use gives that to the collection first.
        """
        writer, refined = self._writer, meta.refined
        replaceable = writer.meta.refined is None or (refined and refined.name == self._embedding)
        if refined and refined != writer.meta.refined and replaceable:
            self.commit()
            writer.refine_with(refined)
            # That drops the other repositories' vectors: all are compared again.
            for repo_id, copied in self._copies.items():
                self._copies[repo_id] = replace(copied, stamp=-1, columns=())
        columns = []
        if meta.vector and meta.vector == record_of(fast_embedding()):
            columns.append("vector")
        if refined and refined == writer.meta.refined:
            columns.append(REFINED)
        return tuple(columns)

    def commit(self) -> None:
        """Write the rows that wait."""
        import pyarrow as pa

        if not self._waiting:
            return
        paths = [path for tables in self._waiting for path in tables["files"]["path"].to_pylist()]
        replaced = [path for path in paths if path in self._writer.stored_paths]
        self._writer.invalidate(replaced)
        for table in TABLES:
            rows = pa.concat_tables([tables[table] for tables in self._waiting])
            self._writer.put(table, rows, replaced)
        self._waiting.clear()


def _changed(
    writer: TableWriter, own: TableReader, repo_id: str, columns: Sequence[str], *, first: bool
) -> Iterator[dict[str, pa.Table]]:
    """Yield the rows of files that differ from their copy, some files at a time.

    Removes files from the copy that are gone from the repository's `own` index. `first`: there
    is no copy yet.
    """
    changed, gone = set[str](), set[str]()
    for table in ("files", *UNIT_TABLES):
        names: Sequence[str] = FileRecord.__slots__
        flags = dict[str, str]()
        if table != "files":
            names, flags = UNIT_STATE, {key: f"{key} IS NOT NULL" for key in columns}
        here = own.arrow(table, _as_copied(repo_id, names) | flags)
        there = here.slice(0, 0)
        if not first:
            there_columns = {key: f"`{key}`" for key in names} | flags
            condition = f"{REPOSITORY} = {quote(repo_id)}"
            there = read_rows(writer.tables[table], there_columns, condition)
        keys = here.schema.names
        changed.update(here.join(there, keys, join_type="left anti")["path"].to_pylist())
        gone.update(there.join(here, keys, join_type="left anti")["path"].to_pylist())
        if table == "files":
            present = set(here["path"].to_pylist())
            writer.stored_paths.update(there["path"].to_pylist())
    writer.remove(sorted(gone - present))
    paths = sorted(changed | (gone & present))
    for start in range(0, len(paths), COMMIT_FILES):
        part = paths[start : start + COMMIT_FILES]
        condition = ""
        if len(part) != len(present):
            condition = one_of("path", (path[len(repo_id) + 1 :] for path in part))
        # The manifest first: what is written meanwhile then differs from it, and is copied next.
        yield {t: _rows(writer, own, t, condition, repo_id, columns) for t in reversed(TABLES)}


def _rows(
    writer: TableWriter,
    own: TableReader,
    table: str,
    condition: str,
    repo_id: str,
    columns: Sequence[str],
) -> pa.Table:
    """Return the rows of `table` that meet `condition`, as the collection has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = writer.tables[table].schema
    empty = {"vector", REFINED}.difference(columns)
    sql = _as_copied(repo_id, [key for key in schema.names if key not in empty])
    if table == "edges":
        sql["id"] = "id"
    rows = own.arrow(table, sql, condition)
    for index, field in enumerate(schema):
        if field.name in empty:
            rows = rows.add_column(index, field, pa.nulls(len(rows), field.type))
    if table == "edges":  # numbered by their paths, which other repositories have as well
        rows = rows.set_column(0, "id", pc.bit_wise_xor(rows["id"], first_edge(repo_id)))
    return rows.cast(schema)


def _as_copied(repo_id: str, names: Iterable[str]) -> dict[str, str]:
    """Return columns of a repository's own tables as the collection has them, in SQL."""
    sql = {name: f"`{name}`" for name in names}
    for name in sql.keys() & set(PREFIXED):
        sql[name] = f"coalesce({quote(f'{repo_id}/')} || nullif({name}, ''), '')"
    if REPOSITORY in sql:
        sql[REPOSITORY] = quote(repo_id)
    return sql
