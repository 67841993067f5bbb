"""The addresses that list and change the repositories, over a real server of git where one is
cloned."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from codeqa.indexing import Indexer
from codeqa.repositories import find_repository, open_location
from codeqa.settings import load_settings
from codeqa.web.app import create_app
from tests.kit.git_server import GitServer, git_server
from tests.kit.repositories import write
from tests.kit.waiting import until

SHOP = {"store.py": "def buy():\n    return 1\n"}
Client = Callable[..., FlaskClient]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    with git_server(write(tmp_path / "server", {})) as running:
        write(tmp_path, {"gitconfig": f"[http]\n\tsslCAInfo = {running.certificate}\n"})
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        yield running


@pytest.fixture
def make_client(data_dir: Path) -> Iterator[Client]:
    apps: list[Any] = []

    def make(**settings: Any) -> FlaskClient:
        apps.append(create_app(load_settings(data=data_dir, workers=1, **settings)))
        return apps[-1].test_client()  # type: ignore[no-any-return]

    yield make
    for app in apps:
        app.extensions["codeqa"].close()


def rows(client: FlaskClient) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in client.get("/api/repos").json["repositories"]}


def test_a_clone_from_the_page_from_its_address_to_its_removal(
    server: GitServer, make_client: Client, data_dir: Path
) -> None:
    server.commit("anna/shop", {**SHOP})
    client = make_client()
    reports = client.application.extensions["codeqa"].jobs.reports
    server.held.clear()
    address = f"{server.address}/anna/shop"
    added = client.post("/api/repos", json={"path": address})
    repo = added.json["id"]
    assert added.status_code == 202 and added.json["url"] == address
    until(lambda: reports()[repo].progress.phase == "waiting for the server")
    assert rows(client)[repo]["state"] == "cloning"
    assert client.post("/api/repos", json={"path": address}).status_code == 409
    assert client.post(f"/api/repos/{repo}/cancel").status_code == 200
    assert rows(client) == {} and not list((data_dir / "clones").glob("[!.]*"))
    server.held.set()

    missing = client.post("/api/repos", json={"path": f"{address}-not"}).json["id"]
    until(lambda: reports()[missing].problem)
    row = rows(client)[missing]
    assert row["state"] == "failed" and "not found" in row["problem"]
    client.post(f"/api/repos/{missing}/cancel")
    assert missing not in rows(client)

    client.post("/api/repos", json={"path": address})
    until(lambda: repo not in reports())
    until(lambda: rows(client)[repo].get("files") == 1)
    server.commit("anna/shop", {"other.py": "X = 1\n"})
    assert client.post(f"/api/repos/{repo}/refresh").status_code == 202
    until(lambda: repo not in reports())
    until(lambda: rows(client)[repo].get("files") == 2 and rows(client)[repo]["state"] == "ready")
    renamed = client.post(f"/api/repos/{repo}", json={"name": "The shop"}).json
    assert renamed["name"] == client.get(f"/api/status?repo={repo}").json["name"] == "The shop"
    assert "The shop" in client.get(f"/?repo={repo}").text
    assert client.delete(f"/api/repos/{repo}").status_code == 200
    assert rows(client) == {} and not list((data_dir / "clones").rglob("*.py"))
    assert client.get(f"/api/status?repo={repo}").status_code == 404


def test_a_folder_or_clone_without_source_is_refused_with_what_is_in_it(
    server: GitServer, make_client: Client, tmp_path: Path, data_dir: Path
) -> None:
    client, folder = make_client(), write(tmp_path / "pictures", {"a.png": b"\x89PNG"})
    refused = client.post("/api/repos", json={"path": str(folder)})
    assert refused.status_code == 400
    message = refused.json["error"]["message"]
    assert message == f"No source files here: all files of {folder} are left out (1 binary)."
    server.commit("anna/pictures", {"a.bin": "\0"})
    repo = client.post("/api/repos", json={"path": f"{server.address}/anna/pictures"}).json["id"]
    row = until(lambda: rows(client)[repo]["problem"] and rows(client)[repo])
    assert row["state"] == "failed" and "No source files here" in row["problem"]
    assert not [*(data_dir / "clones").glob("*/*/*"), *(data_dir / "repos").glob("*")]
    client.post(f"/api/repos/{repo}/cancel")
    assert client.get("/").headers["Location"] == "/repositories"


def test_the_file_address_of_a_folder_opens_that_folder(
    make_client: Client, tmp_path: Path
) -> None:
    client, folder = make_client(), write(tmp_path / "a shop", {"a.py": "def a():\n    pass\n"})
    for address in (f"file://{folder}", folder.as_uri(), f"file://localhost{folder}"):
        added = client.post("/api/repos", json={"path": address})
        assert added.status_code == 202 and added.json["path"] == str(folder), address
    assert len(rows(client)) == 1


def test_what_cannot_be_opened_by_its_path_cannot_by_its_id(
    make_client: Client, tmp_path: Path, data_dir: Path
) -> None:
    gone, own, settings = tmp_path / "gone", data_dir / "notes", load_settings(data=data_dir)
    ids = []
    for folder in (gone, own):
        location = open_location(settings, write(folder, SHOP))
        ids.append(location.id)
        Indexer(settings, location).run(refine=False)
    shutil.rmtree(gone)
    client = make_client()
    for id_, why in zip(ids, ("is not a folder on this machine", "own data"), strict=True):
        refused = client.get(f"/api/status?repo={id_}")
        assert refused.status_code == 400 and why in refused.json["error"]["message"]
    for below in ("", "repos", "../data"):
        refused = client.post("/api/repos", json={"path": str(data_dir / below)})
        assert refused.status_code == 400 and "own data" in refused.json["error"]["message"]


def test_folders_are_shown_to_the_owner_and_lead_to_no_data_of_our_own(
    make_client: Client, tmp_path: Path, data_dir: Path
) -> None:
    for folder in ("plain", "repo/.git", ".hidden", "<b>bold"):
        (tmp_path / "there" / folder).mkdir(parents=True)
    there = tmp_path / "there"
    (there / "file.py").touch()
    (there / "link").symlink_to(there / "repo")
    (there / "broken").symlink_to(tmp_path / "nowhere")
    client = make_client()
    shown = client.get("/api/folders", query_string={"path": str(there)}).json
    kinds = {one["name"]: one["git"] for one in shown["folders"]}
    assert kinds == {
        ".hidden": False, "link": True, "plain": False, "<b>bold": False, "repo": True
    }  # fmt: skip
    assert shown["parent"] == str(tmp_path)
    around = client.get("/api/folders", query_string={"path": str(tmp_path)}).json
    assert data_dir.exists() and "data" not in [one["name"] for one in around["folders"]]
    assert client.get("/api/folders?path=/").json["parent"] == ""
    for path in (tmp_path / "nowhere", there / "file.py", "\x00", data_dir, data_dir / "repos"):
        refused = client.get("/api/folders", query_string={"path": str(path)})
        assert refused.status_code == 400, path


def test_the_page_leads_to_the_repository_that_a_browser_was_in_last(
    data_dir: Path, tmp_path: Path
) -> None:
    settings = load_settings(data=data_dir, workers=1)
    ids = {}
    for name in ("shop", "bank"):
        location = open_location(settings, write(tmp_path / name, SHOP))
        Indexer(settings, location).run(refine=False)
        ids[name] = location.id

    def shown(client: FlaskClient, address: str) -> str:
        page = client.get(address).text
        return next(name for name, repo in ids.items() if f'data-repo="{repo}"' in page)

    app = create_app(settings, tmp_path / "shop")
    client, other = app.test_client(), app.test_client()
    assert shown(client, "/") == "shop"
    assert shown(client, f"/?repo={ids['bank']}") == "bank"
    assert shown(client, "/") == "bank" and shown(other, "/") == "shop"
    app.extensions["codeqa"].remove(find_repository(settings, ids["bank"]))
    assert shown(client, "/") == "shop"
    app.extensions["codeqa"].close()
