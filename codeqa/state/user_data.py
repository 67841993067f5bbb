"""All that is stored of one user: how much it is, every text of it, and its deletion; and what
users said about themselves, as facts by key, which hold in every repository."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

from codeqa.state.conversations import OF_GROUP
from codeqa.state.database import Database
from codeqa.state.records import LOCAL_USER, DataCounts, Fact
from codeqa.text.tokens import well_formed

LONGEST_TURN = 24 * 3600.0
"""Seconds for which a deletion is remembered: no answer takes longer."""

_COUNTS = """
    SELECT (SELECT count(DISTINCT repository) FROM conversation WHERE user = :user),
        (SELECT count(*) FROM conversation WHERE user = :user),
        (SELECT count(*) FROM turn WHERE user = :user),
        (SELECT count(*) FROM feedback JOIN turn ON turn.id = feedback.turn WHERE user = :user),
        (SELECT count(*) FROM question WHERE user = :user),
        (SELECT count(*) FROM fact WHERE user = :user)
"""
_TURNS = (
    "SELECT t.user, t.repository, t.conversation, t.id, question, answer, context, details, "
    "coalesce(reason, '') FROM turn AS t LEFT JOIN feedback ON feedback.turn = t.id"
)
_TITLES = "SELECT user, repository, id, title FROM conversation"
_REST = (
    "SELECT value, turn FROM fact UNION ALL SELECT key, value FROM value "
    "UNION ALL SELECT path, '' FROM recent"
)


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """The texts of one turn that its user sees."""

    turn: str
    conversation: str
    title: str
    question: str
    answer: str
    reason: str
    """Behind its thumb."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """All texts of one row of any table."""

    text: str
    user: str = ""
    repository: str = ""
    conversation: str = ""


class UserData:
    """What belongs to a user, in all repositories."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self, user: str = LOCAL_USER) -> DataCounts:
        """How much is kept of `user`."""
        with self._database.reading() as connection:
            return DataCounts(*connection.execute(_COUNTS, {"user": user}).fetchone())

    def turns(
        self, user: str = LOCAL_USER, conversation: str = "", repository: str = ""
    ) -> Iterator[TurnTexts]:
        """Every turn of `user`, on whatever branch; of one conversation where one is given.

        One at a time: all answers together may be large.
        """
        one = (OF_GROUP, (user, repository, conversation))
        where, values = one if conversation else ("user = ?", (user,))
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT t.id, t.conversation, coalesce(title, ''), question, answer, "
                f"coalesce(reason, '') FROM (SELECT * FROM turn WHERE {where}) AS t "
                "LEFT JOIN feedback ON feedback.turn = t.id "
                "LEFT JOIN conversation AS c ON c.user = t.user "
                "AND c.repository = t.repository AND c.id = t.conversation",
                values,
            )
            for row in rows:
                yield TurnTexts(*row)

    def texts_of_everybody(self) -> Iterator[StoredText]:
        """Every text that anybody's rows hold, row by row: turns and titles with their places,
        then facts, values and paths."""
        with self._database.reading() as connection:
            for query in (_TURNS, _TITLES):
                for user, repository, conversation, *texts in connection.execute(query):
                    text = "\n".join((conversation, *texts))
                    yield StoredText(text, user, repository, conversation)
            for texts in connection.execute(_REST):
                yield StoredText("\n".join(texts))

    def delete(self, user: str = LOCAL_USER) -> None:
        """Delete all conversations, turns and facts of `user`.

        Thumbs and vectors go with their turns. Values with a lifetime belong to no user.
        """
        with self._database.writing() as connection:
            for table in ("turn", "conversation", "fact"):
                connection.execute(f"DELETE FROM {table} WHERE user = ?", (user,))
            note_deletion(connection, user, "everything")


class ProfileStore:
    """Facts about users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def facts(self, user: str = LOCAL_USER) -> dict[str, Fact]:
        """All facts about `user` by their key, the latest last."""
        rows = self._database.rows(
            "SELECT key, value, turn, updated FROM fact WHERE user = ? ORDER BY updated, rowid",
            (user,),
        )
        return {key: Fact(*rest) for key, *rest in rows}

    def save(self, key: str, value: str, user: str = LOCAL_USER, turn: str = "") -> None:
        """Keep a fact, in place of an earlier one under the same key."""
        with self._database.writing() as connection:
            put_fact(connection, user, key, value, turn, time.time())

    def delete(self, key: str, user: str = LOCAL_USER) -> bool:
        """Forget a fact; False when there is none."""
        return self._database.change("DELETE FROM fact WHERE user = ? AND key = ?", (user, key)) > 0

    def clear(self, user: str = LOCAL_USER) -> int:
        """Forget all facts about `user`; how many there were."""
        with self._database.writing() as connection:
            note_deletion(connection, user, "profile")
            return connection.execute("DELETE FROM fact WHERE user = ?", (user,)).rowcount


def put_fact(
    connection: sqlite3.Connection, user: str, key: str, value: str, turn: str, updated: float
) -> None:
    """Write a fact over an earlier one."""
    connection.execute(
        "INSERT INTO fact VALUES (?, ?, ?, ?, ?) ON CONFLICT (user, key) DO UPDATE SET "
        "value = excluded.value, turn = excluded.turn, updated = excluded.updated",
        (user, well_formed(key), well_formed(value), turn, updated),
    )


def note_deletion(connection: sqlite3.Connection, user: str, scope: str) -> None:
    """Note that `user` deletes this now, for turns that are still in the making anywhere."""
    now = time.time()
    connection.execute(
        "INSERT OR REPLACE INTO value VALUES (?, ?, ?)",
        (_deletion_key(user, scope), repr(now), now + LONGEST_TURN),
    )


def deleted_since(connection: sqlite3.Connection, user: str, scope: str, begun: float) -> bool:
    """Whether `user` has deleted this since `begun`; never for 0."""
    row = connection.execute(
        "SELECT value FROM value WHERE key = ?", (_deletion_key(user, scope),)
    ).fetchone()
    return bool(begun) and row is not None and float(row[0]) >= begun


def _deletion_key(user: str, scope: str) -> str:
    # Not the user's name: after a deletion nothing here may tell of them.
    return f"deleted:{scope}:{hashlib.sha256(user.encode()).hexdigest()}"
