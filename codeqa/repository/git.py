"""Run git to read: list the files of a repository and what changed in them.

No other module reads with git; `clones` copies repositories with it. A repository is somebody
else's data, and its configuration can name commands. Git is therefore run so that none of them is
executed: no file-system monitor, hook, pager, credential helper or transport, no fetching of
missing objects, and nothing that the caller's environment points elsewhere. `ls-files` by itself
runs no filter, diff or text conversion; options forbid them to a command that compares versions
(`history`).
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH103, PTH110, PTH112, PTH113, PTH114, PTH116, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from codeqa.errors import RepositoryError
from codeqa.folders import BORROWERS, is_same

SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.alternateRefsCommand=",
    # Larger files count as changed and are not unpacked to be compared.
    "core.bigFileThreshold=5m",
    # Our code reads what git prints, which must not depend on the user's configuration.
    "color.ui=never",
    "color.diff=never",
    "diff.submodule=short",
    "blame.coloring=none",
    "i18n.logOutputEncoding=UTF-8",
    f"diff.orderFile={os.devnull}",
    # Names that other systems forbid are valid here.
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)

_KEPT_VARIABLES = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
)
"""The caller's GIT_* variables that git still sees: they say where the user's configuration is."""

_HISTORY = b"HEAD objects refs packed-refs logs reftable worktrees config config.worktree".split()
"""Entries of a git directory from which git reads the history."""

_OPENED = (
    b"HEAD commondir config config.worktree index info/exclude info/attributes packed-refs shallow"
).split()
"""Files that git opens in a git directory by their names."""

_WORK_TREE = re.compile(rb"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)
"""The line in a submodule's configuration that says where its files are."""

_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*/)': (.*)$", re.MULTILINE)

_MOST_REF_FOLDERS = 1_000
"""Folders of refs that are looked at: a link may lead into the whole file system."""


class Listing(NamedTuple):
    """The files of a folder as git lists them; names are relative to it, and unsorted."""

    names: list[bytes]
    """Files. Names of nested repositories end in `/`, those of submodules do not; files that are
    tracked but deleted are included."""
    unreadable: list[tuple[bytes, bytes]]
    """Folders that could not be opened, and why."""
    untracked: set[bytes]
    """The names that git would track but does not yet."""


class Git(NamedTuple):
    """A git that is not part of a repository."""

    program: str
    """Its absolute path."""
    path: str
    """PATH for programs that git runs; it leads into no repository either."""


def find_git(*roots: Path) -> Git:
    """Return the git to run, found in `program_folders` and outside of the repositories at `roots`.

    Raises RepositoryError when there is none.
    """
    untrusted, folders = _untrusted_folders(roots), program_folders(*roots)
    for folder in folders:
        program = shutil.which("git", path=folder)
        # A link to the program may lead into the repository.
        if program and not _lies_in(Path(program), untrusted):
            return Git(program, os.pathsep.join(folders))
    raise RepositoryError(
        "git was not found.",
        "Install git: its folder must be in PATH, but not in the repository or current folder.",
    )


def program_folders(*roots: Path) -> list[str]:
    """Return the folders of PATH that belong to no repository.

    Entries that are empty or relative are left out, and those inside one of `roots`, inside the
    work tree around it, or inside the current folder (unless that is the whole file system).
    """
    untrusted = _untrusted_folders(roots)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = filter(os.path.isabs, folders)
    return [folder for folder in absolute if not _lies_in(Path(folder), untrusted)]


def _untrusted_folders(roots: Iterable[Path]) -> set[Path]:
    """Return the folders whose programs are not run.

    They are the current folder, `roots`, the work trees around them, and the work trees whose
    objects they borrow, as snapshots do.
    """
    folders = set()
    with suppress(OSError):  # the current folder may be gone
        current = Path.cwd()
        if current != Path(current.anchor):
            folders.add(current)
    for root in roots:
        real = os.fsencode(root.resolve())
        lender = line_of((git_directory(real) or real) + b"/objects/info/alternates")
        folders.add(Path(os.fsdecode(real)))
        for path in (real, lender):
            tree = work_tree(path) if os.path.isabs(path) else None
            if tree:
                folders.add(Path(os.fsdecode(tree)))
    return folders


def _lies_in(path: Path, folders: set[Path]) -> bool:
    """Return whether `path`, as written or with links resolved, is or lies in one of `folders`."""
    real = path.resolve()
    return not folders.isdisjoint({path, real}.union(path.parents, real.parents))


def read_git(
    git: Git, folder: Path, arguments: Sequence[str], seconds: float, stdin: bytes = b""
) -> bytes | None:
    """Return what a git command that only reads prints; None when it fails or takes longer.

    Raises RepositoryError where it would read another repository than the one at `folder`.
    """
    top, result = work_tree(os.fsencode(folder)), None
    if top is None or holding_up(top):
        return None
    directories = _git_directories(folder, top)
    with suppress(TimeoutError):
        result = _run(git, ["-C", folder, *arguments], seconds, stdin, **directories)
    _git_directories(folder, top)  # they may have been changed meanwhile
    return result.stdout if result and not result.returncode else None


def _git_directories(folder: Path, top: bytes) -> dict[str, str]:
    """Return variables with the directories that git reads for `folder`, so that it seeks none.

    Raises RepositoryError where the history would be another repository's.
    """
    try:
        top = os.path.realpath(top)
        directory = os.path.realpath(git_directory(top) or top)
        common = os.path.realpath(os.path.join(directory, line_of(directory + b"/commondir")))
        foreign = not is_same(folder) or _leads_elsewhere(top, directory, common)
    except OSError:  # a link is being replaced
        foreign = True
    if foreign:
        raise RepositoryError(
            "The history is not shown: the git directory leads to another repository.",
            "If the clone was made with --shared or --reference, run `git repack -a -d` and "
            "`rm .git/objects/info/alternates` in it: then it has a history of its own.",
        )
    return {
        "GIT_DIR": os.fsdecode(directory),
        "GIT_COMMON_DIR": os.fsdecode(common),
        "GIT_OBJECT_DIRECTORY": os.fsdecode(common + b"/objects"),
        "GIT_WORK_TREE": os.fsdecode(top),
    }


def list_files(
    git: Git, folder: bytes, seconds: float, options: Sequence[bytes] = (), rules: bool = True
) -> Listing | None:
    """List what git tracks or would track under `folder`; without `rules` open no ignore file.

    `options` of git name the repository, if it is not the folder's own. Returns None when git
    refuses (no work tree, another user's repository, a broken one). Raises TimeoutError.
    """
    command = ["ls-files", "-tz", "--cached", "--others"]
    if rules:
        command.append("--exclude-standard")
    result = _run(git, [*options, "-C", folder] + command, seconds)
    if result.returncode:
        return None
    lines = result.stdout.split(b"\0")[:-1]  # a letter for the state, a space, the name
    untracked = {line[2:] for line in lines if line.startswith(b"? ")}
    names = [line[2:] for line in lines]
    return Listing(names, _UNREADABLE.findall(result.stderr), untracked)


def list_plain_files(
    git: Git, folder: bytes, tree: bytes, excluded: Iterable[bytes] | None, seconds: float
) -> Listing:
    """List the files of `folder` that the ignore rules in `tree`, which holds it, do not exclude.

    For folders outside of git and for repositories that git refuses: an empty repository of ours
    takes the place of theirs. `excluded` are patterns beside those of the ignore files; with None
    these are not opened either. Raises TimeoutError, and RepositoryError when git fails.
    """
    with _empty_repository() as repository:
        with open(repository + b"/info/exclude", "wb") as rules:
            rules.write(b"\n".join(excluded or ()))
        options = [b"--git-dir=" + repository, b"--work-tree=" + tree]
        if listing := list_files(git, folder, seconds, options, excluded is not None):
            return listing
    raise RepositoryError(f"git cannot list {os.fsdecode(folder)}.", "Install git 2.17 or newer.")


def excluded_by(
    git: Git, names: Iterable[bytes], rules: Mapping[bytes, bytes], seconds: float
) -> set[bytes]:
    """Return the `names` that rules exclude; `rules` maps folders to contents of rule files.

    Git gets copies of the rule files and the names, and sees nothing of the repository. Raises
    TimeoutError, and RepositoryError when git fails.
    """
    failure = RepositoryError("git cannot apply the ignore rules.", "Check the ignore files.")
    with _empty_repository() as repository, tempfile.TemporaryDirectory() as scratch:
        tree = os.fsencode(scratch)
        try:
            for folder, content in rules.items():
                os.makedirs(tree + b"/" + folder, exist_ok=True)
                with open(tree + b"/" + folder + b".gitignore", "wb") as file:
                    file.write(content)
        except OSError:  # too long a path, a full disk
            raise failure from None
        options: list[str | bytes] = [b"--git-dir=" + repository, b"--work-tree=" + tree]
        # The user's own ignore file does not count.
        options += [b"-C", tree, "-c", f"core.excludesFile={os.devnull}"]
        stdin = b"\0".join(b"./" + name for name in names)  # a bare `:x` has a meaning for git
        command = ["check-ignore", "--no-index", "-z", "--stdin"]
        result = _run(git, options + command, seconds, stdin)
    if result.returncode not in (0, 1):  # 1: none of them
        raise failure
    return {name.removeprefix(b"./") for name in result.stdout.split(b"\0")[:-1]}


@contextmanager
def _empty_repository() -> Iterator[bytes]:
    """Yield a temporary git directory without configuration."""
    with tempfile.TemporaryDirectory(prefix="codeqa-git-") as folder:
        for name in ("objects", "refs", "info"):
            Path(folder, name).mkdir()
        Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
        yield os.fsencode(folder)


def _run(
    git: Git, arguments: Sequence[Any], seconds: float, stdin: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run git with additional environment `variables`. Raises TimeoutError.

    Where it cannot be started, its exit status is -1.
    """
    try:
        return subprocess.run(
            guarded(git, SETTINGS + ("credential.helper=",)) + list(arguments),
            cwd=Path(git.program).anchor or None,
            env=safe_environment(git) | variables,
            input=stdin,
            capture_output=True,
            timeout=max(seconds, 0.001),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git took longer than {seconds:.0f} seconds") from None
    except (OSError, ValueError):
        return subprocess.CompletedProcess([], -1, b"", b"")


def guarded(git: Git, settings: Iterable[str]) -> list[str]:
    """Return the beginning of a git command whose `settings` override every configuration."""
    command = [git.program, "--no-pager"]
    for setting in settings:
        command += ["-c", setting]
    return command


def safe_environment(git: Git) -> dict[str, str]:
    """Return the caller's environment without git's variables, and unable to prompt or fetch."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return variables | {
        "PATH": git.path,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # Older gits fetch a missing object all the same; then no transport is permitted.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_PAGER": "cat",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "LC_ALL": "C",
    }


def work_tree(folder: bytes) -> bytes | None:
    """Return the top of the work tree that `folder` lies in; None outside of git."""
    while git_directory(folder) is None:
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def git_directory(folder: bytes) -> bytes | None:
    """Return the git directory of the work tree whose top is `folder`; None when it is no top."""
    marker = folder + b"/.git"
    if os.path.isdir(marker):
        return marker if os.path.exists(marker + b"/HEAD") else None
    line = b"" if os.path.islink(marker) else line_of(marker)
    if not line.startswith(b"gitdir:"):
        return None
    target = os.path.join(folder, line[7:].strip(b" \t\r\n"))
    return target if os.path.exists(target + b"/HEAD") else None


def holding_up(tree: bytes) -> bytes:
    """Return the path of a pipe or the like where git expects a file of `tree`, else ''.

    Git would wait at a pipe without end.
    """
    directory = git_directory(tree) or tree
    for folder in (directory, os.path.join(directory, line_of(directory + b"/commondir"))):
        for name in _OPENED:
            path = os.path.join(folder, name)
            if os.path.exists(path) and not os.path.isfile(path):
                return path
    return b""


def _leads_elsewhere(top: bytes, directory: bytes, common: bytes) -> bool:
    """Return whether the git directories of the work tree `top` use another repository's history.

    The file `.git`, `commondir`, links at any depth and alternates may lead to any repository.
    """
    trusted = _own_folders(top, directory, common)
    waiting = {os.path.join(one, name) for one in (directory, common) for name in _HISTORY}
    objects = common + b"/objects"
    # A snapshot borrows the objects of its repository, which borrows none itself.
    if os.fsdecode(top) in BORROWERS and (lender := line_of(objects + b"/info/alternates")):
        objects = lender
        trusted.append(lender)
        waiting.add(lender)
    beginnings, visited = tuple(folder + b"/" for folder in trusted), set[bytes]()
    while waiting:
        real = os.path.realpath(waiting.pop())
        if not (real + b"/").startswith(beginnings):
            return True
        visited.add(real)
        for entry in _entries_below(real):
            if not (entry.is_file() or entry.is_dir()):  # git would wait at a pipe
                return True
            if entry.is_symlink():
                waiting |= {os.path.realpath(entry.path)} - visited
    return os.path.lexists(objects + b"/info/alternates")


def _own_folders(top: bytes, directory: bytes, common: bytes) -> list[bytes]:
    """Return the folders whose history is that of the work tree `top`.

    They are the work tree, the repository that `git worktree add` registered it in, and its git
    directory below a repository that it is a submodule of.
    """
    registered = os.path.realpath(os.path.join(directory, line_of(directory + b"/gitdir")))
    folders = [top]
    if registered == top + b"/.git" and os.path.dirname(directory) == common + b"/worktrees":
        folders.append(common)
    tree = _WORK_TREE.search(line_of(directory + b"/config"))
    if tree and os.path.realpath(os.path.join(directory, tree[1])) == top:
        parents = map(os.fsencode, Path(os.fsdecode(top)).parents)
        if directory.startswith(tuple(parent + b"/.git/modules/" for parent in parents)):
            folders.append(directory)
    return folders


def _entries_below(folder: bytes) -> Iterator[os.DirEntry[bytes]]:
    """Yield the entries of `folder` at any depth, except the folders."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry


def line_of(path: bytes) -> bytes:
    """Return the text of a small file of git's; '' for no file, also for a pipe."""
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(10_000).partition(b"\0")[0].strip()
    return b""


def is_linked_work_tree(folder: bytes) -> bool:
    """Return whether `folder` is an additional work tree of a repository (`git worktree add`)."""
    directory = git_directory(folder)
    return directory is not None and os.path.isfile(directory + b"/commondir")


def refs_state(tree: bytes) -> tuple[int, ...]:
    """Return a value that changes with a commit, a branch or the configuration of `tree`.

    It holds times of change: git writes by renaming files into their folder, which changes it.
    """
    directory = git_directory(tree) or tree
    common = os.path.join(directory, line_of(directory + b"/commondir"))
    walks = chain(os.walk(common + b"/refs"), os.walk(common + b"/reftable"))
    paths = [directory + b"/HEAD", common + b"/config", common + b"/packed-refs"]
    paths += [folder for folder, *_ in islice(walks, _MOST_REF_FOLDERS)]
    times = []
    for path in paths:
        with suppress(OSError):  # it does not exist, or not any more
            times.append(os.stat(path).st_mtime_ns)
    return tuple(times)
