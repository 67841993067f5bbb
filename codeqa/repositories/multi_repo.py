"""Several repositories that are asked as one: which are meant, what they are called, and how they
are read and kept up to date.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. All that are ever
asked together lie in one collection (`store/collection.py`), of which a question reads its own.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import CodeQAError, IndexBusyError, IndexMissingError, NotFoundError
from codeqa.indexing import Indexer
from codeqa.indexing.runs import RunRecorder, hold, read_status, refusals_explained
from codeqa.settings import Settings
from codeqa.store import EmbeddingRecord, Location, Tables, list_locations
from codeqa.store.collection import LAYOUT, fill, stale, stamp_of, tidy
from codeqa.store.location import tables_of
from codeqa.store.reader import Reader, Scope, ScopedReader, damage
from codeqa.store.schema import Copied, Meta
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
"""Chosen one by one: their ids are sent in an address, of which some servers read 4,094 bytes."""
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


def locations_of(
    settings: Settings, id_: str, among: Callable[[Location], bool] = lambda _: True
) -> list[Location]:
    """The repositories that `id_` stands for, those that are indexed and `among`.

    Raises NotFoundError when none is.
    """
    wanted = {end_of(one) for one in id_.split(ID_SEPARATOR)}
    every = list_locations(settings) if id_ == ALL else _every(settings)
    found = [one for one in every if (id_ == ALL or end_of(one.id) in wanted) and among(one)]
    if not found:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return found


def _every(settings: Settings) -> list[Location]:
    return [*list_locations(settings), *list_locations(settings, "revs/*")]


class Collection:
    """All that was ever asked together: one for all the questions of a process, which read parts.

    Nothing is read or made before something is asked of it.
    """

    def __init__(self, settings: Settings) -> None:
        folder = settings.data_dir / "collections" / "all"
        tables = tables_of(settings, folder, "collection-all")
        self.settings, self.location = settings, Location(folder, ALL, folder, tables)
        self.looked_at = set[str]()
        """Ends of ids: what changed of their files was looked for since this process began."""
        self.alone = functools.lru_cache(MOST_ALONE)(self._alone)
        """One repository for what is read for one definition after another."""
        self._copying = threading.Lock()
        self._tidying: threading.Thread | None = None
        self._sound = False
        self._reader: Reader | None = None

    def held(self) -> Mapping[str, Copied]:
        """What it has of each repository."""
        if self._reader is None:
            with contextlib.suppress(CodeQAError):
                self._reader = Reader(self.location)
        meta = self._reader.snapshot().meta if self._reader else Meta()
        return meta.members if meta.parser == LAYOUT else {}

    def part(self, names: Mapping[str, str]) -> ScopedReader:
        """What is read of those that it has, by what they are called."""
        assert self._reader, "what is held has been read"
        return ScopedReader(self._reader, Scope(names))

    def _alone(self, one: str, name: str) -> Tables:
        return Tables(self.location, self.part({one: name}))

    def copy(
        self,
        places: Mapping[str, Location],
        wait: float = math.inf,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> dict[str, str] | None:
        """Copy what is new in the own indices of `places`, by the ends of their ids; gives why some
        are left out. Another process that copies is waited for LONGEST_WAIT seconds, another thread
        `wait`; None where that goes on."""
        held = self.held()
        if self._sound and not stale(held, places):
            return {}
        left_out = {
            one: f"{at.root} has not been indexed yet."
            for one, at in places.items()
            if not stamp_of(at)
        }
        asked = {one: at for one, at in places.items() if one not in left_out}
        end = time.monotonic() + LONGEST_WAIT

        def waiting(_: str) -> None:
            if time.monotonic() > end:
                raise IndexBusyError(BEING_COPIED, "Ask again soon.")

        if not self._copying.acquire(timeout=min(wait, threading.TIMEOUT_MAX)):
            return None
        try:
            self.location.folder.mkdir(parents=True, exist_ok=True)
            with hold(self.location, waiting=waiting), refusals_explained():
                if not self._sound and damage(self.location, thorough=False):
                    shutil.rmtree(self.location.tables)
                self._sound = False
                known = {end_of(one.id) for one in _every(self.settings)}
                with RunRecorder(self.location, progress, lambda: "", lambda: False) as told:
                    left_out |= fill(self.location, asked, known, self.settings.embedding, told)
                self._sound = True
        except CodeQAError as error:
            left_out |= {one: str(error) for one in asked if one not in held}
        finally:
            self._copying.release()
        if self._reader:
            self._reader.look_again()
        self._tidy()
        return left_out

    def _tidy(self) -> None:
        """Behind the questions: at a million units it takes minutes."""

        def work() -> None:
            # Something else may be written meanwhile: then it is done after the next copy.
            with contextlib.suppress(Exception), hold(beside, wait=False):
                tidy(self.location)

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


class MultiRepoTables(Tables):
    """What `collection` holds of the repositories at `places`, for reading, once it is `opened`."""

    def __init__(
        self,
        collection: Collection,
        id_: str,
        places: Iterable[Location],
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        named = member_names([*places])
        title = " + ".join(named) if len(named) <= NAMED else f"{len(named)} repositories"
        id_ = id_ or ID_SEPARATOR.join(sorted(end_of(one.id) for one in named.values()))
        folder = collection.location.folder
        self.location = replace(collection.location, root=folder / title, id=id_)
        self.left_out: dict[str, str] = {}
        """End of the id of a repository that cannot be read → why."""
        self._collection, self._progress = collection, progress
        self._places = {end_of(one.id): one for one in named.values()}
        self._names = {end_of(one.id): name for name, one in named.items()}
        self._lock, self._looked, self._read = threading.Lock(), -math.inf, dict[str, Copied]()

    def opened(self, wait: float = LONGEST_WAIT) -> MultiRepoTables:
        """These tables with all that was written into the repositories' own indices until now; not
        all yet, where another thread is copying that for longer than `wait` seconds. One that
        cannot be read is left out, and tried again after RETRY_SECONDS. Raises IndexMissingError
        where none can be."""
        if time.monotonic() - self._looked >= (RETRY_SECONDS if self.left_out else LOOK_INTERVAL):
            left_out = self._collection.copy(self._places, wait, self._progress)
            if left_out is not None:
                self.left_out, self._looked = left_out, time.monotonic()
        with self._lock:
            held, before = self._collection.held(), self._read.keys()
            self._read = {
                one: held[one] for one in self._places if one in held and one not in self.left_out
            }
            if not self._read:
                told = " ".join(self.notices)
                raise IndexMissingError("None of these repositories can be read.", told)
            if self._read.keys() != before:
                names = {one: self._names[one] for one in self._read}
                self._reader, self._cache = self._collection.part(names), UnitCache()
                self._catalogue = None
            return self

    @property
    def notices(self) -> tuple[str, ...]:
        absent = dict.fromkeys(self._places.keys() - self._read.keys(), BEING_COPIED)
        told = [
            f"{self._places[one].name} is left out. {why}"
            for one, why in (absent | self.left_out).items()
        ]
        gone = len({*self.location.id.split(ID_SEPARATOR)} - {"", *self._places})
        if gone > 0:
            told.append(f"{counted(gone, 'repository', 'repositories')} of before: no index now.")
        for one, copied in self._read.items():
            if not copied.complete:
                name, most = self._names[one], copied.expected
                files = self._collection.alone(one, name).counts().files
                told.append(f"Of {name} {files:,} of {most or 'its'} files are indexed so far.")
        return tuple(sorted(told))

    def _called(self, path: str) -> tuple[str, str]:
        """What the repository that `path` lies in has in REPOSITORY, and its name; '' for none."""
        name = path.partition("/")[0]
        return self._reader.scope.ends.get(name, ""), name

    def around(self, path: str) -> Tables:
        one, name = self._called(path)
        return self._collection.alone(one, name) if one else self

    def place_of(self, path: str) -> tuple[Path, str]:
        if one := self._called(path)[0]:
            return self._places[one].root, path.partition("/")[2]
        names = sorted(self._reader.scope.ends)
        raise NotFoundError(
            "That is asked of one repository at a time.",
            f"Here are several: {', '.join(names[:MOST_NAMED])}{' …' * (len(names) > MOST_NAMED)}.",
        )

    def meta(self) -> Meta:
        # What is not complete is told by name, in `notices`.
        return replace(super().meta(), complete=True)

    def look_again(self) -> None:
        self._looked = -math.inf
        self.opened()

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        # Those that all have: what is searched by its meaning in one is so in each.
        every = [copied.columns for copied in self._read.values()]
        return [one for one in super().vector_columns() if all(one[0] in own for own in every)]


def forget_removed(settings: Settings) -> None:
    """Take out of the collection what is of no repository any more."""
    collection = Collection(settings)
    if collection.location.folder.is_dir():
        collection.copy({})
        collection.close(0)


class MultiRepoIndexer(Indexer):
    """Keeps the indices of several repositories up to date for who asks all of them.

    They are not watched: that takes a thread and handles for each. They are looked at when they
    are first opened, and a file that a question finds changed has its repository caught up.
    """

    def __init__(self, tables: MultiRepoTables, places: Iterable[Location]) -> None:
        self._collection = tables._collection
        super().__init__(self._collection.settings, tables.location, tables.opened)
        self._follows = False
        self._together = tables
        self._members = [Indexer(self.settings, one) for one in places]
        for own in self._members:
            own._stop = self._stop  # they end together

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        roots = {self._together.place_of(path)[0] for path in changed}
        return any([own.catch_up() for own in self._members if own.location.root in roots])  # noqa: C419

    def start_background(self, *_: object) -> None:
        if not self._alive():
            self._thread = threading.Thread(target=self._look, name="codeqa-index", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        for own in self._members:
            own.pause()

    def resume(self) -> None:
        for own in self._members:
            own.resume()

    def cancel(self) -> bool:
        return any([own.cancel() for own in self._members])  # noqa: C419 - each of them

    def stop(self, timeout: float = 30.0) -> None:
        super().stop(timeout)
        self._collection.close(timeout)

    def _look(self) -> None:
        with contextlib.suppress(CodeQAError):
            self._open()  # what was never asked together is copied behind
        for own in self._members:
            if not self._stop.is_set() and own.location.id not in self._collection.looked_at:
                self._collection.looked_at.add(own.location.id)
                with contextlib.suppress(Exception):  # its own status tells
                    own.run(behind=True)

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, partial(self._together.opened, 0))
