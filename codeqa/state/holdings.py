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


@dataclass(frozen=True, slots=True)
class Kept:
    """The texts of one row that is kept."""

    text: str
    user: str = ""
    repository: str = ""
    conversation: str = ""


_TURNS = (
    "SELECT t.user, t.repository, t.conversation, t.id, question, answer, context, details, "
    "coalesce(reason, '') FROM turn AS t LEFT JOIN feedback ON feedback.turn = t.id"
)
_TITLES = "SELECT user, repository, id, title FROM conversation"
_REST = (
    "SELECT value, turn FROM fact UNION ALL SELECT key, value FROM value "
    "UNION ALL SELECT path, '' FROM recent"
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

    def kept_texts(self) -> Iterator[Kept]:
        """Every text that anybody's rows hold, row by row: turns and titles with their places,
        then facts, values and paths."""
        with self._database.reading() as connection:
            for query in (_TURNS, _TITLES):
                for user, repository, conversation, *texts in connection.execute(query):
                    text = "\n".join((conversation, *texts))
                    yield Kept(text, user, repository, conversation)
            for texts in connection.execute(_REST):
                yield Kept("\n".join(texts))
