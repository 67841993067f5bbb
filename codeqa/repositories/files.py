"""Read and search the indexed files of a repository as they are now, and nothing else in it."""

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
from codeqa.text import as_utf8, counted
from codeqa.types import ROLES

SEARCH_SECONDS = 5.0  # how long files are read for one pattern
GROWN_BYTES = 5_000_000  # read of one file, which may have grown since it was indexed
LINES_KEPT = 100  # of one file; more are counted
MATCH_MEMORY = 8 << 20  # bytes that the automaton of one pattern may take


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is on disk now, secret-looking strings as asterisks as in the index."""

    path: str
    language: str
    text: str  # bytes that are not UTF-8 are U+FFFD
    changed: bool  # it differs from what was indexed, so lines may have moved
    on_disk: Path  # its absolute path


@dataclass(slots=True)
class FoundLines:
    """The lines that match a pattern, in the files as they are now."""

    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Path → number and text of its first matching lines, source files first."""
    total: int = 0  # lines that match, kept or not
    searched: str = ""  # `12 files`, or how many of them could be read in time


class Files:
    """Reads indexed files of one repository."""

    def __init__(self, tables: Callable[[], Tables], max_bytes: int = GROWN_BYTES) -> None:
        self._tables = tables
        self._max_bytes = max_bytes

    def read(self, path: str) -> FileText:
        """Read the file `path` (relative to the root, `/`).

        Raises NotFoundError for a file that is not indexed or no longer inside the repository, and
        RepositoryError when it cannot be read.
        """
        tables = self._tables()
        record = tables.file(tables.plain_path(path))
        if record is None or record.status != INDEXED:
            raise NotFoundError(
                f"{path!r} is not an indexed file.", "Only indexed files can be opened."
            )
        return self._read(tables, record)

    def _read(self, tables: Tables, record: FileRecord) -> FileText:
        root, inside = tables.place_of(record.path)
        changed = bool(replace(record, path=inside).state_below(root))
        limit = max(self._max_bytes, record.size)
        data, _ = mask_secret_bytes(as_utf8(read_file(root, inside, max_bytes=limit)))
        text = data.decode("utf-8", "replace")
        return FileText(record.path, record.language, text, changed, root / inside)

    def hosted(self, path: str) -> str:
        """Return the web address of the lines of `path`, as `hosted_lines` gives it."""
        return hosted_lines(*self._tables().place_of(path))

    def matching(self, pattern: str = "") -> list[FileRecord]:
        """Return indexed files by a glob, a file or folder at any depth, or a path's beginning."""
        tables = self._tables()
        return tables.indexed_files(Filter(paths=path_patterns(tables.plain_path(pattern))))

    def find_lines(
        self,
        pattern: str,
        records: Sequence[FileRecord],
        *,
        regex: bool = False,
        limit: int = LINES_KEPT,
    ) -> FoundLines:
        """Search `records` for a text or a `regex`; keep up to `limit` lines of each file.

        Takes time linear in the files, SEARCH_SECONDS at most. Raises UsageError for a broken
        expression.
        """
        matcher = _matcher(pattern, regex)
        matches = FoundLines(searched=counted(len(records), "file"))
        tables, deadline = self._tables(), time.monotonic() + SEARCH_SECONDS
        ordered = sorted(records, key=lambda record: (ROLES.index(record.role), record.path))
        for number, record in enumerate(ordered):
            if time.monotonic() > deadline:
                late = f"the first {number:,} of {matches.searched}, for reading takes too long"
                matches.searched = late
                break
            with suppress(CodeQAError):  # a file that is gone holds nothing
                text = self._read(tables, record).text
                if not matcher.search(text):  # most files: one search instead of one for each line
                    continue
                numbered = enumerate(text.split("\n"), 1)
                if lines := [(number, line) for number, line in numbered if matcher.search(line)]:
                    matches.lines[record.path] = lines[:limit]
                    matches.total += len(lines)
        return matches

    def line_count(self, path: str) -> int | None:
        """Return how many lines `path` has on disk; None when it is no readable indexed file."""
        try:
            text = self.read(path).text
        except CodeQAError:  # one file that cannot be read must not cost the whole answer
            return None
        return text.count("\n") + (not text.endswith("\n"))


def _matcher(pattern: str, regex: bool) -> Any:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MATCH_MEMORY
    by_line = "(?m)"  # ^ and $ match at each line of a whole file
    try:
        return re2.compile(by_line + (pattern if regex else re2.escape(pattern)), options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "not one"
        raise UsageError(
            f"The regular expression cannot be used: {reason.replace(by_line, '', 1)}.",
            "Leave out `regex` to search for the text itself.",
        ) from None
