"""The one place that runs git: to read which files there are and what changed in them, and to
bring clones of our own (`clones`).

A repository is somebody else's data, and its configuration can name commands. Git is
therefore run so that none of them is executed: no file-system monitor, hook, pager,
credential helper or transport, no fetching of missing objects, and nothing that the
caller's environment points elsewhere. `ls-files` by itself runs no filter, diff or
text conversion; a command that compares versions is told to run none (`history`).
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH103, PTH110, PTH112, PTH113, PTH114, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from codeqa.errors import RepositoryError

CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.alternateRefsCommand=",
    # A version of a file that is larger is told as changed and not unpacked to be compared.
    "core.bigFileThreshold=5m",
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

_HISTORY = (b"", b"HEAD", b"objects", b"refs", b"packed-refs")
"""What a git directory tells history from."""

_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*)/': (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Listing:
    """What git says of a folder; all names are relative to it, and unsorted."""

    names: list[bytes]
    """Files. Names of nested repositories end in `/`; submodules go by their bare name; files
    that are tracked but gone are still named."""
    ignored: list[bytes]
    """Folders that the ignore rules leave out, with a `/` at the end, where that was asked."""
    unreadable: list[tuple[bytes, str]]
    """Folders that could not be opened, and why."""


def find_git(root: Path | None = None) -> str:
    """Absolute path of the `git` to run, never one that a repository brings along.

    It is looked for in `program_folders(root)`. Raises RepositoryError when there is none.
    """
    untrusted = _untrusted_folders(root)
    for folder in program_folders(root):
        found = shutil.which("git", path=folder)
        # A link to the program may lead into the repository.
        if found and not _lies_in(Path(found), untrusted):
            return found
    raise RepositoryError(
        "git was not found.",
        "Install git: its folder must be in PATH, outside of repository and current folder.",
    )


def program_folders(root: Path | None = None) -> list[str]:
    """The folders of PATH that hold no program of a repository's.

    Entries that are empty or relative are left out, and those inside `root`, inside the work
    tree around it, or inside the current folder (unless that is the whole file system).
    """
    untrusted = _untrusted_folders(root)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [f for f in folders if os.path.isabs(f) and not _lies_in(Path(f), untrusted)]


@contextmanager
def trusted_programs(root: Path | None) -> Iterator[None]:
    """For a moment PATH is `program_folders(root)`, for what looks programs up by itself."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = os.pathsep.join(program_folders(root))
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _untrusted_folders(root: Path | None) -> set[Path]:
    """The current folder, `root` and the work tree around it."""
    folders = set()
    with suppress(OSError):  # the current folder may be gone
        current = Path.cwd()
        if current != Path(current.anchor):
            folders.add(current)
    if root is not None:
        real = root.resolve()
        folders |= {real, Path(os.fsdecode(work_tree(os.fsencode(real)) or os.fsencode(real)))}
    return folders


def _lies_in(path: Path, folders: set[Path]) -> bool:
    """Whether `path`, as it is written or where its links lead, is or lies in one of `folders`."""
    real = path.resolve()
    return not folders.isdisjoint({path, *path.parents, real, *real.parents})


def read_git(
    git: str, folder: Path, arguments: Sequence[str], seconds: float, given: bytes = b""
) -> bytes | None:
    """What a git command that only reads prints; None when it fails or takes longer, or where it
    would read a repository other than the one at `folder`. `given` is its standard input."""
    if _leads_elsewhere(os.fsencode(folder)):
        return None
    with suppress(TimeoutError):
        done = _run(git, ["-C", folder, *arguments], seconds, given)
        return None if done.returncode else done.stdout
    return None


def list_files(git: str, folder: bytes, seconds: float) -> Listing | None:
    """What git tracks or would track under `folder`.

    None: git refuses (no work tree, another user's repository, a broken one).
    Raises TimeoutError.
    """
    asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    done = _run(git, ["-C", folder, *asked], seconds)
    if done.returncode:
        return None
    return Listing(done.stdout.split(b"\0")[:-1], [], _unreadable(done.stderr))


def list_plain_files(
    git: str, folder: bytes, tree: bytes, excluded: Iterable[bytes], seconds: float
) -> Listing:
    """What the ignore rules in `tree`, which holds `folder`, leave of `folder`.

    For folders outside of git and for repositories that git refuses: an empty repository of
    ours stands in for theirs. `excluded` are patterns that count beside the ignore files.
    Raises TimeoutError, and RepositoryError when git fails.
    """
    with _empty_repository() as repository:
        with open(repository + b"/info/exclude", "wb") as rules:
            rules.write(b"\n".join(excluded))
        place = [b"--git-dir=" + repository, b"--work-tree=" + tree, b"-C", folder]
        asked = ("status", "--porcelain", "-z", "--no-renames", "-uall", "--ignored=matching")
        done = _run(git, [*place, *asked, "--", "."], seconds)
    if done.returncode:
        raise RepositoryError(
            f"git cannot list {os.fsdecode(folder)}.", "It must be git 2.17 or newer."
        )
    prefix = (folder[len(tree) :].strip(b"/") + b"/").removeprefix(b"/")
    entries = [(e[:2], e[3:].removeprefix(prefix)) for e in done.stdout.split(b"\0")[:-1]]
    names = [name for state, name in entries if state == b"??"]
    ignored = [name for state, name in entries if state == b"!!" and name.endswith(b"/")]
    return Listing(names, ignored, _unreadable(done.stderr))


def excluded_by(
    git: str, names: Iterable[bytes], rules: Mapping[bytes, bytes], seconds: float
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


def _run(
    git: str, arguments: Sequence[str | bytes | Path], seconds: float, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git with `given` as its standard input. Raises TimeoutError.

    Where it cannot be started, its exit status is -1.
    """
    try:
        return subprocess.run(
            [*guarded(git, (*CONFIG, "credential.helper=")), *arguments],
            cwd=Path(git).anchor or None,
            env=environment(),
            input=given,
            capture_output=True,
            timeout=max(seconds, 0.001),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git took longer than {seconds:.0f} seconds") from None
    except (OSError, ValueError):
        return subprocess.CompletedProcess([], -1, b"", b"")


def guarded(git: str, settings: Iterable[str]) -> list[str]:
    """The beginning of a command of git, in which `settings` are above every configuration."""
    return [git, "--no-pager", *(part for setting in settings for part in ("-c", setting))]


def _unreadable(warnings: bytes) -> list[tuple[bytes, str]]:
    return [(name + b"/", why.decode()) for name, why in _UNREADABLE.findall(warnings)]


def environment() -> dict[str, str]:
    """The caller's variables without those of git's, and without a way to ask or to fetch."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return kept | {
        "PATH": os.pathsep.join(program_folders()),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # Older gits fetch a missing object all the same; then no transport is permitted.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
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
    if os.path.islink(marker) or not os.path.isfile(marker):
        return None
    line = _line_of(marker)
    if not line.startswith(b"gitdir:"):
        return None
    target = os.path.join(folder, line[7:].strip(b" \t\r\n"))
    return target if os.path.exists(target + b"/HEAD") else None


def _leads_elsewhere(folder: bytes) -> bool:
    """Whether git would tell the history of another repository: the file `.git`, `commondir` and
    links in a git directory may name any.

    What lies below the work tree is its own, and so is what knows it: the repository that
    `git worktree add` noted it in, and one above that has it as a submodule.
    """
    top = os.path.realpath(work_tree(folder) or folder)
    directory = os.path.realpath(git_directory(top) or top)
    common = os.path.realpath(os.path.join(directory, _line_of(directory + b"/commondir")))
    noted = os.path.realpath(os.path.join(directory, _line_of(directory + b"/gitdir")))
    above = [os.fsencode(one) for one in Path(os.fsdecode(top)).parents]
    own = [top, *(os.path.join(one, b".git/modules") for one in above)]
    if noted == top + b"/.git" and os.path.dirname(directory) == common + b"/worktrees":
        own.append(common)
    places = {os.path.join(one, part) for one in (directory, common) for part in _HISTORY}
    trusted = tuple(one + b"/" for one in own)
    return not all((os.path.realpath(one) + b"/").startswith(trusted) for one in places)


def _line_of(path: bytes) -> bytes:
    """What a small file of git's says; '' for none, also where a pipe would keep us waiting."""
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(10_000).strip()
    return b""


def is_linked_work_tree(folder: bytes) -> bool:
    """Whether `folder` is a further work tree of a repository (`git worktree add`)."""
    directory = git_directory(folder)
    return directory is not None and os.path.isfile(directory + b"/commondir")
