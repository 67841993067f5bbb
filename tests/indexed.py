"""A small repository, written and indexed for the tests of one module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import Tables, locate


def indexed(folder: Path, files: Mapping[str, str]) -> Tables:
    """The tables of a repository of `files` (path → text), all of it inside `folder`."""
    for name, text in files.items():
        target = folder / "repo" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    settings = load_settings(data=folder / "data", workers=1)
    location = locate(settings, folder / "repo")
    Indexer(settings, location).run()
    return Tables.open(location)
