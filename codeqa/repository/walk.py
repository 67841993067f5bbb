"""Which files of a repository are to be read: those that git tracks or would track.

Where a folder is in no repository, or git refuses its repository, git applies the ignore files
that lie in it. On top, `.codeqaignore` files (same syntax, nested too) leave out more, and what
names alone decide (lock files, secrets, images, dependencies that git does not track) is left out
without opening it. Nothing is read through a symbolic link, and no pipe, socket or device is ever
opened.
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH110, PTH113, PTH114, PTH208

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codeqa import folders
from codeqa.errors import CodeQAError, NotFoundError, RepositoryError, UsageError
from codeqa.repository.classify import classify, skip_by_name
from codeqa.repository.git import (
    Listing,
    excluded_by,
    find_git,
    git_directory,
    holding_up,
    is_linked_work_tree,
    list_files,
    list_plain_files,
    work_tree,
)
from codeqa.types import Skipped

OWN_IGNORE_FILE = ".codeqaignore"
MAX_RULE_BYTES = 1_000_000
"""Bytes of a `.codeqaignore`; a larger one is no list of rules."""

GIT_SECONDS, SOON_SECONDS = 60.0, 5.0
"""For all calls of git in one walk, and until a pipe in the place of an ignore file is looked for:
it lists 20,000 files in some 30 ms; a minute means that something holds it."""

_TOOLS_AND_OUTPUT = (
    b"__pycache__/ .pytest_cache/ .venv/ .git/ .idea/ venv/ node_modules/ .vscode/ .github/ "
    b".gitlab/ .angular/ cdk.out/ .aws-sam/ .terraform/ .hg/ .svn/ .tox/ .nox/ .mypy_cache/ "
    b".ruff_cache/ .gradle/ .eggs/ bower_components/ /env/ /dist/ /build/"
).split()
"""Ignored where no repository says what is source. The last three are also usual names of
packages: only at the top."""

_MADE = re.compile(
    rb"((?:.*?/)?)(?:node_modules|bower_components|\.?venv|__pycache__|\.tox|\.nox|\.eggs|\.gradle"
    rb"|(target|dist|build))/"
)
"""What package managers and builds fill, up to there. The last three are also usual names of
packages: only beside one of `_PROJECT`."""
_PROJECT = (
    b"Cargo.toml pom.xml build.sbt build.gradle build.gradle.kts package.json setup.py "
    b"pyproject.toml CMakeLists.txt"
).split()

# A pipe that took the file's place must not make the open wait.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

NO_FILE = "not a regular file"

_REFUSED = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOENT, errno.ENOTDIR, errno.EISDIR})

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A name with these would break the line-based forms in which paths are shown and sent."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file to read: path relative to the root with `/`, bytes, time of last change in ns."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    """When anything of it changed, as the system alone says; 0 for before everything."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found, both sorted by path."""

    root: Path
    files: tuple[FileEntry, ...]
    skipped: tuple[Skipped, ...]


def walk(root: Path, *, max_file_bytes: int, own: Iterable[Path] = ()) -> Walk:
    """List the files of `root` that are to be indexed, and those that are not with the reason.

    `root` may be a work tree, a folder inside one, or any other folder. What git ignores is
    normal and not listed. What CodeQA writes itself, the folders `own`, is left out where it
    lies below `root`: every run would find it changed. Raises UsageError when `root` is no
    folder, RepositoryError when it cannot be read or git is missing or does not answer.
    """
    walker = _Walker(checked_root(root))
    try:
        walker.list_files()
        for folder in own:
            walker.drop_folder(folder)
        walker.apply_own_ignores()
        folders.refuse_another(walker.root)  # names are those of the folder that was begun with
    except TimeoutError:
        raise RepositoryError(
            f"git does not list {walker.root} within {GIT_SECONDS:.0f} seconds.",
            "Run 'git status' there, and look at its ignore files.",
        ) from None
    entries = tuple(walker.examine(max_file_bytes))
    return Walk(walker.root, entries, tuple(sorted(walker.skipped, key=lambda item: item.path)))


def require_source(found: Walk) -> None:
    """Raise RepositoryError where no file of `found` can be indexed, with the reasons."""
    reasons = Counter(item.reason for item in found.skipped)
    for entry in found.files:
        try:
            judged = classify(entry.path, read_file(found.root, entry.path))
        except CodeQAError:
            judged = Skipped(entry.path, "unreadable")
        if not isinstance(judged, Skipped):
            return
        reasons[judged.reason] += 1
    counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    holds = f"all files of {found.root} are left out ({counts})"
    if not counts:
        holds = f"{found.root} is empty, or git ignores all that it holds"
    raise RepositoryError(f"no source files here: {holds}.", "Give a folder with source code.")


def checked_root(root: Path) -> Path:
    """The real path of `root`. Raises UsageError or RepositoryError with a sentence."""
    try:
        top = root if str(root) in folders.FOUND else root.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise UsageError(f"There is no folder {root}.", "Give the path of a repository.") from None
    if not top.is_dir():
        raise UsageError(f"{root} is not a folder.", "Give the path of a repository.")
    if (top / "HEAD").is_file() and (top / "objects").is_dir() and (top / "refs").is_dir():
        raise UsageError(
            f"{root} is a bare git directory, without the repository's files.",
            "Clone it, and give the folder of the clone: git clone PATH FOLDER.",
        )
    try:
        with os.scandir(top):
            return top
    except OSError as error:
        raise RepositoryError(
            f"{root} cannot be read: {error.strerror}.", "Check its permissions."
        ) from None


class _Walker:
    """The files below `root`, and what is left out, while a walk goes on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = os.fsencode(root)
        self._git = find_git(root)
        self._until = time.monotonic() + GIT_SECONDS
        self._files: dict[bytes, os.stat_result] = {}
        """Name relative to the root → what lstat says of it."""
        self.skipped: list[Skipped] = []

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _skip(self, name: bytes, reason: str) -> None:
        self.skipped.append(Skipped(printable(name), reason))

    def list_files(self) -> None:
        """Find every file; nested repositories are asked one by one, by their own rules."""
        waiting = [b""]
        while waiting:
            base = waiting.pop()
            folder = (self._top + b"/" + base).rstrip(b"/") or b"/"
            try:
                listing = self._listing(folder, nested=bool(base))
            except TimeoutError:
                if not base:
                    raise
                self._skip(base, "git does not list it in time")
                continue
            made = _made_folders(listing)
            for name in made:
                self._skip(base + name, "untracked dependencies or build output")
            for name, why in listing.unreadable:
                self._skip(base + name, f"unreadable: {why.decode()}")
            for name in listing.names:
                if name.startswith((b"../", b"./", b"/")):
                    continue
                if name in listing.untracked and name.startswith(made):
                    continue
                path = (folder + b"/" + name).rstrip(b"/")
                try:
                    status = os.lstat(path)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # tracked, but deleted in the work tree
                except OSError as error:
                    self._skip(base + name, f"unreadable: {error.strerror}")
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    self._files[base + name] = status
                elif is_linked_work_tree(path):
                    self._skip(base + name, "another work tree of a repository")
                elif git_directory(path) is not None:
                    waiting.append((base + name).rstrip(b"/") + b"/")
                elif not os.listdir(path):
                    self._skip(base + name, "submodule not checked out")

    def _listing(self, folder: bytes, nested: bool) -> Listing:
        """What the repository of `folder` says, else what the ignore files in it say."""
        try:
            return self._listed(folder, nested, min(SOON_SECONDS, self._left()))
        except TimeoutError:
            if not (pipes := _ignore_pipes(folder)):
                return self._listed(folder, nested, self._left())
        names, unreadable, _ = list_plain_files(self._git, folder, folder, None, self._left())
        left = {*names} - self._excluded(names, ".gitignore", folder)
        return Listing([*left], unreadable + pipes, left)

    def _listed(self, folder: bytes, nested: bool, seconds: float) -> Listing:
        tree = folder if nested else work_tree(folder)
        if tree is not None:
            held = holding_up(tree)
            listing = None if held else list_files(self._git, folder, seconds)
            if listing is None:
                listing = list_plain_files(self._git, folder, tree, (), seconds)
                if held:
                    listing.unreadable.append((os.path.relpath(held, folder), NO_FILE.encode()))
            if listing.names or nested:
                return listing
        # Outside of git, or a folder that its repository ignores: who names it wants it.
        return list_plain_files(self._git, folder, folder, _TOOLS_AND_OUTPUT, seconds)

    def drop_folder(self, folder: Path) -> None:
        real = folder.resolve()
        if real == self.root or not real.is_relative_to(self.root):
            return
        below = os.fsencode(real.relative_to(self.root).as_posix()) + b"/"
        if dropped := [name for name in self._files if name.startswith(below)]:
            self._skip(below, "CodeQA's own data")
            for name in dropped:
                del self._files[name]

    def apply_own_ignores(self) -> None:
        for name in self._excluded(self._files, OWN_IGNORE_FILE, self._top):
            self._skip(name, f"excluded by {OWN_IGNORE_FILE}")
            del self._files[name]

    def _excluded(self, names: Iterable[bytes], rule_file: str, top: bytes) -> set[bytes]:
        """Those of `names`, relative to `top`, that the files called `rule_file` beside and above
        them leave out."""
        folders = {b""}
        for name in names:
            folders.update(_and_above(_folder(name), folders))
        rules: dict[bytes, bytes] = {}
        for folder in folders:
            path = folder + os.fsencode(rule_file)
            if os.path.lexists(top + b"/" + path):
                with suppress(OSError):  # a link or a pipe is no rule file
                    rules[folder], _ = read_with_status(
                        Path(os.fsdecode(top)), os.fsdecode(path), max_bytes=MAX_RULE_BYTES
                    )
        return excluded_by(self._git, names, rules, self._left()) if rules else set()

    def examine(self, max_file_bytes: int) -> Iterator[FileEntry]:
        """Judge each file by kind, size and name, without opening it; in order of the names."""
        real = {b"": True}
        """Folder → whether it and all around it are folders rather than links to one."""
        for name, status in sorted(self._files.items()):
            for folder in _and_above(_folder(name), real):
                linked = os.path.islink(self._top + b"/" + folder[:-1])
                real[folder] = real[_folder(folder)] and not linked
            if not real[_folder(name)]:
                continue  # tracked below a folder that is now a link: another file, or none
            path = os.fsdecode(name)
            if stat.S_ISLNK(status.st_mode):
                target = Path(os.path.realpath(self.root / path))
                if not target.is_relative_to(self.root):
                    reason = "symbolic link out of the repository"
                elif os.path.exists(target):
                    continue  # a file of the repository, which stands for itself
                else:
                    reason = "broken symbolic link"
            elif not stat.S_ISREG(status.st_mode):
                reason = NO_FILE
            elif _UNPRINTABLE.search(path):
                reason = "file name with unprintable characters"
            elif status.st_size > max_file_bytes:
                reason = skip_by_name(path) or f"larger than {max_file_bytes:,} bytes"
            else:
                reason = skip_by_name(path) or ("" if status.st_size else "empty")
            if reason:
                self._skip(name, reason)
            else:
                yield FileEntry(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _made_folders(listing: Listing) -> tuple[bytes, ...]:
    """Folders of `_MADE` with untracked files and without any that git tracks."""
    names = {*listing.names}
    made = set()
    for found in filter(None, map(_MADE.match, listing.untracked)):
        if not found[2] or any(found[1] + one in names for one in _PROJECT):
            made.add(found[0])
    tracked = (_MADE.match(name) for name in (names - listing.untracked if made else ()))
    return tuple(made - {found[0] for found in tracked if found})


def _ignore_pipes(folder: bytes) -> list[tuple[bytes, bytes]]:
    """What is called `.gitignore` in the work tree around `folder` and is no file, relative to
    `folder`, with the reason."""
    walked = os.walk(work_tree(folder) or folder)
    named = [parent + b"/.gitignore" for parent, _, names in walked if b".gitignore" in names]
    pipes = (one for one in named if not os.path.isfile(one))
    return [(os.path.relpath(one, folder), NO_FILE.encode()) for one in pipes]


def _folder(name: bytes) -> bytes:
    """The folder of a file's or folder's name, with a `/` at the end; '' for the root."""
    return name[: name.rfind(b"/", 0, len(name) - 1) + 1]


def _and_above(folder: bytes, known: Container[bytes]) -> list[bytes]:
    """`folder` and the folders around it, as far as they are not `known`; outermost first."""
    found = []
    while folder not in known:
        found.append(folder)
        folder = _folder(folder)
    found.reverse()
    return found


def printable(name: bytes) -> str:
    """`name` as text that can be printed and stored: odd bytes and characters as escapes."""
    text = name.decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


# One file. Each component of its path is opened by itself, relative to the one before and without
# following links: a folder that is swapped for a link after the listing leads nowhere.


def read_file(root: Path, path: str, *, max_bytes: int = 0) -> bytes:
    """Content of the regular file `path` (relative, `/`) below `root`; 0: no limit of size.

    Raises NotFoundError when there is no such file inside `root` (`..`, absolute paths,
    links and everything that is no regular file included), and RepositoryError when it
    cannot be read or is larger than `max_bytes`.
    """
    try:
        data, _ = read_with_status(root, path, max_bytes=max_bytes)
    except OSError as error:
        if error.errno in _REFUSED:
            raise NotFoundError(
                f"There is no file {path!r} in the repository.",
                "It may have been deleted or moved: index again.",
            ) from None
        raise RepositoryError(
            f"{path} cannot be read: {error.strerror}.", "Check its size and its permissions."
        ) from None
    return data


def read_with_status(root: Path, path: str, *, max_bytes: int = 0) -> tuple[bytes, os.stat_result]:
    """`read_file` that also says what was opened. Raises OSError instead of our errors.

    ENOENT stands for everything that is refused, EFBIG for a file above `max_bytes`.
    """
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise OSError(errno.ENOENT, "Not a path inside the repository")
    descriptor = _open_stepwise(root, parts)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENOENT, "Not a regular file")
        if max_bytes and status.st_size > max_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        # The file may be growing: never more than the limit, whatever its status said.
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1) if max_bytes else file.read()
    finally:
        os.close(descriptor)
    if max_bytes and len(data) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data, status


def _open_stepwise(root: Path, parts: list[str]) -> int:
    folder = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not folders.is_same(root, os.fstat(folder)):
            raise OSError(errno.ENOENT, "Another folder took the repository's place")
        for part in parts[:-1]:
            inner = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
