"""Turns: stored with what they teach, and read by the branches that they form; and the vectors
of their questions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from codeqa.errors import NotFoundError
from codeqa.state.conversations import OF_CONVERSATION, OF_GROUP
from codeqa.state.database import StateTable
from codeqa.state.records import (
    LOCAL_USER,
    NO_EXTRAS,
    Group,
    PastQuestion,
    Turn,
    TurnExtras,
    parse_details,
    title_of,
)
from codeqa.state.user_data import deleted_since, put_fact

TURNS_KEPT = 10_000
"""Turns kept in all: with full contexts about 300 MB, some years of daily use."""

LINKS = (
    f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} ORDER BY created, rowid"
)
"""From an index that holds nothing else: the rows of the turns carry whole contexts."""

_TURN = ", ".join(Turn.__slots__)
_OF_IDS = "id IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class _Branches:
    """What follows what in one conversation, and where its active branch ends."""

    parents: dict[str, str]
    """Id of each turn, the oldest first → the turn before it, '' for none."""
    leaf: str
    """'' when there is no turn."""

    def path(self, end: str) -> list[str]:
        """Ids from the first turn to `end`; also of a damaged file, whose turns go in circles."""
        path: dict[str, None] = {}
        while end in self.parents and end not in path:
            path[end] = None
            end = self.parents[end]
        return list(reversed(path))

    def end_behind(self, turn_id: str) -> str:
        """The latest turn that nothing follows among this one and all behind it; '' without it."""
        followed = set(self.parents.values())
        ends = (turn for turn in reversed(self.parents) if turn not in followed)
        return next((end for end in ends if turn_id in self.path(end)), "")


def _branches(connection: sqlite3.Connection, group: Group) -> _Branches:
    parents = dict(connection.execute(LINKS, group).fetchall())
    row = connection.execute(
        f"SELECT leaf FROM conversation WHERE {OF_CONVERSATION}", group
    ).fetchone()
    if row is None:
        return _Branches(parents, "")
    return _Branches(parents, row[0] if row[0] in parents else next(reversed(parents), ""))


class TurnStore(StateTable):
    """The turns of all conversations.

    Each turn follows another one, and of several that follow the same one at most one is on
    the active branch, which ends with the conversation's leaf.
    """

    def save(
        self,
        turn: Turn,
        replaces: str = "",
        extras: TurnExtras = NO_EXTRAS,
        *,
        again: bool = False,
    ) -> bool:
        """Store `turn` with its `extras`, and the conversation with its first turn.

        It follows the same turn as `replaces`, a turn of the same conversation that stays
        beside it; else `turn.parent`; else, as where the conversation has no such turn, the
        last one of the active branch. It becomes that itself. Beyond `TURNS_KEPT` the oldest turns
        go. Saved again, a turn keeps its place; its texts and details become the new ones, and
        extras are added. One that is saved `again` and was deleted meanwhile does not come back,
        nor does one that its user has deleted everything of since it began (`extras.begun`):
        nothing is stored and False returned.
        """
        created = turn.created or time.time()
        group = (turn.user, turn.repository, turn.conversation)
        texts = (turn.question, turn.answer, turn.context, json.dumps(dict(turn.details)))
        with self._database.writing() as connection:
            if deleted_since(connection, turn.user, "everything", extras.begun):
                return False
            known_before = connection.execute(
                "UPDATE turn SET question = ?, answer = ?, context = ?, details = ? "
                "WHERE id = ? AND user = ?",
                (*texts, turn.id, turn.user),
            )
            if known_before.rowcount:
                _put_extras(connection, turn.id, group, extras, created)
                return True
            if again:
                return False
            parent = ""
            if turn.conversation:
                known = _branches(connection, group)
                after = turn.parent if turn.parent in known.parents else known.leaf
                parent = known.parents.get(replaces, after)
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
            _put_extras(connection, turn.id, group, extras, created)
            _limit_turns(connection, turn.id)
        return True

    def take_back(self, turn: Turn, replaced: str) -> None:
        """Delete a turn that was stored too early; the branch of `replaced` is in use again."""
        self._database.change("DELETE FROM turn WHERE id = ? AND user = ?", (turn.id, turn.user))
        with suppress(NotFoundError):
            self.choose_branch(turn.conversation, replaced, turn.user, turn.repository)

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
        repository: str = "",
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
            known = _branches(connection, (user, repository, conversation))
            path = known.path(until or known.leaf)
            ids = json.dumps(path if last is None else path[-last:])
            rows = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE {_OF_IDS} ORDER BY created, rowid", (ids,)
            )
            return [_turn_of(row) for row in rows]

    def inactive(self, conversation: str, user: str, repository: str) -> list[Turn]:
        """Turns of a conversation that are not on its active branch, oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            known = _branches(connection, group)
            ids = json.dumps(known.path(known.leaf))
            rows = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE {OF_GROUP} AND NOT {_OF_IDS} "
                "ORDER BY created, rowid",
                (*group, ids),
            )
            return [_turn_of(row) for row in rows]

    def branches(self, conversation: str, user: str, repository: str) -> dict[str, tuple[str, ...]]:
        """Id of each turn on the active branch, from the first on → ids of all turns that
        follow the same one, itself among them, the oldest first."""
        with self._database.reading() as connection:
            known = _branches(connection, (user, repository, conversation))
        siblings: dict[str, list[str]] = {}
        for turn, parent in known.parents.items():
            siblings.setdefault(parent, []).append(turn)
        path = known.path(known.leaf)
        return {turn: tuple(siblings[known.parents[turn]]) for turn in path}

    def choose_branch(self, conversation: str, turn_id: str, user: str, repository: str) -> None:
        """Make the branch with the turn active, up to the latest of the turns that follow it.

        Raises NotFoundError when the conversation has no such turn.
        """
        group = (user, repository, conversation)
        with self._database.writing() as connection:
            leaf = _branches(connection, group).end_behind(turn_id)
            if not leaf:
                raise NotFoundError("There is no such answer.", "It may have been deleted.")
            connection.execute(
                f"UPDATE conversation SET leaf = ? WHERE {OF_CONVERSATION}", (leaf, *group)
            )

    def standing(self, turn_ids: Sequence[str], user: str = LOCAL_USER) -> dict[str, Turn]:
        """Those of these turns that the user has and that no other branch took the place of, by
        their id."""
        active: set[str] = set()
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_TURN} FROM turn WHERE user = ? AND {_OF_IDS}",
                (user, json.dumps([*turn_ids])),
            )
            turns = [_turn_of(row) for row in rows]
            for group in {(user, one.repository, one.conversation) for one in turns}:
                known = _branches(connection, group)
                active.update(known.path(known.leaf))
        return {one.id: one for one in turns if not one.conversation or one.id in active}

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


def _put_extras(
    connection: sqlite3.Connection, turn_id: str, group: Group, extras: TurnExtras, created: float
) -> None:
    """Keep what comes with a turn."""
    if extras.question is not None:
        connection.execute(
            "INSERT OR IGNORE INTO question "
            "(turn, user, repository, conversation, embedding, vector) VALUES (?, ?, ?, ?, ?, ?)",
            (turn_id, *group, extras.embedding, extras.question),
        )
    if not deleted_since(connection, group[0], "profile", extras.begun):
        for key, value in extras.facts.items():
            put_fact(connection, group[0], key, value, turn_id, created)


def _limit_turns(connection: sqlite3.Connection, saved: str) -> None:
    """Delete the oldest turns beyond TURNS_KEPT, never the one just saved, and conversations that
    have none left."""
    excess = int(connection.execute("SELECT count(*) FROM turn").fetchone()[0]) - TURNS_KEPT
    if excess > 0:
        connection.execute(
            "DELETE FROM turn WHERE rowid IN (SELECT rowid FROM turn WHERE id != ? "
            "ORDER BY created, rowid LIMIT ?)",
            (saved, excess),
        )
        connection.execute(
            "DELETE FROM conversation WHERE NOT EXISTS (SELECT 1 FROM turn "
            "WHERE turn.user = conversation.user AND turn.repository = conversation.repository "
            "AND turn.conversation = conversation.id)"
        )
