"""Index files that were deleted or overwritten behind our back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codeqa import mcp
from codeqa.cli.main import main
from codeqa.doctor import check_repositories, examine
from codeqa.engine import Engine, open_engine
from codeqa.errors import CodeQAError, IndexFormatError
from codeqa.indexing import Indexer
from codeqa.repositories import report_repositories
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, damage, list_locations, writer
from codeqa.store.location import connect
from codeqa.store.schema import table_names
from codeqa.web.app import create_app
from tests.kit.indexed import copied, indexed
from tests.kit.repositories import git, write

FILES = {
    "a.py": "def find_user(key):\n    return key\n\n\ndef user():\n    return find_user(1)\n",
    "b.md": "# Users\n\nHow to find one.\n",
}


def overwrite(folder: Path, content: bytes) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            file.write_bytes(content * max(64, file.stat().st_size))


def delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # a table without rows has no data yet


def table(name: str, place: str = "") -> Callable[[Location], Path]:
    """Where a part of a table lies."""
    return lambda location: next(Path(location.tables).glob(f"{name}*.lance")) / place


def opened(location: Location, name: str) -> Any:
    return connect(location).open_table(name)


def replace_by_a_file(path: Path) -> None:
    delete(path)
    path.write_text("not a folder")


def change_meta(location: Location, key: str, value: object) -> None:
    changed = {"value": f"'{json.dumps(value)}'"}
    opened(location, "meta").update(where=f"key = '{key}'", values_sql=changed)


def lose_newest_version(location: Location) -> None:
    # They count down from the highest number.
    min(table("files", "_versions")(location).glob("*.manifest")).unlink()


def empty_oldest_version(location: Location) -> None:
    max(table("methods", "_versions")(location).glob("*.manifest")).write_bytes(b"")


def nest_notes(location: Location) -> None:
    for note in ("progress.json", "report.json"):
        (location.folder / note).write_text("[" * 100_000)


DAMAGE: dict[str, Callable[[Location], object]] = {
    "methods deleted": lambda at: delete(table("methods")(at)),
    "data emptied": lambda at: overwrite(table("files", "data")(at), b""),
    "an index deleted": lambda at: delete(table("methods", "_indices")(at)),
    "meta deleted": lambda at: delete(table("meta")(at)),
    "meta garbled": lambda at: overwrite(table("meta", "data")(at), b"\xff"),
    "the newest version deleted": lose_newest_version,
    "an earlier version emptied": empty_oldest_version,
    "a text in meta for a number": lambda at: change_meta(at, "generation", "one"),
    "a generation that is none": lambda at: change_meta(at, "generation", 7),
    "a column lost": lambda at: opened(at, "methods").drop_columns(["source_code"]),
    "rows changed from outside": lambda at: opened(at, "methods").update(
        values={"name": "other", "name_key": "other", "search_text": "other", "path": "c.py"}
    ),
    "a file for the tables": lambda at: replace_by_a_file(Path(at.tables)),
    "a file for all repositories": lambda at: replace_by_a_file(at.folder.parent),
    "repository.json garbled": lambda at: (at.folder / "repository.json").write_bytes(b"\xff\x92"),
    "json nested": nest_notes,
    "progress.json of another shape": lambda at: (at.folder / "progress.json").write_text(
        '{"state": 1, "progress": [], "at": "now"}'
    ),
}

MENDED = {
    "methods deleted", "meta deleted", "a file for the tables", "a file for all repositories",
    "repository.json garbled", "json nested",
}  # fmt: skip
"""Damage of each kind; to the run, all within the tables is the same."""
RARE = {
    "an index deleted", "meta deleted", "meta garbled", "the newest version deleted",
    "a text in meta for a number", "a generation that is none", "progress.json of another shape",
}  # fmt: skip
"""Noticed in the same ways as the others."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    return indexed(tmp_path_factory.mktemp("made"), FILES).location


@pytest.fixture
def engine(settings: Settings, made: Location, tmp_path: Path) -> Engine:
    """Of an index that may be damaged."""
    return open_engine(settings, copied(made, settings, tmp_path / "repo").root)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if kind in RARE else kind for kind in DAMAGE],
)
def test_a_damaged_index_is_said_and_made_anew(
    kind: str, settings: Settings, engine: Engine
) -> None:
    location = engine.location
    DAMAGE[kind](location)
    try:
        engine.search.search("find user")
    except CodeQAError as error:
        assert "codeqa index" in error.hint
    assert engine.index.status().state in ("ready", "failed", "missing", "stopped")
    report_repositories(settings)
    checks = [one for one in examine(settings) if one.name.startswith(("index", "repos"))]
    if "json" not in kind:
        assert not all(check.ok for check in checks)
        assert damage(location) or kind in MENDED
    if kind not in MENDED:
        return

    engine.index.run()
    engine = open_engine(settings, location.root)
    hits = engine.search.search("find user").units
    assert {hit.unit.path for hit in hits} == {"a.py", "b.md"}
    assert [unit.name for unit in engine.tables().in_file("a.py")].count("find_user") == 1
    assert [place.line for place in engine.tables().references(name=["find_user"])] == [6]
    assert engine.index.status().state == "ready"
    assert damage(location) == ""
    assert [one.root for one in list_locations(settings)] == [location.root]
    assert check_repositories(settings)[:2] == (True, "1 indexed")


def test_the_doctor_names_a_repository_that_is_gone(settings: Settings, engine: Engine) -> None:
    location = engine.location
    shutil.rmtree(Path(location.tables) / "meta.lance")
    (found,) = (one for one in examine(settings, repair=True) if one.name.startswith("index of"))
    assert found.ok and "has not been indexed yet" in found.repaired
    shutil.rmtree(location.root)
    for repair in (False, True):
        *_, found = examine(settings, repair=repair)
        assert not found.ok and found.detail == f"The repository {location.root} is gone."
        assert location.id in found.hint and Path(location.tables).exists()


def test_a_data_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    checks = {one.name: one.ok for one in examine(load_settings(data=tmp_path / "data"))}
    assert not checks["data"]


def test_linked_tables_are_made_anew_where_they_are(engine: Engine, tmp_path: Path) -> None:
    lock = engine.location.folder / "lock"
    lock.unlink(missing_ok=True)
    write(lock, {"file": "none of ours"})
    assert engine.index.status().state == "ready"
    tables = Path(engine.location.tables)
    tables.rename(tmp_path / "disk")
    tables.symlink_to(tmp_path / "disk")
    shutil.rmtree(tables / "methods.lance")
    assert engine.index.run().files == len(FILES)
    assert tables.is_symlink() and (tmp_path / "disk/methods.lance").is_dir()
    assert damage(engine.location) == ""


def test_what_is_not_indexed_is_not_damaged(settings: Settings, tmp_path: Path) -> None:
    root = write(tmp_path / "repo", {"user.py": "def find_user(name): ...\n"})
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(root, *arguments)
    for command in (["ask", "--no-model", "find user"], ["search", "find user"]):
        assert main([*command, "--repo", str(root)])
    assert not main(["search", "find user", "--repo", str(root), "--rev", "HEAD"])
    engine = open_engine(settings, root)
    call = {"name": "grep", "arguments": {"pattern": "find_user"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = mcp.answer(message, "repo", lambda: engine)
    client = create_app(settings, engine=engine).test_client()
    reply = client.post("/chat/stream", json={"question": "@codebase find user"})
    assert "has not been indexed yet" in str(answer) and b"not been indexed" in reply.data
    assert check_repositories(settings)[:2] == (True, "1 indexed"), "as of HEAD"
    assert not [*settings.data_dir.glob("repos/*")]


def test_what_a_dead_run_wrote_is_no_damage(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (engine.location.root / "c.py").write_text("def sell(): ...\n")
    with monkeypatch.context() as patch:
        patch.setattr("codeqa.store.writer.TableWriter.tidy", lambda _: None)
        patch.setattr("codeqa.store.writer.TableWriter.finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.index.run()
    assert damage(engine.location) == ""
    assert Indexer(engine.settings, engine.location).run().unchanged == len(FILES) + 1
    # Behind a run that was killed only what cannot be read is damage.
    change_meta(engine.location, "refining", True)
    opened(engine.location, "methods").update(values={"name": "'as the run wrote it'"})
    assert damage(engine.location) == "" == damage(engine.location, thorough=False)
    overwrite(table("files", "data")(engine.location), b"")
    assert damage(engine.location, thorough=False) != ""


@pytest.mark.parametrize("spare", [0, 4])
def test_running_out_of_open_files_is_no_damage(spare: int, engine: Engine) -> None:
    engine.index.run()  # what it imports needs open files
    marker = Path(engine.location.tables) / "kept"
    marker.touch()  # goes when the tables are thrown away
    with few_open_files(spare):
        with contextlib.suppress(Exception):
            engine.index.run()
        assert not damage(engine.location)
    assert marker.exists()
    assert engine.index.run().files == len(FILES)
    assert marker.exists()


@pytest.mark.parametrize(
    ("refusal", "kept"), [("(os error 24)", True), ("(os error 2)", False), ("not a table", False)]
)
def test_a_run_begins_anew_over_damage_and_not_over_what_the_system_refuses_for_now(
    refusal: str, kept: bool, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(database: Any) -> Any:
        raise IndexFormatError("It cannot be read.", "") from RuntimeError(refusal)

    monkeypatch.setattr(writer, "read_meta", refused)
    database = connect(engine.location)
    with contextlib.suppress(IndexFormatError):
        writer.choose_generation(database, "p", None, rebuild=False, beside=False)
    assert ("methods" in table_names(database)) == kept


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
