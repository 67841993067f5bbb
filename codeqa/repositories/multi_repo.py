"""Several repositories that are asked as one: which are meant, what they are called, and how they
are read and kept up to date.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. All that are ever
asked together lie in one collection (`collection.py`), of which a question reads its own.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import CodeQAError, IndexMissingError, NotFoundError
from codeqa.indexing import Indexer
from codeqa.indexing.indexer import Listener
from codeqa.indexing.runs import read_status
from codeqa.repositories.collection import Collection
from codeqa.settings import Settings
from codeqa.store import EmbeddingRecord, Location, Tables, list_locations
from codeqa.store.copies import CopyCache
from codeqa.store.location import end_of
from codeqa.store.schema import Copied, Meta, plain_path
from codeqa.text import counted
from codeqa.types import IndexStatus

LOOK_INTERVAL = 0.2
"""Seconds until the indices of all repositories are looked at for what is new: 10 µs each."""
BEING_COPIED = "The repositories are being put together."
LONGEST_WAIT = 5.0
"""Seconds that a question waits while another copies repositories into the collection."""
MOST_NAMED = 50
"""Repositories that are named in one sentence."""
ID_SEPARATOR = "~"
"""Between the ends of their ids: `3fa2b1c0~8d21e6aa` stands for two repositories."""
ALL = ID_SEPARATOR
"""Stands for every repository that is indexed."""
MOST_REPOSITORIES = 400
"""Chosen one by one: their ids are sent in an address, of which some servers read 4,094 bytes."""
NAMED = 3
"""Repositories whose names stand for all of them."""
MOST_KEPT_UP = 5
"""Repositories asked together whose files are all looked at for each question: 3 µs a file."""
RETRY_SECONDS = 5.0
"""After which a repository whose index could not be opened is tried again."""

_UNSAFE = re.compile(r"[^\w.-]+")


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
    every = list_locations(settings, "repos", *([] if id_ == ALL else ["revs/*"]))
    found = [one for one in every if (id_ == ALL or end_of(one.id) in wanted) and among(one)]
    if not found:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return found


class MultiRepoTables(Tables):
    """What `collection` holds of the repositories at `places`, for reading, once it is `opened`."""

    def __init__(
        self,
        collection: Collection,
        id_: str,
        places: Iterable[Location],
        progress: Listener = lambda _: None,
    ) -> None:
        named = member_names([*places])
        title = " + ".join(named) if len(named) <= NAMED else f"{len(named)} repositories"
        id_ = id_ or ID_SEPARATOR.join(sorted(end_of(one.id) for one in named.values()))
        folder = collection.location.folder
        self.location = replace(collection.location, root=folder / title, id=id_)
        self._collection, self._progress = collection, progress
        self._places = {end_of(one.id): one for one in named.values()}
        self._names = {end_of(one.id): name for name, one in named.items()}
        self._lock, self._looked = threading.Lock(), -math.inf
        self._held, self._read = dict[str, Copied](), dict[str, str]()

    def opened(self, wait: float = LONGEST_WAIT) -> MultiRepoTables:
        """These tables with all that was written into the repositories' own indices until now; not
        all yet, where another thread is copying that for longer than `wait` seconds. One that
        cannot be read is left out, and tried again after RETRY_SECONDS. Raises IndexMissingError
        where none can be."""
        rest = LOOK_INTERVAL if len(self._read) == len(self._places) else RETRY_SECONDS
        now, collection = time.monotonic(), self._collection
        if now - self._looked >= rest and collection.copy(self._places, wait, self._progress):
            self._looked = time.monotonic()
        with self._lock:
            held, before = collection.held(), self._read
            unheld = Copied(problem=collection.trouble or BEING_COPIED)
            self._held = {one: held.get(one, unheld) for one in self._places}
            readable = (one for one, own in self._held.items() if not own.problem)
            self._read = {one: self._names[one] for one in readable}
            if not self._read:
                told = " ".join(self.notices)
                raise IndexMissingError("None of these repositories can be read.", told)
            if self._read != before:
                self._reader = collection.part(self._read)
                self._cache, self._catalogue = CopyCache(), None
            return self

    @property
    def notices(self) -> tuple[str, ...]:
        told = []
        if gone := len({*self.location.id.split(ID_SEPARATOR)} - {"", *self._places}):
            told.append(f"{counted(gone, 'repository', 'repositories')} of before: no index now.")
        for one, copied in self._held.items():
            name, most = self._names[one], copied.expected or "its"
            if copied.problem:
                told.append(f"{self._places[one].name} is left out. {copied.problem}")
            elif not copied.complete:
                files = self._collection.alone(one, name).counts().files
                told.append(f"Of {name} {files:,} of {most} files are indexed so far.")
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

    def plain_path(self, written: str) -> str:
        for end, place in self._places.items():
            root = place.root.as_posix()
            if f"{written}/".startswith(f"{root}/"):
                return f"{self._names[end]}/{plain_path(written, place.root)}"
        return super().plain_path(written)

    def meta(self) -> Meta:
        # What is not complete is told by name, in `notices`.
        return replace(super().meta(), complete=True)

    def look_again(self) -> None:
        self._looked = -math.inf
        self.opened()

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        # Those that all have: what is searched by its meaning in one is so in each.
        every = [self._held[one].columns for one in self._read]
        return [one for one in super().vector_columns() if all(one[0] in own for own in every)]


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
        for own in self._members:  # they pause and end together
            own._stop, own._paused = self._stop, self._paused

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        roots = {self._together.place_of(path)[0] for path in changed}
        return any([own.catch_up() for own in self._members if own.location.root in roots])  # noqa: C419

    def keep_up(self) -> str:
        """Look at all of a few repositories; of many only those that a question finds changed."""
        members = self._members if len(self._members) <= MOST_KEPT_UP else []
        before = [own.checked_ns for own in members]
        behind = [own.keep_up() for own in members]
        if before != [own.checked_ns for own in members]:
            self._together.look_again()
        return next(filter(None, behind), "")

    def cancel(self) -> bool:
        return any([own.cancel() for own in self._members])  # noqa: C419 - each of them

    def stop(self, timeout: float = 30.0) -> None:
        super().stop(timeout)
        self._collection.close(timeout)

    def _work(self, *_: object) -> None:
        with contextlib.suppress(CodeQAError):
            self._open()  # what was never asked together is copied behind
        for own in self._members:
            if not self._stop.is_set() and own.location.id not in self._collection.looked_at:
                self._collection.looked_at.add(own.location.id)
                with contextlib.suppress(Exception):  # its own status tells
                    own.run(background=True)

    def state(self) -> str:
        return self.status().state

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, partial(self._together.opened, 0))
