"""All that is kept of one user: how much it is, and its end."""

from __future__ import annotations

import sqlite3

from codeqa.state.database import Database
from codeqa.state.records import LOCAL_USER, Owned

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
        return owned


def _counts(connection: sqlite3.Connection, user: str) -> Owned:
    return Owned(*connection.execute(_COUNTS, {"user": user}).fetchone())
