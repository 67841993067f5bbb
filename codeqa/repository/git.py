"""The one place that runs git to read: which files there are, and what changed in them (`clones`
brings repositories from elsewhere).

A repository is somebody else's data, and its configuration can name commands. Git is
therefore run so that none of them is executed: no file-system monitor, hook, pager,
credential helper or transport, no fetching of missing objects, and nothing that the
caller's environment points elsewhere. `ls-files` by itself runs no filter, diff or
text conversion; a command that compares versions is told to run none (`history`).
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
    # A version of a file that is larger is told as changed and not unpacked to be compared.
    "core.bigFileThreshold=5m",
    # What is printed is read: as it is without a configuration.
    "color.ui=never",
    "color.diff=never",
    "diff.submodule=short",
    "blame.coloring=none",
    "i18n.logOutputEncoding=UTF-8",
    f"diff.orderFile={os.devnull}",
    # Names that other systems forbid are names all the same.
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
"""What of the caller's GIT_* remains: where the user's own configuration lies."""

_HISTORY = b"HEAD objects refs packed-refs logs reftable worktrees config config.worktree".split()
"""What a git directory tells history from."""

_OPENED = (
    b"HEAD commondir config config.worktree index info/exclude info/attributes packed-refs shallow"
).split()
"""What git opens in a git directory by its name."""

_WORK_TREE = re.compile(rb"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)
"""In the configuration of a submodule: where its files are."""

_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*/)': (.*)$", re.MULTILINE)

_REFS_LOOKED_AT = 1_000
"""Folders of them: a link may lead into the whole file system."""


class Listing(NamedTuple):
    """What git says of a folder; all names are relative to it, and unsorted."""

    names: list[bytes]
    """Files. Names of nested repositories end in `/`; submodules go by their bare name; files
    that are tracked but gone are still named."""
    unreadable: list[tuple[bytes, bytes]]
    """Folders that could not be opened, and why."""
    untracked: set[bytes]
    """Those of the names that git would track."""


class Git(NamedTuple):
    """A git that no repository brought along."""

    program: str
    """Its absolute path."""
    path: str
    """PATH for what it runs, which leads into no repository either."""


def find_git(*roots: Path) -> Git:
    """The git to run, outside of the repositories at `roots`; looked for in `program_folders`.

    Raises RepositoryError when there is none.
    """
    untrusted, folders = _untrusted_folders(roots), program_folders(*roots)
    for folder in folders:
        found = shutil.which("git", path=folder)
        # A link to the program may lead into the repository.
        if found and not _lies_in(Path(found), untrusted):
            return Git(found, os.pathsep.join(folders))
    raise RepositoryError(
        "git was not found.",
        "Install git: its folder must be in PATH, outside of repository and current folder.",
    )


def program_folders(*roots: Path) -> list[str]:
    """The folders of PATH that hold no program of a repository's.

    Entries that are empty or relative are left out, and those inside one of `roots`, inside the
    work tree around it, or inside the current folder (unless that is the whole file system).
    """
    untrusted = _untrusted_folders(roots)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [f for f in folders if os.path.isabs(f) and not _lies_in(Path(f), untrusted)]


def _untrusted_folders(roots: Iterable[Path]) -> set[Path]:
    """The current folder, `roots`, the work trees around them, and those whose objects they
    borrow, as what is kept of one commit does."""
    folders = set()
    with suppress(OSError):  # the current folder may be gone
        current = Path.cwd()
        if current != Path(current.anchor):
            folders.add(current)
    for root in roots:
        real = os.fsencode(root.resolve())
        lender = line_of((git_directory(real) or real) + b"/objects/info/alternates")
        trees = (work_tree(one) for one in (real, lender) if os.path.isabs(one))
        folders |= {Path(os.fsdecode(one)) for one in (real, *trees) if one}
    return folders


def _lies_in(path: Path, folders: set[Path]) -> bool:
    """Whether `path`, as it is written or where its links lead, is or lies in one of `folders`."""
    real = path.resolve()
    return not folders.isdisjoint({path, *path.parents, real, *real.parents})


def read_git(
    git: Git, folder: Path, arguments: Sequence[str], seconds: float, given: bytes = b""
) -> bytes | None:
    """What a git command that only reads prints; None when it fails or takes longer. `given` is its
    standard input. Raises RepositoryError where it would read another repository than the one at
    `folder`."""
    top, done = work_tree(os.fsencode(folder)), None
    if top is None or holding_up(top):
        return None
    own = _own_directories(folder, top)
    with suppress(TimeoutError):
        done = _run(git, ["-C", folder, *arguments], seconds, given, **own)
    _own_directories(folder, top)  # it may have been changed meanwhile
    return done.stdout if done and not done.returncode else None


def _own_directories(folder: Path, top: bytes) -> dict[str, str]:
    """Return the variables that name what git reads for `folder`, so that it looks for nothing by
    rules of its own. Raises RepositoryError where the history would be another repository's."""
    try:
        top = os.path.realpath(top)
        directory = os.path.realpath(git_directory(top) or top)
        common = os.path.realpath(os.path.join(directory, line_of(directory + b"/commondir")))
        other = not is_same(folder) or _leads_elsewhere(top, directory, common)
    except OSError:  # a link is being replaced
        other = True
    if other:
        raise RepositoryError(
            "Its history is not told: its git directory leads to another repository.",
            "A clone made with --shared or --reference has its own after `git repack -a -d` and "
            "`rm .git/objects/info/alternates`.",
        )
    return {
        "GIT_DIR": os.fsdecode(directory),
        "GIT_COMMON_DIR": os.fsdecode(common),
        "GIT_OBJECT_DIRECTORY": os.fsdecode(common + b"/objects"),
        "GIT_WORK_TREE": os.fsdecode(top),
    }


def list_files(
    git: Git, folder: bytes, seconds: float, place: Sequence[bytes] = (), rules: bool = True
) -> Listing | None:
    """What git tracks or would track under `folder`; `place` are options that say for which
    repository, if not for its own. Without `rules` no ignore file is opened.

    None: git refuses (no work tree, another user's repository, a broken one).
    Raises TimeoutError.
    """
    asked = ("ls-files", "-tz", "--cached", "--others", *["--exclude-standard"] * rules)
    done = _run(git, [*place, "-C", folder, *asked], seconds)
    if done.returncode:
        return None
    told = done.stdout.split(b"\0")[:-1]
    untracked = {one[2:] for one in told if one.startswith(b"? ")}
    return Listing([one[2:] for one in told], _UNREADABLE.findall(done.stderr), untracked)


def list_plain_files(
    git: Git, folder: bytes, tree: bytes, excluded: Iterable[bytes] | None, seconds: float
) -> Listing:
    """What the ignore rules in `tree`, which holds `folder`, leave of `folder`.

    For folders outside of git and for repositories that git refuses: an empty repository of
    ours stands in for theirs. `excluded` are patterns that count beside the ignore files; None:
    not even these are opened.
    Raises TimeoutError, and RepositoryError when git fails.
    """
    with _empty_repository() as repository:
        with open(repository + b"/info/exclude", "wb") as rules:
            rules.write(b"\n".join(excluded or ()))
        place = [b"--git-dir=" + repository, b"--work-tree=" + tree]
        if listing := list_files(git, folder, seconds, place, excluded is not None):
            return listing
    raise RepositoryError(
        f"git cannot list {os.fsdecode(folder)}.", "It must be git 2.17 or newer."
    )


def excluded_by(
    git: Git, names: Iterable[bytes], rules: Mapping[bytes, bytes], seconds: float
) -> set[bytes]:
    """Those of `names` that rules leave out; `rules` are contents of rule files by their folders.

    Git is given copies of the rule files and the names, and sees nothing of the repository.
    Raises TimeoutError, and RepositoryError when git fails.
    """
    failed = RepositoryError("git cannot apply the ignore rules.", "Look at the ignore files.")
    with _empty_repository() as repository, tempfile.TemporaryDirectory() as scratch:
        tree = os.fsencode(scratch)
        try:
            for folder, content in rules.items():
                os.makedirs(tree + b"/" + folder, exist_ok=True)
                with open(tree + b"/" + folder + b".gitignore", "wb") as file:
                    file.write(content)
        except OSError:  # too long a path, a full disk
            raise failed from None
        # The user's own ignore file is none of these rules.
        asked = ["-c", f"core.excludesFile={os.devnull}"]
        place = [b"--git-dir=" + repository, b"--work-tree=" + tree, b"-C", tree]
        given = b"\0".join(b"./" + name for name in names)  # `:x` alone would mean something
        command = ("check-ignore", "--no-index", "-z", "--stdin")
        done = _run(git, [*asked, *place, *command], seconds, given)
    if done.returncode not in (0, 1):  # 1: none of them
        raise failed
    return {name.removeprefix(b"./") for name in done.stdout.split(b"\0")[:-1]}


@contextmanager
def _empty_repository() -> Iterator[bytes]:
    """A git directory of our own, without configuration, for a moment."""
    with tempfile.TemporaryDirectory(prefix="codeqa-git-") as folder:
        for name in ("objects", "refs", "info"):
            Path(folder, name).mkdir()
        Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
        yield os.fsencode(folder)


Done = subprocess.CompletedProcess[bytes]


def _run(git: Git, words: Sequence[Any], seconds: float, given: bytes = b"", **own: str) -> Done:
    """Run git with `given` as its standard input and `own` variables. Raises TimeoutError.

    Where it cannot be started, its exit status is -1.
    """
    try:
        return subprocess.run(
            [*guarded(git, (*SETTINGS, "credential.helper=")), *words],
            cwd=Path(git.program).anchor or None,
            env=safe_environment(git) | own,
            input=given,
            capture_output=True,
            timeout=max(seconds, 0.001),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git took longer than {seconds:.0f} seconds") from None
    except (OSError, ValueError):
        return subprocess.CompletedProcess([], -1, b"", b"")


def guarded(git: Git, settings: Iterable[str]) -> list[str]:
    """The beginning of a command of git, in which `settings` are above every configuration."""
    return [git.program, "--no-pager", *(part for setting in settings for part in ("-c", setting))]


def safe_environment(git: Git) -> dict[str, str]:
    """The caller's variables without those of git's, and without a way to ask or to fetch."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return kept | {
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
    """Top of the work tree that `folder` lies in; None outside of git."""
    while git_directory(folder) is None:
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def git_directory(folder: bytes) -> bytes | None:
    """The git directory of the work tree whose top is `folder`; None when it is no top."""
    marker = folder + b"/.git"
    if os.path.isdir(marker):
        return marker if os.path.exists(marker + b"/HEAD") else None
    line = b"" if os.path.islink(marker) else line_of(marker)
    if not line.startswith(b"gitdir:"):
        return None
    target = os.path.join(folder, line[7:].strip(b" \t\r\n"))
    return target if os.path.exists(target + b"/HEAD") else None


def holding_up(tree: bytes) -> bytes:
    """What in the git directory of the work tree `tree` is no file, as a pipe that git would wait
    at without end; '' where there is nothing of that kind."""
    own = git_directory(tree) or tree
    places = (own, os.path.join(own, line_of(own + b"/commondir")))
    opened = (os.path.join(place, name) for place in places for name in _OPENED)
    return next((one for one in opened if os.path.exists(one) and not os.path.isfile(one)), b"")


def _leads_elsewhere(top: bytes, directory: bytes, common: bytes) -> bool:
    """Whether the git directories of the work tree `top` hold the history of another repository:
    the file `.git`, `commondir`, links at any depth and alternates may name any.

    What lies below the work tree is its own, and so is what knows it: the repository that `git
    worktree add` noted it in, and of one above the submodule that it is. What CodeQA keeps of one
    commit borrows the objects of its repository, which has them itself.
    """
    noted = os.path.realpath(os.path.join(directory, line_of(directory + b"/gitdir")))
    own = [top]
    if noted == top + b"/.git" and os.path.dirname(directory) == common + b"/worktrees":
        own.append(common)
    tree = _WORK_TREE.search(line_of(directory + b"/config"))
    if tree and os.path.realpath(os.path.join(directory, tree[1])) == top:
        above = (os.fsencode(one) for one in Path(os.fsdecode(top)).parents)
        own += [directory for one in above if directory.startswith(one + b"/.git/modules/")]
    places = {os.path.join(one, part) for one in (directory, common) for part in _HISTORY}
    lender = common + b"/objects"
    if os.fsdecode(top) in BORROWERS and (borrowed := line_of(lender + b"/info/alternates")):
        lender = borrowed
        own.append(lender)
        places.add(lender)
    trusted, seen = tuple(one + b"/" for one in own), set[bytes]()
    while places:
        real = os.path.realpath(places.pop())
        if not (real + b"/").startswith(trusted):
            return True
        seen.add(real)
        for entry in _entries_below(real):
            if not (entry.is_file() or entry.is_dir()):  # a pipe would keep git waiting
                return True
            if entry.is_symlink():
                places |= {os.path.realpath(entry.path)} - seen
    return os.path.lexists(lender + b"/info/alternates")


def _entries_below(folder: bytes) -> Iterator[os.DirEntry[bytes]]:
    """Yield all in `folder`, at any depth, but the folders."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry


def line_of(path: bytes) -> bytes:
    """What a small file of git's says; '' for none, also where a pipe would keep us waiting."""
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(10_000).partition(b"\0")[0].strip()
    return b""


def is_linked_work_tree(folder: bytes) -> bool:
    """Whether `folder` is a further work tree of a repository (`git worktree add`)."""
    directory = git_directory(folder)
    return directory is not None and os.path.isfile(directory + b"/commondir")


def refs_state(tree: bytes) -> tuple[int, ...]:
    """Return another value once a commit, a branch or the configuration of the work tree `tree`
    changes: git renames what it writes into its folder."""
    own = git_directory(tree) or tree
    common = os.path.join(own, line_of(own + b"/commondir"))
    walks = (os.walk(os.path.join(common, one)) for one in (b"refs", b"reftable"))
    folders = [folder for folder, *_ in islice(chain.from_iterable(walks), _REFS_LOOKED_AT)]
    single = [os.path.join(common, one) for one in (own + b"/HEAD", b"config", b"packed-refs")]
    times = []
    for one in (*single, *folders):
        with suppress(OSError):  # there is none, or none any more
            times.append(os.stat(one).st_mtime_ns)
    return tuple(times)
