"""A repository as it was at a commit: equal to a checkout, and made without touching anything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from codeqa.cli.main import main
from codeqa.doctor import examine
from codeqa.engine import open_multi_repo
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.indexing import Indexer
from codeqa.repositories import (
    find_repository,
    open_location,
    remove_repository,
    report_repositories,
    snapshots,
)
from codeqa.repositories.multi_repo import locations_of
from codeqa.repositories.snapshots import commit_of, revision_names, take_snapshot
from codeqa.search.hybrid import open_search
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, Tables, open_once
from codeqa.store.location import remove, snapshots_of
from codeqa.types import IndexSummary
from codeqa.web.app import create_app
from codeqa.web.security import LOCAL
from codeqa.web.workspace import Workspace
from tests.kit.repositories import executable, git, write

OLD = {
    "shop/cart.py": "def add_item(cart, item):\n    cart.append(item)\n",
    "shop/prices.py": "def total(cart):\n    return sum(item.price for item in cart)\n",
    ".github/checks.yml": "name: checks\n",
    "build/notes.md": "# Built\n\nKept although it is ignored.\n",
    "secret_plans.py": "def plan(): ...\n",
    ".codeqaignore": "secret_plans.py\n",
    ".gitignore": "build/\n",
    ".gitattributes": "*.py filter=evil\n",
    "id_rsa": "-----BEGIN RSA PRIVATE KEY-----\n",
    "key.py": 'KEY = "AKIAIOSFODNN7EXAMPLE"\n',
}
NEW = {"shop/cart.py": "def put_item(cart, item):\n    cart.insert(0, item)\n"}


Shop = tuple[Settings, Location, Path]
"""Settings, an indexed repository of two commits, and what a command that it names leaves."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("snapshots")
    root, marker = folder / "shop", folder / "executed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        git(folder, "init", "-q", "-b", "main", "shop")
        (root / "out").symlink_to("/etc/passwd")
        for files, subject, tag in ((OLD, "one", "v1"), (NEW, "two", "v2")):
            git(write(root, files), "add", "-f", ".")
            git(root, "commit", "-qm", subject)
            git(root, "tag", tag)
        git(root, "update-ref", "refs/remotes/origin/stable", "v1")
        attack = f'#!/bin/sh\necho "$0" >> "{marker}"\nexit 1\n'
        program = executable(folder / "evil.sh", attack)
        for key in ("filter.evil.smudge", "filter.evil.clean", "core.fsmonitor"):
            git(root, "config", key, str(program))
        (root / ".git" / "hooks" / "post-checkout").symlink_to(program)
        settings = load_settings(data=folder / "data", workers=2, watch=False)
        location = open_location(settings, root)
        Indexer(settings, location).run()
        marker.unlink(missing_ok=True)
        yield settings, location, marker


def plain_git(root: Path, *arguments: str) -> str:
    """What plain git prints, without the monitor that the repository names."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def indexed(settings: Settings, location: Location, revision: str) -> tuple[Location, IndexSummary]:
    there = take_snapshot(settings, location, revision)
    return there, Indexer(settings, there).run(refine=False)


def test_a_snapshot_is_what_a_checkout_would_be_and_touches_nothing(
    shop: Shop, tmp_path: Path
) -> None:
    settings, location, marker = shop
    before = plain_git(location.root, "for-each-ref"), (location.root / ".git/index").read_bytes()
    there, summary = indexed(settings, location, "v1")
    assert summary.changed == 1, "equal files are not read again"
    assert not marker.exists()
    assert there.root.parent.stat().st_mode & 0o077 == 0
    after = plain_git(location.root, "for-each-ref"), (location.root / ".git/index").read_bytes()
    assert before == after
    assert not (there.root / "out").is_symlink()
    assert not (there.root / "id_rsa").exists()

    git(location.root, "config", "--unset-all", "filter.evil.smudge")
    git(tmp_path, "clone", "-q", str(location.root), "shop")
    git(tmp_path / "shop", "checkout", "-q", "v1")
    real = open_location(settings, tmp_path / "shop")
    Indexer(settings, real).run()
    files = [{r.path: r.hash for r in Tables(one).files() if r.hash} for one in (there, real)]
    assert files[0] == files[1]
    assert {".github/checks.yml", "build/notes.md"} <= files[0].keys()
    assert "secret_plans.py" not in files[0]
    found = [
        [(hit.unit.path, hit.unit.start_line, hit.unit.source_code, round(hit.score, 3))
         for hit in open_search(settings, open_once(one)).search(question).units]
        for question in ("add an item to the cart", "key")
        for one in (there, real)
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert "AKIAIOSFODNN7EXAMPLE" not in str(found[2])


def test_a_commit_has_many_names_and_what_names_none_is_refused(shop: Shop, tmp_path: Path) -> None:
    root = shop[1].root
    hash_ = plain_git(root, "rev-parse", "v1").strip()
    for name in ("v1", "HEAD~1", "origin/stable", "main@{1}", hash_[:7]):
        assert commit_of(root, name) == hash_, name
    for name in ("--upload-pack=touch x", "-x", "^HEAD", "", "v1\nv2"):
        with pytest.raises(CodeQAError, match="not a commit"):
            commit_of(root, name)
    for name in ("v1:shop/cart.py", "v1 v2", "nothing"):
        with pytest.raises(CodeQAError, match="`git log` shows"):
            commit_of(root, name)
    # A shallow clone says how older commits come.
    git(tmp_path, "clone", "-q", "--depth=1", "-b", "main", f"file://{root}", "shop")
    assert commit_of(tmp_path / "shop", "main")
    with pytest.raises(CodeQAError, match="git fetch --deepen"):
        commit_of(tmp_path / "shop", "HEAD~1")


def test_a_hostile_tree_is_written_nowhere_else(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "hostile"
    root.mkdir()
    git(root, "init", "-q")
    (root / "fine.py").write_text("def fine(): ...\n")
    blob = plain_git(root, "hash-object", "-w", "fine.py").strip()
    entries = b"".join(
        b"100644 " + name + b"\0" + bytes.fromhex(blob)
        for name in (b"../../../escaped.py", b".git/hooks/run", b"/tmp/escaped.py", b"fine.py")
    )
    made = ["git", "-C", str(root), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    tree = subprocess.run(made, input=entries, check=True, capture_output=True).stdout
    commit = plain_git(root, "commit-tree", "-m", "x", tree.decode().strip()).strip()
    settings = load_settings(data=tmp_path / "data" / "inner", workers=2)
    with pytest.raises(CodeQAError, match="git cannot read that commit"):
        take_snapshot(settings, open_location(settings, root), commit)
    assert not list(tmp_path.rglob("escaped.py"))
    assert not list(tmp_path.rglob("revs/*/*")), "what was begun is cleared away"


def test_snapshots_are_few_listed_and_go_with_their_repository(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, location, _ = shop
    monkeypatch.setattr(snapshots, "SNAPSHOTS_KEPT", 1)
    assert set(revision_names(location.root)) == {"main", "v1", "v2", "origin/stable"}
    with closing(Workspace(settings)) as space:
        there, _ = indexed(settings, location, "v1")
        os.utime(there.root, (1, 1))
        assert space.engine(there.id, LOCAL) is space.engine(there.id, LOCAL)
        assert there.root.stat().st_mtime > 1, "one that is asked stays"
        os.utime(there.root, (1, 1))
        kept, _ = indexed(settings, location, "v2")
        with pytest.raises(NotFoundError):
            space.engine(there.id, LOCAL)
    assert snapshots_of(settings, location) == [kept]
    assert kept.root.name.startswith("shop@")
    assert [one.path for one in report_repositories(settings)][-1] == str(kept.root)
    assert f"index of {kept.name}" in [check.name for check in examine(settings)]
    remove_repository(settings, find_repository(settings, kept.name))
    assert not kept.root.exists() and not snapshots_of(settings, location)
    assert location.folder.is_dir(), "only the snapshot is removed"
    take_snapshot(settings, location, "v1")
    remove_repository(settings, location)
    assert not list((settings.data_dir / "revs").glob("*/*"))
    Indexer(settings, location).run()


def test_two_may_ask_for_one_commit_at_the_same_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings, location, _ = shop
    read, save = snapshots.read_blobs, snapshots.save_location

    def between(root: Path, identities: Sequence[bytes], most: int) -> Iterator[bytes]:
        found = read(root, identities, most)
        yield next(found)
        monkeypatch.setattr(snapshots, "read_blobs", lambda *_: iter([b""]))
        with suppress(ValueError):  # a server's other thread, which does not succeed
            take_snapshot(settings, location, "v1")
        monkeypatch.undo()
        yield from found

    def also(there: Location) -> None:
        save(there)
        monkeypatch.setattr(snapshots, "save_location", save)
        indexed(settings, location, "v1")

    for one in snapshots_of(settings, location):
        remove(settings, one)
    monkeypatch.setattr(snapshots, "read_blobs", between)
    there = take_snapshot(settings, location, "v1")
    assert {path.name for path in (there.root / "shop").iterdir()} == {"cart.py", "prices.py"}
    assert (there.root / ".codeqaignore").exists()
    remove(settings, there)
    monkeypatch.setattr(snapshots, "save_location", also)
    assert indexed(settings, location, "v1")[1].files
    assert not list(there.root.parent.glob("*.tmp"))


def test_a_snapshot_is_one_of_several(shop: Shop) -> None:
    settings, location, _ = shop
    there, _ = indexed(settings, location, "v1")
    assert locations_of(settings, there.id) == [there]
    with closing(open_multi_repo(settings, [there, location])) as together:
        found = {hit.unit.span for hit in together.search.search("item").units}
    assert {"shop/shop/cart.py:1-2", f"{there.root.name.replace('@', '-')}/shop/cart.py:1-2"} <= (
        found
    )


def test_only_the_owner_opens_another_commit(shop: Shop) -> None:
    settings, location, _ = shop
    settings = load_settings(data=settings.data_dir, token="owner,member", watch=False)
    app = create_app(settings, location.root)
    calls = {who: {"headers": {"Authorization": f"Bearer {who}"}} for who in ("owner", "member")}
    with app.test_client() as client:
        body = {"revision": "v1"}
        assert client.post("/api/revisions", json=body, **calls["member"]).status_code == 403
        opened = client.post("/api/revisions", json=body, **calls["owner"]).json
        there = client.get(f"/api/revisions?repo={opened['id']}", **calls["member"]).json
        assert there["repository"] == location.id
        assert opened["name"] == f"shop@{there['commit']}"
        file = f"/api/file?repo={opened['id']}&path="
        assert b"add_item" in client.get(f"{file}shop/cart.py", **calls["owner"]).data
        assert client.get(f"{file}secret_plans.py", **calls["owner"]).status_code == 404
        refused = client.post("/api/revisions", json={"revision": "-x"}, **calls["owner"])
        assert refused.status_code == 400
    app.extensions["codeqa"].close()


def test_the_commands_ask_at_a_commit_and_say_so(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings, location, _ = shop
    monkeypatch.setenv("CODEQA_DATA", str(settings.data_dir))
    where = ("--repo", str(location.root), "--rev", "v1")
    assert main(["ask", "where is an item added to the cart?", "--no-model", *where]) == 0
    answer = capfd.readouterr()
    assert "add_item" in answer.out
    assert "put_item" not in answer.out
    assert "of shop@" in answer.out + answer.err
    assert main(["grep", "put_item", *where]) == 0
    assert "shop/cart.py" not in capfd.readouterr().out
    assert main(["history", "--name", "add_item", *where]) == 0
    assert "one" in capfd.readouterr().out
    for name, command, message in (
        ("--upload-pack=x", ["search", "item"], "is not a commit"),
        ("^v1", ["ask", "item"], "is not a commit"),
        ("-x", ["index"], "is not a commit"),
        ("", ["grep", "item"], "name a commit"),
    ):
        root = where[1:2] if command == ["index"] else where[:2]
        assert main([*command, *root, f"--rev={name}"]) == 2
        assert message in capfd.readouterr().err
