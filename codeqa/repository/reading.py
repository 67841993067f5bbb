"""Reading one file of a repository without ever leaving it.

Each component of the path is opened by itself, relative to the one before and without
following links, so that a folder that is swapped for a link between listing and reading
leads nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from codeqa.errors import NotFoundError, RepositoryError

# A pipe that took the file's place must not make the open wait.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

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
        for part in parts[:-1]:
            inner = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
