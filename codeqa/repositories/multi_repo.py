"""Ask several repositories as one: names, paths, reading and updates.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. The rows lie in a
collection (`collection.py`), of which a question reads the part that it may see.
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
from codeqa.indexing import BackgroundIndexer
from codeqa.indexing.indexer import Listener
from codeqa.indexing.runs import read_status
from codeqa.repositories.collection import Collection
from codeqa.settings import Settings
from codeqa.store import EmbeddingRecord, Location, Tables, list_locations
from codeqa.store.copies import CopyCache
from codeqa.store.location import short_id
from codeqa.store.schema import Copied, Meta, clean_path, path_below, plain_path
from codeqa.text import counted
from codeqa.types import IndexStatus

LOOK_INTERVAL = 0.2  # seconds between checks of the repositories' own indices, 10 µs each
RETRY_SECONDS = 5.0  # the same while an index cannot be read
BEING_COPIED = "The repositories are being put together."
LONGEST_WAIT = 5.0  # seconds that a question waits while another one copies repositories
MOST_NAMED = 50  # repositories that an error names
MOST_IN_TITLE = 3  # repositories whose names stand for all of them
ID_SEPARATOR = "~"  # between their short ids: `3fa2b1c0~8d21e6aa` stands for two repositories
ALL = ID_SEPARATOR  # stands for every repository that is indexed
MOST_REPOSITORIES = 400
"""Chosen one by one: their ids are sent in an address, of which some servers read 4,094 bytes."""
MOST_UPDATED = 5  # repositories whose files are all compared for each question: 3 µs a file


def member_names(locations: Sequence[Location]) -> dict[str, Location]:
    """Name each repository among the others: by its name, or by its id where two share that."""
    names = [re.sub(r"[^\w.-]+", "-", location.name).strip("-.") for location in locations]
    frequency = Counter(names)
    named = {}
    for name, location in zip(names, locations, strict=True):
        unique = name and frequency[name] == 1
        named[name if unique else location.id] = location
    return dict(sorted(named.items()))


def locations_of(
    settings: Settings, id_: str, among: Callable[[Location], bool] = lambda _: True
) -> list[Location]:
    """Return the repositories of `id_` that pass `among`. Raises NotFoundError for none."""
    if id_ == ALL:
        locations = list_locations(settings)
    else:
        repo_ids = list(map(short_id, id_.split(ID_SEPARATOR)))
        locations = list_locations(settings, "repos", "revs/*")
        locations = [location for location in locations if short_id(location.id) in repo_ids]
    locations = [location for location in locations if among(location)]
    if not locations:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return locations


class MultiRepoTables(Tables):
    """The rows that `collection` holds of some repositories; call `opened` first."""

    def __init__(
        self,
        collection: Collection,
        id_: str,
        locations: Sequence[Location],
        progress: Listener = lambda _: None,
    ) -> None:
        named = member_names(locations)
        title = " + ".join(named) if len(named) <= MOST_IN_TITLE else f"{len(named)} repositories"
        self._locations = {short_id(location.id): location for location in named.values()}
        self._names = {short_id(location.id): name for name, location in named.items()}
        id_ = id_ or ID_SEPARATOR.join(sorted(self._locations))
        root = collection.location.folder / title
        self.location = replace(collection.location, root=root, id=id_)
        self._collection, self._progress = collection, progress
        self._lock, self._checked = threading.Lock(), -math.inf
        self._copies: dict[str, Copied] = {}
        self._readable: dict[str, str] = {}  # short id → name of what can be read

    def opened(self, wait: float = LONGEST_WAIT) -> MultiRepoTables:
        """Return these tables with all that the repositories' own indices hold by now.

        Something is missing where another thread copies for longer than `wait` seconds. A
        repository that cannot be read is left out, and tried again after RETRY_SECONDS. Raises
        IndexMissingError where none can be.
        """
        interval = LOOK_INTERVAL if len(self._readable) == len(self._locations) else RETRY_SECONDS
        due = time.monotonic() - self._checked >= interval
        if due and self._collection.copy(self._locations, wait, self._progress):
            self._checked = time.monotonic()
        with self._lock:
            copies, before = self._collection.copies(), self._readable
            missing = Copied(problem=self._collection.trouble or BEING_COPIED)
            self._copies = {repo_id: copies.get(repo_id, missing) for repo_id in self._locations}
            readable = [id_ for id_, copied in self._copies.items() if not copied.problem]
            self._readable = {id_: self._names[id_] for id_ in readable}
            if not self._readable:
                reasons = " ".join(self.notices)
                raise IndexMissingError("None of these repositories can be read.", reasons)
            if self._readable != before:
                self._reader = self._collection.part(self._readable)
                self._cache, self._catalogue = CopyCache(), None
            return self

    @property
    def notices(self) -> tuple[str, ...]:
        sentences = []
        missing = set(self.location.id.split(ID_SEPARATOR)) - self._locations.keys() - {""}
        if missing:
            count = counted(len(missing), "repository", "repositories")
            sentences.append(f"No longer indexed: {count}.")
        for repo_id, copied in self._copies.items():
            name = self._names[repo_id]
            if copied.problem:
                sentences.append(f"{self._locations[repo_id].name} is left out. {copied.problem}")
            elif not copied.complete:
                files = f"{self._collection.alone(repo_id, name).counts().files:,}"
                if copied.expected:
                    files += f" of {copied.expected:,}"
                sentences.append(f"{name} is still being indexed: {files} files so far.")
        return tuple(sorted(sentences))

    def _split(self, path: str) -> tuple[str, str, str]:
        """Return the repository of `path` by its short id ('' for none), its name, the rest."""
        name, _, inside = path.partition("/")
        return self._reader.scope.repo_ids.get(name, ""), name, inside

    def around(self, path: str) -> Tables:
        repo_id, name, _ = self._split(path)
        return self._collection.alone(repo_id, name) if repo_id else self

    def place_of(self, path: str) -> tuple[Path, str]:
        repo_id, _, inside = self._split(path)
        if repo_id:
            return self._locations[repo_id].root, inside
        names = sorted(self._reader.scope.repo_ids)
        more = " …" if len(names) > MOST_NAMED else ""
        raise NotFoundError(
            "This works with one repository at a time.",
            f"Several are chosen: {', '.join(names[:MOST_NAMED])}{more}.",
        )

    def plain_path(self, written: str) -> str:
        path = clean_path(written)
        for repo_id, location in self._locations.items():
            if (inside := path_below(path, location.root)) is not None:
                return f"{self._names[repo_id]}/{plain_path(inside)}"
        return super().plain_path(written)

    def meta(self) -> Meta:
        # `notices` names the repositories that are not complete.
        return replace(super().meta(), complete=True)

    def look_again(self) -> None:
        self._checked = -math.inf
        self.opened()

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        # Only vectors that every repository has can be compared.
        shared = set.intersection(*(set(self._copies[id_].columns) for id_ in self._readable))
        return [pair for pair in super().vector_columns() if pair[0] in shared]


class MultiRepoIndexer(BackgroundIndexer):
    """Keeps the indices of several repositories up to date while they are asked as one.

    They are not watched: that takes a thread and handles for each. Their files are compared with
    the index when they are first opened, and when a question meets a file that changed.
    """

    def __init__(self, tables: MultiRepoTables, locations: Sequence[Location]) -> None:
        self._collection = tables._collection
        super().__init__(self._collection.settings, tables.location, tables.opened)
        self._follows = False
        self._together = tables
        self._members = [BackgroundIndexer(self.settings, location) for location in locations]
        for indexer in self._members:  # they pause and end together
            indexer.signals.stop = self.signals.stop
            indexer.signals.paused = self.signals.paused

    def update_now(self, changed: Iterable[str] = ()) -> bool:
        roots = {self._together.place_of(path)[0] for path in changed}
        stale = [indexer for indexer in self._members if indexer.location.root in roots]
        return True in [indexer.update_now() for indexer in stale]  # each of them

    def update_before_question(self) -> str:
        """Update a few repositories; of many only those of files that a question finds changed."""
        if len(self._members) > MOST_UPDATED:
            return ""
        before = [indexer.checked_ns for indexer in self._members]
        problems = [indexer.update_before_question() for indexer in self._members]
        if before != [indexer.checked_ns for indexer in self._members]:
            self._together.look_again()
        return next(filter(None, problems), "")

    def cancel(self) -> bool:
        return True in [indexer.cancel() for indexer in self._members]  # each of them

    def stop(self, timeout: float = 30.0) -> None:
        super().stop(timeout)
        self._collection.close(timeout)

    def _work(self, *_: object) -> None:
        with contextlib.suppress(CodeQAError):
            self._open()  # copies what was never asked together, in the background
        for indexer in self._members:
            id_ = indexer.location.id
            if not self.signals.stop.is_set() and id_ not in self._collection.looked_at:
                self._collection.looked_at.add(id_)
                with contextlib.suppress(Exception):  # its own status has the error
                    indexer.run(background=True)

    def state(self) -> str:
        return self.status().state

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, partial(self._together.opened, 0))
