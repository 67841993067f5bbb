"""Index files that were deleted or overwritten behind our back."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from codeqa.engine import open_engine
from codeqa.errors import CodeQAError
from codeqa.settings import Settings
from codeqa.store.tables import is_damaged

WriteFiles = Callable[[Path, Mapping[str, str]], Path]
FILES = {
    "a.py": "def find_user(key):\n    return key\n\n\ndef user():\n    return find_user(1)\n",
    "b.md": "# Users\n\nHow to find one.\n",
}


def empty(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            file.write_bytes(b"")


def garble(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff" * max(64, file.stat().st_size))


def delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # a table without rows has no data yet


DAMAGE = {"deleted": delete, "emptied": empty, "garbled": garble}
PLACES = ("data", "_versions", "")


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place or "all")
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("table", ["methods", "files", "edges", "meta"])
def test_a_damaged_index_is_said_and_the_next_run_mends_it(
    table: str,
    kind: str,
    place: str,
    settings: Settings,
    write_files: WriteFiles,
    tmp_path: Path,
) -> None:
    engine = open_engine(settings, write_files(tmp_path / "repo", FILES))
    engine.index.run()
    (folder,) = Path(engine.location.tables).glob(f"{table}*.lance")
    DAMAGE[kind](folder / place)

    engine = open_engine(settings, engine.location.root)
    try:
        engine.search.search("find user")
    except CodeQAError as error:
        assert "codeqa index" in error.hint
    assert engine.index.status().state in ("ready", "failed", "missing")

    engine.index.run()
    engine = open_engine(settings, engine.location.root)
    hits = engine.search.search("find user").units
    assert {hit.unit.path for hit in hits} == {"a.py", "b.md"}
    assert engine.index.status().state == "ready"


@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4, 6, 8, 12])
def test_running_out_of_open_files_is_no_damage(
    spare: int, settings: Settings, write_files: WriteFiles, tmp_path: Path
) -> None:
    engine = open_engine(settings, write_files(tmp_path / "repo", FILES))
    engine.index.run()
    marker = Path(engine.location.tables) / "kept"
    marker.touch()  # goes when the tables are thrown away
    with few_open_files(spare):
        with contextlib.suppress(Exception):
            engine.index.run()
        assert not is_damaged(engine.location)
    assert marker.exists()
    assert engine.index.run().files == len(FILES)
    assert marker.exists()


@contextlib.contextmanager
def few_open_files(spare: int) -> Iterator[None]:
    """The process can open `spare` more files, and no others."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(spare):
            os.close(taken.pop())
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
