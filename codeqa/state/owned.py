"""All that is kept of one user: how much it is, and its end."""

from __future__ import annotations

import hashlib
import sqlite3
import time

from codeqa.state.database import Database
from codeqa.state.records import LOCAL_USER, Owned

LONGEST_TURN = 24 * 3600.0
"""Seconds for which a deletion is remembered: no answer takes longer."""

_COUNTS = """
    SELECT (SELECT count(*) FROM conversation WHERE user = :user),
        (SELECT count(*) FROM turn WHERE user = :user),
        (SELECT count(*) FROM feedback JOIN turn ON turn.id = feedback.turn WHERE user = :user),
        (SELECT count(*) FROM question WHERE user = :user),
        (SELECT count(*) FROM fact WHERE user = :user)
"""


class OwnedTable:
    """The part of the state that counts and deletes what belongs to a user, in any repository."""

    _database: Database

    def owned(self, user: str = LOCAL_USER) -> Owned:
        """How much is kept of `user`."""
        with self._database.reading() as connection:
            return _counts(connection, user)

    def places(self, user: str = LOCAL_USER) -> list[tuple[str, str]]:
        """Repository and id of each of the user's conversations, the latest first."""
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT repository, id FROM conversation WHERE user = ? "
                "ORDER BY updated DESC, rowid DESC",
                (user,),
            ).fetchall()

    def delete_owned(self, user: str = LOCAL_USER) -> Owned:
        """Delete all conversations, turns and facts of `user`; how much it was.

        Thumbs and vectors go with their turns. Values with a lifetime belong to no user.
        """
        with self._database.writing() as connection:
            owned = _counts(connection, user)
            for table in ("turn", "conversation", "fact"):
                connection.execute(f"DELETE FROM {table} WHERE user = ?", (user,))
            note_deletion(connection, user, "everything")
        return owned


def note_deletion(connection: sqlite3.Connection, user: str, scope: str) -> None:
    """Note that `user` deletes this now, for turns that are still in the making anywhere."""
    now = time.time()
    connection.execute(
        "INSERT OR REPLACE INTO value VALUES (?, ?, ?)",
        (_moment(user, scope), repr(now), now + LONGEST_TURN),
    )


def deleted_since(connection: sqlite3.Connection, user: str, scope: str, begun: float) -> bool:
    """Whether `user` has deleted this since `begun`; never for 0."""
    row = connection.execute(
        "SELECT value FROM value WHERE key = ?", (_moment(user, scope),)
    ).fetchone()
    return bool(begun) and row is not None and float(row[0]) >= begun


def _moment(user: str, scope: str) -> str:
    # Not the user's name: after a deletion nothing here may tell of them.
    return f"deleted:{scope}:{hashlib.sha256(user.encode()).hexdigest()}"


def _counts(connection: sqlite3.Connection, user: str) -> Owned:
    return Owned(*connection.execute(_COUNTS, {"user": user}).fetchone())
