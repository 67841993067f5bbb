"""Rows of turns and conversations as records, and what is done to both at once."""

from __future__ import annotations

import sqlite3
from typing import Any

from codeqa.state.records import Conversation, Group, Turn, parse_details

TURN = "id, conversation, question, answer, context, details, created, user, repository, parent"
CONVERSATION = (
    "id, user, repository, title, created, updated, (SELECT count(*) FROM turn WHERE "
    "turn.user = c.user AND turn.repository = c.repository AND turn.conversation = c.id)"
)
OF_GROUP = "user = ? AND repository = ? AND conversation = ?"


def turn_of(row: tuple[Any, ...]) -> Turn:
    """The turn in a row of `TURN`."""
    turn_id, conversation, question, answer, context, details, *rest = row
    return Turn(turn_id, conversation, question, answer, context, parse_details(details), *rest)


def find_conversation(
    connection: sqlite3.Connection, conversation: str, user: str, repository: str | None
) -> Conversation | None:
    """A conversation of `user`; without a repository the one last continued of that id."""
    row = connection.execute(
        f"SELECT {CONVERSATION} FROM conversation AS c WHERE user = ? AND id = ? "
        "AND (repository = ? OR ? IS NULL) ORDER BY updated DESC, rowid DESC LIMIT 1",
        (user, conversation, repository, repository),
    ).fetchone()
    return None if row is None else Conversation(*row)


def delete_group(connection: sqlite3.Connection, group: Group) -> None:
    """Delete a conversation and its turns; triggers take along what belongs to those."""
    connection.execute(f"DELETE FROM turn WHERE {OF_GROUP}", group)
    connection.execute(
        "DELETE FROM conversation WHERE user = ? AND repository = ? AND id = ?", group
    )


def limit_turns(connection: sqlite3.Connection, saved: str, group: Group, kept: int) -> None:
    """Delete what exceeds `kept` turns: other conversations first, never the turn just saved."""
    excess = int(connection.execute("SELECT count(*) FROM turn").fetchone()[0]) - kept
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
            delete_group(connection, (user, repository, conversation))
        excess -= turns
    if excess > 0:
        connection.execute(
            f"DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE {OF_GROUP} "
            "AND id != ? ORDER BY created, rowid LIMIT ?)",
            (*group, saved, excess),
        )
