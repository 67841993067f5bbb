"""The texts that the state holds: read through and looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codeqa.state.database import Database
from codeqa.state.records import LOCAL_USER
from codeqa.state.rows import OF_GROUP, find_conversation


@dataclass(frozen=True, slots=True)
class Said:
    """The texts of one turn."""

    turn: str
    conversation: str
    title: str
    question: str
    answer: str
    reason: str
    """Behind its thumb."""
    created: float
    """In seconds since the epoch."""


_TEXTS = (
    ("turn", "question"), ("turn", "answer"), ("turn", "context"), ("turn", "details"),
    ("turn", "id"), ("turn", "conversation"), ("conversation", "title"), ("conversation", "id"),
    ("feedback", "reason"), ("fact", "value"), ("fact", "turn"), ("value", "value"),
    ("value", "key"), ("recent", "path"),
)  # fmt: skip
"""Columns that hold what somebody wrote."""
_HOLDS = (
    "(instr(question, :text) OR instr(answer, :text) OR instr(context, :text) "
    "OR instr(details, :text) OR instr(coalesce(reason, ''), :text))"
)


class HoldingTable:
    """The part of the state that answers for every text in it."""

    _database: Database

    def said(
        self, user: str = LOCAL_USER, conversation: str | None = None, repository: str | None = None
    ) -> Iterator[Said]:
        """Every turn of `user`, on whatever branch; of one conversation where one is given.

        One at a time: all answers together may be large.
        """
        with self._database.reading() as connection:
            where = "user = ?"
            values: tuple[str, ...] = (user,)
            if conversation is not None:
                found = find_conversation(connection, conversation, user, repository)
                place = found.repository if found else repository or ""
                where, values = OF_GROUP, (user, place, conversation)
            rows = connection.execute(
                "SELECT t.id, t.conversation, coalesce(title, ''), question, answer, "
                f"coalesce(reason, ''), t.created FROM (SELECT * FROM turn WHERE {where}) AS t "
                "LEFT JOIN feedback ON feedback.turn = t.id "
                "LEFT JOIN conversation AS c ON c.user = t.user "
                "AND c.repository = t.repository AND c.id = t.conversation",
                values,
            )
            for row in rows:
                yield Said(*row)

    def questions(self, user: str = LOCAL_USER) -> list[str]:
        """Every question of `user`, the latest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT question FROM turn WHERE user = ? ORDER BY created DESC, rowid DESC",
                (user,),
            ).fetchall()
        return [row[0] for row in rows]

    def holders(self, text: str, user: str = LOCAL_USER) -> tuple[int, bool]:
        """In how many conversations of `user` `text` stands, and whether any row holds it."""
        with self._database.reading() as connection:
            own = connection.execute(
                "SELECT count(*) FROM (SELECT repository, conversation FROM turn "
                "LEFT JOIN feedback ON feedback.turn = turn.id WHERE user = :user "
                f"AND {_HOLDS} UNION SELECT repository, id FROM conversation "
                "WHERE user = :user AND instr(title, :text))",
                {"user": user, "text": text},
            ).fetchone()[0]
            anywhere = bool(own) or any(
                connection.execute(
                    f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (text,)
                ).fetchone()
                for table, column in _TEXTS
            )
        return int(own), anywhere
