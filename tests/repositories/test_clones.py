"""Clones of repositories on another machine: a git server on this one, over https as it is used."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repositories import git as run_git
from repositories import write
from waiting import Clock

from codeqa.cli.main import main
from codeqa.errors import RepositoryError, UsageError
from codeqa.indexing import Indexer
from codeqa.repositories import (
    clones_folder,
    find_repository,
    remove_repository,
    rename_repository,
    report_repositories,
    sync_clone,
    take_clone,
)
from codeqa.repository import clones, remotes
from codeqa.repository.clones import clone
from codeqa.repository.git import find_git
from codeqa.repository.remotes import hosted_lines, looks_remote, read_remote
from codeqa.settings import Settings
from codeqa.store import locate
from codeqa.store.location import save_location
from codeqa.types import Progress
from tests.kit.git_server import GitServer, git_server

SHOP = {"store.py": "def buy(article):\n    return article\n", "notes.md": "# Notes\n"}


pytest_plugins = ("patient",)
pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with git_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(running: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitServer:
    """Trusted by the user's own git configuration; the repository is the test's own."""
    config = tmp_path / "gitconfig"
    config.write_text(f"[http]\n\tsslCAInfo = {running.certificate}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    running.seen.clear()
    running.held.set()
    return running


@pytest.fixture
def shop(server: GitServer, request: pytest.FixtureRequest) -> str:
    name = f"anna/{request.node.name.split('[')[0]}"
    server.commit(name, {**SHOP})
    return f"{server.address}/{name}"


def named(address: str) -> str:
    """The repository's name on the server."""
    return "/".join(address.split("/")[-2:])


def quiet(step: Progress) -> None:
    pass


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


ADDRESSES = [
    ("https://Host.org/a/b.git", "https://host.org/a/b.git", "host.org/a/b"),
    ("https://host.org:8443/a/b/", "https://host.org:8443/a/b/", "host.org_8443/a/b"),
    ("https://anna:secret@host.org/a/b", "https://host.org/a/b", "host.org/a/b"),
    ("https://token@host.org/a/b", "https://host.org/a/b", "host.org/a/b"),
    ("ssh://git:secret@host.org/a/b", "ssh://git@host.org/a/b", "host.org/a/b"),
    ("git@host.org:a/b.git", "git@host.org:a/b.git", "host.org/a/b"),
    ("https://host.org/group/sub/b", "https://host.org/group/sub/b", "host.org/group,sub/b"),
    ("https://host.org/b", "https://host.org/b", "host.org/,/b"),
    ("https://host.org/a/b\n", "https://host.org/a/b", "host.org/a/b"),
]
NO_ADDRESSES = [
    "http://host.org/a/b", "git://host.org/a/b", "file:///etc/a", "ext::sh -c touch% x",
    "ftp://host.org/a/b", "https:///a/b", "https://-oProxyCommand=x/a/b", "ssh://-x@host.org/a",
    "git@-host:a/b", "git@host.org:../../etc", "https://host.org/../../etc/b",
    "https://host.org/a/-b", "https://host.org/a/b?token=x", "https://host.org/a/b#x",
    "https://host.org/a/..", "https://host.org/", "https://host.org:99999/a/b", "-uhttps://x/a",
    "--upload-pack=touch x", "https://ho st.org/a/b", "a\0://b/c",
    "https://host.org/a/.git", "https://host.org/a/b,c", "git@host.org:-oX/b", "",
]  # fmt: skip


def test_an_address_keeps_no_password_and_leads_to_one_folder() -> None:
    for address, url, folder in ADDRESSES:
        remote = read_remote(address)
        assert (remote.url, str(remote.folder)) == (url, folder)
        assert str(read_remote(address, "v2/x").folder) == f"{folder}@v2,x"


def test_every_other_address_is_refused_before_git_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remotes, "find_git", lambda: pytest.fail("git is run"))
    for address in NO_ADDRESSES:
        with pytest.raises(UsageError) as refused:
            pytest.fail(f"{address!r}: {read_remote(address)}")
        assert address not in str(refused.value) or not address


def test_a_path_is_not_taken_for_an_address() -> None:
    for path in ("~/src", "/a:b", "./a@b", "C:\\src", "src", "a/b@c:d", "x@y", "file:///a"):
        assert not looks_remote(path), path
    for address in ("https://x/a", "ext::sh", "git@h:a", "git://x"):
        assert looks_remote(address), address
    for branch in ("-x", "a..b", "a b", "@{1}", "a@{1}", "a\0", "x~1"):
        with pytest.raises(UsageError):
            read_remote("https://host.org/a/b", branch)


def test_index_by_address_then_sync_reads_only_what_changed(
    server: GitServer, shop: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    private = shop.replace("https://", "https://anna:s3cret@")
    assert main(["index", private]) == 0
    (location,) = [find_repository(settings, shop.rpartition("/")[2])]
    assert location.remote == (shop, "")
    (row,) = report_repositories(settings)
    assert (row.state, row.files, row.url) == ("ready", 2, shop)
    assert main(["index", private]) == 0 and "It is cloned already" in capsys.readouterr().err
    assert len(report_repositories(settings)) == 1

    server.commit(named(shop), {"new.py": "X = 1\n", "notes.md": None})
    (location.root / "store.py").write_text("what is done here is lost")
    (location.root / "left.py").write_text("x = 1")
    (location.root / ".git" / "index.lock").touch()  # git was killed
    assert main(["sync"]) == 0
    said = capsys.readouterr()
    assert "1 new or changed, 1 removed (2 files)" in said.out
    assert sorted(path.name for path in location.root.glob("*.??")) == ["new.py", "store.py"]
    assert (location.root / "store.py").read_text() == SHOP["store.py"]

    gone = take_clone(settings, read_remote(shop, "main"), quiet)
    save_location(gone, branch="deleted")
    assert main(["sync", "--json"]) == 1  # one that fails keeps no other from it
    done = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert done[location.name]["unchanged"] == 2 and "deleted" in str(done[gone.name]["error"])
    remove_repository(settings, gone)

    assert main(["repos", "list"]) == 0 and shop in capsys.readouterr().out
    everything = b"".join(
        path.read_bytes() for path in settings.data_dir.rglob("*") if path.is_file()
    )
    assert b"s3cret" not in everything and "s3cret" not in f"{said}{server.seen}"
    count = subprocess.run(
        ["git", "-C", location.root, "rev-list", "--count", "HEAD"],
        capture_output=True, check=True, env=os.environ | {"GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    assert count.stdout == b"1\n"  # the newest commit and no other

    assert main(["repos", "remove", location.id, "--yes"]) == 0
    left = [path for path in clones_folder(settings).rglob("*") if not path.is_dir()]
    assert [path.name for path in left] == [".lock"] and not report_repositories(settings)


def test_a_branch_is_a_clone_of_its_own(server: GitServer, shop: str, settings: Settings) -> None:
    server.commit(named(shop), {"only_there.py": "Y = 2\n"}, branch="topic/one")
    usual = take_clone(settings, read_remote(shop), quiet)
    topic = take_clone(settings, read_remote(shop, "topic/one"), quiet)
    assert usual.root != topic.root and topic.remote == (shop, "topic/one")
    assert (topic.root / "only_there.py").exists() and not (usual.root / "only_there.py").exists()
    server.commit(named(shop), {"only_there.py": "Y = 3\n"}, branch="topic/one")
    sync_clone(settings, topic, quiet)
    assert (topic.root / "only_there.py").read_text() == "Y = 3\n"


def test_of_a_clone_that_failed_or_was_cancelled_nothing_is_left(
    server: GitServer, shop: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clones_folder(settings)
    for address, branch in ((f"{shop}-not", ""), (shop, "no-such-branch")):
        with pytest.raises(RepositoryError, match="git: ") as failed:
            take_clone(settings, read_remote(address, branch), quiet)
        assert "not found" in str(failed.value)
        assert files_below(folder) == [".lock"]

    def leave(step: Progress) -> None:
        raise KeyboardInterrupt

    server.held.clear()
    with pytest.raises(KeyboardInterrupt):
        clone(find_git(), read_remote(shop), folder, leave)
    with monkeypatch.context() as patch:
        patch.setattr(clones, "time", clock := Clock())
        with pytest.raises(RepositoryError, match="sent nothing for"):
            clone(find_git(), read_remote(shop), folder, lambda step: clock.advance(40))
    assert files_below(folder) == [".lock"]
    server.held.set()
    (folder / ".unfinished" / "of a killed process").mkdir(parents=True)
    assert clone(find_git(), read_remote(shop), folder, quiet).is_dir()
    assert not (folder / ".unfinished").exists()


def test_over_ssh_nothing_can_be_asked(
    server: GitServer, shop: str, settings: Settings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The program `ssh` is one that runs the command it is given here instead of there."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/called\nunset GIT_CONFIG_PARAMETERS\n'
        f"cd {server.folder}\nfor last; do :; done\neval $last\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    location = take_clone(settings, read_remote(f"git@host.invalid:{named(shop)}"), quiet)
    assert (location.root / "store.py").read_text() == SHOP["store.py"]
    called = (tmp_path / "called").read_text()
    assert "-oBatchMode=yes" in called and "git@host.invalid" in called


def test_two_at_once_make_one_clone(server: GitServer, shop: str, settings: Settings) -> None:
    def work(_: int) -> Path:
        return clone(find_git(), read_remote(shop), clones_folder(settings), quiet)

    with ThreadPoolExecutor(3) as pool:
        assert len({*pool.map(work, range(3))}) == 1
    assert clones_folder(settings).stat().st_mode & 0o077 == 0
    assert sum("git-upload-pack" in path and "service" in path for path in server.seen) == 1


def test_nothing_of_the_user_or_the_clone_is_run(
    server: GitServer, shop: str, settings: Settings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Templates with hooks, filters for large files, an ssh command, a helper that asks."""
    marker = tmp_path / "marker"
    attack = tmp_path / "attack.sh"
    attack.write_text(f"#!/bin/sh\necho $0 $@ >> {marker}\nexit 1\n")
    attack.chmod(0o755)
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
        (hooks / name).write_text(attack.read_text())
        (hooks / name).chmod(0o755)
    usual = Path(os.environ["GIT_CONFIG_GLOBAL"])
    attacking = tmp_path / "attacking"
    attacking.write_text(
        f"{usual.read_text()}[init]\n\ttemplateDir = {hooks.parent}\n"
        f"[core]\n\thooksPath = {hooks}\n\tsshCommand = {attack}\n\tfsmonitor = {attack}\n"
        f"\taskPass = {attack}\n"
        f'[filter "lfs"]\n\tsmudge = {attack}\n\tprocess = {attack}\n\trequired = true\n'
        '[url "http://localhost:9/"]\n\tinsteadOf = https://elsewhere.org/\n'
    )
    for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(name, str(attack))
    files = {".gitattributes": "*.bin filter=lfs\n", "large.bin": "version https://git-lfs\n",
             ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = {attack}\n'}  # fmt: skip
    server.commit(named(shop), files)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", str(attacking))
        plain = ["git", "clone", "-q", shop, str(tmp_path / "plain")]
        assert subprocess.run(plain, check=False, capture_output=True).returncode
        assert marker.exists()  # git as it is falls for it
        marker.unlink()
        location = take_clone(settings, read_remote(shop), quiet)
    server.commit(named(shop), {"large.bin": "version https://git-lfs 2\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(attacking))
    sync_clone(settings, location, quiet)
    assert (location.root / "large.bin").read_text() == "version https://git-lfs 2\n"
    assert not (location.root / ".git" / "hooks").exists()
    with pytest.raises(RepositoryError):  # the name resolves to nothing; ssh asks nothing
        take_clone(settings, read_remote("ssh://git@nowhere.invalid/a/b"), quiet)
    with pytest.raises(RepositoryError, match="transport 'http' not allowed"):
        take_clone(settings, read_remote("https://elsewhere.org/a/b"), quiet)
    assert not marker.exists(), marker.read_text()


def test_a_new_name_is_shown_and_taken_and_outlives_a_run(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_location(locate(settings, write(tmp_path / "two", {})))
    assert main(["index", str(write(tmp_path / "one", {"a.py": "A = 1\n"}))]) == 0
    one = find_repository(settings, "one")
    rename_repository(settings, one, "Our shop")
    assert one.name == "Our shop"  # also for who has it open
    Indexer(settings, one).run()
    capsys.readouterr()
    assert main(["repos", "list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["Our shop", "two"]
    assert main(["search", "A", "--repo", "Our shop"]) == 0
    for name in ("two", "-x", "a/b", "a\nb", "x" * 61, find_repository(settings, "two").id):
        with pytest.raises(UsageError):
            rename_repository(settings, one, name)
    rename_repository(settings, find_repository(settings, "Our shop"), "")
    assert one.name == "one"
    remove_repository(settings, one)
    assert (tmp_path / "one" / "a.py").exists()


def test_the_list_opens_no_table_where_nothing_was_written_since(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["index", str(write(tmp_path / "one", {"a.py": "A = 1\n"}))]) == 0
    (first,) = report_repositories(settings)
    (note,) = (settings.data_dir / "repos").glob("*/report.json")  # the next process reads it
    assert json.loads(note.read_text("utf-8"))["files"] == 1
    with monkeypatch.context() as patch:
        patch.setattr("codeqa.repositories.Tables", lambda _: pytest.fail("opened"))
        assert report_repositories(settings) == [first]
    (tmp_path / "one" / "b.py").write_text("B = 1\n")
    assert main(["index", str(tmp_path / "one")]) == 0
    (second,) = report_repositories(settings)
    assert (first.files, second.files) == (1, 2)


HOSTED = {
    "https://github.com/anna/shop": "https://github.com/anna/shop/blob/{commit}/{path}#L1-L2",
    "https://anna:s3cret@github.com/anna/shop.git":
        "https://github.com/anna/shop/blob/{commit}/{path}#L1-L2",
    "git@github.com:anna/shop.git": "https://github.com/anna/shop/blob/{commit}/{path}#L1-L2",
    "ssh://git@gitlab.example.org:2222/a/b/shop.git":
        "https://gitlab.example.org/a/b/shop/-/blob/{commit}/{path}#L1-2",
    "https://gitea.example.org:8443/anna/shop":
        "https://gitea.example.org:8443/anna/shop/src/commit/{commit}/{path}#L1-L2",
    "git@codeberg.org:anna/shop": "https://codeberg.org/anna/shop/src/commit/{commit}/{path}#L1-L2",
    "https://notgithub.com/anna/shop": "",
    "https://code.example.org/anna/shop": "",
    "/somewhere/on/this/machine": "",
    "javascript:alert(1)//github.com/anna/shop": "",
}  # fmt: skip


def test_a_line_has_an_address_at_the_host_that_the_repository_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "shop", {"app {1}/the store#2.py": "x = 1\n"})
    assert hosted_lines(root, "x.py") == ""
    run_git(root, "init", "-q")
    run_git(root, "add", ".")
    run_git(root, "commit", "-qm", "The shop")
    run_git(root, "remote", "add", "upstream", "https://github.com/anna/shop")
    assert hosted_lines(root, "x.py") == "", "the host may not have the commit"
    run_git(root, "update-ref", "refs/remotes/upstream/main", "HEAD")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    path = "app%20%7B1%7D/the%20store%232.py"
    for remote, address in HOSTED.items():
        run_git(root, "remote", "set-url", "upstream", remote)
        shown = hosted_lines(root / "app {1}", "the store#2.py").format(start=1, end=2)
        assert shown == address.format(commit=head.stdout.strip(), path=path), remote
    run_git(root, "remote", "set-url", "upstream", "https://github.com/anna/shop")
    first = hosted_lines(root, "a.py")
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("git is asked again"))
        assert hosted_lines(root, "b.py") == first.replace("a.py", "b.py") != ""
    run_git(root, "commit", "--allow-empty", "-qm", "More of it")
    assert hosted_lines(root, "a.py") == "", "the host does not have that commit yet"
    run_git(root, "update-ref", "refs/remotes/upstream/main", "HEAD")
    assert hosted_lines(root, "a.py") not in ("", first)
