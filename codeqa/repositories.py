"""The repositories that have an index here, or were opened lately: found, listed, removed."""

from __future__ import annotations

from pathlib import Path

from codeqa.errors import NotFoundError
from codeqa.settings import Settings, with_home
from codeqa.state import State
from codeqa.store import Location, list_locations, locate, remove


def take_up(settings: Settings, root: Path) -> Location:
    """The place of the index of the repository at `root`, which is now the one used last.

    Raises UsageError when it is no folder.
    """
    location = locate(settings, root)
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
