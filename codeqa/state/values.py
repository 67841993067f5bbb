"""Values with a lifetime (the protocol of `state.cache`), and the repositories opened recently."""

from __future__ import annotations

import time
from pathlib import Path

from codeqa.state.database import Database

RECENT_KEPT = 20


class ValueStore:
    """Small values, each under a key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> str | None:
        """Value of `key`, or None when it was never set or its lifetime is over."""
        row = self._database.row(
            "SELECT value FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)",
            (key, time.time()),
        )
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
        self._database.change("DELETE FROM value WHERE key = ?", (key,))

    def keys(self, prefix: str) -> list[str]:
        """Keys that begin with `prefix`."""
        rows = self._database.rows(
            "SELECT key FROM value WHERE substr(key, 1, ?) = ? "
            "AND (expires IS NULL OR expires > ?) ORDER BY key",
            (len(prefix), prefix, time.time()),
        )
        return [row[0] for row in rows]

    def delete_prefix(self, prefix: str) -> int:
        """Forget all keys that begin with `prefix`; how many there were."""
        return self._database.change(
            "DELETE FROM value WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
        )


class RecentRepositories:
    """The repositories that were opened recently."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, path: Path) -> None:
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

    def forget(self, path: Path) -> None:
        """Take `path` off the list of recent repositories."""
        self._database.change("DELETE FROM recent WHERE path = ?", (str(path),))

    def latest(self) -> list[Path]:
        """Repositories opened, the latest first, whether or not they still exist."""
        rows = self._database.rows("SELECT path FROM recent ORDER BY opened DESC")
        return [Path(row[0]) for row in rows]
