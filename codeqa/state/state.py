"""The local state: one SQLite file, and a small class for each kind of what is in it."""

from __future__ import annotations

from pathlib import Path

from codeqa.state.conversations import ConversationStore
from codeqa.state.database import Database
from codeqa.state.feedback import FeedbackStore
from codeqa.state.turns import TurnStore
from codeqa.state.user_data import ProfileStore, UserData
from codeqa.state.values import RecentRepositories, ValueStore

FILE_NAME = "state.sqlite"


class State:
    """The local state in `folder`; safe to share between threads and processes.

    A conversation belongs to one user and one repository: the same id under another user
    or in another repository is another conversation.
    Every method of every part raises StorageError when the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._database = Database(self.path)
        self.conversations = ConversationStore(self._database)
        self.turns = TurnStore(self._database)
        self.feedback = FeedbackStore(self._database)
        self.profile = ProfileStore(self._database)
        self.user_data = UserData(self._database)
        self.values = ValueStore(self._database)
        self.repositories = RecentRepositories(self._database)

    def compact(self) -> None:
        """Rid the file and its log of all that was deleted, and of the room it took.

        Raises StorageError when others use the file meanwhile.
        """
        self._database.compact()
