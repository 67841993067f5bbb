"""Local state in one SQLite file: conversations with their branches, thumbs, vectors of questions,
facts about the user, values with a lifetime."""

from __future__ import annotations

from pathlib import Path

from codeqa.state.cache import ValueStore
from codeqa.state.database import Database
from codeqa.state.turns import ConversationStore, TurnStore
from codeqa.state.user_data import FeedbackStore, ProfileStore, UserData


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
