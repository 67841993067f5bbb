"""Whether the files of the tables are those that the last run wrote.

LanceDB writes each file once and never again, and does not notice what changes in it later: a
search of a damaged index finds less, or something else, and says nothing. So a run notes what its
files hold before it says that it has ended. An index holds nothing that the repository's files do
not, but for vectors and descriptions that were paid for: a damaged one is made anew from them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import zlib
from pathlib import Path

from codeqa.errors import IndexFormatError, IndexMissingError
from codeqa.store.location import Location, read_note, write_atomically
from codeqa.store.schema import generation_tables
from codeqa.store.tables import Tables

NAME = "checksums.json"
"""Path of each file below the tables → CRC-32 of its content. A thousand MB take 0.4 s."""

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
"""How LanceDB names the system's refusal inside its own errors."""
_LOST = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
"""Refusals that mean a file of the tables is gone or no file."""


def note_files(location: Location) -> None:
    """Write down what the files hold that are not noted yet; called by who holds the lock."""
    if not location.tables_are_local:
        return
    folder = Path(location.tables)
    # Without a note every row is read instead: a full disk is no reason to fail.
    with contextlib.suppress(OSError):
        known = read_note(folder / NAME)
        now = {name: known.get(name) or _sum(folder / name) for name in _files(folder)}
        if now != known:
            write_atomically(folder / NAME, json.dumps(now))


def damage(location: Location) -> str:
    """Why the index of `location` has to be made anew, in words; '' when it need not be.

    Too many open files, a missing right or a failing disk pass or are for people to mend: they are
    no reason to throw an index away. Tables on another machine are not for this one to delete.
    Asked while no run writes them.
    """
    folder = Path(location.tables)
    if not location.tables_are_local or not os.path.lexists(folder):
        return ""
    if not folder.is_dir():
        return f"{folder} is no folder"
    noted = read_note(folder / NAME)
    try:
        tables = Tables(location)
        meta = tables.meta()
        died = meta.dirty or meta.growing  # so it had no time to note what it wrote
        used = [f"{table}.lance" for table in generation_tables(meta.generation).values()]
        known = {name for name in noted if name.partition("/")[0] in used}
        found = {name for table in used for name in _files(folder, table)}
        if noted and not died and found != known:
            return f"{min(found ^ known)} is gone, or was not written by a run"
        for name in sorted(found & known):
            if _sum(folder / name) != noted[name]:
                return f"{name} was changed after it was written"
        if died or not noted:
            tables.read_all()
    except IndexFormatError as error:
        codes = {int(code) for code in _SYSTEM_ERROR.findall(str(error.__cause__))}
        return error.message if codes <= _LOST else ""
    except IndexMissingError:  # a first run that died has noted nothing
        return "its table meta is gone" if noted else ""
    except (OSError, RuntimeError):
        return ""
    return ""


def clear(location: Location) -> None:
    """Delete what lies where the tables should, so that a run makes them anew."""
    folder = Path(location.tables)
    for one in folder.iterdir() if folder.is_dir() else (folder,):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink(missing_ok=True)


def _files(folder: Path, part: str = "") -> set[str]:
    """All in `part` but LanceDB's hints at the newest version, which are written again and again.
    Raises OSError: what cannot be looked at is not gone."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return {
        os.path.relpath(os.path.join(parent, name), folder)  # noqa: PTH118
        for parent, _, names in os.walk(folder / part, onerror=fail)
        for name in names
        if not name.endswith(".json")
    }


def _sum(file: Path) -> int:
    found = 0
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            found = zlib.crc32(piece, found)
    return found
