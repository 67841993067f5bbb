"""A repository that tries to run something when it is listed; nothing runs.

Every attack leaves a marker file when its command is executed. For the attacks that
`git ls-files` itself falls for, the test first shows that plain git does execute them.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import AT_ONCE, PATIENCE

from codeqa.doctor import examine
from codeqa.errors import RepositoryError, UsageError
from codeqa.parsing.preprocess import preprocess
from codeqa.repositories import take_clone
from codeqa.repositories.snapshots import take_snapshot
from codeqa.repository import git as git_module
from codeqa.repository import walk as walking
from codeqa.repository.git import find_git, read_git
from codeqa.repository.remotes import read_remote
from codeqa.repository.walk import walk
from codeqa.settings import Settings
from codeqa.store.location import locate, save_location
from codeqa.types import Skipped
from tests.kit.repositories import git, write


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.fixture
def command(tmp_path: Path, marker: Path) -> str:
    """Path of a program that leaves the marker and then fails."""
    program = tmp_path / "attack.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> "{marker}"\nexit 1\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"a.py": "def f(): ...\n", "sub/b.py": "1\n", "c.log": "1\n", ".gitignore": "*.log\n"}
    folder = write(tmp_path_factory.mktemp("attacked") / "repo", files)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")
    return folder


@pytest.fixture
def repo(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "repo")


def listed(root: Path) -> list[str]:
    return [entry.path for entry in walk(root, max_file_bytes=1_000_000).files]


def plant_fsmonitor(repo: Path, command: str) -> None:
    git(repo, "config", "core.fsmonitor", command)


def plant_missing_ignore_file(repo: Path, command: str) -> None:
    """A partial clone whose `.gitignore` is to be read from an object that must be fetched."""
    git(repo, "config", "extensions.partialClone", "origin")
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "remote.origin.promisor", "true")
    git(repo, "config", "remote.origin.url", f"ext::{command} %S")
    git(repo, "config", "protocol.ext.allow", "always")
    git(repo, "update-index", "--skip-worktree", ".gitignore")
    blob = subprocess.run(
        ["git", "rev-parse", ":.gitignore"], cwd=repo, check=True, capture_output=True, text=True
    ).stdout.strip()
    (repo / ".gitignore").unlink()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def plant_upload_pack(repo: Path, command: str) -> None:
    plant_missing_ignore_file(repo, command)
    git(repo, "config", "remote.origin.url", str(repo))
    git(repo, "config", "remote.origin.uploadpack", command)


def plant_ssh_command(repo: Path, command: str) -> None:
    plant_missing_ignore_file(repo, command)
    git(repo, "config", "remote.origin.url", "ssh://nowhere.invalid/x")
    git(repo, "config", "core.sshCommand", command)


def plant_everything_else(repo: Path, command: str) -> None:
    """What no listing should need, but a repository can name."""
    for key in (
        "core.pager", "pager.ls-files", "core.editor", "core.askPass", "core.gitProxy",
        "core.alternateRefsCommand", "diff.external", "diff.evil.textconv", "diff.evil.command",
        "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "credential.helper",
        "gpg.program", "interactive.diffFilter", "merge.evil.driver", "uploadpack.packObjectsHook",
        "alias.ls-files", "submodule.sub.update", "init.templateDir",
    ):  # fmt: skip
        value = "!" + command if key.startswith(("alias", "credential", "submodule")) else command
        git(repo, "config", key, value)
    hooks = repo / "planted-hooks"
    for folder in (hooks, repo / ".git" / "hooks"):
        for name in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
            write(folder, {name: f"#!/bin/sh\n{command}\n"})
            (folder / name).chmod(0o755)
    git(repo, "config", "core.hooksPath", str(hooks))
    (repo / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    included = repo / "included.config"
    included.write_text(f"[core]\n\tfsmonitor = {command}\n\tpager = {command}\n")
    git(repo, "config", "include.path", str(included))
    git(repo, "config", f"includeIf.gitdir:{repo}/.path", str(included))
    os.utime(repo / "a.py")  # an entry whose content git would have to compare


def plant_in_a_submodule(repo: Path, command: str) -> None:
    inner = write(repo / "inner", {"n.py": "1\n"})
    git(inner, "init", "-q")
    git(inner, "config", "core.fsmonitor", command)
    (repo / ".gitmodules").write_text(
        f'[submodule "inner"]\n\tpath = inner\n\turl = ext::{command}\n\tupdate = !{command}\n'
    )


ATTACKS = {
    "fsmonitor": plant_fsmonitor,
    "a fetched ignore file": plant_missing_ignore_file,
    "upload-pack": plant_upload_pack,
    "ssh command": plant_ssh_command,
    "hooks, filters, pagers, aliases": plant_everything_else,
    "a submodule": plant_in_a_submodule,
}


FALLEN_FOR = {"fsmonitor", "a fetched ignore file", "upload-pack"}


@pytest.mark.parametrize("name", ATTACKS)
def test_listing_executes_nothing(name: str, repo: Path, command: str, marker: Path) -> None:
    ATTACKS[name](repo, command)
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    subprocess.run(listing, cwd=repo, check=False, capture_output=True)
    assert marker.exists() or name not in FALLEN_FOR, "plain git executes the attack"
    marker.unlink(missing_ok=True)  # planting itself runs git as well
    found = listed(repo)
    assert not marker.exists(), marker.read_text()
    assert {"a.py", "sub/b.py"} <= set(found)
    assert listed(repo / "sub") == ["b.py"]
    assert not marker.exists(), marker.read_text()


def test_all_attacks_at_once_do_nothing_to_a_whole_run(
    repo: Path, command: str, marker: Path, settings: Settings
) -> None:
    plant_everything_else(repo, command)
    plant_in_a_submodule(repo, command)
    plant_fsmonitor(repo, command)
    marker.unlink(missing_ok=True)
    parsed = [file["path"] for file in preprocess(repo, settings)]
    assert {"a.py", "inner/n.py"} <= set(parsed)
    assert not marker.exists(), marker.read_text()


def test_the_callers_git_variables_lead_nowhere_else(
    repo: Path, tmp_path: Path, command: str, marker: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    other = write(tmp_path / "other", {"wrong.py": "1"})
    git(other, "init", "-q")
    expected = listed(repo)
    variables = {
        "DIR": other / ".git", "WORK_TREE": other, "INDEX_FILE": other / ".git" / "index",
        "EXTERNAL_DIFF": command, "CONFIG_COUNT": 1, "CONFIG_KEY_0": "core.fsmonitor",
        "CONFIG_VALUE_0": command, "TRACE": tmp_path / "trace",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(f"GIT_{name}", str(value))
    assert listed(repo) == expected
    assert not marker.exists() and not (tmp_path / "trace").exists()


@pytest.mark.parametrize("entry", ["", ".", "bin", "{repo}", "{repo}/bin", "{repo}/sub/../bin"])
def test_a_git_that_the_repository_brings_along_never_runs(
    entry: str, repo: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (repo, repo / "bin", repo / "sub"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f'#!/bin/sh\necho ran > "{marker}"\n')
        (folder / "git").chmod(0o755)
    monkeypatch.chdir(repo)
    before = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{entry.format(repo=repo)}{os.pathsep}{before}")
    assert "a.py" in listed(repo)
    assert "b.py" in listed(repo / "sub")  # the work tree around it is hostile as well
    assert not marker.exists()
    monkeypatch.setenv("PATH", entry.format(repo=repo))
    (repo / "bin" / "git").unlink()
    (repo / "bin" / "git").symlink_to("/bin/sh")
    with pytest.raises(RepositoryError, match="Install git"):
        listed(repo)
    assert not marker.exists()


def test_no_program_of_an_indexed_repository_runs_when_another_folder_is_current(
    repo: Path, marker: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = locate(settings, repo)
    save_location(location)
    for name in ("git", "ssh"):
        write(repo, {f"bin/{name}": f'#!/bin/sh\necho "$0" >> "{marker}"\nexit 1\n'})
        (repo / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{repo}/bin{os.pathsep}{os.environ['PATH']}")
    write(tmp_path / "elsewhere", {})
    monkeypatch.chdir(tmp_path / "elsewhere")

    commit = take_snapshot(settings, location, "HEAD").root
    assert listed(commit) == [".gitignore", "a.py", "sub/b.py"]
    assert read_git(find_git(commit), commit, ["log", "--format=%s"], PATIENCE) == b"first\n"
    with pytest.raises(RepositoryError, match="git: "):
        take_clone(settings, read_remote("git@nowhere.invalid:a/b"), lambda step: None)
    git_of_doctor = next(examine(settings))
    assert git_of_doctor.ok and not git_of_doctor.detail.startswith(str(repo))
    assert not marker.exists(), marker.read_text()


def test_a_work_tree_configured_elsewhere_shows_nothing_of_it(repo: Path, tmp_path: Path) -> None:
    write(tmp_path / "private", {"diary.txt": "1"})
    git(repo, "config", "core.worktree", str(tmp_path / "private"))
    found = listed(repo)
    assert not any("diary" in path for path in found)
    assert "a.py" in found


def test_a_bare_repository_inside_is_not_believed(repo: Path, command: str, marker: Path) -> None:
    bare = repo / "fixture"
    git(repo, "init", "-q", "--bare", str(bare))
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", str(repo))
    git(bare, "config", "core.fsmonitor", command)
    with pytest.raises(UsageError, match="bare git directory"):
        listed(bare)
    listed(repo)
    assert not marker.exists()


def test_a_git_that_hangs_is_given_up(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(walking, "GIT_SECONDS", AT_ONCE)
    with pytest.raises(RepositoryError, match="git took longer"):
        listed(repo)


PIPES = [
    ".git/HEAD", ".git/commondir", ".git/config", ".git/index", ".git/info/exclude", ".gitignore",
    "sub/.gitignore", "inner/.git/config", "inner/.gitignore",
]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_where_git_reads_a_file_keeps_no_other_file_from_being_read(
    name: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = write(repo / "inner", {"n.py": "1\n", ".gitignore": "*.log\n", "d.log": "1\n"})
    git(inner, "init", "-q")
    (repo / name).unlink(missing_ok=True)
    os.mkfifo(repo / name)
    monkeypatch.setattr(walking, "SOON_SECONDS", AT_ONCE)
    found = walk(repo, max_file_bytes=1_000_000)
    rules = {".gitignore", "inner/.gitignore"} - {name}
    not_ignored = {".gitignore": {"c.log"}, "inner/.gitignore": {"inner/d.log"}}
    expected = {"a.py", "sub/b.py", "inner/n.py", *rules, *not_ignored.get(name, ())}
    assert {entry.path for entry in found.files} == expected
    assert Skipped(name, "unreadable: not a regular file") in found.skipped
    if held := name.startswith(".git/"):
        monkeypatch.setattr(git_module, "_run", lambda *_: pytest.fail("git would wait"))
    log = read_git(find_git(repo), repo, ["log", "--format=%s"], PATIENCE)
    assert log == (None if held else b"first\n")


@pytest.mark.usefixtures("real_workers")
def test_python_files_of_the_repository_are_not_imported_by_the_workers(
    repo: Path, marker: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = f"open({str(marker)!r}, 'a').write(__name__)\nraise SystemExit(3)\n"
    loaded = ("multiprocessing", "json", "struct", "marshal", "pathlib", "tree_sitter", "codeqa")
    for name in loaded:
        importlib.import_module(name)  # this process itself imports none of them again
    names = (*loaded, "sitecustomize", "usercustomize")
    write(repo, {f"{name}.py": evil for name in names})
    monkeypatch.chdir(repo)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as `python -m` begins it
    assert len(list(preprocess(".", settings))) == 12
    assert not marker.exists(), marker.read_text()
