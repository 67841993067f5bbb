"""The tables of the state file."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from codeqa.errors import StorageError
from codeqa.state.records import LOCAL_USER

VERSION = 4
"""`PRAGMA user_version` of a file with these tables."""

# The order of turns holds every column that lists and limits of turns need, and branches are walked
# over their index alone: the rows themselves carry whole contexts. The index of values keeps the
# sweep from reading each value. Numbers of vectors are never given twice, so that who has read up
# to one needs only what is above it. Thumbs and vectors go with their turn, by whichever way that
# goes; a turn that is saved again stays. A turn's context, and embedding and topic of a
# conversation, are no longer written.
TABLES = f"""
    BEGIN IMMEDIATE;
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
    PRAGMA user_version = {VERSION};
    COMMIT;
"""
"""All of them or none; nothing where another process was faster."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file.

    Raises StorageError when another version of CodeQA wrote it, which leaves it as it is.
    """
    found = version(connection)
    if found not in (0, VERSION):
        raise StorageError(
            f"The local state was written by {'a newer' if found > VERSION else 'an older'} "
            "version of CodeQA.",
            "Use that version, or another folder by CODEQA_DATA.",
        )
    if not found:
        connection.executescript(TABLES)
    with suppress(sqlite3.OperationalError):  # a file that cannot be written
        connection.execute("DROP TABLE IF EXISTS recent")  # folders, of which nothing tells now


def version(connection: sqlite3.Connection) -> int:
    """The version of the file's tables, 0 before there are any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
