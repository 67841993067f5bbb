"""Local state in one SQLite file: conversations with their branches, thumbs, vectors of questions,
facts about the user, values with a lifetime, recent repositories."""

from __future__ import annotations

import time
from pathlib import Path

from codeqa.state.cache import ValueStore
from codeqa.state.conversations import ConversationStore
from codeqa.state.database import Database, StateTable
from codeqa.state.turns import TurnStore
from codeqa.state.user_data import FeedbackStore, ProfileStore, UserData

RECENT_KEPT = 20


class State:
    """The local state in `folder`; safe to share between threads and processes.

    A conversation belongs to one user and one repository: the same id under another user
    or in another repository is another conversation. Every method of every part raises
    StorageError when the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.sqlite"
        self._database = Database(self.path)
        self.compact = self._database.compact
        self.conversations = ConversationStore(self._database)
        self.turns = TurnStore(self._database)
        self.feedback = FeedbackStore(self._database)
        self.profile = ProfileStore(self._database)
        self.user_data = UserData(self._database)
        self.values = ValueStore(self._database)
        self.repositories = RecentRepositories(self._database)


class RecentRepositories(StateTable):
    """The repositories that were opened recently."""

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
