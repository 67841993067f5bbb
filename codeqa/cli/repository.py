"""Which repository a command is about, and its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.errors import UsageError
from codeqa.settings import Settings, load_settings, with_home

if TYPE_CHECKING:
    from codeqa.engine import Engine


@contextmanager
def open_repository(repo: str | None, **overrides: Any) -> Iterator[Engine]:
    """The engine of the repository that is meant; `overrides` are settings, None for as set."""
    from codeqa.engine import open_engine

    repository = chosen_repository(load_settings(), repo)
    assert repository is not None  # required
    engine = open_engine(load_settings(repository, **overrides), repository)
    try:
        yield engine
    finally:
        engine.close()


def chosen_repository(settings: Settings, repo: str | None, required: bool = True) -> Path | None:
    """The repository that is meant: as named, else the current folder's, else the last used.

    Raises UsageError when what was named is no folder and no indexed repository, and when
    nothing is named and there is nothing to fall back on and `required`.
    """
    if repo is not None:
        return _named_repository(settings, repo)
    from codeqa.repositories import recent_repositories
    from codeqa.store import list_locations

    here = Path.cwd()
    indexed = {location.root for location in list_locations(settings)}
    for folder in (here, *here.parents):
        if folder in indexed or (folder / ".git").exists():
            return folder
    if recent := recent_repositories(settings):
        return recent[0]
    if not required:
        return None
    raise UsageError(
        "No repository is named, and the current folder is in none.",
        "Give the path of one, as in: codeqa index /path/to/repository.",
    )


def indexed_root(settings: Settings, repo: str) -> Path:
    """Root of an indexed repository; its folder may be gone by now. Raises NotFoundError."""
    from codeqa.repositories import find_repository

    return find_repository(settings, repo).root


def _named_repository(settings: Settings, repo: str) -> Path:
    from codeqa.repositories import find_repositories

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
