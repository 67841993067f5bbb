"""Find, list, clone, update, rename and remove the repositories that have an index here."""

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

_NAME = re.compile(r"\w[\w .+@-]{0,59}")  # can be typed in a terminal


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """A repository as it is listed; `problem` says why the numbers are 0."""

    name: str
    path: str
    state: str  # `ready` · `indexing` · `paused` · `incomplete` · `folder gone` · `unreadable`
    url: str = ""  # where a clone comes from; '' for a folder of the user's own
    branch: str = ""
    files: int = 0
    units: int = 0
    references: int = 0
    bytes_on_disk: int = 0
    updated_at: float = 0.0  # seconds since the epoch of the last completed run; 0 for none
    problem: str = ""
    progress: Progress | None = None


def open_location(settings: Settings, root: Path, *, anew: bool = False) -> Location:
    """Return the location of the index of the repository at `root`, now the one used last.

    `anew` accepts that another folder took the place of the indexed one. Raises UsageError when
    `root` is no folder, RepositoryError when another folder took its place.
    """
    location = location_of(settings, Path(os.path.normpath(Path.cwd() / with_home(root))))
    if not anew and (location.folder / NOTE).exists():
        # Not located again: where the path has become a link, its target is another repository.
        confirm(location)
        locate(settings, root)
    else:
        location = locate(settings, root)
        if anew and (location.folder / NOTE).exists():
            save_location(location, **pin_of(location))
    confirm(location)
    if not location.snapshot_of:
        with contextlib.suppress(OSError):  # it has no index yet, or the folder is read-only
            os.utime(location.folder / NOTE)
    return location


def last_used(
    settings: Settings, among: Callable[[Location], bool] = lambda _: True
) -> Path | None:
    """Return the folder of the repository opened last of those that exist and pass `among`."""
    last, opened = None, 0.0
    for location in list_locations(settings):
        if location.root.is_dir() and is_direct(location.root) and among(location):
            time = (location.folder / NOTE).stat().st_mtime
            if time > opened:
                last, opened = location.root, time
    return last


def find_repository(settings: Settings, repo: str) -> Location:
    """Return the one index with this id or path, else with this name. Raises NotFoundError."""
    locations = list_locations(settings, "repos", "revs/*")
    roots: list[Path] = []
    if "\0" not in repo:  # no path may hold one
        roots = [Path(repo), with_home(Path(repo)).resolve()]
    matches = [location for location in locations if location.id == repo or location.root in roots]
    if not matches:
        matches = [location for location in locations if location.name == repo]
    if not matches:
        raise NotFoundError(f"{repo} is not indexed.", "See `codeqa repos list`.")
    if len(matches) > 1:
        raise NotFoundError(
            f"{len(matches)} repositories are named {repo}.", "Give the path or id of one."
        )
    return matches[0]


def remove_repository(settings: Settings, location: Location) -> None:
    """Delete an index, and the files of a clone. Raises NotFoundError and IndexBusyError."""
    ours = is_clone(settings, location.root)
    with hold(location, wait=False):
        remove(settings, location)
        if ours:
            delete_clone(location.root)
    forget_removed(settings)


def rename_repository(settings: Settings, location: Location, name: str) -> None:
    """Show a repository as `name`; '' is its folder's name. Raises UsageError for a wrong name."""
    name = name.strip() or location.root.name
    if not _NAME.fullmatch(name):
        raise UsageError(
            "This name cannot be used.", "Use up to 60 letters, digits, spaces and . + @ - _."
        )
    for other in list_locations(settings):
        if other.id != location.id and name in (other.name, other.id):
            raise UsageError(f"Another repository is called {name}.", "Choose another name.")
    save_location(location, name=name)


# Clones


def clones_folder(settings: Settings) -> Path:
    """Return the folder of the clones, which lie there as `host/owner/name`."""
    return settings.data_dir.resolve() / "clones"


def is_clone(settings: Settings, folder: Path) -> bool:
    """Return whether `folder` is a clone in the data folder."""
    parents = folder.resolve().parents
    return len(parents) > 2 and parents[2] == clones_folder(settings) and folder.is_dir()


def trusted_git(settings: Settings) -> Git:
    """Return a git that none of the indexed repositories brings along, else RepositoryError."""
    roots = [location.root for location in list_locations(settings)]
    return find_git(clones_folder(settings), *roots)


def clone_location(settings: Settings, remote: Remote) -> Location:
    """Return the location of the index of the clone of `remote`, be it there or not."""
    return location_of(settings, clones_folder(settings) / remote.folder)


def take_clone(settings: Settings, remote: Remote, report: Report) -> Location:
    """Clone `remote` unless that was done before; nothing is indexed yet.

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

    Raises RepositoryError when it cannot be fetched, and what `report` raises; the files then stay.
    """
    url, branch = location.remote
    if url:
        sync(trusted_git(settings), location.root, url, branch, report)


# The list


def report_repositories(settings: Settings) -> list[RepositoryReport]:
    """Report on every index by name, snapshots last; an unreadable one raises nothing."""
    return [report_on(location) for location in list_locations(settings, "repos", "revs/*")]


def report_on(location: Location) -> RepositoryReport:
    """Report on one repository as it is now."""
    url, branch = location.remote
    report = replace(_report_index(location), name=location.name, url=url, branch=branch)
    if not location.root.is_dir() or not is_direct(location.root):
        return replace(report, state="folder gone")
    if holder_of(location):
        run = read_run(location)
        state = "paused" if run.state == "paused" else "indexing"
        return replace(report, state=state, progress=run.progress)
    return report


def _report_index(location: Location) -> RepositoryReport:
    """Count what the index holds.

    A file remembers the counts until the next run: opening the tables of fifty repositories takes
    a second.
    """
    path, stamp = location.folder / "report.json", stamp_of(location)
    with contextlib.suppress(TypeError, LookupError):
        fields = read_note(path)
        if fields.pop("stamp") == stamp:
            return RepositoryReport(**fields)
    report = RepositoryReport(location.name, str(location.root), "incomplete")
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
        files=counts.files,
        units=counts.units,
        references=counts.references,
        bytes_on_disk=local_bytes(location),
        updated_at=meta.updated_at,
    )
    if meta.complete and not meta.dirty:
        report = replace(report, state="ready")
        with contextlib.suppress(OSError):
            write_atomically(path, json.dumps(asdict(report) | {"stamp": stamp}))
    return report
