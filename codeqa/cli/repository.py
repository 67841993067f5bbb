"""Which repository a command is about, and its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from codeqa.errors import UsageError
from codeqa.repositories import find_repositories, recent_repositories
from codeqa.settings import Settings, load_settings, with_home
from codeqa.store import list_locations

if TYPE_CHECKING:
    from codeqa.engine import Engine


@contextmanager
def open_repository(repo: str | None) -> Iterator[Engine]:
    """The engine of the repository that is meant."""
    from codeqa.engine import open_engine

    root = chosen_repository(load_settings(), repo)
    engine = open_engine(load_settings(root), root)
    try:
        yield engine
    finally:
        engine.close()


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
