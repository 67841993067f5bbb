"""The local state as methods: conversations and their turns here, the rest in the tables that
`State` is made of."""

from __future__ import annotations

import json
import time
from pathlib import Path

from codeqa.errors import NotFoundError
from codeqa.state.branches import PATH, BranchTable, leaf_of, parent_for, path_parameters
from codeqa.state.database import Database
from codeqa.state.feedback import FeedbackTable
from codeqa.state.finding import FindingTable
from codeqa.state.holdings import HoldingTable
from codeqa.state.owned import OwnedTable, deleted_since
from codeqa.state.profile import ProfileTable
from codeqa.state.questions import QuestionTable, learn
from codeqa.state.records import LOCAL_USER, NOTHING, Conversation, Learnt, Turn, title_of
from codeqa.state.rows import (
    CONVERSATION,
    TURN,
    delete_group,
    find_conversation,
    limit_turns,
    turn_of,
)
from codeqa.state.values import ValueTable

FILE_NAME = "state.sqlite"
TURNS_KEPT = 10_000
"""Turns kept in all: with full contexts about 300 MB, some years of daily use."""
CONVERSATIONS_LISTED = 200

_TURN_OF_PATH = ", ".join(f"turn.{column}" for column in TURN.split(", "))


class State(
    BranchTable,
    FeedbackTable,
    FindingTable,
    HoldingTable,
    OwnedTable,
    ProfileTable,
    QuestionTable,
    ValueTable,
):
    """The local state in `folder`; safe to share between threads and processes.

    A conversation belongs to one user and one repository: the same id under another user
    or in another repository is another conversation. Where a method leaves `repository`
    out, the one that the user's conversation of that id was last continued in is meant.
    Every method raises StorageError when the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._database = Database(self.path)

    def compact(self) -> None:
        """Rid the file and its log of all that was deleted, and of the room it took.

        Raises StorageError when others use the file meanwhile.
        """
        self._database.compact()

    def save_turn(
        self, turn: Turn, replaces: str = "", continues: float = 0.0, learnt: Learnt = NOTHING
    ) -> bool:
        """Store `turn` and what it teaches, and with its conversation's first one the
        conversation.

        It follows the same turn as `replaces`, a turn of the same conversation that stays
        beside it; else `turn.parent`; else, as where the conversation has no such turn, the
        last one of the active branch. It becomes that itself. `continues` is when the
        conversation was created that this turn began in, 0 where it had none: one that was
        deleted meanwhile does not come back, nothing is stored and False returned. Beyond
        `TURNS_KEPT` the conversations longest untouched go, whole ones, and only then the
        oldest turns of this one. Saved again, a turn keeps its place and teaches nothing
        more; its texts and details become the new ones. Nor does one come back that its user
        has deleted everything of since it began (`learnt.begun`).
        """
        created = turn.created or time.time()
        group = (turn.user, turn.repository, turn.conversation)
        texts = (turn.question, turn.answer, turn.context, json.dumps(dict(turn.details)))
        with self._database.writing() as connection:
            if continues and turn.conversation:
                found = find_conversation(connection, turn.conversation, turn.user, turn.repository)
                if found is None or found.created != continues:
                    return False
            if deleted_since(connection, turn.user, "everything", learnt.begun):
                return False
            again = connection.execute(
                "UPDATE turn SET question = ?, answer = ?, context = ?, details = ? "
                "WHERE id = ? AND user = ?",
                (*texts, turn.id, turn.user),
            )
            if again.rowcount:
                return True
            parent = ""
            if turn.conversation:
                parent = parent_for(connection, group, turn.parent, replaces)
                connection.execute(
                    "INSERT INTO conversation "
                    "(user, repository, id, title, created, updated, leaf) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user, repository, id) DO UPDATE "
                    "SET updated = max(updated, excluded.updated), leaf = excluded.leaf",
                    (*group, title_of(turn.question), created, created, turn.id),
                )
            connection.execute(
                f"INSERT INTO turn ({TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.id,
                    turn.conversation,
                    *texts,
                    created,
                    turn.user,
                    turn.repository,
                    parent,
                ),
            )
            learn(connection, turn, learnt, created)
            limit_turns(connection, turn.id, group, TURNS_KEPT)
        return True

    def turn(self, turn_id: str, user: str = LOCAL_USER) -> Turn | None:
        """The stored turn of `user`, or None."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {TURN} FROM turn WHERE id = ? AND user = ?", (turn_id, user)
            ).fetchone()
        return None if row is None else turn_of(row)

    def turns(
        self,
        conversation: str,
        user: str = LOCAL_USER,
        repository: str | None = None,
        last: int | None = None,
        *,
        until: str | None = None,
    ) -> list[Turn]:
        """Turns of a conversation's active branch, oldest first; none when there is no such
        conversation.

        `last` leaves out all but so many of the latest. `until` names another turn of the
        conversation to end with: the branch up to it, whether or not that is active.
        """
        with self._database.reading() as connection:
            found = find_conversation(connection, conversation, user, repository)
            if found is None:
                return []
            group = (user, found.repository, conversation)
            end = until or leaf_of(connection, group)
            rows = connection.execute(
                f"{PATH} SELECT {_TURN_OF_PATH} FROM path CROSS JOIN turn ON turn.id = path.id "
                "ORDER BY created, turn.rowid",
                path_parameters(group, end, last),
            ).fetchall()
        return [turn_of(row) for row in rows]

    def conversations(
        self, repository: str, user: str = LOCAL_USER, limit: int = CONVERSATIONS_LISTED
    ) -> list[Conversation]:
        """Conversations of `user` about `repository`, the latest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {CONVERSATION} FROM conversation AS c WHERE user = ? "
                "AND repository = ? ORDER BY updated DESC, rowid DESC LIMIT ?",
                (user, repository, limit),
            ).fetchall()
        return [Conversation(*row) for row in rows]

    def conversation(
        self, conversation: str, user: str = LOCAL_USER, repository: str | None = None
    ) -> Conversation | None:
        """The conversation of `user`, or None."""
        with self._database.reading() as connection:
            return find_conversation(connection, conversation, user, repository)

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
            found = find_conversation(connection, conversation, user, repository)
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
            found = find_conversation(connection, conversation, user, repository)
            if found is not None:
                delete_group(connection, (user, found.repository, conversation))
