"""The tables of the state, and the transactions on them in one SQLite file (WAL).

Connections stay open for the next transaction of whichever thread: opening one takes as long as
ten transactions, and closing the last one writes the log back into the file.
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
PRIMARY_CODE = 0xFF
"""The part of SQLite's error code that names the kind; the rest says where it came from."""
PRIVATE = 0o600
"""Questions, answers and code are for the file's owner alone."""
BESIDE = ("", "-wal", "-shm")
"""Endings of the files that SQLite keeps: it gives the later two the first one's mode."""

ASIDE = ".damaged-"
"""Between the name and the time of a damaged file that was set aside."""
VERSION = 4
"""Of these tables; a file has it as `PRAGMA user_version`."""

# The order of turns holds every column that lists and limits of turns need, and branches are walked
# over their index alone: the rows themselves carry whole contexts. The index of values keeps the
# sweep from reading each value. Numbers of vectors are never given twice, so that who has read up
# to one needs only what is above it. Thumbs and vectors go with their turn, by whichever way that
# goes; a turn that is saved again stays. A turn's context, and embedding and topic of a
# conversation, are no longer written.
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
"""Nothing where another process was faster. PostgreSQL has all statements in its own
words (`codeqa_server/postgres.py`)."""
NAMES = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES)
PUT_VALUE = """INSERT INTO value (key, value, expires) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"""
Connection = Any  # a transaction that has begun, with SQLite's `execute`
KEPT_OPEN = 8  # connections of a process, at most

_WRITING = threading.RLock()
"""Held by the thread that writes: SQLite has those who wait try again at random moments, and of 200
writers some had no turn in ten seconds."""


class GoneError(StorageError):
    """The server with the state does not answer, or went away within a transaction."""


class Database(ABC):
    """The tables of the state; safe to share between threads and processes. Statements are written
    as SQLite reads them."""

    place: str
    """Where they are, as people read it."""
    _idle: defaultdict[tuple[int, ...], list[Any]]
    """Open connections by their process, of which no fork may use them, and by what a file is,
    which may be set aside and made anew."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that sees one moment and waits for no writer.

        Raises StorageError when the tables cannot be opened or read.
        """

    @abstractmethod
    def writing(self, user: str = "") -> AbstractContextManager[Connection]:
        """Begin a transaction, kept as a whole or not at all; those of a `user` follow each other.

        Raises StorageError when the tables cannot be opened or written.
        """

    @abstractmethod
    def size(self) -> int:
        """Return the bytes that they take."""

    @abstractmethod
    def compact(self) -> str:
        """Free what deleted rows took, and return where they may still be read, '' for nowhere.

        Raises StorageError.
        """

    def close(self) -> None:
        """Close what is open; the next transaction opens it again."""
        for (process, *_), idle in [*self._idle.items()]:
            with suppress(IndexError):  # the last one, which another thread may have taken
                while process == os.getpid():
                    idle.pop().close()

    __del__ = close

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, in a transaction of its own. Raises StorageError."""
        with self.reading() as connection:
            return list(connection.execute(query, parameters))

    def row(self, query: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a query. Raises StorageError."""
        return next(iter(self.rows(query, parameters)), None)

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Number of rows that a statement changed, in a transaction of its own."""
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
        found = self.rows("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        return int(found[0][0])

    def compact(self) -> str:
        """Write the file anew without free pages, and empty its log. Also raises StorageError while
        others use it for `BUSY_SECONDS`."""
        with self.writing() as connection:
            connection.execute("COMMIT")  # neither of these is done inside a transaction
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute("BEGIN")
        if busy:
            raise StorageError(
                f"The local state {self.path} could not be compacted, for it is being read.",
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
                    connection.close()  # what was begun is taken back
                    raise
                # From here on another thread may have it.
                idle.append(connection) if len(idle) < KEPT_OPEN else connection.close()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _make_private(self) -> tuple[int, int]:
        """Make the file with a mode of `PRIVATE`, before SQLite would make it with another; gives
        what it is, by its disk and number there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, PRIVATE))
            about = self.path.stat()
        except OSError as error:
            raise self._unusable(error) from error
        if stat.S_ISREG(about.st_mode) and about.st_mode & ~PRIVATE & 0o777:
            for ending in BESIDE:
                # Where modes mean nothing, or the file is another user's, it stays as it is.
                with suppress(OSError):
                    os.chmod(f"{self.path}{ending}", PRIVATE)  # noqa: PTH101
        return about.st_dev, about.st_ino

    def _begin(self, begin: str, idle: list[Any]) -> tuple[Connection, list[Any]]:
        """A connection with a transaction begun, and where it is kept behind that.

        SQLite's own waiting does not cover the switch to WAL, nor the recovery and the removal
        of its log while another connection comes or goes: those are tried again here.
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
                    # What is deleted is overwritten with zeros.
                    connection.execute("PRAGMA secure_delete=ON")
                    _make_tables(connection)
                connection.execute(begin)
                # The first read opens the log, which must be done while it can be tried again.
                check_version(version(connection))
                return connection, idle
            except BaseException as error:
                if connection:
                    connection.close()
                if begin != WRITE and _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                    return self._as_it_lies(), []
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)

    def _as_it_lies(self) -> sqlite3.Connection:
        """What can be read on a full disk, where not even a log can be opened: the file, or empty
        tables where it holds none yet."""
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
        return StorageError(
            f"The local state {self.path} cannot be used: "
            f"{getattr(error, 'strerror', None) or error}.",
            "See that its folder is writable and has room; `codeqa doctor --repair` sets a damaged "
            "file aside and keeps what can be read of it.",
        )


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file. Raises StorageError."""
    check_version(version(connection) or VERSION)
    if not version(connection):
        note = f"PRAGMA user_version = {VERSION}"
        connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {note}; COMMIT")


def check_version(found: int) -> None:
    """Raises StorageError for tables of another version of CodeQA, which are left as they are."""
    if found != VERSION:
        raise StorageError(
            f"The local state was written by {'a newer' if found > VERSION else 'an older'} "
            "version of CodeQA.",
            "Use that version, or another folder by CODEQA_DATA.",
        )


def version(connection: sqlite3.Connection) -> int:
    """The version of the file's tables, 0 before there are any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


class StateTable:
    """Some of what is kept; each part of the state is one."""

    def __init__(self, database: Database) -> None:
        self._database = database
