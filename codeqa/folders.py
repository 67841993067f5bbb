"""Folders that must be what they were, and those that are nobody else's.

Whoever may write beside a repository could put a link, or another folder, in its place, and have
that read in its name. What CodeQA keeps, code that nobody else could read where it came from among
it, is for its own user alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from codeqa.errors import RepositoryError

OTHERS = 0o077
"""The rights of everybody but the owner of a file."""

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)

FOUND: dict[str, str] = {}
"""Device and inode of the folders that this process opened, by their paths; '' for one that is not
to be read. Both change with a reboot or a mount, so they are kept no longer."""

BORROWERS: set[str] = set()
"""Folders of our own making whose git directories borrow the objects of another: what is kept of
one commit."""


def identity(about: os.stat_result) -> str:
    """Return device and inode of a folder."""
    return f"{about.st_dev}:{about.st_ino}"


def direct_identity(folder: Path) -> str:
    """Return the identity of the folder at this path, '' where there is none or a link leads to it:
    opened part by part, so that none can be put in between."""
    inner: int | None = None
    with ExitStack() as opened, suppress(OSError):
        for part in (folder.anchor, *folder.parts[1:]):
            inner = os.open(part, _NO_LINK, dir_fd=inner)
            opened.callback(os.close, inner)
        return identity(os.fstat(inner)) if inner is not None else ""
    return ""


def is_direct(folder: Path) -> bool:
    """Whether there is a folder at this path that no link leads to."""
    return bool(direct_identity(folder))


def is_same(folder: Path, about: os.stat_result | None = None) -> bool:
    """Whether the folder that is reached at this path, or that `about` tells of, is the one that
    `confirm_folder` found there; where it found none, any is."""
    if (found := FOUND.get(str(folder))) is None:
        return True
    with suppress(OSError):
        return found == identity(about or folder.stat())
    return False


def confirm_folder(folder: Path, pinned: Callable[[], str] = str) -> None:
    """Raise RepositoryError where a link leads to the folder at a path that had none, or where
    another took its place since this process found it first, unless that is the `pinned` one."""
    path, here = str(folder), direct_identity(folder)
    if not os.path.lexists(folder):  # that it is gone is told elsewhere
        return
    if here and (FOUND.get(path, here) == here or pinned() == here):
        FOUND[path] = here
        return
    FOUND.setdefault(path, "")
    refuse_another(folder)


def refuse_another(folder: Path) -> None:
    """Raise RepositoryError where the folder at this path is not the one found there before."""
    if not is_same(folder):
        raise RepositoryError(
            f"{folder} leads to another folder than the one that was indexed.",
            f"Where that is meant: codeqa index {folder}",
        )


def make_private(*folders: Path, deep: bool = True) -> int:
    """Take the rights of everybody else from folders and, where `deep`, from what is in them.
    Returns how many files and folders had some."""
    mended = 0
    for folder in folders:
        for path in (folder, *(folder.rglob("*") if deep else ())):
            with suppress(OSError):  # it is gone by now, or another user's
                mode = path.lstat().st_mode
                if mode & OTHERS and not stat.S_ISLNK(mode):
                    path.chmod(mode & 0o7777 & ~OTHERS)
                    mended += 1
    return mended
