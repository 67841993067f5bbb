"""Store conversations, thumbs, questions and facts of users, in one SQLite file or PostgreSQL."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from codeqa.extensions import load_extension
from codeqa.settings import Settings
from codeqa.state.cache import ValueStore
from codeqa.state.database import Database, SqliteDatabase
from codeqa.state.turns import ConversationStore, TurnStore
from codeqa.state.user_data import FeedbackStore, ProfileStore, UserData


class State:
    """The state in `folder`, or at `address`; threads and processes may share it.

    A conversation belongs to one user and one repository: the same id under another user or
    repository is another conversation. Every method raises StorageError when the state cannot be
    used.
    """

    def __init__(self, folder: Path, address: str = "") -> None:
        self.path, self.address = folder / "state.sqlite", address
        self._database = database = open_database(address or str(self.path))
        self.place, self.size = database.place, database.size
        self.compact, self.close = database.compact, database.close
        self.conversations = ConversationStore(database)
        self.turns = TurnStore(database)
        self.feedback = FeedbackStore(database)
        self.profile = ProfileStore(database)
        self.user_data = UserData(database)
        self.values = ValueStore(database)


def open_state(settings: Settings) -> State:
    """Return the state at the place of the settings. Raises SettingsError for a wrong address."""
    return State(settings.data_dir, settings.state.get_secret_value())


@lru_cache(8)
def open_database(address: str) -> Database:
    """Return the file or server at `address`, not yet connected. Raises SettingsError.

    There is one in a process, whose parts share its connections.
    """
    if "://" not in address:
        return SqliteDatabase(Path(address))
    database: Database = load_extension("postgres")(address)
    return database
