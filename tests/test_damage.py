"""Index files that were deleted or overwritten behind our back."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeqa.doctor import check_repositories
from codeqa.engine import Engine, open_engine
from codeqa.errors import CodeQAError
from codeqa.settings import Settings
from codeqa.store import Location
from codeqa.store.location import list_locations
from codeqa.store.tables import is_damaged
from tests.indexed import copied, indexed

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
CASES = [
    (table, kind, PLACES[(row + column) % len(PLACES)])
    for row, table in enumerate(("methods", "files", "edges", "meta"))
    for column, kind in enumerate(DAMAGE)
] + [("methods", "emptied", "_indices"), ("edges", "deleted", "_indices"),
     ("classes", "garbled", "_indices")]  # fmt: skip
"""Each table with each damage, which is in each place for each of both."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    folder = tmp_path_factory.mktemp("made")
    return indexed(folder, FILES).location


@pytest.fixture
def engine(settings: Settings, made: Location, tmp_path: Path) -> Engine:
    """Of an index that may be damaged."""
    return open_engine(settings, copied(made, settings, tmp_path / "repo").root)


@pytest.mark.parametrize(("table", "kind", "place"), CASES)
def test_a_damaged_index_is_said_and_the_next_run_mends_it(
    table: str, kind: str, place: str, settings: Settings, engine: Engine
) -> None:
    (folder,) = Path(engine.location.tables).glob(f"{table}*.lance")
    DAMAGE[kind](folder / place)
    try:
        engine.search.search("find user")
    except CodeQAError as error:
        assert "codeqa index" in error.hint
    assert engine.index.status().state in ("ready", "failed", "missing")

    engine.index.run()
    engine = open_engine(settings, engine.location.root)
    hits = engine.search.search("find user").units
    assert {hit.unit.path for hit in hits} == {"a.py", "b.md"}
    assert [place.line for place in engine.tables().references_named("find_user")] == [6]
    assert engine.index.status().state == "ready"


def test_a_table_that_lost_its_newest_version_and_a_garbled_note_are_mended(
    settings: Settings, engine: Engine
) -> None:
    (versions,) = Path(engine.location.tables).glob("files*.lance/_versions")
    newest = min(versions.glob("*.manifest"))  # they count down from the highest number
    newest.unlink()
    (engine.location.folder / "repository.json").write_bytes(b"\xff\x92")
    told = check_repositories(settings)  # it is in no list
    assert not told[0] and told[1].endswith(f"damaged in {engine.location.folder.name}")
    engine.index.run()
    assert check_repositories(settings) == (True, "1 indexed", "")
    engine = open_engine(settings, engine.location.root)
    assert engine.tables().miscounted() == ""
    assert [unit.name for unit in engine.tables().in_file("a.py")].count("find_user") == 1
    assert [one.root for one in list_locations(settings)] == [engine.location.root]


@pytest.mark.parametrize("spare", [0, 2, 4, 12])
def test_running_out_of_open_files_is_no_damage(spare: int, engine: Engine) -> None:
    engine.index.run()  # what it imports needs open files
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
