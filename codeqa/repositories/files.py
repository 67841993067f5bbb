"""The files that the page may show: indexed ones, inside the repository, nothing else; and their
lines that match a pattern."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import re2

from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.repository.remotes import hosted_lines
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.repository.walk import read_file
from codeqa.store import INDEXED, FileRecord, Filter, Tables, path_patterns
from codeqa.text import counted
from codeqa.types import ROLES

SEARCH_SECONDS = 5.0
"""How long files are read for one pattern."""
GROWN_BYTES = 5_000_000
"""Of one file, which may have grown since it was indexed."""
LINES_KEPT = 100
"""Of one file; more are counted."""
MATCH_MEMORY = 8 << 20
"""Bytes that the automaton of one pattern may take."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is on disk now, secret-looking strings as asterisks as in the index."""

    path: str
    language: str
    text: str
    """Bytes that are not UTF-8 are U+FFFD."""
    changed: bool
    """It differs from what was indexed, so lines may have moved."""
    on_disk: Path
    """Where it lies on this machine."""


@dataclass(slots=True)
class FoundLines:
    """The lines that match a pattern, in the files as they are now."""

    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Path → number and text of its first ones, source first."""
    total: int = 0
    """Lines that match, kept or not."""
    searched: str = ""
    """`12 files`, or how many of them could be read in time."""


class Files:
    """Reads indexed files of one repository."""

    def __init__(self, tables: Callable[[], Tables], max_bytes: int = GROWN_BYTES) -> None:
        self._tables = tables
        self._max_bytes = max_bytes

    def read(self, path: str) -> FileText:
        """The file `path` (relative to the root, `/`).

        Raises NotFoundError for everything that is not in the index or no longer inside
        the repository, and RepositoryError when it cannot be read.
        """
        tables = self._tables()
        record = tables.file(tables.plain_path(path))
        if record is None or record.status != INDEXED:
            raise NotFoundError(
                f"{path!r} is not an indexed file.", "Only files in the index can be opened."
            )
        return self._read(tables, record)

    def _read(self, tables: Tables, record: FileRecord) -> FileText:
        root, inside = tables.place_of(record.path)
        changed = bool(replace(record, path=inside).state_below(root))
        # Growth since the index was made is fine, but only up to what is indexed at all.
        limit = max(self._max_bytes, record.size)
        data, _ = mask_secret_bytes(read_file(root, inside, max_bytes=limit))
        text = data.decode("utf-8", "replace")
        return FileText(record.path, record.language, text, changed, root / inside)

    def hosted(self, path: str) -> str:
        """Where others see the file `path`, as `hosted_lines` gives it."""
        return hosted_lines(*self._tables().place_of(path))

    def matching(self, pattern: str = "") -> list[FileRecord]:
        """Return the manifest rows of the indexed files that `pattern` selects: a glob, a file or
        folder at any depth, the beginning of a path, or '' for all."""
        tables = self._tables()
        return tables.indexed_files(Filter(paths=path_patterns(tables.plain_path(pattern))))

    def find_lines(
        self,
        pattern: str,
        records: Sequence[FileRecord],
        *,
        regex: bool = False,
        kept: int = LINES_KEPT,
    ) -> FoundLines:
        """The lines of `records` that hold the text `pattern` or match it, the first `kept` of each
        file, in time linear in the files and bounded by SEARCH_SECONDS. Raises UsageError for a
        broken expression."""
        matcher, found = _matcher(pattern, regex), FoundLines()
        tables, until = self._tables(), time.monotonic() + SEARCH_SECONDS
        found.searched = of = counted(len(records), "file")
        ordered = sorted(records, key=lambda one: (ROLES.index(one.role), one.path))
        for read, record in enumerate(ordered):
            if time.monotonic() > until:
                found.searched = f"the first {read:,} of {of}, for reading takes too long"
                break
            with suppress(CodeQAError):  # a file that is gone holds nothing
                text = self._read(tables, record).text
                # The whole file first: most hold nothing, and a file is one search.
                code = enumerate(text.split("\n"), 1) if matcher.search(text) else ()
                if lines := [(n, line) for n, line in code if matcher.search(line)]:
                    found.lines[record.path] = lines[:kept]
                    found.total += len(lines)
        return found

    def line_count(self, path: str) -> int | None:
        """Lines that `path` has on disk; None when it is no readable indexed file."""
        try:
            text = self.read(path).text
        except CodeQAError:  # one file that cannot be read must not cost the whole answer
            return None
        return text.count("\n") + (not text.endswith("\n"))


def _matcher(pattern: str, regex: bool) -> Any:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MATCH_MEMORY
    by_line = "(?m)"  # ^ and $ are those of a line in a whole file, too
    try:
        return re2.compile(by_line + (pattern if regex else re2.escape(pattern)), options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args else "not one"
        why = why.replace(by_line, "", 1)
        raise UsageError(
            f"The expression cannot be used: {why}.", "Drop `regex` to find it literally."
        ) from None
