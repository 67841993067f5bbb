"""The repositories that this server has open, and its background work on them."""

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
from codeqa.store.location import confirm, location_of, short_id
from codeqa.web.board import AnswerBoard, ConversationKey, LocalBoard
from codeqa.web.jobs import Jobs, ThreadJobs, before_indexing
from codeqa.web.run import Runs
from codeqa.web.security import User, current_user, may_see

MULTI_REPOS_OPEN = 8
"""Combinations of repositories that stay open. They share one collection; the cache of each takes
up to 240 MB, and filling it again takes as long as a search."""


class Workspace:
    """The engines of a server by the id of their location, each opened when it is first needed.

    `engine` is an engine that is already open; it becomes the current one.
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
        """Return the repositories that the user of this request may see."""
        return self._visible_to(current_user())

    def _visible_to(self, user: User) -> list[Location]:
        return [location for location in list_locations(self.settings) if may_see(user, location)]

    def engine(self, repo: str = "", user: User | None = None) -> Engine:
        """Return the engine for a repository's id, or for several ids; '' is the current one.

        Only repositories that `user`, by default that of the request, may see exist here. Raises
        NotFoundError, and IndexMissingError when there is no current repository.
        """
        with self._lock:
            open_before = set(map(id, self._engines.values()))
            engine = self._engine(repo, user or current_user())
        if id(engine) not in open_before:
            self._update(engine)
        return engine

    def _engine(self, repo: str, user: User) -> Engine:
        if ID_SEPARATOR in repo:
            return self._multi_repo(repo, user)
        if repo:
            engine = self._engines.get(repo)
            if not engine or not may_see(user, engine.location):
                return self._open_listed(repo, user)
            with suppress(FileNotFoundError):
                if engine.location.snapshot_of:
                    os.utime(engine.location.root)  # the least recently used snapshots make room
                if not engine.index.was_removed():
                    confirm(engine.location)
                    return engine
            del self._engines[repo]  # another process removed it
            return self._open_listed(repo, user)
        location = self.usual(user)
        if location is None:
            raise IndexMissingError(
                "No repository is open.", "Choose one on the page, or start with its path."
            )
        if location.id in self._engines:
            return self._engine(location.id, user)
        return self._open(_folder(location.root, self.settings))

    def usual(self, user: User | None = None) -> Location | None:
        """Return the current repository, which `engine()` opens, or None.

        It is the one that the server was started with, or else the last one used, if `user`, by
        default that of the request, may see it.
        """
        user = user or current_user()
        current = self._engines.get(self._current)
        first = current and current.location
        if not first and self._start:
            first = location_of(self.settings, self._start)
        if first and may_see(user, first):
            return first
        root = last_used(self.settings, partial(may_see, user))
        return location_of(self.settings, root) if root else None

    def open(self, path: Path, *, update: bool = True) -> Engine:
        """Open the repository at `path`; `update` updates its index in the background.

        Raises RepositoryError when it cannot be opened.
        """
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
        """Update an index in the background; call it without the lock, as Redis may hang."""
        is_single = engine.repositories == (engine.location,) and not engine.location.snapshot_of
        if not (self.settings.jobs and is_single):
            engine.index.start()
            return
        with suppress(CodeQAError):  # a job is running already, or Redis is down
            self.begin("indexing", engine.location)

    def begin(
        self, doing: str, location: Location, before: RepositoryReport | None = None, *remote: str
    ) -> RepositoryReport:
        """Start a background job: what `before_indexing` does for `doing`, then indexing.

        `before` is as in `Jobs.start`, `remote` the address and branch of a clone. Raises as
        `Jobs.start` does.
        """
        arguments = remote or (str(location.root),)
        return self.jobs.start(location.id, before or report_on(location), doing, arguments)

    def _work(self, doing: str, arguments: Sequence[str], report: Report) -> None:
        root = before_indexing(self.settings, doing, arguments, report)
        self.open(root, update=False).index.start_update()

    def remove(self, location: Location) -> None:
        """Delete the index of a repository, with its files if they are a clone, and close it.

        Raises as `remove_repository` does.
        """
        repo = location.id
        self.jobs.cancel(repo)
        removed = []
        with self._lock:
            for key, engine in list(self._engines.items()):
                if any(
                    repo in (location.id, location.snapshot_of) for location in engine.repositories
                ):
                    removed.append(self._engines.pop(key))
                    if key == self._current:
                        self._current = ""
        for engine in removed:
            if engine.location == location:  # combinations with it are just opened again without it
                self.answers.stop(repo)
                engine.close()
        remove_repository(self.settings, location)
        if self._start == location.root:
            self._start = None

    def rename(self, location: Location, name: str) -> None:
        """Give a repository another name; its paths among several repositories begin with it.

        Raises as `rename_repository` does.
        """
        rename_repository(self.settings, location, name)
        with self._lock:
            for key in list(self._engines):
                if ID_SEPARATOR in key and short_id(location.id) in key:
                    del self._engines[key]  # not closed: it may be answering now

    def privacy(self) -> Privacy:
        """Return the account of what is stored, after all answers have been saved."""
        for engine in list(self._engines.values()):
            engine.conversations.flush()
        current = self._engines.get(self._current)
        return open_privacy(self.settings, models=current.models if current else None)

    def is_open(self, repo: str) -> bool:
        """Return whether the repository with this id is open."""
        return repo in self._engines

    def close(self) -> None:
        """Stop running answers, save their text, and end the background work."""
        self.answers.closing.set()
        self.jobs.close()
        self.answers.stop(here=True)
        for engine in list(self._engines.values()):
            engine.close()

    def _multi_repo(self, repo: str, user: User) -> Engine:
        """Return the engine of several indexed repositories. Raises UsageError for too many."""
        ends = repo.split(ID_SEPARATOR)
        count = len(list(filter(None, ends)))
        if count > MOST_REPOSITORIES:
            raise UsageError(
                f"{count} repositories are too many to be asked at once.",
                f"Choose up to {MOST_REPOSITORIES}, or all.",
            )
        # The conversations keep this id, even if one of the repositories is removed.
        key = id_ = ID_SEPARATOR.join(sorted(set(map(short_id, ends)))) or ALL
        locations, hidden = list[Location](), frozenset[str]()
        suffix, collection = "", self._collection
        if id_ == ALL or user.sees:
            locations = locations_of(self.settings, id_, partial(may_see, user))
            visible_ends = [short_id(location.id) for location in locations]
            everything = list_locations(self.settings)
            visible = [location for location in everything if may_see(user, location)]
            if len(visible) < len(everything):
                collection = collection_of(self.settings, visible)
                suffix = f" {collection.location.id}"
            if id_ == ALL:  # the key says which repositories that means now, for this user
                hidden = frozenset(short_id(location.id) for location in everything).difference(
                    visible_ends
                )
                key = " ".join((ALL, *visible_ends, "without", *sorted(hidden)))
            elif len(locations) == 1:
                return self._engine(locations[0].id, user)
            else:  # the id, under which conversations are stored, leaves out what is hidden
                key = id_ = ID_SEPARATOR.join(sorted(visible_ends))
        key += suffix
        engine = self._engines.pop(key, None)
        if engine is None:
            self._make_room()
            locations = locations or locations_of(self.settings, id_)
            engine = open_multi_repo(
                self.settings, locations, id_, collection=collection, hidden=hidden
            )
        self._engines[key] = engine  # at the end: the most recently used
        return engine

    def _make_room(self) -> None:
        """Forget the least recently used combinations; they are not closed, as they may answer."""
        combinations = [key for key in self._engines if ID_SEPARATOR in key]
        for key in combinations[: 1 - MULTI_REPOS_OPEN]:
            del self._engines[key]

    def _open_listed(self, repo: str, user: User) -> Engine:
        """Open an indexed repository by its id. Raises NotFoundError."""
        everything = list_locations(self.settings, "repos", "revs/*")
        # Filter all of them first, so that the time does not reveal which ones exist.
        for location in [place for place in everything if may_see(user, place)]:
            if location.id == repo:
                # A snapshot lies in our own data folder, where nothing else may be opened.
                is_ours = bool(location.snapshot_of)
                root = location.root if is_ours else _folder(location.root, self.settings)
                return self._open(root)
        raise NotFoundError("There is no repository with this id.", "Choose one from the list.")


def workspace() -> Workspace:
    """Return the workspace of the application that serves this request."""
    return cast(Workspace, current_app.extensions["codeqa"])


def conversation_key(engine: Engine, conversation: str) -> ConversationKey:
    """Return the key of this user's conversation on the board."""
    return ConversationKey(engine.location.id, current_user().id, conversation)


def reader_gone() -> Callable[[], bool]:
    """Return a function that says whether the client has left; waitress notices that at once."""
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", lambda: False)
    return gone


def _folder(path: Path, settings: Settings) -> Path:
    """Return `path` with the home folder in place of `~`.

    Raises RepositoryError if it is not a folder, is the whole disk, or contains CodeQA's own data.
    """
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
            f"{path} contains CodeQA's own data.", "Give the folder of a repository instead."
        )
    return folder
