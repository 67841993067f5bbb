"""Several repositories that are asked as one: which are meant, what they are called, and how they
are read and kept up to date.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. All that are ever
asked together lie in one collection (`store/collection.py`), of which a question reads its own.
"""

from __future__ import annotations

import contextlib
import copy
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import (
    CodeQAError,
    IndexBusyError,
    IndexFormatError,
    IndexMissingError,
    NotFoundError,
)
from codeqa.indexing import Indexer
from codeqa.indexing.runs import RunRecorder, hold, read_status, refusals_explained
from codeqa.settings import Settings
from codeqa.store import EmbeddingRecord, Filter, Location, Tables, list_locations
from codeqa.store.collection import fill, stamp_of
from codeqa.store.location import connect, tables_of
from codeqa.store.reader import Reader, ScopedReader, damage
from codeqa.store.schema import REPOSITORY, Copied, Meta, one_of, read_meta
from codeqa.store.tables import UnitCache
from codeqa.text import counted
from codeqa.types import IndexStatus, Progress

LOOK_INTERVAL = 0.2
"""Seconds until the indices of all repositories are looked at for what is new: 10 µs each."""
BEING_COPIED = "The repositories are being put together."
LONGEST_WAIT = 5.0
"""Seconds that a question waits while another copies repositories into the collection."""
MOST_NAMED = 50
"""Repositories that are named in one sentence."""
MOST_ALONE = 8
"""Repositories of which what was read for one definition after another is remembered."""
ID_SEPARATOR = "~"
"""Between the ends of their ids: `3fa2b1c0~8d21e6aa` stands for two repositories."""
ALL = ID_SEPARATOR
"""Stands for every repository that is indexed."""
MOST_REPOSITORIES = 400
"""Chosen one by one: their ids are sent in an address, of which gunicorn reads 4,094 bytes."""
NAMED = 3
"""Repositories whose names stand for all of them."""
RETRY_SECONDS = 5.0
"""After which a repository whose index could not be opened is tried again."""

_UNSAFE = re.compile(r"[^\w.-]+")


def end_of(id_: str) -> str:
    """The end of a repository's id, which no other repository's has."""
    return id_.rpartition("-")[2]


def member_names(locations: Sequence[Location]) -> dict[str, Location]:
    """What each is called among the others, by name: where two are called alike, by its id."""
    called = [_UNSAFE.sub("-", one.name).strip("-.") for one in locations]
    alone = Counter(called)
    pairs = zip(called, locations, strict=True)
    return dict(sorted((name if alone[name] == 1 and name else one.id, one) for name, one in pairs))


def multi_repo_location(
    settings: Settings, members: Mapping[str, Location], id_: str = ""
) -> Location:
    """What stands for all of `members` where one repository is meant: the collection, in which
    theirs are read. Its id is `id_`, where some are gone by now, else made of theirs."""
    id_ = id_ or ID_SEPARATOR.join(sorted(end_of(one.id) for one in members.values()))
    folder, name = settings.data_dir / "collections" / "all", " + ".join(members)
    name = name if len(members) <= NAMED else f"{len(members)} repositories"
    return Location(folder / name, id_, folder, tables_of(settings, folder, "collection-all"))


def locations_of(
    settings: Settings, id_: str, among: Callable[[Location], bool] = lambda _: True
) -> list[Location]:
    """The repositories that `id_` stands for, those that are indexed and `among`.

    Raises NotFoundError when none is.
    """
    wanted = {end_of(one) for one in id_.split(ID_SEPARATOR)}
    every = (*list_locations(settings), *list_locations(settings, "revs/*"))
    if id_ == ALL:
        found = [one for one in list_locations(settings) if among(one)]
    else:
        found = [one for one in every if end_of(one.id) in wanted and among(one)]
    if not found:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return found


class MultiRepoTables(Tables):
    """What a collection holds of the repositories at `places`, for reading, once it is `opened`."""

    def __init__(
        self,
        settings: Settings,
        location: Location,
        places: Iterable[Location],
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.location = location
        self.left_out: dict[str, str] = {}
        """End of the id of a repository that cannot be read → why."""
        self._settings, self._progress = settings, progress
        self._places = {end_of(one.id): one for one in places}
        self._lock, self._merging = threading.Lock(), threading.Lock()
        self._looked = 0.0
        self._checked = False
        """Names, and whether the tables are sound, have been looked at."""
        self._whole: Reader | None = None
        self._scope = ""
        self._alone: dict[str, Tables] = {}

    def opened(self, wait: float = LONGEST_WAIT) -> MultiRepoTables:
        """These tables with all that was written into the repositories' own indices until now; not
        all yet, where another thread is copying that for longer than `wait` seconds. One that
        cannot be read is left out, and tried again after RETRY_SECONDS. Raises IndexMissingError
        where none can be."""
        if self._due() and self._merging.acquire(timeout=wait):
            try:
                if self._due():  # nobody else just did
                    self._merge()
                    self._looked = time.monotonic()
            finally:
                self._merging.release()
        with self._lock:
            read = self._read()
            if not read or self._whole is None:
                if self._merging.locked():
                    raise IndexMissingError(BEING_COPIED, "Ask again soon.")
                told = " ".join(self.notices)
                raise IndexMissingError("None of these repositories can be read.", told)
            if self._scope != (scope := one_of(REPOSITORY, sorted(read))):
                self._scope, self._reader = scope, ScopedReader(self._whole, scope)
                self._cache, self._catalogue, self._alone = UnitCache(), None, {}
            return self

    def _due(self) -> bool:
        pause = RETRY_SECONDS if self.left_out else LOOK_INTERVAL
        return not self._looked or time.monotonic() - self._looked >= pause

    def _held(self) -> Mapping[str, Copied]:
        """What the collection has of each repository."""
        if self._whole is None:
            with contextlib.suppress(CodeQAError):
                self._whole = Reader(self.location)
        return self._whole.snapshot().meta.members if self._whole else {}

    def _read(self) -> dict[str, Copied]:
        """What is read of it."""
        held = self._held()
        return {one: held[one] for one in self._places if one in held and one not in self.left_out}

    def _merge(self) -> None:
        """Copy what is new in the repositories' own indices, where anything is; what stands in the
        way leaves out those that have nothing in the collection yet."""
        held = self._held()
        if self._checked and not any(map(partial(self._is_stale, held), self._places)):
            return
        end, self._looked = time.monotonic() + LONGEST_WAIT, 0.0

        def waiting(_: str) -> None:
            if time.monotonic() > end:
                raise IndexBusyError(BEING_COPIED, "Ask again soon.")

        try:
            self.location.folder.mkdir(parents=True, exist_ok=True)
            with hold(self.location, waiting=waiting), refusals_explained():
                was, self._checked = self._checked, False
                self.left_out = self._fill(was)
                self._checked = True
        except CodeQAError as error:
            self.left_out = {one: str(error) for one in self._places if one not in held}
        if self._whole:
            self._whole.look_again()

    def _is_stale(self, held: Mapping[str, Copied], one: str) -> bool:
        return one not in held or not 0 < held[one].stamp == stamp_of(self._places[one])

    def _fill(self, sound: bool) -> dict[str, str]:
        if not sound and damage(self.location, thorough=False):
            shutil.rmtree(self.location.tables)
        meta = None
        with contextlib.suppress(IndexFormatError):  # it is then made anew
            meta = read_meta(connect(self.location))
        held = meta.members if meta else {}
        known = (*list_locations(self._settings), *list_locations(self._settings, "revs/*"))
        members = [one for one in known if end_of(one.id) in held.keys() - self._places.keys()]
        members += [one for one in self._places.values() if stamp_of(one)]
        called = {end_of(at.id): (name, at) for name, at in member_names(members).items()}
        missing = {
            one: f"{at.root} has not been indexed yet."
            for one, at in self._places.items()
            if one not in called
        }
        stale = [
            one
            for one, (name, _) in called.items()
            if (one in self._places and self._is_stale(held, one)) or held[one].name != name
        ]
        if not stale and not (meta and (meta.dirty or held.keys() - called.keys())):
            return missing
        with RunRecorder(self.location, self._progress, lambda: "", lambda: False) as told:
            failed = fill(self.location, called, stale, self._settings.embedding, told)
        # What else the collection holds is not told of: who asks may not see it.
        return missing | {one: why for one, why in failed.items() if one in self._places}

    @property
    def notices(self) -> tuple[str, ...]:
        held, told = self._read(), []
        for one, why in self.left_out.items():
            told.append(f"{self._places[one].name} is left out. {why}")
        gone = len({*self.location.id.split(ID_SEPARATOR)} - {"", *self._places})
        if gone > 0:
            told.append(f"{counted(gone, 'repository', 'repositories')} of before: no index now.")
        for name, most in ((one.name, one.expected) for one in held.values() if not one.complete):
            files = self.around(f"{name}/").counts().files
            told.append(f"Of {name} {files:,} of {most or 'its'} files are indexed so far.")
        return tuple(sorted(told))

    def _called(self, path: str) -> str:
        """The repository that `path` lies in, as the collection has it; '' for none."""
        name = path.partition("/")[0]
        return next((one for one, copied in self._read().items() if copied.name == name), "")

    def around(self, path: str) -> Tables:
        one = self._called(path)
        if not one or self._whole is None:
            return self
        if one not in self._alone:
            if len(self._alone) >= MOST_ALONE:
                self._alone.clear()
            alone = copy.copy(self)
            alone._reader = ScopedReader(self._whole, one_of(REPOSITORY, [one]))
            alone._cache, alone._catalogue = UnitCache(), None
            self._alone[one] = alone
        return self._alone[one]

    def place_of(self, path: str) -> tuple[Path, str]:
        if one := self._called(path):
            return self._places[one].root, path.partition("/")[2]
        names = sorted(copied.name for copied in self._read().values())
        raise NotFoundError(
            "That is asked of one repository at a time.",
            f"Here are several: {', '.join(names[:MOST_NAMED])}{' …' * (len(names) > MOST_NAMED)}.",
        )

    def meta(self) -> Meta:
        # What is not complete is told by name, in `notices`.
        return replace(super().meta(), complete=True)

    def look_again(self) -> None:
        self._looked = 0.0
        self.opened()

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        # Those that all have: what is searched by its meaning in one is so in each.
        every = [copied.columns for copied in self._read().values()]
        return [one for one in super().vector_columns() if all(one[0] in own for own in every)]

    def _sql(self, where: Filter | None) -> str:
        """A path that does not begin with a repository is one within each."""
        if not where:
            return ""
        names = {copied.name for copied in self._read().values()}

        def joined(pattern: str) -> str:
            if pattern.partition("/")[0] in names:
                return pattern
            return f"*/{pattern}" if {*"*?"}.intersection(pattern) else f"*/{pattern}**"

        paths, excluded = map(joined, where.paths), map(joined, where.excluded_paths)
        return replace(where, paths=tuple(paths), excluded_paths=tuple(excluded)).sql()


def forget_removed(settings: Settings) -> None:
    """Take out of the collection what is of no repository any more."""
    location = multi_repo_location(settings, {})
    if location.folder.is_dir():
        MultiRepoTables(settings, location, ())._merge()


class MultiRepoIndexer(Indexer):
    """Keeps the indices of `members` (name → place) up to date for who asks all of them.

    They are not watched: that takes a thread and handles for each. They are looked at when they
    are opened, and a file that a question finds changed has its repository caught up.
    """

    def __init__(
        self,
        settings: Settings,
        location: Location,
        members: Mapping[str, Location],
        tables: MultiRepoTables,
    ) -> None:
        super().__init__(settings, location, tables.opened)
        self._follows = False
        self._together = tables
        self._members = {end_of(one.id): Indexer(settings, one) for one in members.values()}
        for own in self._members.values():
            own._stop = self._stop  # they end together

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        roots = {self._together.place_of(path)[0] for path in changed}
        caught = [own.catch_up() for own in self._members.values() if own.location.root in roots]
        return any(caught)

    def start_background(self, *_: object) -> None:
        if not self._alive():
            self._thread = threading.Thread(target=self._look, name="codeqa-index", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        for own in self._members.values():
            own.pause()

    def resume(self) -> None:
        for own in self._members.values():
            own.resume()

    def cancel(self) -> bool:
        return any([own.cancel() for own in self._members.values()])  # noqa: C419 - each of them

    def _look(self) -> None:
        with contextlib.suppress(CodeQAError):
            self._open()  # what was never asked together is copied behind
        for own in self._members.values():
            if not self._stop.is_set():
                with contextlib.suppress(Exception):  # its own status tells
                    own.run(behind=True)

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, partial(self._together.opened, 0))
