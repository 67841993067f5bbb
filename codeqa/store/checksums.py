"""What the files of the tables held when they were written, so that a changed byte is noticed.

LanceDB writes each file once and never again, and does not notice what changes in it later: a
search of a damaged index finds less, or something else, and says nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path

from codeqa.store.location import Location, write_atomically
from codeqa.store.meta import unreadable

NAME = "checksums.json"
PIECE = 1 << 20
"""Bytes that are read at a time. A thousand of them take 0.4 s."""

Sums = dict[str, int]
"""Path of a file below the tables → CRC-32 of its content."""


def note_files(location: Location) -> None:
    """Write down what the files hold that are not noted yet. Called when the tables are known to
    be sound, by who holds the lock."""
    if not location.tables_are_local:
        return
    folder, known = Path(location.tables), _noted(location)
    # Without a note every row is read instead: a full disk is no reason to fail.
    with contextlib.suppress(OSError):
        names = _files(folder)
        now = {name: known[name] if name in known else _sum(folder / name) for name in names}
        if now != known:
            write_atomically(folder / NAME, json.dumps(now))


def as_noted(location: Location) -> bool:
    """Whether there are exactly the files that are noted, and they hold the same.

    Raises IndexFormatError for one that holds something else, OSError for one that cannot be read.
    """
    if not location.tables_are_local:
        return False
    folder, known = Path(location.tables), _noted(location)
    files = _files(folder)
    for name in sorted(files & known.keys()):
        with contextlib.suppress(FileNotFoundError):  # a run removes it at this moment
            if _sum(folder / name) != known[name]:
                raise unreadable(f"{name} was changed after it was written")
    return files == known.keys()


def _noted(location: Location) -> Sums:
    try:
        found = json.loads((Path(location.tables) / NAME).read_bytes())
        return {str(name): int(sum) for name, sum in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _files(folder: Path) -> set[str]:
    """All but LanceDB's hints at the newest version, which are written again and again."""
    return {
        os.path.relpath(os.path.join(parent, name), folder)  # noqa: PTH118
        for parent, _, names in os.walk(folder)
        for name in names
        if not name.endswith(".json")
    }


def _sum(file: Path) -> int:
    found = 0
    with file.open("rb") as content:
        while piece := content.read(PIECE):
            found = zlib.crc32(piece, found)
    return found
