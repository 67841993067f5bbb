"""Reading a git mirror without a work tree.

Nothing of a repository is ever written out or run: trees are listed, blobs are read one by
one through `git cat-file --batch`. Some mirrors lack blobs; git is kept from fetching them,
and they read as None.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    # Older gits fetch a missing object all the same; then no transport is permitted.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}


class MirrorError(Exception):
    """A mirror is missing, or lacks what is asked of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file of a tree; `size` is -1 when the mirror lacks the blob."""

    path: str
    blob: str
    size: int


def find_mirror(mirrors: Path, repository: str) -> Path | None:
    """The git directory of `owner/name` below `mirrors`, in any of the usual layouts."""
    owner, _, name = repository.partition("/")
    folders = (
        mirrors / f"{owner}+{name}",
        mirrors / f"{owner}__{name}",
        mirrors / owner / f"{name}.git",
        mirrors / owner / name,
        mirrors / f"{owner}+{name}.git",
        mirrors / f"{name}.git",
        mirrors / name,
    )
    for folder in folders:
        for directory in (folder, folder / "repo", folder / ".git"):
            if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
                return directory
    return None


class Mirror:
    """One git directory, read by commit; a context manager, because a git process stays up."""

    def __init__(self, directory: Path) -> None:
        self._command = ["git", "--no-pager", "-c", "safe.bareRepository=all",
                         "--git-dir", str(directory)]  # fmt: skip
        self._reader: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Mirror:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            assert self._reader.stdin is not None and self._reader.stdout is not None
            with suppress(OSError):
                self._reader.stdin.close()
            self._reader.stdout.close()
            self._reader.wait()
            self._reader = None

    def commit(self, wanted: str = "") -> str:
        """Full hash of `wanted`, or of HEAD. Raises MirrorError when it is not there."""
        name = f"{wanted or 'HEAD'}^{{commit}}"
        return self.output("rev-parse", "--verify", "--quiet", name).decode("ascii").strip()

    def tree(self, commit: str) -> list[Entry]:
        """The regular files of a commit, by path. Raises MirrorError when trees are missing."""
        return list(self._entries(self.output("ls-tree", "-r", "-l", "-z", commit)))

    def _entries(self, listing: bytes) -> Iterator[Entry]:
        for line in listing.split(b"\0"):
            if not line:
                continue
            head, _, path = line.partition(b"\t")
            mode, _, blob, size = head.split()
            if mode not in (b"100644", b"100755", b"100664"):
                continue  # links and submodules
            with suppress(UnicodeDecodeError):
                length = int(size) if size.isdigit() else -1
                yield Entry(path.decode("utf-8"), blob.decode("ascii"), length)

    def read(self, blob: str) -> bytes | None:
        """Content of a blob; None when the mirror lacks it."""
        if self._reader is None:
            self._reader = subprocess.Popen(
                [*self._command, "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _ENVIRONMENT,
            )
        assert self._reader.stdin is not None and self._reader.stdout is not None
        self._reader.stdin.write(blob.encode("ascii") + b"\n")
        self._reader.stdin.flush()
        head = self._reader.stdout.readline().split()
        if len(head) != 3:
            if not head:  # git gave up; the next blob gets a new process
                self.__exit__(None, None, None)
            return None
        data = self._reader.stdout.read(int(head[2]))
        self._reader.stdout.read(1)
        return data if head[1] == b"blob" else None

    def output(self, *arguments: str, seconds: float = 300) -> bytes:
        """What a git command prints. Raises MirrorError when it fails or takes too long."""
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _ENVIRONMENT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MirrorError(f"git {arguments[0]} took more than {seconds:.0f} s") from None
        if done.returncode:
            raise MirrorError(f"git {arguments[0]} failed")
        return done.stdout
