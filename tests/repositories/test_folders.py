"""Folders that take the place of an indexed one, by a link or by its name: nothing of them is
read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import git, write
from waiting import until

from codeqa import folders, repositories
from codeqa.cli.main import main
from codeqa.engine import open_engine, open_multi_repo
from codeqa.errors import CodeQAError, RepositoryError
from codeqa.indexing import Indexer
from codeqa.repositories import last_used, report_repositories
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.repository.walk import read_file
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, list_locations, locate
from codeqa.web.app import create_app
from codeqa.web.jobs import before_indexing

SECRET = "what_nobody_else_may_read"
REFUSED = "leads to a different folder"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(folders, "FOUND", {})  # of a process that begins
    monkeypatch.setenv("CODEQA_DATA", str(tmp_path / "data"))
    return load_settings(workers=1)


@pytest.fixture
def shop(settings: Settings, tmp_path: Path) -> Location:
    """An indexed folder of a larger repository, with a hidden repository beside that."""
    for name, code in (("mono/shop", "def pay(): ...\n"), ("hidden", f"def {SECRET}(): ...\n")):
        write(tmp_path / name, {"a.py": code, "deep/b.py": code})
    for name in ("mono", "hidden"):
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "add", ".")
        git(
            tmp_path / name,
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b.c",
            "commit",
            "-qm",
            f"subject of {name}",
        )
    location = locate(settings, tmp_path / "mono/shop")
    Indexer(settings, location).run()
    folders.FOUND.clear()
    return location


def by_a_link(root: Path) -> None:
    shutil.rmtree(root)
    root.symlink_to(root.parents[1] / "hidden")


def by_a_link_above(root: Path) -> None:
    shutil.rmtree(root.parent)
    other = root.parents[1] / "other"
    other.mkdir()
    (root.parents[1] / "hidden").rename(other / "shop")
    root.parent.symlink_to(other)


def by_another_folder(root: Path) -> None:
    root.rename(root.with_name("away"))
    (root.parents[1] / "hidden").rename(root)


LINKS = (by_a_link, by_a_link_above)


def everything_of(settings: Settings) -> str:
    """All that lies in the data folder, as text."""
    files = (one for one in settings.data_dir.rglob("*") if one.is_file())
    return "".join(one.read_bytes().decode("latin-1") for one in files)


@pytest.mark.parametrize("swap", [*LINKS, by_another_folder])
def test_a_server_reads_nothing_of_what_takes_the_place_of_a_folder(
    swap: Callable[[Path], None], shop: Location, settings: Settings
) -> None:
    app = create_app(settings, shop.root)
    client = app.test_client()
    assert client.get(f"/api/file?repo={shop.id}&path=a.py").status_code == 200
    swap(shop.root)
    told = []
    for repo in (shop.id, "", "~"):
        for tool, values in (
            ("grep", {"pattern": "def"}), ("path", {"path": "a.py"}), ("history", {}),
            ("history", {"path": "a.py", "lines": "1"}), ("list_all", {}),
        ):  # fmt: skip
            told.append(client.post(f"/api/tools/{tool}?repo={repo}", json=values))
        told += [
            client.get(f"/api/file?repo={repo}&path=a.py"),
            client.get(f"/api/blame?repo={repo}&path=a.py&lines=1"),
            client.get(f"/api/revisions?repo={repo}"),
            client.post(f"/api/search?repo={repo}", json={"question": "what may nobody read"}),
            client.post("/chat", json={"question": "@codebase what may nobody read", "repo": repo}),
            client.post(f"/api/index?repo={repo}", json={"action": "check"}),
        ]
    assert [one.text for one in told if SECRET in one.text or "subject of hidden" in one.text] == []
    app.extensions["codeqa"].close()
    assert SECRET not in everything_of(settings)


@pytest.mark.parametrize("swap", LINKS)
def test_nothing_follows_a_link_that_took_the_place_of_a_folder(
    swap: Callable[[Path], None], shop: Location, settings: Settings
) -> None:
    swap(shop.root)
    for attempt in (
        lambda: open_engine(settings, shop.root),
        lambda: Indexer(settings, shop).run(),
        lambda: take_snapshot(settings, shop, "HEAD"),
        lambda: before_indexing(settings, "indexing", [str(shop.root)], lambda _: None),
        lambda: read_file(shop.root, "a.py"),
    ):
        with pytest.raises(CodeQAError):
            attempt()
    assert revision_names(shop.root) == []
    with open_multi_repo(settings, [shop], "~") as engine:
        engine.index._work()
        assert SECRET not in engine.call("grep", pattern="def").text
    assert last_used(settings) is None
    assert [one.state for one in report_repositories(settings)] == ["folder gone"]
    assert SECRET not in everything_of(settings)


@pytest.mark.parametrize("swap", LINKS)
def test_commands_refuse_a_link_in_a_sentence_and_one_takes_it(
    swap: Callable[[Path], None],
    shop: Location,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    swap(shop.root)
    for named in (shop.id, "shop", str(shop.root)):
        for command in (["search", "--repo"], ["ask", "--local", "--no-model", "--repo"]):
            assert main([*command, named, "what may nobody read"]) == 1
        assert main(["serve", named]) == 1
    assert main(["index", "shop"]) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out and said.err.count(REFUSED) == 10
    assert f"codeqa index {shop.root}" in said.err
    assert SECRET not in everything_of(settings)
    assert main(["index", str(shop.root)]) == 0
    assert shop.root.resolve() in [one.root for one in list_locations(settings)]


def test_a_folder_that_was_made_anew_is_read_again_once_it_is_indexed(
    shop: Location, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(settings, shop.root)
    client, address = app.test_client(), f"/api/file?repo={shop.id}&path=a.py"
    assert client.get(address).status_code == 200
    shop.root.rename(shop.root.with_name("away"))
    write(shop.root, {"a.py": "def anew(): ...\n"})
    refused = client.get(address)
    assert refused.status_code == 400 and REFUSED in refused.text
    assert main(["index", str(shop.root)]) == 0
    until(lambda: "anew" in client.get(address).text)  # a reader looks for a new version at times
    app.extensions["codeqa"].close()


def test_another_repository_that_was_renamed_before_it_was_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(data=tmp_path / "data", workers=1)
    shown, hidden = (tmp_path / name for name in ("open", "hidden"))
    for root in (shown, hidden):
        Indexer(settings, locate(settings, write(root, {"a.py": f"{root.name} = 1\n"}))).run()
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "one")
    snapshot = take_snapshot(settings, locate(settings, shown), "HEAD")
    folders.FOUND.clear()  # as in a process that has opened none of them
    shown.rename(tmp_path / "away")
    hidden.rename(shown)
    for root in (shown, snapshot.root):  # which borrows from what lies there
        with pytest.raises(RepositoryError, match="leads to a different folder"):
            open_engine(settings, root)


def test_a_link_that_is_put_there_after_the_look_at_a_folder_leads_nowhere(
    shop: Location, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = repositories.locate

    def swapped(settings: Settings, root: Path) -> Location:
        by_a_link(root)
        return resolved(settings, root)

    monkeypatch.setattr(repositories, "locate", swapped)
    folders.FOUND.clear()  # as in a process that has opened none of them
    with pytest.raises(RepositoryError, match=REFUSED):
        open_engine(settings, shop.root)
    assert folders.direct_identity(shop.root) == "" == folders.direct_identity(shop.root / "a.py")


def test_other_numbers_of_a_folder_after_a_reboot_are_no_other_folder(
    shop: Location, settings: Settings
) -> None:
    shop.root.rename(shop.root.with_name("away"))
    shutil.copytree(shop.root.with_name("away"), shop.root)
    with open_engine(settings, shop.root) as engine:
        assert engine.index.run().files == 2
    with pytest.raises(RepositoryError, match=REFUSED):
        by_a_link(shop.root)
        open_engine(settings, shop.root)
