"""The repositories that have an index here, or were opened lately: found, listed, removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codeqa.environment import with_home
from codeqa.errors import NotFoundError
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Location, Tables, list_locations, local_bytes, locate, remove


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """What there is of one repository; `problem` says why the numbers are 0."""

    name: str
    path: str
    state: str
    """`ready` · `incomplete` · `folder gone` · `unreadable`."""
    files: int = 0
    units: int = 0
    references: int = 0
    bytes_on_disk: int = 0
    updated_at: float = 0.0
    """Seconds since the epoch of the last completed run; 0 for none."""
    problem: str = ""


def take_up(settings: Settings, root: Path) -> Location:
    """The place of the index of the repository at `root`, which is now the one used last.

    Raises UsageError when it is no folder.
    """
    location = locate(settings, root)
    if not location.snapshot_of:
        State(settings.data_dir).repositories.remember(location.root)
    return location


def recent_repositories(settings: Settings) -> list[Path]:
    """Repositories that were opened, the latest first, those that still exist."""
    return [path for path in State(settings.data_dir).repositories.latest() if path.is_dir()]


def find_repositories(settings: Settings, given: str | Path) -> list[Location]:
    """Indexed repositories with this id or path, else with this name; they may be gone by now."""
    real = with_home(Path(given)).resolve()
    locations = list_locations(settings)
    found = [one for one in locations if one.id == str(given) or one.root in (Path(given), real)]
    return found or [one for one in locations if one.name == str(given)]


def find_repository(settings: Settings, given: str | Path) -> Location:
    """The one indexed repository with this id, path or name.

    Raises NotFoundError when there is none, or when a name fits several.
    """
    found = find_repositories(settings, given)
    if not found:
        raise NotFoundError(f"{given} is not indexed.", "`codeqa repos list` shows what is.")
    if len(found) > 1:
        raise NotFoundError(
            f"{len(found)} repositories are named {given}.", "Give the path or id of one."
        )
    return found[0]


def remove_repository(settings: Settings, given: str | Path) -> Location:
    """Delete the index of the repository with this id, path or name; its files stay.

    Raises NotFoundError as `find_repository` does.
    """
    location = find_repository(settings, given)
    remove(settings, location)
    State(settings.data_dir).repositories.forget(location.root)
    return location


def report_repositories(settings: Settings) -> list[RepositoryReport]:
    """What every index holds, by name; an unreadable one is reported, not raised."""
    return [_report(location) for location in list_locations(settings)]


def _report(location: Location) -> RepositoryReport:
    path, size = str(location.root), local_bytes(location)
    try:
        tables = Tables.open(location)
        counts, meta = tables.counts(), tables.meta()
    except Exception as error:
        # An index that cannot be opened must still be listed, or it could not be removed.
        return RepositoryReport(
            location.name, path, "unreadable", bytes_on_disk=size, problem=str(error)
        )
    state = "ready" if meta.complete and not meta.dirty else "incomplete"
    return RepositoryReport(
        name=location.name,
        path=path,
        state=state if location.root.is_dir() else "folder gone",
        files=counts.files,
        units=counts.units,
        references=counts.references,
        bytes_on_disk=size,
        updated_at=meta.updated_at,
    )
