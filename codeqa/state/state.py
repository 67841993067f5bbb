"""The local state as methods: values with a lifetime, conversations, recent repositories; thumbs
are in `feedback`."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

from codeqa.errors import NotFoundError
from codeqa.state.database import Database
from codeqa.state.feedback import FeedbackTable
from codeqa.state.records import LOCAL_USER, Conversation, Turn, parse_details, title_of

FILE_NAME = "state.sqlite"
TURNS_KEPT = 10_000
"""Turns kept in all: with full contexts about 300 MB, some years of daily use."""
CONVERSATIONS_LISTED = 200
RECENT_KEPT = 20

_TURN = "id, conversation, question, answer, context, details, created, user, repository"
_CONVERSATION = (
    "id, user, repository, title, created, updated, (SELECT count(*) FROM turn WHERE "
    "turn.user = c.user AND turn.repository = c.repository AND turn.conversation = c.id)"
)


class State(FeedbackTable):
    """The local state in `folder`; safe to share between threads and processes.

    A conversation belongs to one user and one repository: the same id under another user
    or in another repository is another conversation. Where a method leaves `repository`
    out, the one that the user's conversation of that id was last continued in is meant.
    Every method raises StorageError when the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._database = Database(self.path)

    # Values with a lifetime: the protocol of `codeqa.cache`.

    def get(self, key: str) -> str | None:
        """Value of `key`, or None when it was never set or its lifetime is over."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT value FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)",
                (key, time.time()),
            ).fetchone()
        return None if row is None else str(row[0])

    def set(self, key: str, value: str, seconds: float | None = None) -> None:
        """Store `value`; `seconds` is its lifetime, None keeps it until deleted."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute("DELETE FROM value WHERE expires <= ?", (now,))
            connection.execute(
                "INSERT OR REPLACE INTO value VALUES (?, ?, ?)",
                (key, value, None if seconds is None else now + seconds),
            )

    def delete(self, key: str) -> None:
        """Forget `key`; nothing happens when it is not there."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM value WHERE key = ?", (key,))

    # Conversations and their turns.

    def save_turn(self, turn: Turn, replaces: str = "", continues: float = 0.0) -> bool:
        """Store `turn`, and with its conversation's first one the conversation.

        `replaces` is the id of a turn of the same conversation that goes as this one
        comes. `continues` is when the conversation was created that this turn began in, 0
        where it had none: one that was deleted meanwhile does not come back, nothing is
        stored and False returned. Beyond `TURNS_KEPT` the conversations longest untouched
        go, whole ones, and only then the oldest turns of this one. Saving a turn twice is
        harmless.
        """
        created = turn.created or time.time()
        group = (turn.user, turn.repository, turn.conversation)
        with self._database.writing() as connection:
            if continues and turn.conversation:
                found = _conversation(connection, turn.conversation, turn.user, turn.repository)
                if found is None or found.created != continues:
                    return False
            connection.execute(
                "DELETE FROM turn WHERE id = ? "
                "AND user = ? AND repository = ? AND conversation = ?",
                (replaces, *group),
            )
            connection.execute(
                f"INSERT OR REPLACE INTO turn ({_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.id,
                    turn.conversation,
                    turn.question,
                    turn.answer,
                    turn.context,
                    json.dumps(dict(turn.details)),
                    created,
                    turn.user,
                    turn.repository,
                ),
            )
            if turn.conversation:
                connection.execute(
                    "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (user, repository, id) "
                    "DO UPDATE SET updated = max(updated, excluded.updated)",
                    (*group, title_of(turn.question), created, created),
                )
            _limit_turns(connection, turn.id, group)
        return True

    def turn(self, turn_id: str, user: str = LOCAL_USER) -> Turn | None:
        """The stored turn of `user`, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE id = ? AND user = ?", (turn_id, user)
            ).fetchone()
        return None if row is None else _turn(row)

    def turns(
        self,
        conversation: str,
        user: str = LOCAL_USER,
        repository: str | None = None,
        last: int | None = None,
    ) -> list[Turn]:
        """Turns of a conversation, oldest first; none when there is no such conversation.

        `last` leaves out all but so many of the latest.
        """
        with self._database.reading() as connection:
            found = _conversation(connection, conversation, user, repository)
            if found is None:
                return []
            rows = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE user = ? AND repository = ? "
                "AND conversation = ? ORDER BY created DESC, rowid DESC LIMIT ?",
                (user, found.repository, conversation, -1 if last is None else last),
            ).fetchall()
        return [_turn(row) for row in reversed(rows)]

    def conversations(
        self, repository: str, user: str = LOCAL_USER, limit: int = CONVERSATIONS_LISTED
    ) -> list[Conversation]:
        """Conversations of `user` about `repository`, the latest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_CONVERSATION} FROM conversation AS c WHERE user = ? "
                "AND repository = ? ORDER BY updated DESC, rowid DESC LIMIT ?",
                (user, repository, limit),
            ).fetchall()
        return [Conversation(*row) for row in rows]

    def conversation(
        self, conversation: str, user: str = LOCAL_USER, repository: str | None = None
    ) -> Conversation | None:
        """The conversation of `user`, or None."""
        with self._database.reading() as connection:
            return _conversation(connection, conversation, user, repository)

    def rename_conversation(
        self,
        conversation: str,
        title: str,
        user: str = LOCAL_USER,
        repository: str | None = None,
    ) -> None:
        """Give a conversation another title, cut as `title_of` does.

        Raises NotFoundError when there is no such conversation.
        """
        with self._database.writing() as connection:
            found = _conversation(connection, conversation, user, repository)
            if found is None:
                raise NotFoundError(
                    "There is no such conversation.", "It may have been deleted: load the list."
                )
            connection.execute(
                "UPDATE conversation SET title = ? WHERE user = ? AND repository = ? AND id = ?",
                (title_of(title), user, found.repository, conversation),
            )

    def delete_conversation(
        self, conversation: str, user: str = LOCAL_USER, repository: str | None = None
    ) -> None:
        """Delete a conversation and its turns; nothing happens when there is none."""
        with self._database.writing() as connection:
            found = _conversation(connection, conversation, user, repository)
            if found is not None:
                _delete(connection, (user, found.repository, conversation))

    # Recent repositories.

    def remember_repository(self, path: Path) -> None:
        """Put `path` at the head of the repositories opened recently."""
        with self._database.writing() as connection:
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
        with self._database.writing() as connection:
            connection.execute("DELETE FROM recent WHERE path = ?", (str(path),))

    def recent_repositories(self) -> list[Path]:
        """Repositories opened, the latest first, whether or not they still exist."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT path FROM recent ORDER BY opened DESC").fetchall()
        return [Path(row[0]) for row in rows]


_Group = tuple[str, str, str]
"""User, repository and conversation; the conversation is '' for turns that have none."""


def _turn(row: tuple[Any, ...]) -> Turn:
    turn_id, conversation, question, answer, context, details, *rest = row
    return Turn(turn_id, conversation, question, answer, context, parse_details(details), *rest)


def _conversation(
    connection: sqlite3.Connection, conversation: str, user: str, repository: str | None
) -> Conversation | None:
    row = connection.execute(
        f"SELECT {_CONVERSATION} FROM conversation AS c WHERE user = ? AND id = ? "
        "AND (repository = ? OR ? IS NULL) ORDER BY updated DESC, rowid DESC LIMIT 1",
        (user, conversation, repository, repository),
    ).fetchone()
    return None if row is None else Conversation(*row)


def _delete(connection: sqlite3.Connection, group: _Group) -> None:
    connection.execute(
        "DELETE FROM turn WHERE user = ? AND repository = ? AND conversation = ?", group
    )
    connection.execute(
        "DELETE FROM conversation WHERE user = ? AND repository = ? AND id = ?", group
    )


def _limit_turns(connection: sqlite3.Connection, saved: str, group: _Group) -> None:
    """Delete what exceeds `TURNS_KEPT`: other conversations first, never the turn just saved."""
    excess = int(connection.execute("SELECT count(*) FROM turn").fetchone()[0]) - TURNS_KEPT
    if excess <= 0:
        return
    # A turn without a conversation counts as one of its own.
    others = connection.execute(
        "SELECT user, repository, conversation, "
        "CASE conversation WHEN '' THEN id ELSE '' END AS lone, "
        "count(*), max(created) AS latest FROM turn "
        "WHERE id != ? AND (conversation = '' OR (user, repository, conversation) != (?, ?, ?)) "
        "GROUP BY user, repository, conversation, lone ORDER BY latest",
        (saved, *group),
    ).fetchall()
    for user, repository, conversation, lone, turns, _ in others:
        if excess <= 0:
            return
        if lone:
            connection.execute("DELETE FROM turn WHERE id = ?", (lone,))
        else:
            _delete(connection, (user, repository, conversation))
        excess -= turns
    if excess > 0:
        connection.execute(
            "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE user = ? AND repository = ? "
            "AND conversation = ? AND id != ? ORDER BY created, rowid LIMIT ?)",
            (*group, saved, excess),
        )
