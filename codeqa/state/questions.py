"""Vectors of the questions that were asked; each goes with its turn."""

from __future__ import annotations

import sqlite3

from codeqa.state.database import Database
from codeqa.state.records import PastQuestion, Turn


class QuestionStore:
    """The vectors of past questions, numbered in the order in which they were kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def past(self, user: str, repository: str, embedding: str) -> list[PastQuestion]:
        """Vectors that `embedding` made of the user's questions, in the order of these."""
        rows = self._database.rows(
            "SELECT turn, conversation, vector FROM question WHERE user = ? "
            "AND repository = ? AND embedding = ? ORDER BY number",
            (user, repository, embedding),
        )
        return [PastQuestion(*row) for row in rows]


def put_question(connection: sqlite3.Connection, turn: Turn, embedding: str, vector: bytes) -> None:
    """Keep the vector that `embedding` made of the turn's question."""
    connection.execute(
        "INSERT INTO question (turn, user, repository, conversation, embedding, vector) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (turn.id, turn.user, turn.repository, turn.conversation, embedding, vector),
    )
