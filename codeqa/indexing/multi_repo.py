"""The indexing of several repositories that are asked as one: each its own, one after another."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from codeqa.errors import CodeQAError
from codeqa.indexing.indexer import Indexer
from codeqa.indexing.status import read_status
from codeqa.settings import Settings
from codeqa.store.location import Location
from codeqa.store.multi_repo import MultiRepoTables
from codeqa.store.tables import Tables
from codeqa.types import IndexStatus


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
        tables: Callable[[], MultiRepoTables],
    ) -> None:
        super().__init__(settings, location, tables)
        self._follows = False
        self._members = {
            name: Indexer(settings, one, partial(_opened, tables, name, one))
            for name, one in members.items()
        }
        for own in self._members.values():
            own._stop = self._stop  # they end together

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        names = {path.partition("/")[0] for path in changed}
        caught = [own.catch_up() for name, own in self._members.items() if name in names]
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
        for own in self._members.values():
            if not self._stop.is_set():
                with contextlib.suppress(Exception):  # its own status tells
                    own.run(behind=True)

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, self._open)


def _opened(tables: Callable[[], MultiRepoTables], name: str, location: Location) -> Tables:
    """The index of one of them, as it is read for all where it is: it is opened once."""
    with contextlib.suppress(CodeQAError):  # none of them has an index yet
        if member := tables().members.get(name):
            return member.tables
    return Tables.open(location)
