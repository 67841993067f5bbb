"""What users said about themselves, as facts by key; they hold in every repository."""

from __future__ import annotations

import sqlite3
import time

from codeqa.state.database import Database
from codeqa.state.records import LOCAL_USER, Fact
from codeqa.state.user_data import note_deletion
from codeqa.text.tokens import well_formed


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
