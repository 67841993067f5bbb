"""The files that the page may show: indexed ones, inside the repository, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codeqa.errors import CodeQAError, NotFoundError
from codeqa.repository.reading import read_file
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.store import INDEXED, FileRecord, Filter, Tables


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is on disk now, secret-looking strings as asterisks as in the index."""

    path: str
    language: str
    text: str
    """Bytes that are not UTF-8 are U+FFFD."""
    changed: bool
    """It differs from what was indexed, so lines may have moved."""


class Files:
    """Reads indexed files of one repository."""

    def __init__(self, open_tables: Callable[[], Tables], max_bytes: int = 0) -> None:
        self._open_tables = open_tables
        self._max_bytes = max_bytes

    def read(self, path: str) -> FileText:
        """The file `path` (relative to the root, `/`).

        Raises NotFoundError for everything that is not in the index or no longer inside
        the repository, and RepositoryError when it cannot be read.
        """
        tables = self._open_tables()
        record = tables.file(path)
        if record is None or record.status != INDEXED:
            raise NotFoundError(
                f"{path!r} is not an indexed file.", "Only files in the index can be opened."
            )
        return self._read(tables.location.root, record)

    def _read(self, root: Path, record: FileRecord) -> FileText:
        changed = bool(record.state_below(root))
        # Growth since the index was made is fine, but only up to what is indexed at all.
        limit = max(self._max_bytes, record.size)
        data, _ = mask_secret_bytes(read_file(root, record.path, max_bytes=limit))
        return FileText(record.path, record.language, data.decode("utf-8", "replace"), changed)

    def matching(self, pattern: str = "") -> list[FileRecord]:
        """The manifest of the indexed files that `pattern` lets through: a glob, the beginning of a
        path, or '' for all."""
        return self._open_tables().indexed_files(Filter(paths=(pattern,) if pattern else ()))

    def read_all(self, pattern: str = "") -> Iterator[FileText]:
        """The texts of `matching` files, one after another; those that cannot be read now are left
        out."""
        root = self._open_tables().location.root
        for record in self.matching(pattern):
            with suppress(CodeQAError):
                yield self._read(root, record)

    def line_count(self, path: str) -> int | None:
        """Lines that `path` has on disk; None when it is no readable indexed file."""
        try:
            text = self.read(path).text
        except CodeQAError:  # one file that cannot be read must not cost the whole answer
            return None
        return text.count("\n") + (not text.endswith("\n"))
