"""Local state in one SQLite file (WAL): values with a lifetime, turns, recent repositories.

A connection is opened per call: SQLite connections do not cross threads, a call costs
well under a millisecond, and nothing is left open when a process is killed.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeqa.errors import StorageError

FILE_NAME = "state.sqlite"
BUSY_SECONDS = 10.0
RETRY_SECONDS = 0.005
PRIMARY_CODE = 0xFF
"""The part of SQLite's error code that names the kind; the rest says where it came from."""
TURNS_KEPT = 2_000
RECENT_KEPT = 20

# Schema steps in order; `user_version` counts those that have run.
MIGRATIONS = (
    """
    CREATE TABLE value (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL);
    CREATE TABLE turn (
        id TEXT PRIMARY KEY, conversation TEXT NOT NULL, created REAL NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, context TEXT NOT NULL,
        details TEXT NOT NULL
    );
    CREATE INDEX turn_conversation ON turn (conversation, created);
    CREATE TABLE recent (path TEXT PRIMARY KEY, opened REAL NOT NULL);
    """,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, its answer and exactly the context that was packed for it."""

    id: str
    conversation: str
    question: str
    answer: str
    context: str
    details: Mapping[str, Any]
    created: float = 0.0


class State:
    """The local state in `folder`; safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def get(self, key: str) -> str | None:
        """Value of `key`, or None when it was never set or its lifetime is over."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT value FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)",
                (key, time.time()),
            ).fetchone()
        return None if row is None else str(row[0])

    def set(self, key: str, value: str, seconds: float | None = None) -> None:
        """Store `value`; `seconds` is its lifetime, None keeps it until deleted."""
        now = time.time()
        with self._connect() as connection:
            connection.execute("DELETE FROM value WHERE expires <= ?", (now,))
            connection.execute(
                "INSERT OR REPLACE INTO value VALUES (?, ?, ?)",
                (key, value, None if seconds is None else now + seconds),
            )

    def delete(self, key: str) -> None:
        """Forget `key`; nothing happens when it is not there."""
        with self._connect() as connection:
            connection.execute("DELETE FROM value WHERE key = ?", (key,))

    def save_turn(self, turn: Turn) -> None:
        """Store `turn` and drop the oldest beyond `TURNS_KEPT`; saving twice is harmless."""
        with self._connect() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.id,
                    turn.conversation,
                    turn.created or time.time(),
                    turn.question,
                    turn.answer,
                    turn.context,
                    json.dumps(dict(turn.details)),
                ),
            )
            connection.execute(
                "DELETE FROM turn WHERE id IN "
                "(SELECT id FROM turn ORDER BY created DESC LIMIT -1 OFFSET ?)",
                (TURNS_KEPT,),
            )

    def turn(self, turn_id: str) -> Turn | None:
        """The stored turn, or None."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT id, conversation, question, answer, context, details, created "
                "FROM turn WHERE id = ?",
                (turn_id,),
            ).fetchone()
        if row is None:
            return None
        turn_id, conversation, question, answer, context, details, created = row
        return Turn(turn_id, conversation, question, answer, context, json.loads(details), created)

    def remember_repository(self, path: Path) -> None:
        """Put `path` at the head of the repositories opened recently."""
        with self._connect() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO recent VALUES (?, ?)", (str(path), time.time())
            )
            connection.execute(
                "DELETE FROM recent WHERE path NOT IN "
                "(SELECT path FROM recent ORDER BY opened DESC LIMIT ?)",
                (RECENT_KEPT,),
            )

    def forget_repository(self, path: Path) -> None:
        """Take `path` off the list of recent repositories."""
        with self._connect() as connection:
            connection.execute("DELETE FROM recent WHERE path = ?", (str(path),))

    def recent_repositories(self) -> list[Path]:
        """Repositories opened, the latest first, whether or not they still exist."""
        with self._connect() as connection:
            rows = connection.execute("SELECT path FROM recent ORDER BY opened DESC").fetchall()
        return [Path(row[0]) for row in rows]

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A transaction. Raises StorageError when the file cannot be opened, read or written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.closing(self._begin()) as connection:
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"The local state {self.path} cannot be used: {error}.",
                "See that its folder is writable and has room; a damaged file may be deleted.",
            ) from error

    def _begin(self) -> sqlite3.Connection:
        """A connection with a transaction begun.

        SQLite's own waiting does not cover the switch to WAL, nor the recovery and the removal
        of its log while another connection comes or goes: those are tried again here.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                _migrate(connection)
                connection.execute("BEGIN IMMEDIATE")
                return connection
            except BaseException as error:
                connection.close()
                code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) >= len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    for number in range(_version(connection), len(MIGRATIONS)):
        for statement in MIGRATIONS[number].split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number + 1}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
