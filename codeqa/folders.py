"""Checks that a folder is still the one that was indexed, and keeps others out of our own.

Whoever may write beside a repository could replace it by a link or another folder, and have that
read. What CodeQA stores may be code that other users of the machine cannot read in its repository.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from codeqa.errors import RepositoryError

OTHERS = 0o077
"""The rights of all but the owner of a file."""

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)

FOUND: dict[str, str] = {}
"""Path → identity of the folders that this process opened; '' for one that must not be read. It is
not stored, as a reboot or a mount changes device and inode."""

BORROWERS: set[str] = set()
"""Snapshots of a commit: our own folders, whose git directories borrow the objects of another."""


def identity(about: os.stat_result) -> str:
    """Return device and inode of a folder."""
    return f"{about.st_dev}:{about.st_ino}"


def direct_identity(folder: Path) -> str:
    """Return the identity of `folder`, '' where there is none or a link leads to it."""
    inner: int | None = None  # opened part by part, so that no link can be put in between
    with ExitStack() as opened, suppress(OSError):
        for part in (folder.anchor, *folder.parts[1:]):
            inner = os.open(part, _NO_LINK, dir_fd=inner)
            opened.callback(os.close, inner)
        return identity(os.fstat(inner)) if inner is not None else ""
    return ""


def is_direct(folder: Path) -> bool:
    """Return whether there is a folder at this path that no link leads to."""
    return bool(direct_identity(folder))


def is_same(folder: Path, about: os.stat_result | None = None) -> bool:
    """Return whether `folder` is the one that this process opened first, or it has opened none."""
    first = FOUND.get(str(folder))
    if first is None:
        return True
    with suppress(OSError):
        return first == identity(about or folder.stat())
    return False


def confirm_folder(folder: Path, pinned: Callable[[], str] = str) -> None:
    """Raise RepositoryError where `folder` is not the one that this process opened first.

    Raise it also for a new link. A folder with the identity `pinned()` is accepted instead.
    """
    path, here = str(folder), direct_identity(folder)
    if not os.path.lexists(folder):  # others report that it is gone
        return
    if here and (FOUND.get(path, here) == here or pinned() == here):
        FOUND[path] = here
        return
    FOUND.setdefault(path, "")
    refuse_another(folder)


def refuse_another(folder: Path) -> None:
    """Raise RepositoryError unless `is_same`."""
    if not is_same(folder):
        raise RepositoryError(
            f"{folder} now leads to a different folder than the one that was indexed.",
            f"If that is intended, run `codeqa index {folder}`.",
        )


def make_private(*folders: Path, deep: bool = True) -> int:
    """Take all rights from others, if `deep` also on what is inside; return how many had some."""
    count = 0
    for folder in folders:
        paths = [folder]
        if deep:
            paths += folder.rglob("*")
        for path in paths:
            with suppress(OSError):  # it is gone, or belongs to another user
                mode = path.lstat().st_mode
                if mode & OTHERS and not stat.S_ISLNK(mode):
                    path.chmod(mode & 0o7777 & ~OTHERS)
                    count += 1
    return count
