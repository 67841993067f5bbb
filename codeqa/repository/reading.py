"""Reading one file of a repository without ever leaving it.

Each component of the path is opened by itself, relative to the one before and without
following links, so that a folder that is swapped for a link between listing and reading
leads nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from codeqa.errors import NotFoundError, RepositoryError

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    # A pipe that took the file's place must not make the open wait.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER_FLAGS = _FLAGS | getattr(os, "O_DIRECTORY", 0)
_STEPWISE = os.open in os.supports_dir_fd

_REFUSED = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOENT, errno.ENOTDIR, errno.EISDIR})


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
    if os.name == "nt" and any("\\" in part or ":" in part for part in parts):
        raise OSError(errno.ENOENT, "Not a path inside the repository")
    descriptor = _open_stepwise(root, parts) if _STEPWISE else _open_checked(root, parts)
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
    folder = os.open(root, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _open_checked(root: Path, parts: list[str]) -> int:
    """Without openat(2): open, then compare what was opened with the resolved path."""
    top = root.resolve()
    target = top.joinpath(*parts)
    if target.resolve() != target:
        raise OSError(errno.ENOENT, "Not a path inside the repository")
    descriptor = os.open(target, _FLAGS)
    with suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), os.lstat(target)) and target.resolve() == target:
            return descriptor
    os.close(descriptor)
    raise OSError(errno.ENOENT, "Not a path inside the repository")
