"""Turns: stored with what they teach, and read by the branches that they form; and the vectors
of their questions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from codeqa.errors import NotFoundError
from codeqa.state.branches import (
    OF_GROUP,
    PATH,
    active_turns,
    latest_after,
    leaf_of,
    links_of,
    parent_for,
    path_parameters,
    path_to,
)
from codeqa.state.conversations import delete_group, find_conversation
from codeqa.state.database import Database
from codeqa.state.records import (
    LOCAL_USER,
    NO_EXTRAS,
    Group,
    PastExchange,
    PastQuestion,
    Turn,
    TurnExtras,
    parse_details,
    title_of,
)
from codeqa.state.user_data import deleted_since, put_fact

TURNS_KEPT = 10_000
"""Turns kept in all: with full contexts about 300 MB, some years of daily use."""

_TURN = "id, conversation, question, answer, context, details, created, user, repository, parent"
_TURN_OF_PATH = ", ".join(f"turn.{column}" for column in _TURN.split(", "))
_IDS_AT_ONCE = 500
"""Ids in one statement; SQLite of some builds takes no more than 999."""


class TurnStore:
    """The turns of all conversations.

    Each turn follows another one, and of several that follow the same one at most one is on
    the active branch, which ends with the conversation's leaf.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(
        self,
        turn: Turn,
        replaces: str = "",
        continues: float = 0.0,
        extras: TurnExtras = NO_EXTRAS,
    ) -> bool:
        """Store `turn` with its `extras`, and the conversation with its first turn.

        It follows the same turn as `replaces`, a turn of the same conversation that stays
        beside it; else `turn.parent`; else, as where the conversation has no such turn, the
        last one of the active branch. It becomes that itself. `continues` is when the
        conversation was created that this turn began in, 0 where it had none: one that was
        deleted meanwhile does not come back, nothing is stored and False returned. Beyond
        `TURNS_KEPT` the conversations longest untouched go, whole ones, and only then the
        oldest turns of this one. Saved again, a turn keeps its place and its extras; its texts
        and details become the new ones. Nor does one come back that its user has deleted
        everything of since it began (`extras.begun`).
        """
        created = turn.created or time.time()
        group = (turn.user, turn.repository, turn.conversation)
        texts = (turn.question, turn.answer, turn.context, json.dumps(dict(turn.details)))
        with self._database.writing() as connection:
            if continues and turn.conversation:
                found = find_conversation(connection, turn.conversation, turn.user, turn.repository)
                if found is None or found.created != continues:
                    return False
            if deleted_since(connection, turn.user, "everything", extras.begun):
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
                f"INSERT INTO turn ({_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (turn.id, turn.conversation, *texts, created, turn.user, turn.repository, parent),
            )
            _put_extras(connection, turn, extras, created)
            _limit_turns(connection, turn.id, group, TURNS_KEPT)
        return True

    def get(self, turn_id: str, user: str = LOCAL_USER) -> Turn | None:
        """The stored turn of `user`, or None."""
        row = self._database.row(
            f"SELECT {_TURN} FROM turn WHERE id = ? AND user = ?", (turn_id, user)
        )
        return None if row is None else _turn_of(row)

    def active(
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
        return [_turn_of(row) for row in rows]

    def inactive(self, conversation: str, user: str, repository: str) -> list[Turn]:
        """Turns of a conversation that are not on its active branch, oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            active = active_turns(connection, group)
            rows = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE {OF_GROUP} ORDER BY created, rowid", group
            )
            return [_turn_of(row) for row in rows if row[0] not in active]

    def branches(self, conversation: str, user: str, repository: str) -> dict[str, tuple[str, ...]]:
        """Id of each turn on the active branch, from the first on → ids of all turns that
        follow the same one, itself among them, the oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            leaf = leaf_of(connection, group)
            links = links_of(connection, group)
        parents = dict(links)
        siblings: dict[str, list[str]] = {}
        for turn, parent in links:
            siblings.setdefault(parent, []).append(turn)
        return {turn: tuple(siblings[parents[turn]]) for turn in path_to(leaf, parents)}

    def choose_branch(self, conversation: str, turn_id: str, user: str, repository: str) -> None:
        """Make the branch with the turn active, up to the latest of the turns that follow it.

        Raises NotFoundError when the conversation has no such turn.
        """
        group = (user, repository, conversation)
        with self._database.writing() as connection:
            leaf = latest_after(turn_id, links_of(connection, group))
            if not leaf:
                raise NotFoundError("There is no such answer.", "It may have been deleted.")
            connection.execute(
                "UPDATE conversation SET leaf = ? WHERE user = ? AND repository = ? AND id = ?",
                (leaf, *group),
            )

    def exchanges(self, turn_ids: Sequence[str], user: str = LOCAL_USER) -> dict[str, PastExchange]:
        """Id of each of these turns that the user has → its question and answer."""
        found: list[tuple[Any, ...]] = []
        active: dict[Group, frozenset[str]] = {}
        with self._database.reading() as connection:
            for start in range(0, len(turn_ids), _IDS_AT_ONCE):
                some = [*turn_ids[start : start + _IDS_AT_ONCE]]
                marks = ", ".join("?" * len(some))
                found += connection.execute(
                    "SELECT id, conversation, repository, question, answer, created, details "
                    f"FROM turn WHERE user = ? AND id IN ({marks})",
                    (user, *some),
                )
            for _, conversation, repository, *_ in found:
                group = (user, repository, conversation)
                if conversation and group not in active:
                    active[group] = active_turns(connection, group)
        return {
            row[0]: _exchange_of(row, not row[1] or row[0] in active[user, row[2], row[1]])
            for row in found
        }

    def past_questions(self, user: str, repository: str, embedding: str) -> list[PastQuestion]:
        """Vectors that `embedding` made of the user's questions, in the order of these."""
        rows = self._database.rows(
            "SELECT turn, conversation, vector FROM question WHERE user = ? "
            "AND repository = ? AND embedding = ? ORDER BY number",
            (user, repository, embedding),
        )
        return [PastQuestion(*row) for row in rows]


def _turn_of(row: tuple[Any, ...]) -> Turn:
    """The turn in a row of `_TURN`."""
    turn_id, conversation, question, answer, context, details, *rest = row
    return Turn(turn_id, conversation, question, answer, context, parse_details(details), *rest)


def _exchange_of(row: tuple[Any, ...], active: bool) -> PastExchange:
    turn, conversation, repository, question, answer, created, told = row
    details = parse_details(told)
    return PastExchange(
        turn=turn,
        conversation=conversation,
        repository=repository,
        question=question,
        answer=answer,
        generator=str(details.get("generator", "")),
        reply=str(details.get("reply", "")),
        finished=bool(details.get("finished", True)) and not details.get("error"),
        active=active,
        created=created,
    )


def _put_extras(
    connection: sqlite3.Connection, turn: Turn, extras: TurnExtras, created: float
) -> None:
    """Keep what comes with a new turn; a turn without a conversation has no topic."""
    if extras.question is not None:
        connection.execute(
            "INSERT INTO question (turn, user, repository, conversation, embedding, vector) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                turn.id,
                turn.user,
                turn.repository,
                turn.conversation,
                extras.embedding,
                extras.question,
            ),
        )
    if extras.topic is not None:
        connection.execute(
            "UPDATE conversation SET embedding = ?, topic = ? "
            "WHERE user = ? AND repository = ? AND id = ?",
            (extras.embedding, extras.topic, turn.user, turn.repository, turn.conversation),
        )
    if not deleted_since(connection, turn.user, "profile", extras.begun):
        for key, value in extras.facts.items():
            put_fact(connection, turn.user, key, value, turn.id, created)


def _limit_turns(connection: sqlite3.Connection, saved: str, group: Group, kept: int) -> None:
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
