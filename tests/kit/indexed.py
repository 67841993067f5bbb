"""A small repository, written and indexed for the tests of one module."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from codeqa.errors import RepositoryError
from codeqa.indexing import Indexer
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, Tables, locate
from codeqa.store.location import save_location
from tests.kit.repositories import write


def indexed(folder: Path, files: Mapping[str, str | bytes]) -> Tables:
    """The tables of a repository of `files` (path → text), all of it inside `folder`."""
    write(folder / "repo", files)
    settings = load_settings(data=folder / "data", workers=1)
    location = locate(settings, folder / "repo")
    Indexer(settings, location).run()
    return Tables(location)


def emptied(folder: Path) -> Tables:
    """The tables of a repository whose files are gone."""
    tables = indexed(folder, {"a.py": "def gone():\n    pass\n"})
    (tables.location.root / "a.py").unlink()
    with pytest.raises(RepositoryError, match="No source files here"):
        Indexer(load_settings(data=folder / "data", workers=1), tables.location).run()
    tables.look_again()
    return tables


def copied(made: Location, settings: Settings, root: Path) -> Location:
    """A copy of an indexed repository at `root`, with its index in the folder of `settings`:
    quicker than indexing it again, for tests that change it."""
    shutil.copytree(made.root, root)
    location = locate(settings, root)
    save_location(location)
    shutil.copytree(made.tables, location.tables)
    return location
