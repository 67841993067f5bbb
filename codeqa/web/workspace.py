"""The repositories that this server has open, and what is done to them behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from flask import current_app, request

from codeqa.account import Privacy
from codeqa.engine import Engine, open_engine, open_multi_repo, open_privacy
from codeqa.environment import with_home
from codeqa.errors import CodeQAError, IndexMissingError, NotFoundError, RepositoryError, UsageError
from codeqa.extensions import load_extension
from codeqa.repositories import (
    RepositoryReport,
    is_clone,
    last_used,
    remove_repository,
    rename_repository,
    report_on,
)
from codeqa.repositories.collection import Collection, collection_of
from codeqa.repositories.multi_repo import ALL, ID_SEPARATOR, MOST_REPOSITORIES, locations_of
from codeqa.repository.clones import Report
from codeqa.settings import Settings
from codeqa.state.cache import open_redis
from codeqa.store import Location, list_locations
from codeqa.store.location import confirm, end_of, location_of
from codeqa.web.board import AnswerBoard, LocalBoard, Place
from codeqa.web.jobs import Jobs, ThreadJobs, before_indexing
from codeqa.web.run import Runs
from codeqa.web.security import Member, may_see, member_of_request

MULTI_REPOS_OPEN = 8
"""Combinations of repositories that stay open. All read one collection; what each remembers of its
part takes up to 240 MB, and is read again in as long as a search takes."""


class Workspace:
    """Engines by the id of their location, opened when first asked for.

    Nothing is opened when it is made. `engine` is an engine that is already open; it becomes the
    current one.
    """

    def __init__(
        self, settings: Settings, repository: Path | None = None, engine: Engine | None = None
    ) -> None:
        self.settings = settings
        self.jobs: Jobs = ThreadJobs(self._work)
        if settings.jobs:
            self.jobs = load_extension("jobs")(settings)
        board: AnswerBoard = LocalBoard()
        if redis := open_redis(settings):
            board = load_extension("shared_board")(redis)
        self.answers = Runs(settings, board)
        self._start = repository.resolve() if repository else None
        self._lock = threading.RLock()
        self._engines: dict[str, Engine] = {}
        self._collection = Collection(settings)
        self._current = ""
        if engine is not None:
            self._engines[engine.location.id] = engine
            self._current = engine.location.id

    def visible(self) -> list[Location]:
        """The repositories that there are for who sent this request."""
        member = member_of_request()
        return [one for one in list_locations(self.settings) if may_see(member, one)]

    def engine(self, repo: str = "", member: Member | None = None) -> Engine:
        """The engine of the repository with that id, or of several, as there are for `member`,
        without one for who sent this request; '' gives the current one. Raises NotFoundError, and
        IndexMissingError when there is no current one."""
        with self._lock:
            open_before = [*self._engines.values()]
            engine = self._engine(repo, member or member_of_request())
        if not any(engine is one for one in open_before):
            self._update(engine)
        return engine

    def _engine(self, repo: str, member: Member) -> Engine:
        if ID_SEPARATOR in repo:
            return self._multi_repo(repo, member)
        if repo:
            known = self._engines.get(repo)
            if not known or not may_see(member, known.location):
                return self._open_listed(repo, member)
            with suppress(FileNotFoundError):
                if known.location.snapshot_of:
                    os.utime(known.location.root)  # those asked longest ago make room
                if not known.index.was_removed():
                    confirm(known.location)
                    return known
            del self._engines[repo]  # another process removed it
            return self._open_listed(repo, member)
        if (usual := self.usual(member)) is None:
            raise IndexMissingError(
                "No repository is open.", "Choose one on the page, or start with its path."
            )
        if usual.id in self._engines:
            return self._engine(usual.id, member)
        return self._open(_folder(usual.root, self.settings))

    def usual(self, member: Member | None = None) -> Location | None:
        """The current repository, which `engine()` gives: the one the server was started with, else
        the last one used; of those that `member` may see, without one who sent this request."""
        member = member or member_of_request()
        current = self._engines.get(self._current)
        first = current and current.location
        if not first and self._start:
            first = location_of(self.settings, self._start)
        if first and may_see(member, first):
            return first
        used = last_used(self.settings, partial(may_see, member))
        return location_of(self.settings, used) if used else None

    def open(self, path: Path, *, update: bool = True) -> Engine:
        """Open the repository at `path`; `update` brings its index up to date behind. Raises
        RepositoryError when it cannot be opened."""
        with self._lock:
            engine = self._open(_folder(path, self.settings))
        if update:
            self._update(engine)
        return engine

    def _open(self, folder: Path) -> Engine:
        engine = open_engine(self.settings, folder)
        engine.index.require_source()
        engine = self._engines.setdefault(engine.location.id, engine)
        if self._start in (None, engine.location.root):
            self._current = self._current or engine.location.id
        return engine

    def _update(self, engine: Engine) -> None:
        """Nobody else waits meanwhile: a Redis that hangs is given up after seconds."""
        alone = engine.repositories == (engine.location,) and not engine.location.snapshot_of
        if not (self.settings.jobs and alone):
            engine.index.start_background()
            return
        with suppress(CodeQAError):  # it is at work there, or Redis is gone
            self.begin("indexing", engine.location)

    def begin(
        self, doing: str, location: Location, before: RepositoryReport | None = None, *remote: str
    ) -> RepositoryReport:
        """Have done behind what `before_indexing` does for `doing`, and the index brought up to
        date; `before` as `Jobs.start` takes it. Raises as that does."""
        given = remote or (str(location.root),)
        return self.jobs.start(location.id, before or report_on(location), doing, given)

    def _work(self, doing: str, given: Sequence[str], tell: Report) -> None:
        root = before_indexing(self.settings, doing, given, tell)
        self.open(root, update=False).index.check()

    def remove(self, location: Location) -> None:
        """Delete the index of a repository, with its files if they are a clone, and close it.
        Raises as `remove_repository` does."""
        repo = location.id
        self.jobs.cancel(repo)
        with self._lock:
            gone = [
                key
                for key, engine in self._engines.items()
                if any(repo in (one.id, one.snapshot_of) for one in engine.repositories)
            ]
            closing = [self._engines.pop(key) for key in gone]
            if self._current in gone:
                self._current = ""
        for engine in closing:
            if engine.location == location:  # several are asked without it from now on
                self.answers.stop(repo)
                engine.close()
        remove_repository(self.settings, location)
        if self._start == location.root:
            self._start = None

    def rename(self, location: Location, name: str) -> None:
        """Show a repository by another name, which its paths among several begin with from now on.

        Raises as `rename_repository` does.
        """
        rename_repository(self.settings, location, name)
        with self._lock:
            for key in [*self._engines]:
                # It may be answering now.
                if ID_SEPARATOR in key and end_of(location.id) in key:
                    del self._engines[key]

    def privacy(self) -> Privacy:
        """What is stored of each user, once all that was answered is kept."""
        for engine in list(self._engines.values()):
            engine.conversations.flush()
        current = self._engines.get(self._current)
        return open_privacy(self.settings, models=current.models if current else None)

    def is_open(self, repo: str) -> bool:
        return repo in self._engines

    def close(self) -> None:
        """End the streams, keep what came of them, and end what runs in the background."""
        self.answers.closing.set()
        self.jobs.close()
        self.answers.stop(here=True)
        for engine in list(self._engines.values()):
            engine.close()

    def _multi_repo(self, repo: str, member: Member) -> Engine:
        """The engine of several repositories, of which each has an index. Raises UsageError for too
        many."""
        chosen = len([one for one in repo.split(ID_SEPARATOR) if one])
        if chosen > MOST_REPOSITORIES:
            raise UsageError(
                f"{chosen} repositories are too many to be asked at once.",
                f"Choose up to {MOST_REPOSITORIES}, or all.",
            )
        # The id stays that of the conversations, also where one of them is removed by now.
        key = id_ = ID_SEPARATOR.join(sorted({*map(end_of, repo.split(ID_SEPARATOR))})) or ALL
        found, hidden = list[Location](), frozenset[str]()
        seeing, collection = "", self._collection
        if id_ == ALL or member.sees:
            found = locations_of(self.settings, id_, partial(may_see, member))
            seen = [end_of(one.id) for one in found]
            every = list_locations(self.settings)
            visible = [one for one in every if may_see(member, one)]
            if len(visible) < len(every):
                collection = collection_of(self.settings, visible)
                seeing = f" {collection.location.id}"
            if id_ == ALL:  # whatever that is now, and for whom
                hidden = frozenset(end_of(one.id) for one in every).difference(seen)
                key = " ".join((ALL, *seen, "without", *sorted(hidden)))
            elif len(seen) == 1:
                return self._engine(found[0].id, member)
            else:  # others are not in the id: under that it is kept what they said
                key = id_ = ID_SEPARATOR.join(sorted(seen))
        key += seeing
        if not (engine := self._engines.pop(key, None)):
            for old in [one for one in self._engines if ID_SEPARATOR in one][
                : 1 - MULTI_REPOS_OPEN
            ]:
                del self._engines[old]  # it may be answering now
            found = found or locations_of(self.settings, id_)
            engine = open_multi_repo(
                self.settings, found, id_, collection=collection, hidden=hidden
            )
        self._engines[key] = engine  # behind those asked longer ago
        return engine

    def _open_listed(self, repo: str, member: Member) -> Engine:
        """Only a repository that has an index is opened by its id."""
        every = list_locations(self.settings, "repos", "revs/*")
        # Of all: how long it takes does not tell which of them there are.
        for location in [one for one in every if may_see(member, one)]:
            if location.id == repo:
                # A snapshot lies among our own data, where nothing else may be opened.
                own = bool(location.snapshot_of)
                return self._open(location.root if own else _folder(location.root, self.settings))
        raise NotFoundError("There is no repository with this id.", "Choose one from the list.")


def workspace() -> Workspace:
    """The workspace of the application that serves this request."""
    return cast(Workspace, current_app.extensions["codeqa"])


def place_of(engine: Engine, conversation: str) -> Place:
    """Where the user of this request is answered."""
    return Place(engine.location.id, member_of_request().user, conversation)


def reader_gone() -> Callable[[], bool]:
    """Whether who sent this request has left: waitress knows before anything is written."""
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", lambda: False)
    return gone


def _folder(path: Path, settings: Settings) -> Path:
    """`path` with the home folder filled in. Raises RepositoryError when it is no folder, all
    folders there are, or the one that holds the keys and conversations of CodeQA itself."""
    folder, real = with_home(path), None
    with suppress(OSError, ValueError, RuntimeError):  # too long, a NUL, a loop of links
        real = folder.resolve(strict=True)
    if not (real and real.is_dir() and folder.is_absolute()):
        raise RepositoryError(
            f"{path} is not a folder on this machine.",
            "Give the full path of a folder that holds source code.",
        )
    if real == Path(real.anchor):
        raise RepositoryError(
            f"{path} is the root of the disk.", "Give the folder of one repository instead."
        )
    if real.is_relative_to(settings.data_dir.resolve()) and not is_clone(settings, real):
        raise RepositoryError(
            f"{path} holds CodeQA's own data.", "Give the folder of a repository instead."
        )
    return folder
