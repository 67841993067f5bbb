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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

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
from codeqa.errors import IndexFormatError, NotFoundError, RepositoryError
from codeqa.indexing import Indexer
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.repository.git import find_git, read_git
from codeqa.settings import load_settings
from codeqa.store import Location, list_locations, locate
from codeqa.web import workspace
from codeqa.web.app import create_app
from codeqa.web.errors import RequestRefusedError
from codeqa.web.security import LOCAL, Gate
from codeqa.web.workspace import Workspace
from codeqa_server.access import Rules

pytest_plugins = ("web_kit",)

pytestmark = pytest.mark.usefixtures("patient")

SECRET = "nobody-may-read-this"


def subjects(folder: Path, commit: str = "HEAD") -> str | None:
    """Subjects of the commits up to `commit`; None where git, or we, tell none."""
    try:
        printed = read_git(find_git(folder), folder, ["log", "--format=%s", commit], PATIENCE)
    except RepositoryError as error:
        assert "leads to another repository" in error.message
        return None
    return None if printed is None else printed.decode()


def committed(folder: Path, subject: str = "ours") -> Path:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", subject)
    return folder


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that the same user has elsewhere, with a further work tree of it."""
    folder = write(tmp_path_factory.mktemp("private") / "repo", {"a.py": "x = 1\n"})
    git(committed(folder, SECRET), "worktree", "add", "-q", str(folder.parent / "tree"))
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


def by_alternates(repo: Path, theirs: Path, beside: bytes = b"") -> None:
    alternates = committed(repo) / ".git/objects/info/alternates"
    alternates.write_bytes(beside + os.fsencode(theirs / "objects") + b"\n")


def by_far_alternates(repo: Path, theirs: Path) -> None:
    by_alternates(repo, theirs, b"# nothing\n" * 5_000)


def by_alternates_of_alternates(repo: Path, theirs: Path) -> None:
    by_alternates(write(repo / "inner", {"b.py": "y = 1\n"}), theirs)
    by_alternates(repo, repo / "inner/.git")


def by_a_link_to_refs(repo: Path, theirs: Path) -> None:
    by_alternates(repo, theirs)
    (repo / ".git/refs/heads/stolen").symlink_to(theirs / "refs/heads")
    (repo / ".git/objects/info/alternates").unlink()


def by_a_link_to_one_object(repo: Path, theirs: Path) -> None:
    folder = next((theirs / "objects").glob("??"))
    (committed(repo) / ".git/objects" / folder.name).mkdir(exist_ok=True)
    (repo / ".git/objects" / folder.name / ("0" * 38)).symlink_to(next(folder.iterdir()))


def by_a_link_into_the_tree_and_on(repo: Path, theirs: Path) -> None:
    (committed(repo) / "refs").mkdir()
    (repo / "refs/stolen").symlink_to(theirs / "refs/heads")
    (repo / ".git/refs/heads/more").symlink_to("../../../refs")


def as_a_submodule(repo: Path, theirs: Path) -> None:
    modules = repo.parent / ".git/modules"
    shutil.copytree(theirs, modules / "hidden")
    (repo / ".git").write_text(f"gitdir: {modules / 'hidden'}\n")


def by_a_name_that_ends_in_a_blank(repo: Path, theirs: Path) -> None:
    committed(repo)
    (repo / ".git").rename(repo / "own")
    (repo / "own ").symlink_to(theirs)
    (repo / ".git").write_text("gitdir: own ")


def by_a_common_folder_that_ends_in_a_blank(repo: Path, theirs: Path) -> None:
    shutil.copytree(committed(repo) / ".git", repo / "own")
    (repo / "own").rename(repo / ".git/own")
    (repo / ".git/own ").symlink_to(theirs)
    (repo / ".git/commondir").write_text("own ")


def by_alternates_in_quotes(repo: Path, theirs: Path) -> None:
    alternates = committed(repo) / ".git/objects/info/alternates"
    alternates.write_text(f'"{theirs}/objects"\n')


def by_alternates_behind_much(repo: Path, theirs: Path) -> None:
    by_alternates(repo, theirs, b"#" * 1_100_000 + b"\n")


def by_a_link_to_a_file(repo: Path, theirs: Path) -> None:
    (repo / "g").write_text(f"gitdir: {theirs}\n")
    (repo / ".git").symlink_to("g")


def by_alternates_and_a_head_that_leads_nowhere(repo: Path, theirs: Path) -> None:
    by_alternates(repo, theirs)
    (repo / ".git/HEAD").unlink()
    (repo / ".git/HEAD").symlink_to("refs/heads/nope")


def by_a_name_with_a_nul(repo: Path, theirs: Path) -> None:
    (repo / ".git").write_text(f"gitdir: {theirs}\0x\n")


def by_a_pipe_among_the_refs(repo: Path, theirs: Path) -> None:
    os.mkfifo(committed(repo) / ".git/refs/heads/pipe")


LEADS = (
    by_file, by_link, by_common_folder, by_links_inside, by_a_pipe, by_a_forged_note, by_alternates,
    by_far_alternates, by_alternates_of_alternates, by_a_link_to_refs, by_a_link_to_one_object,
    by_a_link_into_the_tree_and_on, as_a_submodule, by_a_name_that_ends_in_a_blank,
    by_a_common_folder_that_ends_in_a_blank, by_alternates_in_quotes, by_alternates_behind_much,
    by_a_link_to_a_file, by_alternates_and_a_head_that_leads_nowhere, by_a_name_with_a_nul,
    by_a_pipe_among_the_refs,
)  # fmt: skip


@pytest.mark.parametrize("lead", LEADS)
def test_a_git_directory_that_leads_to_another_repository_tells_nothing_of_it(
    lead: Callable[[Path, Path], None], private: Path, tmp_path: Path
) -> None:
    repo = write(tmp_path / "repo", {"a.py": "x = 1\n"})
    lead(repo, private / ".git")
    theirs = git(private, "rev-parse", "HEAD")
    assert all(SECRET not in (subjects(repo, commit) or "") for commit in ("HEAD", theirs))


def test_a_submodule_that_is_another_repository_is_told_by_its_commit_alone(
    private: Path, tmp_path: Path
) -> None:
    repo, theirs = committed(write(tmp_path / "repo", {"b.py": "x = 1\n"})), private / ".git"
    for commit in (git(private, "rev-parse", "HEAD"), "0" * 39 + "1"):
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
        git(repo, "commit", "-qm", "Move it")
    write(repo, {".gitmodules": '[submodule "m"]\n\tpath = sub\n\turl = x\n'})
    (repo / ".git/modules").mkdir()
    (repo / ".git/modules/m").symlink_to(theirs)
    git(repo, "config", "diff.submodule", "log")
    shown = read_git(find_git(repo), repo, ["show", "HEAD"], PATIENCE)
    assert shown is not None and SECRET.encode() not in shown


def test_of_a_folder_in_a_repository_only_its_own_commits_are_told(tmp_path: Path) -> None:
    repo = committed(write(tmp_path / "mono", {"shop/a.py": "x = 1\n"}))
    write(repo, {"bank/b.py": "y = 1\n"})
    committed(repo, SECRET)
    with open_engine(load_settings(data=tmp_path / "data", workers=1), repo / "shop") as engine:
        engine.index.run()
        told = engine.call("history").text
        assert "ours" in told and SECRET not in told
        with pytest.raises(NotFoundError):
            engine.call("history", commit="HEAD")
        (repo / "shop/.git").mkdir()  # which is no git directory
        assert SECRET not in engine.call("history").text
        (repo / "shop/.git").rmdir()
    write(repo, {"a.py": f"{SECRET!r}\n"})
    committed(repo)
    settings = load_settings(data=tmp_path / "data", workers=1)
    snapshot = take_snapshot(settings, locate(settings, repo / "shop"), "HEAD")
    with open_engine(settings, snapshot.root) as engine:
        engine.index.run()
        for asked in ({}, {"path": "a.py", "commit": "HEAD"}, {"path": "a.py", "lines": "1"}):
            with pytest.raises(NotFoundError):
                engine.call("history", **asked)


def test_work_trees_submodules_and_snapshots_tell_their_history(
    private: Path, tmp_path: Path
) -> None:
    around = write(tmp_path / "around", {"b.py": "y = 1\n"})
    git(around, "init", "-q")
    git(around, "submodule", "--quiet", "add", str(private), "deep/inner")
    for folder in (private, private.parent / "tree", around / "deep" / "inner"):
        assert subjects(folder) == f"{SECRET}\n"
    settings = load_settings(data=tmp_path / "data", workers=1)
    snapshot = take_snapshot(settings, locate(settings, private), "HEAD")
    Indexer(settings, snapshot).run()
    with open_engine(settings, snapshot.root) as engine:
        assert SECRET in engine.call("history", commit="HEAD").text
        assert "nothing" in engine.call("history", commit="HEAD..HEAD").text
    shutil.copytree(snapshot.root, tmp_path / "copied", symlinks=True)
    assert subjects(tmp_path / "copied") is None


@pytest.mark.parametrize("how", ["--shared", "--reference"])
def test_a_clone_with_borrowed_objects_is_searched_without_history(
    how: str, private: Path, tmp_path: Path
) -> None:
    how = f"--reference={private}" if how == "--reference" else how
    git(tmp_path, "clone", "-q", how, f"file://{private}" * ("=" in how) or str(private), "clone")
    settings = load_settings(data=tmp_path / "data", workers=1)
    with open_engine(settings, tmp_path / "clone") as engine:
        assert engine.index.run().files == 1
        with pytest.raises(RepositoryError, match=r"leads to another .*git repack -a -d"):
            engine.call("history")


def test_replaced_and_grafted_commits_are_told_as_they_are(tmp_path: Path) -> None:
    repo = committed(write(tmp_path / "repo", {"a.py": "x = 1\n"}))
    first = git(repo, "rev-parse", "HEAD")
    write(repo, {"a.py": "x = 2\n"})
    second = git(committed(repo, "second"), "rev-parse", "HEAD")
    git(repo, "replace", second, first)
    write(repo, {".git/info/grafts": f"{second}\n"})
    assert subjects(repo) == "second\nours\n"


def test_what_git_prints_does_not_depend_on_how_it_is_configured(tmp_path: Path) -> None:
    token = "shpat" + "_" + "0123456789abcdef" * 2
    repo = committed(write(tmp_path / "repo", {"a.py": f"x = '{token}'\n"}), f"Add {token}")
    git(repo, "branch", token)
    for key, value in (
        ("color.ui", "always"), ("color.diff", "always"), ("blame.coloring", "repeatedLines"),
        ("i18n.logOutputEncoding", "utf-16"), ("diff.orderFile", "nowhere"),
    ):  # fmt: skip
        git(repo, "config", key, value)
    with open_engine(load_settings(data=tmp_path / "data", workers=1), repo) as engine:
        engine.index.run()
        every = ({}, {"commit": "HEAD"}, {"path": "a.py", "lines": "1"}, {"commit": token[:6]})
        told = [engine.call("history", **one).text for one in every[:3]]
    told += revision_names(repo)
    assert all("*" * len(token) in text and "\x1b" not in text for text in told if "Add" in text)
    assert not any(token in text for text in told) and len(told) == 5


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


def test_every_address_refuses_strangers_other_pages_and_non_owners(
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


def test_searches_that_ask_a_model_are_counted_with_the_questions(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    shared = client_of(load_settings(data=data_dir, token=f"{ANNA},{BELA}"), fake_engine)
    given = {"Authorization": f"Bearer {BELA}"}

    def asked(**more: Any) -> int:
        body = {"question": "pay"} | more
        return shared.post("/api/search", json=body, headers=given).status_code

    statuses = [asked(hyde="one") for _ in range(60)] + [asked(rerank=True) for _ in range(61)]
    assert statuses.count(429) == 1 and statuses[-1] == 429
    assert asked() != 429, "a search alone costs milliseconds"
    fake_engine.settings = load_settings(data=data_dir, embedding="openai/text-embedding-3-small")
    assert asked() == 429, "a provider embeds the question"


def test_one_who_reads_too_much_along_at_once_is_refused_and_others_are_not(
    data_dir: Path,
) -> None:
    gate = Gate([ANNA, BELA])
    mine = [gate.hold("anna", 256) for _ in range(64)]
    with pytest.raises(RequestRefusedError):
        gate.hold("anna", 256)
    others = [gate.hold(f"u{n // 60}", 256) for n in range(256 - 32 - 64)]
    with pytest.raises(RequestRefusedError):  # some threads stay for what is short
        gate.hold("zoe", 256)
    for release in (*mine, *others):
        release()
    assert gate.hold("anna", 4) and gate._threads_held.total() == 1


def test_a_stream_holds_its_thread_until_it_is_read_or_left(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    app = create_app(load_settings(data=data_dir), engine=fake_engine)
    held = app.extensions["codeqa_gate"]._threads_held
    for path in ("/chat/stream", "/chat"):
        sent = app.test_client().post(path, json={"question": "pay"})
        assert held.total() == (path == "/chat/stream")
        sent.close()
        assert held.total() == 0
    assert app.test_client().get("/api/conversations/none/answer").status_code == 404
    assert held.total() == 0
    held["local"] = 10_000
    statuses = {path: app.test_client().get(path).status_code for path in ("/api/repos", "/health")}
    assert statuses == {"/api/repos": 429, "/health": 200}


@pytest.mark.parametrize(("origin", "secure"), [("https", True), ("http", False)])
def test_the_cookie_of_a_page_over_tls_is_sent_over_tls_alone(
    origin: str, secure: bool, data_dir: Path, fake_engine: FakeEngine
) -> None:
    shared = client_of(load_settings(data=data_dir, token=ANNA), fake_engine)
    headers = {"Origin": f"{origin}://localhost"}
    sent = shared.post("/login", data={"token": ANNA}, headers=headers)
    assert ("Secure" in sent.headers["Set-Cookie"]) == secure


def test_removing_a_repository_ends_no_answer_over_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(data=tmp_path / "data", workers=1)
    for name in ("left", "right"):
        Indexer(settings, locate(settings, write(tmp_path / name, {"a.py": "x = 1\n"}))).run()
    space, ended = Workspace(settings), list[str]()
    monkeypatch.setattr(space.answers, "stop", lambda repo="", **_: ended.append(repo))
    left, right = list_locations(settings)
    for repo in ("~", left.id, right.id):
        space.engine(repo, LOCAL)
    space.remove(left)
    assert ended == [left.id]
    space.close()


def test_an_id_that_is_hidden_takes_what_one_takes_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(data=tmp_path / "data", workers=1)
    for name in ("open", "hidden"):
        Indexer(settings, locate(settings, write(tmp_path / name, {"a.py": "x = 1\n"}))).run()
    rules = Rules(repositories={"hidden": frozenset(), "*": frozenset({"*"})})
    member = replace(LOCAL, owner=False, sees=partial(rules.allow, frozenset({"*"})))
    hidden, looked = list_locations(settings)[0], list[Location]()
    judge = workspace.may_see
    monkeypatch.setattr(
        workspace, "may_see", lambda who, at: (looked.append(at), judge(who, at))[1]
    )
    space, counts = Workspace(settings), []
    for repo in (hidden.id, "hidden-00000000"):
        looked.clear()
        with pytest.raises(NotFoundError, match="no repository with this id"):
            space.engine(repo, member)
        counts.append(len(looked))
    assert counts[0] == counts[1] > 1
    space.close()
