"""The tables of the state file, as steps from each version to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from codeqa.errors import StorageError
from codeqa.state.records import LOCAL_USER, Group, parse_details, title_of

Step = tuple[str, Callable[[sqlite3.Connection], None] | None]
"""Statements, each ended by `;` and a line break, and what is done with the rows after them."""

_FIRST = """
    CREATE TABLE value (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL);
    CREATE TABLE turn (
        id TEXT PRIMARY KEY, conversation TEXT NOT NULL, created REAL NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, context TEXT NOT NULL,
        details TEXT NOT NULL
    );
    CREATE INDEX turn_conversation ON turn (conversation, created);
    CREATE TABLE recent (path TEXT PRIMARY KEY, opened REAL NOT NULL);
"""

# The index of turns holds every column that lists and limits of turns need: the rows
# themselves carry whole contexts. That of values keeps the sweep from reading each value.
_CONVERSATIONS = f"""
    ALTER TABLE turn ADD COLUMN user TEXT NOT NULL DEFAULT '{LOCAL_USER}';
    ALTER TABLE turn ADD COLUMN repository TEXT NOT NULL DEFAULT '';
    DROP INDEX turn_conversation;
    CREATE INDEX turn_order ON turn (user, repository, conversation, created);
    CREATE TABLE conversation (
        user TEXT NOT NULL, repository TEXT NOT NULL, id TEXT NOT NULL,
        title TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL,
        PRIMARY KEY (user, repository, id)
    );
    CREATE INDEX conversation_order ON conversation (user, repository, updated);
    CREATE INDEX value_expires ON value (expires) WHERE expires IS NOT NULL;
"""

# Thumbs go with their turn, by whichever way that goes. A turn that is saved again stays: its
# replacement fires no trigger.
_FEEDBACK = """
    CREATE TABLE feedback (
        turn TEXT PRIMARY KEY, value INTEGER NOT NULL, reason TEXT NOT NULL,
        sent TEXT NOT NULL, created REAL NOT NULL
    );
    CREATE TRIGGER feedback_of_turn AFTER DELETE ON turn
    BEGIN DELETE FROM feedback WHERE turn = OLD.id; END
"""

# Branches are walked over the index alone: the rows carry whole contexts. Numbers of vectors
# are never given twice, so that who has read up to one needs only what is above it. The embedding
# and topic of a conversation are no longer written.
_BRANCHES = """
    ALTER TABLE turn ADD COLUMN parent TEXT NOT NULL DEFAULT '';
    ALTER TABLE conversation ADD COLUMN leaf TEXT NOT NULL DEFAULT '';
    ALTER TABLE conversation ADD COLUMN embedding TEXT NOT NULL DEFAULT '';
    ALTER TABLE conversation ADD COLUMN topic BLOB;
    CREATE TABLE question (
        number INTEGER PRIMARY KEY AUTOINCREMENT, turn TEXT NOT NULL UNIQUE,
        user TEXT NOT NULL, repository TEXT NOT NULL, conversation TEXT NOT NULL,
        embedding TEXT NOT NULL, vector BLOB NOT NULL
    );
    CREATE INDEX question_order ON question (user, repository, embedding);
    CREATE TRIGGER question_of_turn AFTER DELETE ON turn
    BEGIN DELETE FROM question WHERE turn = OLD.id; END;
    CREATE TABLE fact (
        user TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, turn TEXT NOT NULL,
        updated REAL NOT NULL, PRIMARY KEY (user, key)
    );
    CREATE INDEX turn_branch ON turn (user, repository, conversation, id, parent, created)
"""


def _conversations(connection: sqlite3.Connection) -> None:
    """Turns gain user and repository, and the conversations that they form are listed."""
    for turn, details in connection.execute("SELECT id, details FROM turn").fetchall():
        repository = str(parse_details(details).get("repository", ""))
        connection.execute("UPDATE turn SET repository = ? WHERE id = ?", (repository, turn))
    rows = connection.execute(
        "SELECT user, repository, conversation, min(created), max(created) FROM turn "
        "WHERE conversation != '' GROUP BY user, repository, conversation"
    ).fetchall()
    for user, repository, conversation, created, updated in rows:
        (question,) = connection.execute(
            "SELECT question FROM turn WHERE user = ? AND repository = ? AND conversation = ? "
            "ORDER BY created, rowid LIMIT 1",
            (user, repository, conversation),
        ).fetchone()
        connection.execute(
            "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?)",
            (user, repository, conversation, title_of(question), created, updated),
        )


def _branches(connection: sqlite3.Connection) -> None:
    """A turn follows another, so that there may be several after one; questions have vectors,
    conversations topics, and users say something about themselves."""
    rows = connection.execute(
        "SELECT user, repository, conversation, id, rowid FROM turn WHERE conversation != '' "
        "ORDER BY user, repository, conversation, created, rowid"
    ).fetchall()
    leaves: dict[Group, str] = {}
    for user, repository, conversation, turn, number in rows:
        group = (user, repository, conversation)
        if group in leaves:
            connection.execute(
                "UPDATE turn SET parent = ? WHERE rowid = ?", (leaves[group], number)
            )
        leaves[group] = turn
    connection.executemany(
        "UPDATE conversation SET leaf = ? WHERE user = ? AND repository = ? AND id = ?",
        [(leaf, *group) for group, leaf in leaves.items()],
    )


STEPS: tuple[Step, ...] = (
    (_FIRST, None),
    (_CONVERSATIONS, _conversations),
    (_FEEDBACK, None),
    (_BRANCHES, _branches),
)
"""`PRAGMA user_version` counts those that a file has been through."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the newest version, all of it or nothing.

    Raises StorageError when a newer CodeQA wrote it.
    """
    if version(connection) == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    # Asked again: another process may have been faster.
    if version(connection) > len(STEPS):
        raise StorageError(
            "The local state was written by a newer version of CodeQA.",
            "Use that version, or another folder by CODEQA_DATA.",
        )
    # Not executescript: it commits first, and a step must be whole or not at all.
    for statements, fill in STEPS[version(connection) :]:
        for statement in statements.split(";\n"):
            connection.execute(statement)
        if fill:
            fill(connection)
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    connection.execute("COMMIT")


def version(connection: sqlite3.Connection) -> int:
    """How many of the steps the file has been through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
