"""Which files a walk finds: git's own view, also outside of git, and what is left out on top."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from codeqa.errors import NotFoundError, RepositoryError, UsageError
from codeqa.repository.walk import Walk, read_file, read_with_status, walk
from tests.kit.index_rows import read_meanwhile
from tests.kit.repositories import git, write

LIMIT = 1_000_000


def paths(found: Walk) -> list[str]:
    return [entry.path for entry in found.files]


def paths_of(root: Path) -> list[str]:
    return paths(walk(root, max_file_bytes=LIMIT))


def reasons(found: Walk) -> dict[str, str]:
    return {entry.path: entry.reason for entry in found.skipped}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


# --- ignore rules ----------------------------------------------------------------------------

IGNORING = {
    ".gitignore": "*.log\n/top\nout/\n!kept.log\na*\n",
    "keep/.gitignore": "!*.log\n",
    "sub/.gitignore": "!ab/\n",
    **dict.fromkeys(
        ["x.log", "kept.log", "top/a.py", "b/top/b.py", "b/out/c.py", "b/out/.gitignore", "a.py",
         "keep/a.log", "keep/deep/b.log", "sub/ab/ac.txt", "sub/ab/b.txt", "mine.mine"], "1\n"
    ),
}  # fmt: skip
LEFT = [
    ".gitignore", "b/top/b.py", "keep/.gitignore", "keep/a.log", "keep/deep/b.log",
    "kept.log", "sub/.gitignore", "sub/ab/b.txt",
]  # fmt: skip


def test_a_folder_is_read_by_the_same_rules_in_and_outside_of_git(tmp_path: Path) -> None:
    """Nested rules, negations, folders that cannot be entered again, the user's own excludes."""
    write(tmp_path / "home", {".config/git/ignore": "*.mine\n"})
    root = write(tmp_path / "repo", IGNORING)
    assert paths_of(root) == LEFT
    git(root, "init", "-q")
    assert paths_of(root) == LEFT
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-standard"], cwd=root, check=True, capture_output=True
    )
    assert listed.stdout.decode().splitlines() == LEFT


def test_global_and_repository_excludes_count(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write(tmp_path / "home", {"my-excludes": "*.mine\n"})
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my-excludes\n")
    write(repo, {"a.mine": "1", "b.local": "1", "c.py": "1", ".git/info/exclude": "*.local\n"})
    assert paths_of(repo) == ["c.py"]
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert paths_of(repo) == ["a.mine", "c.py"]


# --- work trees ------------------------------------------------------------------------------


def test_what_is_tracked_is_found_although_a_rule_ignores_it(repo: Path) -> None:
    write(repo, {".gitignore": "*.log\nbuild/\n", "a.py": "1", "b/c.py": "1"})
    write(repo, {"kept.log": "1", "left.log": "1", "build/y.py": "1"})
    git(repo, "add", "-f", "a.py", "b", "kept.log", "build")
    (repo / "a.py").unlink()
    shutil.rmtree(repo / "b")
    assert paths_of(repo) == [".gitignore", "build/y.py", "kept.log"]


def test_a_subfolder_obeys_the_rules_above_it_unless_it_is_ignored_itself(repo: Path) -> None:
    write(repo, {".gitignore": "*.log\n/sub/out\nvendored/\n"})
    write(repo, {"sub/a.py": "1", "sub/b.log": "1", "sub/out/c.py": "1"})
    assert paths_of(repo / "sub") == ["a.py"]
    write(repo, {"vendored/a.py": "1", "vendored/node_modules/b.js": "1"})
    assert paths_of(repo / "vendored") == ["a.py"]


def test_submodules_nested_and_linked_work_trees(repo: Path, tmp_path: Path) -> None:
    library = write(tmp_path / "library", {"lib.py": "1", ".gitignore": "*.tmp\n"})
    git(library, "init", "-q")
    git(library, "add", ".")
    git(library, "commit", "-qm", "first")
    write(repo, {"a.py": "1", ".gitignore": "*.py.bak\n"})
    git(repo, "submodule", "add", "-q", str(library), "sub")
    git(repo, "submodule", "add", "-q", str(library), "gone")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    git(repo, "submodule", "deinit", "-f", "gone")
    write(repo, {"sub/new.py": "1", "sub/x.tmp": "1", "sub/y.py.bak": "1"})
    nested = write(repo / "nested", {"n.py": "1", "n.tmp": "1", ".gitignore": "*.tmp\n"})
    git(nested, "init", "-q")
    git(repo, "worktree", "add", "-q", "second")

    found = walk(repo, max_file_bytes=LIMIT)
    assert paths(found) == [
        ".gitignore", ".gitmodules", "a.py", "nested/.gitignore", "nested/n.py",
        "sub/.gitignore", "sub/lib.py", "sub/new.py", "sub/y.py.bak",
    ]  # fmt: skip
    assert reasons(found)["gone"] == "submodule not checked out"
    assert reasons(found)["second/"] == "another work tree of a repository"
    # The linked work tree is read when it is the one that is asked for.
    assert paths_of(repo / "second") == [".gitignore", ".gitmodules", "a.py"]


def test_a_folder_of_repositories_is_read_repository_by_repository(tmp_path: Path) -> None:
    space = write(tmp_path / "space", {"one/a.py": "1", "one/b.log": "1", "two/a.py": "1"})
    write(space / "one", {".gitignore": "*.log\n"})
    git(space / "one", "init", "-q")
    assert paths_of(space) == ["one/.gitignore", "one/a.py", "two/a.py"]


@pytest.mark.parametrize("wrong", ["broken", "of another user"])
def test_a_repository_that_git_refuses_is_walked_all_the_same(wrong: str, repo: Path) -> None:
    write(repo, {".gitignore": "*.log\n", "a.py": "1", "b.log": "1"})
    if wrong == "broken":
        (repo / ".git" / "HEAD").write_text("broken")
    elif os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    else:
        for path in (repo, repo / ".git"):
            os.chown(path, 54_321, 54_321)
    refused = subprocess.run(["git", "ls-files"], cwd=repo, capture_output=True, check=False)
    assert refused.returncode == 128
    assert paths_of(repo) == [".gitignore", "a.py"]


def test_without_git_the_error_says_what_to_do(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RepositoryError, match="Install git"):
        walk(repo, max_file_bytes=LIMIT)


def test_dependencies_and_output_are_left_out_unless_git_tracks_them(
    repo: Path, tmp_path: Path
) -> None:
    read = [
        "a.py", "app/package.json", "lib/dist/source.py", "lib/venv.py", "lib/venv/tracked.py",
        "lib/venv/with_it.py", "setup.py", "src/build/steps.py", "target/tracked.rs",
    ]  # fmt: skip
    made = [
        ".venv/z.py", "app/dist/out.js", "app/node_modules/b/dist/c.js", "build/out.py",
        "node_modules/x.js", "pkg/__pycache__/y.txt",
    ]  # fmt: skip
    write(repo, dict.fromkeys([*read, *made], "1"))
    git(repo, "add", "lib/venv/tracked.py", "target/tracked.rs")
    git(write(repo / ".venv" / "src" / "of_git", {"d.py": "1"}), "init", "-q")
    assert paths_of(repo) == read
    folders = [
        ".venv/", "app/dist/", "app/node_modules/", "build/", "node_modules/", "pkg/__pycache__/"
    ]  # fmt: skip
    why = "untracked dependencies or build output"
    left_out = [*reasons(walk(repo, max_file_bytes=LIMIT)).items()]
    assert left_out == [(folder, why) for folder in folders]
    git(repo, "add", "-f", ".venv/z.py")
    assert ".venv/z.py" in paths_of(repo)
    kept = ["a.py", "src/build/steps.py"]  # outside of git as well
    made = [path for path in made if not path.startswith("app/")]
    assert paths_of(write(tmp_path / "plain", dict.fromkeys([*kept, *made], "1"))) == kept


# --- .codeqaignore ---------------------------------------------------------------------------


def test_codeqaignore_applies_on_top_and_is_counted_in_and_outside_of_git(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.log\n", ".codeqaignore": "data/\n*.csv\n!*.log\n", "a.py": "1",
        "b.log": "1", "c.csv": "1", "keep/.codeqaignore": "!*.csv\n", "keep/d.csv": "1",
        "data/.codeqaignore": "!e.py\n", "data/e.py": "1",
        "keep/.Git/f.py": "1",  # an index cannot hold it
    }  # fmt: skip
    root = write(tmp_path / "repo", files)
    for _ in range(2):
        found = walk(root, max_file_bytes=LIMIT)
        assert paths(found) == [
            ".codeqaignore", ".gitignore", "a.py", "keep/.Git/f.py", "keep/.codeqaignore",
            "keep/d.csv",
        ]  # fmt: skip
        excluded = [path for path, why in reasons(found).items() if ".codeqaignore" in why]
        assert excluded == ["c.csv", "data/.codeqaignore", "data/e.py"]
        git(root, "init", "-q")


# --- what is never opened --------------------------------------------------------------------


def test_links_are_not_followed(repo: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "1", "deep/x.py": "1", "in.py": "1"})
    write(repo, {"real.py": "1", "folder/in.py": "1"})
    (repo / "same.py").symlink_to("real.py")
    (repo / "loop").symlink_to(".")
    (repo / "folder" / "up").symlink_to("..")
    (repo / "out.py").symlink_to(outside / "secret.py")
    (repo / "out").symlink_to(outside)
    (repo / "broken").symlink_to("nowhere")
    (repo / "self").symlink_to("self")
    assert paths_of(repo) == ["folder/in.py", "real.py"]
    found = reasons(walk(repo, max_file_bytes=LIMIT))
    assert found["out.py"] == found["out"] == "symbolic link out of the repository"
    assert found["broken"] == found["self"] == "broken symbolic link"
    assert "same.py" not in found and "loop" not in found
    git(repo, "add", "folder/in.py")
    shutil.rmtree(repo / "folder")
    (repo / "folder").symlink_to(outside)  # also where a tracked folder was
    assert paths_of(repo) == ["real.py"]


def test_pipes_and_sockets_are_never_opened(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repo, {"a.py": "1", "tracked.py": "1"})
    git(repo, "add", ".")
    (repo / "tracked.py").unlink()
    os.mkfifo(repo / "tracked.py")
    os.mkfifo(repo / "pipe.py")
    os.mkfifo(repo / ".codeqaignore")
    monkeypatch.chdir(repo)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        assert paths_of(repo) == ["a.py"]


def test_odd_names_are_listed_and_break_nothing(repo: Path) -> None:
    write(repo, {"a.py": "1", "b\nc.py": "1", "käse.py": "1", "tab\t.py": "1", "-x.py": "1"})
    with open(os.fsencode(repo) + b"/caf\xe9.py", "wb") as file:  # noqa: PTH123
        file.write(b"1")
    assert paths_of(repo) == ["-x.py", "a.py", "käse.py"]
    found = walk(repo, max_file_bytes=LIMIT)
    assert set(reasons(found).values()) == {"file name with unprintable characters"}
    assert sorted(reasons(found)) == ["b\\nc.py", "caf\\xe9.py", "tab\\t.py"]


def test_a_path_longer_than_the_system_takes_is_survived(repo: Path) -> None:
    write(repo, {"a.py": "1"})
    folder = os.open(repo, os.O_RDONLY)
    try:
        for _ in range(1_100):  # more, too, than Python calls itself
            os.mkdir("deep", dir_fd=folder)
            inner = os.open("deep", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(os.open("deep.py", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        assert paths_of(repo) == ["a.py"]
    finally:
        os.close(folder)
        subprocess.run(["rm", "-rf", str(repo / "deep")], check=True)  # shutil.rmtree recurses


def test_size_emptiness_and_names_decide_without_reading(repo: Path) -> None:
    write(repo, {"big.py": b"x" * 1_001, "fits.py": b"x" * 1_000, "empty.py": ""})
    names = ["yarn.lock", "logo.png", ".env", "app.min.js", "app.js.map"]
    write(repo, dict.fromkeys(names, "KEY=1"))
    found = walk(repo, max_file_bytes=1_000)
    assert paths(found) == ["fits.py"]
    assert reasons(found) == {
        ".env": "looks like a secret",
        "app.js.map": "source map",
        "app.min.js": "minified",
        "big.py": "larger than 1,000 bytes",
        "empty.py": "empty",
        "logo.png": "binary",
        "yarn.lock": "lock file",
    }


def test_entries_carry_size_and_time_and_are_sorted(repo: Path) -> None:
    write(repo, {"b.py": "12", "a/z.py": "123", "a.py": "1", "Z.py": "1"})
    found = walk(repo, max_file_bytes=LIMIT)
    assert paths(found) == sorted(paths(found)) == ["Z.py", "a.py", "a/z.py", "b.py"]
    assert [entry.size for entry in found.files] == [1, 1, 3, 2]
    assert found.files[0].mtime_ns == (repo / "Z.py").stat().st_mtime_ns
    assert found == walk(repo, max_file_bytes=LIMIT)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_is_listed(tmp_path: Path) -> None:
    root = write(tmp_path / "plain", {"a.py": "1", "closed/b.py": "1"})
    (root / "closed").chmod(0)
    try:
        found = walk(root, max_file_bytes=LIMIT)
    finally:
        (root / "closed").chmod(0o700)
    assert Counter(reasons(found).values()) == {"unreadable: Permission denied": 1}


def test_a_root_that_is_no_folder_is_bad_usage(tmp_path: Path) -> None:
    write(tmp_path, {"file.py": "1"})
    for name in ("missing", "file.py"):
        with pytest.raises(UsageError, match=name):
            walk(tmp_path / name, max_file_bytes=LIMIT)


# --- one file: confined to the root, regular files only, never waiting --------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "outside", {"secret.txt": "secret", "in/secret.txt": "secret"})
    return write(tmp_path / "root", {"a.py": "a\r\n", "b/c.py": b"\xff\0", "käse/d e.py": "d"})


def open_files() -> int:
    """How many this process has, where the system lists them."""
    folder = Path("/proc/self/fd")
    return len([*folder.iterdir()]) if folder.is_dir() else 0


def test_a_file_is_read_byte_for_byte_up_to_a_limit(root: Path) -> None:
    assert read_file(root, "b/c.py") == b"\xff\0"
    assert read_file(root, "käse/d e.py") == b"d"
    (root.parent / "link").symlink_to(root)
    before = open_files()
    assert read_file(root.parent / "link", "a.py") == b"a\r\n"
    data, status = read_with_status(root, "a.py", max_bytes=3)
    assert (data, status.st_size) == (b"a\r\n", 3)
    with pytest.raises(RepositoryError, match=r"a\.py cannot be read"):
        read_file(root, "a.py", max_bytes=2)
    assert open_files() == before


ELSEWHERE = [
    "", ".", "..", "/", "../outside/secret.txt", "b/../../outside/secret.txt", "b/../a.py",
    "./a.py", "b//c.py", "/etc/passwd", "b", "b/", "a.py/", "a.py/x", "missing.py",
    "missing/x.py", "a.py\0", "link.py", "folder/secret.txt", "inner/c.py", "pipe",
]  # fmt: skip


def test_a_path_that_leads_anywhere_else_is_not_found_and_left_open(root: Path) -> None:
    outside = root.parent / "outside"
    (root / "link.py").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "inner").symlink_to("b")
    os.mkfifo(root / "pipe")
    before = open_files()
    for path in ELSEWHERE:
        with pytest.raises(NotFoundError):
            pytest.fail(f"{path!r}: {read_file(root, path)!r}")
    assert open_files() == before


def test_a_folder_that_is_swapped_for_a_link_while_reading_leaks_nothing(root: Path) -> None:
    outside = root.parent / "outside" / "in"
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("harmless")
    real, link = root / "swap", root / "swap-link"
    link.symlink_to(outside)
    seen = set()

    def read() -> None:
        with suppress(NotFoundError):
            seen.add(read_file(root, "swap/secret.txt"))

    with read_meanwhile(read):
        for _ in range(1_000):
            real.rename(root / "swap-real")
            link.rename(real)
            real.rename(link)
            (root / "swap-real").rename(real)
    read()
    assert seen == {b"harmless"}
