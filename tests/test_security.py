"""Attacks on what docs/security.md promises, where no other test has them: repositories whose git
directory is somebody else's, packed bombs, an index made by somebody else, members who ask
without end."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import lancedb
import pytest
from browser.fakes import FakeEngine
from flask.testing import FlaskClient
from indexed import indexed, write
from repositories import git
from serving import client_of
from waiting import PATIENCE

from codeqa.code.tools import TOOLS
from codeqa.engine import Engine, open_engine
from codeqa.errors import IndexFormatError, NotFoundError
from codeqa.repository.git import find_git, read_git
from codeqa.settings import load_settings
from codeqa.store import Location

pytest_plugins = ("web_kit",)

pytestmark = pytest.mark.usefixtures("patient")

SECRET = "nobody-may-read-this"


def subjects(folder: Path) -> str | None:
    printed = read_git(find_git(folder), folder, ["log", "--format=%s"], PATIENCE)
    return None if printed is None else printed.decode()


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that the same user has elsewhere, with a further work tree of it."""
    folder = write(tmp_path_factory.mktemp("private") / "repo", {"a.py": "x = 1\n"})
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", SECRET)
    git(folder, "worktree", "add", "-q", str(folder.parent / "tree"))
    return folder


def by_file(repo: Path, theirs: Path) -> None:
    (repo / ".git").write_text(f"gitdir: {theirs}\n")


def by_link(repo: Path, theirs: Path) -> None:
    (repo / ".git").symlink_to(theirs)


def by_common_folder(repo: Path, theirs: Path) -> None:
    write(repo, {".git/HEAD": "ref: refs/heads/master\n", ".git/commondir": f"{theirs}\n"})
    shutil.copy(theirs / "HEAD", repo / ".git" / "HEAD")


def by_links_inside(repo: Path, theirs: Path) -> None:
    write(repo, {".git/config": "[core]\n"})
    for name in ("HEAD", "objects", "refs"):
        (repo / ".git" / name).symlink_to(theirs / name)


def by_a_pipe(repo: Path, theirs: Path) -> None:
    by_common_folder(repo, theirs)
    (repo / ".git" / "objects").symlink_to(theirs / "objects")
    (repo / ".git" / "commondir").unlink()
    os.mkfifo(repo / ".git" / "commondir")


def by_a_forged_note(repo: Path, theirs: Path) -> None:
    beside = repo.parent / "beside"
    (repo / ".git").write_text(f"gitdir: {beside}\n")
    note = {"gitdir": f"{repo}/.git\n", "commondir": f"{theirs}\n", "HEAD": "ref: refs/heads/x\n"}
    write(beside, note)
    shutil.copy(theirs / "HEAD", beside / "HEAD")


@pytest.mark.parametrize(
    "lead", [by_file, by_link, by_common_folder, by_links_inside, by_a_pipe, by_a_forged_note]
)
def test_a_git_directory_that_leads_to_another_repository_tells_nothing_of_it(
    lead: Callable[[Path, Path], None], private: Path, tmp_path: Path
) -> None:
    repo = write(tmp_path / "repo", {"a.py": "x = 1\n"})
    lead(repo, private / ".git")
    assert subjects(repo) is None


def test_work_trees_and_submodules_tell_their_history(private: Path, tmp_path: Path) -> None:
    around = write(tmp_path / "around", {"b.py": "y = 1\n"})
    git(around, "init", "-q")
    git(around, "submodule", "--quiet", "add", str(private), "deep/inner")
    for folder in (private, private.parent / "tree", around / "deep" / "inner"):
        assert subjects(folder) == f"{SECRET}\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    base = tmp_path_factory.mktemp("shop")
    root = write(base / "repo", {"a.py": "x = 1\n" * 2_000_000, "b.py": "def pay(): ...\n"})
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Pay with ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3")
    write(root, {"a.py": "def total(): ...\n"})
    git(root, "commit", "-qam", "Smaller")
    git(root, "update-ref", "HEAD", "HEAD~1")  # what is on disk is small, what git keeps is not
    engine = open_engine(load_settings(data=base / "data", workers=1), root)
    engine.index.run()
    yield engine
    engine.close()


def test_a_packed_bomb_is_not_unpacked_to_be_shown(engine: Engine) -> None:
    for more in ({"lines": "1"}, {"commit": "HEAD"}):
        with pytest.raises(NotFoundError, match="larger than"):
            TOOLS["history"].call(engine.toolbox, {"path": "a.py", **more})
    text = TOOLS["history"].call(engine.toolbox, {"commit": "HEAD"}).text
    assert len(text) < 2_000 and "ghp_a" not in text and "ghp_" + "*" * 36 not in text
    assert "*" * 40 in TOOLS["history"].call(engine.toolbox, {}).text


def test_what_is_indexed_is_for_its_user_alone(engine: Engine) -> None:
    assert engine.location.folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """An address where nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
def foreign(tmp_path: Path, stranger: socket.socket) -> Location:
    """An index whose schema names a function with the address of a stranger, as LanceDB would make
    and call it."""
    location = indexed(tmp_path, {"a.py": "def pay():\n    return 1\n"}).location
    database = lancedb.connect(location.tables)
    address = f"http://127.0.0.1:{stranger.getsockname()[1]}/v1"
    functions = [{"name": "openai", "model": {"base_url": address, "max_retries": 0},
                  "source_column": "code", "vector_column": "vector"}]  # fmt: skip
    rows = database.open_table("methods").to_arrow()
    noted = {b"embedding_functions": json.dumps(functions)}
    database.create_table("methods", rows.replace_schema_metadata(noted), mode="overwrite")
    return location


def test_an_index_made_by_somebody_else_leads_nowhere(
    foreign: Location, stranger: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    engine = open_engine(load_settings(data=foreign.folder.parents[1]), foreign.root)
    with pytest.raises(IndexFormatError, match="somebody else"):
        engine.search.search("pay")
    engine.index.run()
    assert engine.search.search("pay").units[0].unit.path == "a.py"
    engine.close()
    with pytest.raises(BlockingIOError):
        stranger.accept()


def test_rows_that_name_files_elsewhere_show_none(tmp_path: Path) -> None:
    write(tmp_path, {"outside.py": f"{SECRET}\n"})
    location = indexed(tmp_path, {"a.py": "def pay():\n    return 1\n"}).location
    for name in ("files", "methods", "classes"):
        table = lancedb.connect(location.tables).open_table(name)
        table.update(where="path = 'a.py'", values={"path": "../outside.py"})
    engine = open_engine(load_settings(data=location.folder.parents[1]), location.root)
    page = client_of(engine.settings, engine)
    answer = page.get("/api/file", query_string={"path": "../outside.py"})
    assert answer.status_code == 404 and SECRET not in answer.text
    assert TOOLS["grep"].call(engine.toolbox, {"pattern": SECRET[:6]}).total == 0
    engine.close()


ANNA, BELA = "anna-token", "bela-token"


def test_a_member_that_asks_without_end_keeps_the_server_from_nobody_else(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    shared = client_of(load_settings(data=data_dir, token=f"{ANNA},{BELA}"), fake_engine)

    def asked(token: str) -> int:
        given = {"Authorization": f"Bearer {token}"}
        return shared.post("/chat", json={"question": "pay"}, headers=given).status_code

    assert [asked(BELA) for _ in range(121)].count(429) == 1
    ping, bela = {"method": "ping", "id": 1}, {"Authorization": f"Bearer {BELA}"}
    assert shared.post("/mcp", json=ping, headers=bela).status_code == 429, "agents ask as well"
    assert asked(ANNA) == 200
    assert shared.get("/api/status", headers=bela).status_code == 200


OWNERS = {
    ("post", "/api/models"), ("post", "/api/models/list"), ("post", "/api/models/test"),
    ("post", "/api/models/forget"), ("get", "/api/models/local"), ("get", "/api/folders"),
    ("post", "/api/repos"), ("post", "/api/repos/{repo}"), ("delete", "/api/repos/{repo}"),
    ("post", "/api/repos/{repo}/refresh"), ("post", "/api/repos/{repo}/cancel"),
    ("post", "/api/revisions"), ("post", "/api/index"),
}  # fmt: skip


def test_every_address_asks_who_it_is_and_refuses_other_pages_and_members_what_is_the_owners(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    shared = client_of(load_settings(data=data_dir, token=f"{ANNA},{BELA}"), fake_engine)
    bela = {"Authorization": f"Bearer {BELA}"}
    paths = shared.get("/openapi.json", headers=bela).json["paths"]
    operations = {(method, path) for path, methods in paths.items() for method in methods}
    body = {"path": "/", "name": "x", "revision": "HEAD", "provider": "ollama", "action": "pause"}
    refused, operations = set(), operations | {("post", "/mcp")}
    foreign = {"Authorization": f"Bearer {ANNA}", "Sec-Fetch-Site": "cross-site"}
    for method, path in operations:
        if path in ("/health", "/ready", "/api/terminal/hello"):
            assert shared.open(path, method=method.upper(), json=body).status_code != 401, path
            continue
        address = re.sub(r"{\w+}", "x", path)
        if method != "get":
            sent = shared.open(address, method=method.upper(), json=body, headers=foreign)
            assert sent.status_code == 403, path
        assert shared.open(address, method=method.upper(), json=body).status_code == 401, path
        if (method, path) in OWNERS:
            given = {"headers": bela, "query_string": {"path": "/"}}
            answer = shared.open(address, method=method.upper(), json=body, **given)
            refused |= {(method, path)} if answer.status_code == 403 else set()
    assert refused == OWNERS
    elsewhere = {"REMOTE_ADDR": "192.0.2.9"}
    hello = shared.post("/api/terminal/hello", json={"challenge": "x"}, environ_base=elsewhere)
    assert hello.status_code == 403, "only a terminal of this machine is proved anything"
    address = {"path": "https://host.example/a/b"}  # nor does a member have it cloned
    assert shared.post("/api/repos", json=address, headers=bela).status_code == 403
    for address in ("/api/models", "/api/repos"):
        assert shared.get(address, headers=bela).json["changeable"] is False


def test_what_is_no_text_or_path_is_answered_all_the_same(client: FlaskClient) -> None:
    assert client.delete("/api/repos/..%00%5C").status_code == 404
    body = {"data": rb'{"challenge": "\udcb4"}', "content_type": "application/json"}
    assert client.post("/api/terminal/hello", **body).status_code == 200
