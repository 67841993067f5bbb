"""Vectors of questions and topics of conversations, and what a turn teaches."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from codeqa.state.branches import active_turns
from codeqa.state.database import Database
from codeqa.state.owned import deleted_since
from codeqa.state.profile import put_fact
from codeqa.state.records import (
    LOCAL_USER,
    Group,
    Learnt,
    PastExchange,
    PastQuestion,
    Turn,
    parse_details,
)

_ASKED_AT_ONCE = 500
"""Ids in one statement; SQLite of some builds takes no more than 999."""


class QuestionTable:
    """The part of the state that keeps vectors; each goes with its turn."""

    _database: Database

    def topic(self, conversation: str, user: str, repository: str) -> tuple[str, bytes] | None:
        """Name of the embedding and topic vector of a conversation; None when it has none."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT embedding, topic FROM conversation "
                "WHERE user = ? AND repository = ? AND id = ?",
                (user, repository, conversation),
            ).fetchone()
        return None if row is None or row[1] is None else (str(row[0]), bytes(row[1]))

    def past_questions(
        self, user: str, repository: str, embedding: str, since: int = 0
    ) -> list[PastQuestion]:
        """Vectors that `embedding` made of the user's questions, those after the number `since`,
        in the order in which they were kept."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT number, turn, conversation, vector FROM question WHERE user = ? "
                "AND repository = ? AND embedding = ? AND number > ? ORDER BY number",
                (user, repository, embedding, since),
            ).fetchall()
        return [PastQuestion(*row) for row in rows]

    def count_past_questions(
        self, user: str, repository: str, embedding: str, until: int | None = None
    ) -> int:
        """How many such vectors there are, up to the number `until`."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT count(*) FROM question WHERE user = ? AND repository = ? "
                "AND embedding = ? AND (? IS NULL OR number <= ?)",
                (user, repository, embedding, until, until),
            ).fetchone()
        return int(row[0])

    def exchanges(self, turn_ids: Sequence[str], user: str = LOCAL_USER) -> dict[str, PastExchange]:
        """Id of each of these turns that the user has → its question and answer."""
        found: list[tuple[Any, ...]] = []
        active: dict[Group, frozenset[str]] = {}
        with self._database.reading() as connection:
            for start in range(0, len(turn_ids), _ASKED_AT_ONCE):
                some = [*turn_ids[start : start + _ASKED_AT_ONCE]]
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
            row[0]: _exchange(row, not row[1] or row[0] in active[user, row[2], row[1]])
            for row in found
        }


def learn(connection: sqlite3.Connection, turn: Turn, learnt: Learnt, created: float) -> None:
    """Keep what a new turn teaches; a turn without a conversation has no topic."""
    if learnt.question is not None:
        connection.execute(
            "INSERT INTO question (turn, user, repository, conversation, embedding, vector) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                turn.id,
                turn.user,
                turn.repository,
                turn.conversation,
                learnt.embedding,
                learnt.question,
            ),
        )
    if learnt.topic is not None:
        connection.execute(
            "UPDATE conversation SET embedding = ?, topic = ? "
            "WHERE user = ? AND repository = ? AND id = ?",
            (learnt.embedding, learnt.topic, turn.user, turn.repository, turn.conversation),
        )
    if deleted_since(connection, turn.user, "profile", learnt.begun):
        return
    for key, value in learnt.facts.items():
        put_fact(connection, turn.user, key, value, turn.id, created)


def _exchange(row: tuple[Any, ...], active: bool) -> PastExchange:
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
