"""What a run has to do: the repository as it is against the manifest as it was, and whether the
rows were made by other code than this."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codeqa.repository.roles import role_of
from codeqa.repository.walk import FileEntry, Walk
from codeqa.store.records import SKIPPED, FileRecord

TIME_RESOLUTION_NS = 2_000_000_000
"""Coarsest step of file times in use (FAT). A file that changed so shortly before it was
read may have changed again within the same step, unseen by its size and time; such files
are compared by content, as git does with its index."""

_PARTS = ("repository", "parsing", "languages", "text", "store/records.py")
_ENDINGS = {".py", ".scm", ".toml"}
"""Code and data that turn files into rows: when any of it changes, the rows are stale."""

_LAST = {"source": 0, "vendored": 2, "generated": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """Files to read in the order of their use, and files that need no reading."""

    read: tuple[FileEntry, ...]
    known: Mapping[str, str]
    """Path → hash of the content whose rows are complete."""
    removed: tuple[str, ...]
    """Paths that are in the manifest and no longer in the repository."""
    skipped: tuple[FileRecord, ...]
    """Rows for files that are newly left out by name, size or kind."""
    unchanged: int
    """Files that are left alone on the word of their size and time."""


def make_plan(found: Walk, manifest: Mapping[str, FileRecord], checked_ns: int) -> Plan:
    """Compare `found` with `manifest`.

    `checked_ns` is the start of the last completed run: what changed before it, and still
    has the size and time of its row, is unchanged.
    """
    read = []
    known = {}
    unchanged = 0
    trusted_ns = checked_ns - TIME_RESOLUTION_NS
    for entry in found.files:
        record = manifest.get(entry.path)
        if record is not None and record.hash:
            known[entry.path] = record.hash
            same = (record.size, record.mtime_ns) == (entry.size, entry.mtime_ns)
            if same and entry.mtime_ns < trusted_ns:
                unchanged += 1
                continue
        read.append(entry)
    read.sort(key=lambda entry: (_LAST.get(role_of(entry.path), 1), entry.path))
    skipped = []
    for item in found.skipped:
        record = manifest.get(item.path)
        if record is None or (record.status, record.reason) != (SKIPPED, item.reason):
            skipped.append(FileRecord(item.path, status=SKIPPED, reason=item.reason))
    present = {entry.path for entry in found.files}
    present.update(item.path for item in found.skipped)
    removed = sorted(path for path in manifest if path not in present)
    return Plan(tuple(read), known, tuple(removed), tuple(skipped), unchanged)


def parser_fingerprint() -> str:
    """Hash of the extracting code and its data files; 5 ms."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.blake2b(digest_size=8)
    for part in _PARTS:
        place = package / part
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix in _ENDINGS and file.is_file():
                digest.update(file.relative_to(package).as_posix().encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
