"""Which repository a command is about."""

from __future__ import annotations

from pathlib import Path

from codeqa.errors import UsageError
from codeqa.repositories import find_repositories, recent_repositories
from codeqa.settings import Settings, with_home
from codeqa.store import list_locations


def chosen_repository(settings: Settings, repo: str | None) -> Path:
    """The repository that is meant: as named, else the current folder's, else the last used.

    Raises UsageError when what was named is no folder and no indexed repository, and when
    nothing is named and there is nothing to fall back on.
    """
    if repo is not None:
        return _named(settings, repo)
    if found := repository_at_hand(settings):
        return found
    raise UsageError(
        "No repository is named, and the current folder is in none.",
        "Give the path of one, as in: codeqa index /path/to/repository.",
    )


def repository_at_hand(settings: Settings) -> Path | None:
    """The repository of the current folder, else the last used, else None."""
    here = Path.cwd()
    indexed = {location.root for location in list_locations(settings)}
    for folder in (here, *here.parents):
        if folder in indexed or (folder / ".git").exists():
            return folder
    return next(iter(recent_repositories(settings)), None)


def _named(settings: Settings, repo: str) -> Path:
    folder = with_home(Path(repo))
    if folder.is_dir():
        return folder.resolve()
    if folder.exists():
        raise UsageError(f"{repo} is not a folder.", "Give the folder that holds the source code.")
    named = find_repositories(settings, repo)
    if len(named) == 1:
        return named[0].root
    if named:
        raise UsageError(f"{len(named)} repositories are named {repo}.", "Give the path of one.")
    raise UsageError(
        f"There is no folder {repo} and no indexed repository of that name.",
        "See 'codeqa repos list' for those that are indexed.",
    )
