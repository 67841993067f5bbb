"""Count and delete all that is stored of a user; store thumbs on answers and facts about users."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable

from codeqa.errors import NotFoundError
from codeqa.state.database import PUT_VALUE, Connection, StateTable
from codeqa.state.records import LOCAL_USER, DataCounts
from codeqa.text.tokens import well_formed

LONGEST_TURN = 24 * 3600.0  # seconds for which a deletion is remembered: no answer takes longer

_COUNTS = """
    SELECT (SELECT count(DISTINCT repository) FROM conversation WHERE user = ?),
        (SELECT count(*) FROM conversation WHERE user = ?),
        (SELECT count(*) FROM turn WHERE user = ?),
        (SELECT count(*) FROM feedback JOIN turn ON turn.id = feedback.turn WHERE user = ?),
        (SELECT count(*) FROM question WHERE user = ?),
        (SELECT count(*) FROM fact WHERE user = ?)
"""
_PUT_THUMB = "INSERT INTO feedback (turn, value, reason, sent, created) VALUES (?, ?, ?, ?, ?)"


class UserData(StateTable):
    """All that is stored of a user, in all repositories."""

    def counts(self, user: str = LOCAL_USER) -> DataCounts:
        return DataCounts(*self._database.row(_COUNTS, [user] * _COUNTS.count("?")) or ())

    def delete(self, user: str = LOCAL_USER) -> None:
        """Delete all conversations, turns (with thumbs and vectors) and facts of `user`."""
        with self._database.writing(user) as connection:
            for table in ("turn", "conversation", "fact"):
                connection.execute(f"DELETE FROM {table} WHERE user = ?", (user,))
            note_deletion(connection, user, "everything")


class FeedbackStore(StateTable):
    """Thumbs; each belongs to its turn's user and goes with it."""

    def save(
        self,
        turn_id: str,
        user: str,
        value: int,
        reason: str = "",
        *,
        sent: Iterable[tuple[str, int, int]] = (),
    ) -> None:
        """Give a turn of `user` a thumb, 1 or -1; 0 takes it back.

        `sent` are the spans (path, first and last line) that the answer was made from. Raises
        NotFoundError when the user has no such turn.
        """
        with self._database.writing(user) as connection:
            query = "SELECT 1 FROM turn WHERE id = ? AND user = ?"
            if connection.execute(query, (turn_id, user)).fetchone() is None:
                raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
            connection.execute("DELETE FROM feedback WHERE turn = ?", (turn_id,))
            if value:
                spans = json.dumps(list(sent))
                row = (turn_id, value, well_formed(reason.strip()), spans, time.time())
                connection.execute(_PUT_THUMB, row)

    def of_conversation(
        self, conversation: str, user: str, repository: str
    ) -> dict[str, tuple[int, str]]:
        """Return the thumbs of a conversation: id of the turn → value and reason."""
        rows = self._database.rows(
            "SELECT turn, value, reason FROM feedback JOIN turn ON turn.id = feedback.turn "
            "WHERE user = ? AND repository = ? AND conversation = ?",
            (user, repository, conversation),
        )
        return {turn: (value, reason) for turn, value, reason in rows}


class ProfileStore(StateTable):
    """Facts that users told about themselves."""

    def facts(self, user: str = LOCAL_USER) -> dict[str, str]:
        """Return all facts about `user` by their key, the latest last."""
        query = "SELECT key, value FROM fact WHERE user = ? ORDER BY updated, rowid"
        return dict(self._database.rows(query, (user,)))

    def clear(self, user: str = LOCAL_USER) -> None:
        with self._database.writing(user) as connection:
            note_deletion(connection, user, "profile")
            connection.execute("DELETE FROM fact WHERE user = ?", (user,))


def put_fact(
    connection: Connection, user: str, key: str, value: str, turn: str, updated: float
) -> None:
    """Store or replace a fact about `user` that was part of `turn`."""
    connection.execute(
        "INSERT INTO fact (user, key, value, turn, updated) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (user, key) DO UPDATE SET value = excluded.value, turn = excluded.turn, "
        "updated = excluded.updated",
        (user, well_formed(key), well_formed(value), turn, updated),
    )


def note_deletion(connection: Connection, user: str, scope: str) -> None:
    """Note that `user` deletes `scope` now, for turns that any process is still answering."""
    now = time.time()
    connection.execute(PUT_VALUE, (_deletion_key(user, scope), repr(now), now + LONGEST_TURN))


def deleted_since(connection: Connection, user: str, scope: str, begun: float) -> bool:
    """Return whether `user` has deleted `scope` since `begun`; never for 0."""
    if not begun:
        return False
    key = _deletion_key(user, scope)
    row = connection.execute("SELECT value FROM value WHERE key = ?", (key,)).fetchone()
    return row is not None and float(row[0]) >= begun


def _deletion_key(user: str, scope: str) -> str:
    # A hash: after a deletion the user's name must not be left here.
    return f"deleted:{scope}:{hashlib.sha256(user.encode()).hexdigest()}"
