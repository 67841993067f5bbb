"""The repositories that have an index here: found, listed, cloned, brought up to date, renamed,
removed.

The modules beside it: their files as they are now, one as it was at a commit, several as one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from codeqa.environment import with_home
from codeqa.errors import CodeQAError, IndexMissingError, NotFoundError, UsageError
from codeqa.folders import is_direct
from codeqa.indexing.runs import hold, holder_of, read_run
from codeqa.repositories.collection import forget_removed
from codeqa.repository.clones import Report, clone, delete_clone, sync
from codeqa.repository.git import Git, find_git
from codeqa.repository.remotes import Remote
from codeqa.repository.walk import require_source, walk
from codeqa.settings import Settings
from codeqa.store import Location, Tables, list_locations, locate
from codeqa.store.location import (
    NOTE,
    confirm,
    local_bytes,
    location_of,
    pin_of,
    read_note,
    remove,
    save_location,
    stamp_of,
    write_atomically,
)
from codeqa.types import Progress

_NAME = re.compile(r"\w[\w .+@-]{0,59}")
"""A name that can be typed in a terminal and stands on one line."""


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """What there is of one repository; `problem` says why the numbers are 0."""

    name: str
    path: str
    state: str
    """`ready` · `indexing` · `paused` · `incomplete` · `folder gone` · `unreadable`."""
    url: str = ""
    """Where a clone comes from; '' for a folder of the user's own."""
    branch: str = ""
    files: int = 0
    units: int = 0
    references: int = 0
    bytes_on_disk: int = 0
    updated_at: float = 0.0
    """Seconds since the epoch of the last completed run; 0 for none."""
    problem: str = ""
    progress: Progress | None = None


def open_location(settings: Settings, root: Path, *, anew: bool = False) -> Location:
    """The place of the index of the repository at `root`, which is now the one used last.

    Raises UsageError when it is no folder, RepositoryError when another took its place, unless
    that is to be indexed `anew`.
    """
    given = location_of(settings, Path(os.path.normpath(Path.cwd() / with_home(root))))
    listed = not anew and (given.folder / NOTE).exists()
    if listed:
        confirm(given)
    location = locate(settings, root)
    if listed:  # never what a link leads to by now
        location = given
    if anew and (location.folder / NOTE).exists():
        save_location(location, **pin_of(location))
    confirm(location)
    if not location.snapshot_of:
        with contextlib.suppress(OSError):  # it has no index yet, or the folder is read-only
            os.utime(location.folder / "repository.json")
    return location


def last_used(
    settings: Settings, among: Callable[[Location], bool] = lambda _: True
) -> Path | None:
    """The indexed repository that was opened last, of those that still exist, hold source and are
    `among`."""

    def opened(location: Location) -> float:
        note = location.folder / "repository.json"
        return note.stat().st_mtime if note.exists() else 0.0

    every = list_locations(settings)
    found = [one for one in every if one.root.is_dir() and is_direct(one.root) and among(one)]
    last = max(found, key=opened, default=None)
    return last.root if last and opened(last) else None


def find_repository(settings: Settings, given: str) -> Location:
    """The one index of this id or path, else of this name; its folder may be gone by now.

    Raises NotFoundError when there is none, or when a name fits several.
    """
    locations = list_locations(settings, "repos", "revs/*")
    # No path may hold a NUL.
    roots = () if "\0" in given else (Path(given), with_home(Path(given)).resolve())
    found = [one for one in locations if one.id == given or one.root in roots]
    found = found or [one for one in locations if one.name == given]
    if not found:
        raise NotFoundError(f"{given} is not indexed.", "`codeqa repos list` shows what is.")
    if len(found) > 1:
        raise NotFoundError(
            f"{len(found)} repositories are named {given}.", "Give the path or id of one."
        )
    return found[0]


def remove_repository(settings: Settings, location: Location) -> None:
    """Delete the index of a repository, and its files only when they are a clone of ours.

    Raises NotFoundError when there is none, and IndexBusyError while it is written.
    """
    ours = is_clone(settings, location.root)
    with hold(location, wait=False):
        remove(settings, location)
        if ours:
            delete_clone(location.root)
    forget_removed(settings)


def rename_repository(settings: Settings, location: Location, name: str) -> None:
    """Show a repository as `name`; '' is its own name again. Raises UsageError for a name that
    cannot be typed or is another one's."""
    name = name.strip() or location.root.name
    if not _NAME.fullmatch(name):
        raise UsageError(
            "This cannot be a name.", "Take up to 60 letters, digits, spaces and . + @ - _."
        )
    others = [one for one in list_locations(settings) if one.id != location.id]
    if any(name in (one.name, one.id) for one in others):
        raise UsageError(f"Another repository is called {name}.", "Take another name.")
    save_location(location, name=name)


# Clones


def clones_folder(settings: Settings) -> Path:
    """Where the clones lie, as `host/owner/name`."""
    return settings.data_dir.resolve() / "clones"


def is_clone(settings: Settings, folder: Path) -> bool:
    """Whether `folder` is a clone that lies in the data folder."""
    parents = folder.resolve().parents
    return len(parents) > 2 and parents[2] == clones_folder(settings) and folder.is_dir()


def trusted_git(settings: Settings) -> Git:
    """The git to run, which none of the indexed repositories brings along. Raises RepositoryError
    when there is none."""
    return find_git(clones_folder(settings), *(one.root for one in list_locations(settings)))


def clone_location(settings: Settings, remote: Remote) -> Location:
    """Where the index of the clone of `remote` is or will be."""
    return location_of(settings, clones_folder(settings) / remote.folder)


def take_clone(settings: Settings, remote: Remote, report: Report) -> Location:
    """The clone of `remote`, made unless it is there; not indexed yet.

    Raises RepositoryError when that fails, and what `report` raises; nothing is left then.
    """
    folder = clone(trusted_git(settings), remote, clones_folder(settings), report)
    location = open_location(settings, folder)
    if not location.remote[0]:
        try:
            require_source(walk(folder, max_file_bytes=settings.max_file_bytes))
        except CodeQAError:
            delete_clone(folder)
            raise
        save_location(location, url=remote.url, branch=remote.branch)
    return location


def sync_clone(settings: Settings, location: Location, report: Report) -> None:
    """Bring the files of a clone to the newest commit; a folder of the user's own stays as it is.

    Raises RepositoryError when it cannot be fetched: it is as it was; and what `report` raises.
    """
    url, branch = location.remote
    if url:
        sync(trusted_git(settings), location.root, url, branch, report)


# The list


def report_repositories(settings: Settings) -> list[RepositoryReport]:
    """What every index holds, by name, snapshots last; unreadable ones are reported, not raised."""
    return [report_on(location) for location in list_locations(settings, "repos", "revs/*")]


def report_on(location: Location) -> RepositoryReport:
    """What there is of one repository now."""
    url, branch = location.remote
    report = replace(_counted(location), name=location.name, url=url, branch=branch)
    if not location.root.is_dir() or not is_direct(location.root):
        return replace(report, state="folder gone")
    if holder_of(location):
        run = read_run(location)
        state = "paused" if run.state == "paused" else "indexing"
        return replace(report, state=state, progress=run.progress)
    return report


def _counted(location: Location) -> RepositoryReport:
    """What the index holds. A note says so where no run wrote since the last look: opening the
    tables of fifty repositories takes a second."""
    note = location.folder / "report.json"
    report = RepositoryReport(location.name, str(location.root), "incomplete")
    stamp = stamp_of(location)
    with contextlib.suppress(TypeError, LookupError):
        known = read_note(note)
        if known.pop("stamp") == stamp:
            return RepositoryReport(**known)
    try:
        tables = Tables(location)
        counts, meta = tables.counts(), tables.meta()
    except IndexMissingError:
        return report
    except Exception as error:
        # An index that cannot be opened must still be listed, or it could not be removed.
        size = local_bytes(location)
        return replace(report, state="unreadable", bytes_on_disk=size, problem=str(error))
    report = replace(
        report,
        state="ready" if meta.complete and not meta.dirty else "incomplete",
        files=counts.files,
        units=counts.units,
        references=counts.references,
        bytes_on_disk=local_bytes(location),
        updated_at=meta.updated_at,
    )
    if report.state == "ready":
        with contextlib.suppress(OSError):
            write_atomically(note, json.dumps(asdict(report) | {"stamp": stamp}))
    return report
