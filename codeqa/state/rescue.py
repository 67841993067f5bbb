"""A damaged state file is set aside, and what can be read of it goes into a new one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from codeqa.errors import StorageError
from codeqa.state.database import BESIDE, PRIMARY_CODE, Database

ASIDE = ".damaged-"
_JOIN = """
    INSERT OR IGNORE INTO conversation (user, repository, id, title, created, updated, leaf)
        SELECT user, repository, conversation, question, created, max(created), id FROM turn
        WHERE conversation != '' GROUP BY user, repository, conversation;
    UPDATE turn SET parent = coalesce((
        SELECT id FROM turn AS one WHERE (user, repository, conversation) =
            (turn.user, turn.repository, turn.conversation) AND created < turn.created
        ORDER BY created DESC LIMIT 1), '')
        WHERE parent != '' AND parent NOT IN (SELECT id FROM turn)"""
"""What could not be read leaves no gap: the turns that are left follow each other."""


def damage_of(path: Path) -> str:
    """What is wrong with the content of the state file at `path`, in SQLite's words; '' when
    nothing is.

    Raises StorageError when it cannot be opened for another reason: it is locked or read-only,
    the disk is full, or a newer CodeQA wrote it.
    """
    if not path.is_file():
        return f"{path.name} is a folder" if path.is_dir() else ""
    try:
        row = Database(path).row("PRAGMA integrity_check(1)")
    except StorageError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & PRIMARY_CODE
        if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return str(error.__cause__)
    return "" if row == ("ok",) else str(row and row[0]).splitlines()[-1]


def set_aside(path: Path) -> tuple[Path, int]:
    """Move the state file away and make a new one of what can be read of it.

    Gives where the old one lies now, whole, and how many turns were taken over. Raises OSError
    and StorageError when the new one cannot be written.
    """
    aside = path.with_name(f"{path.name}{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}")
    for ending in BESIDE:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")
    new = Database(path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # reading changes the log
        copy = Path(folder) / path.name
        for ending in BESIDE:
            with contextlib.suppress(OSError):
                shutil.copyfile(f"{aside}{ending}", f"{copy}{ending}")
        with new.writing() as connection:
            if copy.exists():
                _take_over(copy, connection)
    return aside, int((new.row("SELECT count(*) FROM turn") or (0,))[0])


def _take_over(copy: Path, connection: sqlite3.Connection) -> None:
    with copy.open("r+b") as file, contextlib.suppress(OSError):  # the head is garbled as well
        # SQLite reads nothing of a file that is shorter than its head says.
        head = file.read(32)
        said = int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
        file.truncate(max(said, copy.stat().st_size))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as old:
        old.text_factory = lambda text: text.decode(errors="replace")
        for (table,) in tables:
            for order in ("", "DESC"):  # up to the damage from both ends
                with contextlib.suppress(sqlite3.DatabaseError):
                    for row in old.execute(f"SELECT * FROM {table} ORDER BY rowid {order}"):
                        marks = ", ".join("?" * len(row))
                        with contextlib.suppress(sqlite3.DatabaseError):  # a value of none of ours
                            insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"
                            connection.execute(insert, row)
    for statement in _JOIN.split(";"):
        connection.execute(statement)
