"""Define the tables of the state, and run transactions on them in one SQLite file (WAL).

Connections stay open for the next transaction of any thread: opening one takes as long as ten
transactions, and closing the last one writes the log back into the file.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from codeqa.errors import StorageError
from codeqa.state.records import LOCAL_USER

BUSY_SECONDS = 20.0
RETRY_SECONDS = 0.005
WRITE = "BEGIN IMMEDIATE"
PRIMARY_CODE = 0xFF  # the part of SQLite's error code that names the kind of error
PRIVATE = 0o600  # questions, answers and code are for the file's owner alone
FILE_ENDINGS = ("", "-wal", "-shm")  # SQLite gives the later two files the mode of the first
ASIDE = ".damaged-"  # between the name and the time of a damaged file that was set aside
VERSION = 5  # of these tables; a file has it as `PRAGMA user_version`
OLDEST = 4  # of the versions that only lack tables or triggers, which TABLES adds

# Turns are ordered, and branches walked, over the indices alone: the rows carry whole contexts.
# value_expires keeps the sweep from reading each value. Numbers of questions are never used twice,
# so that a reader continues after the last one it has. Triggers delete thumbs and vectors with
# their turn, and a pin with its conversation. turn.context, conversation.embedding and
# conversation.topic are no longer written.
TABLES = f"""
    CREATE TABLE IF NOT EXISTS value (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL);
    CREATE INDEX IF NOT EXISTS value_expires ON value (expires) WHERE expires IS NOT NULL;
    CREATE TABLE IF NOT EXISTS turn (
        id TEXT PRIMARY KEY, conversation TEXT NOT NULL, created REAL NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, context TEXT NOT NULL,
        details TEXT NOT NULL, user TEXT NOT NULL DEFAULT '{LOCAL_USER}',
        repository TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX IF NOT EXISTS turn_order ON turn (user, repository, conversation, created);
    CREATE INDEX IF NOT EXISTS turn_branch
        ON turn (user, repository, conversation, id, parent, created);
    CREATE TABLE IF NOT EXISTS conversation (
        user TEXT NOT NULL, repository TEXT NOT NULL, id TEXT NOT NULL,
        title TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL,
        leaf TEXT NOT NULL DEFAULT '', embedding TEXT NOT NULL DEFAULT '', topic BLOB,
        PRIMARY KEY (user, repository, id)
    );
    CREATE INDEX IF NOT EXISTS conversation_order ON conversation (user, repository, updated);
    CREATE TABLE IF NOT EXISTS pin (
        user TEXT NOT NULL, repository TEXT NOT NULL, id TEXT NOT NULL,
        PRIMARY KEY (user, repository, id)
    );
    CREATE TRIGGER IF NOT EXISTS pin_of_conversation AFTER DELETE ON conversation
    BEGIN DELETE FROM pin WHERE (user, repository, id) = (OLD.user, OLD.repository, OLD.id); END;
    CREATE TABLE IF NOT EXISTS feedback (
        turn TEXT PRIMARY KEY, value INTEGER NOT NULL, reason TEXT NOT NULL,
        sent TEXT NOT NULL, created REAL NOT NULL
    );
    CREATE TRIGGER IF NOT EXISTS feedback_of_turn AFTER DELETE ON turn
    BEGIN DELETE FROM feedback WHERE turn = OLD.id; END;
    CREATE TABLE IF NOT EXISTS question (
        number INTEGER PRIMARY KEY AUTOINCREMENT, turn TEXT NOT NULL UNIQUE,
        user TEXT NOT NULL, repository TEXT NOT NULL, conversation TEXT NOT NULL,
        embedding TEXT NOT NULL, vector BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS question_order ON question (user, repository, embedding);
    CREATE TRIGGER IF NOT EXISTS question_of_turn AFTER DELETE ON turn
    BEGIN DELETE FROM question WHERE turn = OLD.id; END;
    CREATE TABLE IF NOT EXISTS fact (
        user TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, turn TEXT NOT NULL,
        updated REAL NOT NULL, PRIMARY KEY (user, key)
    );
"""
"""In SQLite's dialect, as all statements; `codeqa_server/postgres.py` translates them."""
NAMES = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES)
PUT_VALUE = """INSERT INTO value (key, value, expires) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"""
Connection = Any  # a transaction that has begun, with SQLite's `execute`
KEPT_OPEN = 8  # connections of a process, at most

_WRITING = threading.RLock()
"""Held by the thread that writes: SQLite lets waiting threads retry at random moments, and of 200
some had no turn in ten seconds."""


class GoneError(StorageError):
    """The server of the state does not answer, or went away within a transaction."""


class Database(ABC):
    """The tables of the state, for statements in SQLite's dialect; threads may share it."""

    place: str  # file or server, as people read it
    _idle: defaultdict[tuple[int, ...], list[Any]]
    """Open connections by process, as a fork must not use them, and by the identity of a file, as
    it may be set aside and made anew."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that sees one moment and waits for no writer. Raises StorageError."""

    @abstractmethod
    def writing(self, user: str = "") -> AbstractContextManager[Connection]:
        """Begin a transaction; those of one `user` follow each other. Raises StorageError."""

    @abstractmethod
    def size(self) -> int:
        """Return the size of the tables in bytes."""

    @abstractmethod
    def compact(self) -> str:
        """Remove deleted data; return where else it may still be, '' for nowhere.

        Raises StorageError, also where the tables are in use for BUSY_SECONDS.
        """

    def close(self) -> None:
        """Close the idle connections of this process; the next transaction opens one again."""
        for (process, *_), idle in list(self._idle.items()):
            if process == os.getpid():
                with suppress(IndexError):  # another thread may take the last one
                    while True:
                        idle.pop().close()

    __del__ = close

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query, in a transaction of its own. Raises StorageError."""
        with self.reading() as connection:
            return list(connection.execute(query, parameters))

    def row(self, query: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of a query. Raises StorageError."""
        return next(iter(self.rows(query, parameters)), None)

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement in a transaction of its own; return how many rows it changed."""
        with self.writing() as connection:
            return int(connection.execute(statement, parameters).rowcount)


class SqliteDatabase(Database):
    """The file at `path`, made on first use."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)
        self._idle = defaultdict(list)

    def reading(self) -> AbstractContextManager[Connection]:
        return self._transaction("BEGIN")

    def writing(self, user: str = "") -> AbstractContextManager[Connection]:
        return self._transaction(WRITE)

    def size(self) -> int:
        rows = self.rows("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        return int(rows[0][0])

    def compact(self) -> str:
        with self.writing() as connection:
            connection.execute("COMMIT")  # neither of these is done inside a transaction
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute("BEGIN")
        if busy:
            raise StorageError(
                f"The local state {self.path} could not be compacted, because it is being read.",
                "Try again when other processes are done.",
            )
        return ""

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            idle = self._idle[os.getpid(), *self._make_private()]
            with ExitStack() as turn:
                if begin == WRITE and _WRITING.acquire(timeout=BUSY_SECONDS):
                    turn.callback(_WRITING.release)
                connection, idle = self._begin(begin, idle)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    connection.close()  # rolls back
                    raise
                if len(idle) < KEPT_OPEN:
                    idle.append(connection)
                else:
                    connection.close()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _make_private(self) -> tuple[int, int]:
        """Make the file with mode PRIVATE, unlike SQLite's; return its device and inode."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, PRIVATE))
            about = self.path.stat()
        except OSError as error:
            raise self._unusable(error) from error
        if stat.S_ISREG(about.st_mode) and about.st_mode & ~PRIVATE & 0o777:
            for ending in FILE_ENDINGS:
                # Where modes mean nothing, or the file is another user's, it stays as it is.
                with suppress(OSError):
                    os.chmod(f"{self.path}{ending}", PRIVATE)  # noqa: PTH101
        return about.st_dev, about.st_ino

    def _begin(self, begin: str, idle: list[Any]) -> tuple[Connection, list[Any]]:
        """Return a connection with a transaction begun, and the list that takes it afterwards.

        SQLite's own waiting does not cover the switch to WAL, nor the recovery and the removal of
        its log while another connection comes or goes: those are tried again here.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            connection = None
            try:
                with suppress(IndexError):
                    connection = idle.pop()
                if connection is None:
                    connection = sqlite3.connect(
                        self.path,
                        timeout=BUSY_SECONDS,
                        isolation_level=None,
                        check_same_thread=False,
                    )
                    connection.execute("PRAGMA journal_mode=WAL")
                    connection.execute("PRAGMA synchronous=NORMAL")
                    connection.execute("PRAGMA secure_delete=ON")  # overwrite with zeros
                    _make_tables(connection)
                connection.execute(begin)
                # The first read opens the log, which must happen while it can be tried again.
                check_version(version(connection))
                return connection, idle
            except BaseException as error:
                if connection:
                    connection.close()
                if begin != WRITE and _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                    return self._open_unlogged(), []
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)

    def _open_unlogged(self) -> sqlite3.Connection:
        """Open the file, or empty tables, on a full disk, where SQLite cannot write a log."""
        for place in (f"{self.path.absolute().as_uri()}?immutable=1", ":memory:"):
            connection = sqlite3.connect(place, uri=True, isolation_level=None)
            if version(connection) or place == ":memory:":
                break
            connection.close()
        _make_tables(connection)
        connection.execute("BEGIN")
        return connection

    def _unusable(self, error: Exception) -> StorageError:
        if _code(error) == sqlite3.SQLITE_BUSY:
            return StorageError(
                f"The local state {self.path} is busy: many answers are being saved just now, or "
                "another program holds it.",
                "Nothing is damaged: ask again in a moment.",
            )
        reason = getattr(error, "strerror", None) or error
        return StorageError(
            f"The local state {self.path} cannot be used: {reason}.",
            "Check that its folder is writable and the disk has space; `codeqa doctor --repair` "
            "sets a damaged file aside and keeps what can be read of it.",
        )


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or those that an older one lacks. Raises StorageError."""
    if version(connection) in (0, *range(OLDEST, VERSION)):
        note = f"PRAGMA user_version = {VERSION}"
        connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {note}; COMMIT")
    check_version(version(connection))


def check_version(number: int) -> None:
    """Raise StorageError for tables of another version of CodeQA."""
    if number != VERSION:
        which = "a newer" if number > VERSION else "an older"
        raise StorageError(
            f"The local state was written by {which} version of CodeQA.",
            "Use that version, or set CODEQA_DATA to another folder.",
        )


def version(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables, 0 before there are any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


class StateTable:
    """A part of the state."""

    def __init__(self, database: Database) -> None:
        self._database = database
