"""What lies in the data folder is its user's alone, whoever wrote it and whatever rights new files
have by themselves."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from git_server import git_server
from repositories import git, write

from codeqa.cli.main import main
from codeqa.doctor import examine
from codeqa.engine import open_engine, open_multi_repo
from codeqa.repositories import remove_repository, take_clone
from codeqa.repositories.snapshots import take_snapshot
from codeqa.repository.remotes import read_remote
from codeqa.settings import load_settings
from codeqa.store import list_locations
from codeqa.web.app import create_app
from codeqa.web.running import RunningServer, announced
from create_tables import create_tables


@pytest.fixture(autouse=True)
def readable_by_all() -> Iterator[None]:
    """New files are, as at most users of a system."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Files and folders in `folder` that others may read or change."""
    return [
        f"{path.relative_to(folder)} {stat.filemode(path.lstat().st_mode)}"
        for path in folder.rglob("*")
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    ]


def test_after_every_kind_of_run_nothing_is_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("CODEQA_DATA", str(data))
    settings = load_settings(workers=1)
    shops = []
    for name in ("left", "right"):
        root = write(tmp_path / name, {"a.py": "def pay(): ...\n", "deep/b.md": "# Pay\n"})
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "First")
        create_tables(root, settings=settings)
        assert open_to_others(data) == [], "made by a program"
        shops.append(root)
    with open_engine(settings, shops[0]) as engine:
        list(engine.ask("where is pay?", conversation="c", use_model=False))
        snapshot = take_snapshot(settings, engine.location, "HEAD")
    create_tables(snapshot.root, settings=settings)
    with open_multi_repo(settings, list_locations(settings), "~") as engine:
        list(engine.ask("where is pay?", conversation="c", use_model=False))
    assert open_to_others(data) == [], "of a commit, of several, and with conversations"
    with git_server(write(tmp_path / "server", {})) as server:
        server.commit("a/b", {"a.py": "x = 1\n"})
        config = write(tmp_path, {"config": f"[http]\n\tsslCAInfo = {server.certificate}\n"})
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config / "config"))
        cloned = take_clone(settings, read_remote(f"{server.address}/a/b"), lambda _: None)
        create_tables(cloned.root, settings=settings)
    assert open_to_others(data) == [], "cloned"
    for command in (
        ["index", "--full", str(shops[1])],
        ["ask", "--local", "--no-model", "--repo", str(shops[0]), "where is pay?"],
        ["repos", "list"], ["doctor"], ["doctor", "--repair"],
    ):  # fmt: skip
        assert main(command) == 0
        assert open_to_others(data) == [], command
    app = create_app(settings, shops[0])
    server = RunningServer("127.0.0.1", 1, "token", (), "digest", ())
    with closing(app.extensions["codeqa"]), announced(data, server):
        client = app.test_client()
        client.post("/chat", json={"question": "@codebase where is pay?", "conversation": "d"})
        client.get("/api/repos")
        assert open_to_others(data) == [], "served"
    remove_repository(settings, list_locations(settings)[0])
    assert open_to_others(data) == [], "removed"


def test_the_doctor_takes_the_rights_of_others_away(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path / "data", workers=1)
    create_tables(write(tmp_path / "shop", {"a.py": "x = 1\n"}), settings=settings)
    for path in (tmp_path / "data").rglob("*"):
        path.chmod(0o755)
    found = {one.name: one for one in examine(settings)}
    assert not found["rights"].ok and "open to others, such as" in found["rights"].detail
    mended = {one.name: one for one in examine(settings, repair=True)}
    assert mended["rights"].ok and mended["rights"].repaired
    assert open_to_others(tmp_path / "data") == []
