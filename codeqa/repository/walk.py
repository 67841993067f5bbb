"""Which files of a repository are to be read: git's view of it, or our own outside git.

Both ways give the same list. `git ls-files` names what is tracked or would be; where there
is no git, or it refuses, our own walk applies the same ignore rules. On top of either,
`.codeqaignore` files (same syntax, nested too) leave out more, and what names alone decide
(lock files, secrets, images) is left out without opening it. Nothing is read through a
symbolic link, and no pipe, socket or device is ever opened.
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH110, PTH118

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codeqa.errors import RepositoryError, UsageError
from codeqa.repository.candidates import UNPRINTABLE, Names, all_names, shown
from codeqa.repository.ignore import Chain, excluded, read_patterns
from codeqa.repository.skip import skip_by_name
from codeqa.types import Skipped

OWN_IGNORE = b".codeqaignore"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file to read: path relative to the root with `/`, bytes, time of last change in ns."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found, both sorted by path."""

    root: Path
    files: tuple[FileEntry, ...]
    skipped: tuple[Skipped, ...]


def walk(
    root: Path, *, max_file_bytes: int, use_git: bool = True, own: Iterable[Path] = ()
) -> Walk:
    """List the files of `root` that are to be indexed, and those that are not with the reason.

    `root` may be a work tree, a folder inside one, or any other folder. What git ignores is
    normal and not listed. What CodeQA writes itself, the folders `own`, is left out where it
    lies below `root`: every run would find it changed. Raises UsageError when `root` is no
    folder, RepositoryError when it cannot be read.
    """
    top = checked_root(root)
    skipped: list[Skipped] = []
    names = all_names(top, use_git, skipped)
    for folder in own:
        names = _without_folder(top, folder, names, skipped)
    kept = _without_own_ignores(top, sorted(names), skipped)
    files = list(_examine(os.fsencode(top), kept, names, max_file_bytes, skipped))
    return Walk(top, tuple(files), tuple(sorted(skipped, key=lambda item: item.path)))


def checked_root(root: Path) -> Path:
    """The real path of `root`. Raises UsageError or RepositoryError with a sentence."""
    try:
        top = root.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise UsageError(f"There is no folder {root}.", "Give the path of a repository.") from None
    if not top.is_dir():
        raise UsageError(f"{root} is not a folder.", "Give the path of a repository.")
    try:
        with os.scandir(top):
            return top
    except OSError as error:
        raise RepositoryError(
            f"{root} cannot be read: {error.strerror}.", "Check its permissions."
        ) from None


# --- what is left out on top ------------------------------------------------------------------


def _without_folder(root: Path, folder: Path, names: Names, skipped: list[Skipped]) -> Names:
    """Drop what lies below `folder`, and list the folder."""
    real = folder.resolve()
    if real == root or not real.is_relative_to(root):
        return names
    below = os.fsencode(real.relative_to(root).as_posix()) + b"/"
    kept = {name: status for name, status in names.items() if not name.startswith(below)}
    if len(kept) < len(names):
        skipped.append(Skipped(shown(below), "CodeQA's own data"))
    return kept


def _without_own_ignores(root: Path, names: list[bytes], skipped: list[Skipped]) -> Iterator[bytes]:
    """Drop, and list, what `.codeqaignore` files exclude."""
    top = os.fsencode(root)
    # Directory → its chain of rules, or None when the directory itself is excluded.
    chains: dict[bytes, Chain | None] = {b"": _with_rules(top, b"", ())}
    for name in names:
        folder = name[: name.rfind(b"/") + 1]
        chain = chains[folder] if folder in chains else _chain_of(top, folder, chains)
        if chain == ():
            yield name
        elif chain is None or excluded(chain, name, False):
            skipped.append(Skipped(shown(name), "excluded by .codeqaignore"))
        else:
            yield name


def _chain_of(top: bytes, folder: bytes, chains: dict[bytes, Chain | None]) -> Chain | None:
    missing = []
    while folder not in chains:
        missing.append(folder)
        folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    chain = chains[folder]
    for folder in reversed(missing):
        if chain is not None:
            chain = None if excluded(chain, folder[:-1], True) else _with_rules(top, folder, chain)
        chains[folder] = chain
    return chain


def _with_rules(top: bytes, folder: bytes, chain: Chain) -> Chain:
    rules = read_patterns(top + b"/" + folder + OWN_IGNORE)
    return (*chain, (len(folder), rules)) if rules is not None else chain


def _examine(
    top: bytes,
    kept: Iterable[bytes],
    statuses: Names,
    max_file_bytes: int,
    skipped: list[Skipped],
) -> Iterator[FileEntry]:
    """Look at each candidate's kind, size and name, without opening it."""
    real: dict[bytes, bool] = {b"": True}
    inside = os.fsdecode(top).rstrip("/") + "/"
    for name in kept:
        folder = name[: name.rfind(b"/") + 1]
        if not (real[folder] if folder in real else _is_real(top, folder, real)):
            continue  # tracked below a directory that is now a link: another file, or none
        try:
            status = statuses[name] or os.lstat(top + b"/" + name)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted meanwhile
        except OSError as error:
            skipped.append(Skipped(shown(name), f"unreadable: {error.strerror}"))
            continue
        path = os.fsdecode(name)
        reason = ""
        if stat.S_ISLNK(status.st_mode):
            reason = _link_reason(os.fsdecode(top), path, inside)
            if not reason:
                continue  # its target is a file of the repository and stands for itself
        elif not stat.S_ISREG(status.st_mode):
            if stat.S_ISDIR(status.st_mode):
                continue
            reason = "not a regular file"
        elif UNPRINTABLE.search(path):
            reason = "file name with unprintable characters"
        else:
            reason = skip_by_name(path) or ""
            if not reason and status.st_size == 0:
                reason = "empty"
            elif not reason and status.st_size > max_file_bytes:
                reason = f"larger than {max_file_bytes:,} bytes"
        if reason:
            skipped.append(Skipped(shown(name), reason))
        else:
            yield FileEntry(path, status.st_size, status.st_mtime_ns)


def _is_real(top: bytes, folder: bytes, real: dict[bytes, bool]) -> bool:
    """Whether every component of `folder` is a directory rather than a link to one."""
    missing = []
    while folder not in real:
        missing.append(folder)
        folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    known = real[folder]
    for folder in reversed(missing):
        if known:
            try:
                known = stat.S_ISDIR(os.lstat(top + b"/" + folder[:-1]).st_mode)
            except FileNotFoundError:
                known = False
            except OSError:
                known = True  # let the file's own lstat say what is wrong
        real[folder] = known
    return known


def _link_reason(top: str, path: str, inside: str) -> str:
    target = os.path.realpath(os.path.join(top, path))
    if not (target + "/").startswith(inside):
        return "symbolic link out of the repository"
    return "" if os.path.exists(target) else "broken symbolic link"
