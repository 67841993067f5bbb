"""List the files of a repository that are to be indexed: those that git tracks or would track.

Where a folder is in no repository, or git refuses its repository, git applies the ignore files in
it. `.codeqaignore` files (same syntax, nested too) leave out more. Lock files, secrets, images and
untracked dependencies are left out by name alone. Nothing is read through a symbolic link, and no
pipe, socket or device is ever opened.
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
MAX_RULE_BYTES = 1_000_000  # bytes of a `.codeqaignore`; a larger one is no list of rules

GIT_SECONDS = 60.0  # for all calls of git in one walk, which lists 20,000 files in some 30 ms
SOON_SECONDS = 5.0  # until a pipe in the place of an ignore file is suspected to hold git up

_TOOLS_AND_OUTPUT = (
    b"__pycache__/ .pytest_cache/ .venv/ .git/ .idea/ venv/ node_modules/ .vscode/ .github/ "
    b".gitlab/ .angular/ cdk.out/ .aws-sam/ .terraform/ .hg/ .svn/ .tox/ .nox/ .mypy_cache/ "
    b".ruff_cache/ .gradle/ .eggs/ bower_components/ /env/ /dist/ /build/"
).split()
"""Ignored outside of repositories; the last three, also names of packages, only at the top."""

_BUILD_FOLDER = re.compile(
    rb"((?:.*?/)?)(?:node_modules|bower_components|\.?venv|__pycache__|\.tox|\.nox|\.eggs|\.gradle"
    rb"|(target|dist|build))/"
)
"""Folders that package managers and builds fill; the last three, also names of packages, only
beside one of _PROJECT_FILES."""
_PROJECT_FILES = (
    b"Cargo.toml pom.xml build.sbt build.gradle build.gradle.kts package.json setup.py "
    b"pyproject.toml CMakeLists.txt"
).split()

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # no wait for a pipe

NO_FILE = "not a regular file"

_REFUSED = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOENT, errno.ENOTDIR, errno.EISDIR})

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""In a name they would break the line-based forms in which paths are shown and sent."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file to read."""

    path: str  # relative to the root, with `/`
    size: int
    mtime_ns: int
    ctime_ns: int = 0  # which no program can set, unlike mtime_ns


@dataclass(frozen=True, slots=True)
class Walk:
    """The files to read and those left out, both sorted by path."""

    root: Path
    files: tuple[FileEntry, ...]
    skipped: tuple[Skipped, ...]


def walk(root: Path, *, max_file_bytes: int, own: Iterable[Path] = ()) -> Walk:
    """List the files of `root` that are to be indexed, and those left out with the reason.

    `root` may be a work tree, a folder inside one, or any other folder. Files that git ignores are
    not listed. The folders `own`, which CodeQA writes itself, are left out: every run would find
    them changed. Raises UsageError when `root` is no folder, RepositoryError when it cannot be read
    or git is missing or too slow.
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
            f"git took longer than {GIT_SECONDS:.0f} seconds to list {walker.root}.",
            "Run `git status` there, and check its ignore files.",
        ) from None
    entries = tuple(walker.examine(max_file_bytes))
    return Walk(walker.root, entries, tuple(sorted(walker.skipped, key=lambda item: item.path)))


def require_source(listing: Walk) -> None:
    """Raise RepositoryError with the reasons where no listed file can be indexed."""
    reasons = Counter(item.reason for item in listing.skipped)
    for entry in listing.files:
        try:
            result = classify(entry.path, read_file(listing.root, entry.path))
        except CodeQAError:
            result = Skipped(entry.path, "unreadable")
        if not isinstance(result, Skipped):
            return
        reasons[result.reason] += 1
    counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    problem = f"all files of {listing.root} are left out ({counts})"
    if not counts:
        problem = f"{listing.root} is empty, or git ignores everything in it"
    raise RepositoryError(f"No source files here: {problem}.", "Give a folder with source code.")


def checked_root(root: Path) -> Path:
    """Return the real path of `root`. Raises UsageError and RepositoryError."""
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
    """A walk in steps: it collects the files below `root` and those that are left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = os.fsencode(root)
        self._git = find_git(root)
        self._until = time.monotonic() + GIT_SECONDS
        self._files: dict[bytes, os.stat_result] = {}  # name relative to the root → its lstat
        self.skipped: list[Skipped] = []

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _skip(self, name: bytes, reason: str) -> None:
        self.skipped.append(Skipped(printable(name), reason))

    def list_files(self) -> None:
        """Find every file; nested repositories are listed one by one, by their own rules."""
        waiting = [b""]
        while waiting:
            base = waiting.pop()
            folder = (self._top + b"/" + base).rstrip(b"/") or b"/"
            try:
                listing = self._listing(folder, nested=bool(base))
            except TimeoutError:
                if not base:
                    raise
                self._skip(base, "git took too long to list it")
                continue
            build_folders = _build_folders(listing)
            for name in build_folders:
                self._skip(base + name, "untracked dependencies or build output")
            for name, reason in listing.unreadable:
                self._skip(base + name, f"unreadable: {reason.decode()}")
            for name in listing.names:
                outside = name.startswith((b"../", b"./", b"/"))
                built = name in listing.untracked and name.startswith(build_folders)
                if not outside and not built and self._add(folder, base, name):
                    waiting.append((base + name).rstrip(b"/") + b"/")

    def _add(self, folder: bytes, base: bytes, name: bytes) -> bool:
        """Add the entry `name` of the repository in `folder`; return whether it is a nested one."""
        path = (folder + b"/" + name).rstrip(b"/")
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False  # tracked, but deleted in the work tree
        except OSError as error:
            self._skip(base + name, f"unreadable: {error.strerror}")
            return False
        if not stat.S_ISDIR(status.st_mode):
            self._files[base + name] = status
        elif is_linked_work_tree(path):
            self._skip(base + name, "another work tree of a repository")
        elif git_directory(path) is not None:
            return True
        elif not os.listdir(path):
            self._skip(base + name, "submodule not checked out")
        return False

    def _listing(self, folder: bytes, nested: bool) -> Listing:
        """List `folder` as git does, also where a pipe in place of an ignore file stops git."""
        try:
            return self._git_listing(folder, nested, min(SOON_SECONDS, self._left()))
        except TimeoutError:
            pipes = _ignore_pipes(folder)
            if not pipes:
                return self._git_listing(folder, nested, self._left())
        names, unreadable, _ = list_plain_files(self._git, folder, folder, None, self._left())
        remaining = set(names) - self._excluded(names, ".gitignore", folder)
        return Listing(list(remaining), unreadable + pipes, remaining)

    def _git_listing(self, folder: bytes, nested: bool, seconds: float) -> Listing:
        """List the repository of `folder`, or what ignore files allow where git refuses it."""
        tree = folder if nested else work_tree(folder)
        if tree is not None:
            pipe = holding_up(tree)
            listing = None if pipe else list_files(self._git, folder, seconds)
            if listing is None:
                listing = list_plain_files(self._git, folder, tree, (), seconds)
                if pipe:
                    listing.unreadable.append((os.path.relpath(pipe, folder), NO_FILE.encode()))
            if listing.names or nested:
                return listing
        # Outside of git, or a folder that its repository ignores but the user chose.
        return list_plain_files(self._git, folder, folder, _TOOLS_AND_OUTPUT, seconds)

    def drop_folder(self, folder: Path) -> None:
        """Leave out a folder that CodeQA writes."""
        real = folder.resolve()
        if real == self.root or not real.is_relative_to(self.root):
            return
        below = os.fsencode(real.relative_to(self.root).as_posix()) + b"/"
        names = [name for name in self._files if name.startswith(below)]
        if names:
            self._skip(below, "CodeQA's own data")
        for name in names:
            del self._files[name]

    def apply_own_ignores(self) -> None:
        """Leave out the files that `.codeqaignore` files exclude."""
        for name in self._excluded(self._files, OWN_IGNORE_FILE, self._top):
            self._skip(name, f"excluded by {OWN_IGNORE_FILE}")
            del self._files[name]

    def _excluded(self, names: Iterable[bytes], rule_file: str, top: bytes) -> set[bytes]:
        """Return the `names`, relative to `top`, that files called `rule_file` exclude."""
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
        """Yield the files to read, by name; none is opened to decide that."""
        real = {b"": True}  # folder → whether neither it nor one around it is a link
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
                    self._skip(name, "symbolic link out of the repository")
                elif not os.path.exists(target):
                    self._skip(name, "broken symbolic link")
                continue  # else the target is a file of the repository itself
            reason = _skip_by_status(path, status, max_file_bytes)
            if reason:
                self._skip(name, reason)
            else:
                yield FileEntry(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _skip_by_status(path: str, status: os.stat_result, max_file_bytes: int) -> str:
    """Return why a file that is no link is left out unread; '' when it must be read."""
    if not stat.S_ISREG(status.st_mode):
        return NO_FILE
    if _UNPRINTABLE.search(path):
        return "file name with unprintable characters"
    if reason := skip_by_name(path):
        return reason
    if status.st_size > max_file_bytes:
        return f"larger than {max_file_bytes:,} bytes"
    return "" if status.st_size else "empty"


def _build_folders(listing: Listing) -> tuple[bytes, ...]:
    """Return the folders like `_BUILD_FOLDER` that hold untracked files and no tracked ones."""
    names = set(listing.names)
    folders = set()
    for name in listing.untracked:
        match = _BUILD_FOLDER.match(name)
        if match and (not match[2] or any(match[1] + file in names for file in _PROJECT_FILES)):
            folders.add(match[0])
    if folders:
        tracked = map(_BUILD_FOLDER.match, names - listing.untracked)
        folders -= {match[0] for match in tracked if match}
    return tuple(folders)


def _ignore_pipes(folder: bytes) -> list[tuple[bytes, bytes]]:
    """Return each `.gitignore` of the work tree around `folder` that is no file, and the reason."""
    pipes = []
    for parent, _, names in os.walk(work_tree(folder) or folder):
        path = parent + b"/.gitignore"
        if b".gitignore" in names and not os.path.isfile(path):
            pipes.append((os.path.relpath(path, folder), NO_FILE.encode()))
    return pipes


def _folder(name: bytes) -> bytes:
    """Return the folder of a file's or folder's name, with a `/` at the end; '' for the root."""
    return name[: name.rfind(b"/", 0, len(name) - 1) + 1]


def _and_above(folder: bytes, until: Container[bytes]) -> list[bytes]:
    """Return `folder` and the folders around it that are not in `until`, outermost first."""
    folders = []
    while folder not in until:
        folders.append(folder)
        folder = _folder(folder)
    folders.reverse()
    return folders


def printable(name: bytes) -> str:
    """Return `name` as text that can be printed and stored: odd bytes and characters as escapes."""
    text = name.decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


# One file. Each component of its path is opened by itself, relative to the one before and without
# following links: a folder that is swapped for a link after the listing leads nowhere.


def read_file(root: Path, path: str, *, max_bytes: int = 0) -> bytes:
    """Return the content of the regular file `path` (relative, `/`) below `root`.

    Raises NotFoundError when there is no such file inside `root` (for `..`, absolute paths, links
    and all else that is no regular file, too), and RepositoryError when it cannot be read or is
    larger than `max_bytes` (0: no limit).
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
    """Do `read_file`, and return the file's status as well.

    Raises OSError instead of our errors: ENOENT for what is refused, EFBIG above `max_bytes`.
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
        # A growing file may hold more than its status says.
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
