"""Local state in one SQLite file: conversations, values with a lifetime, recent repositories."""

from codeqa.state.records import Conversation, Turn, title_of
from codeqa.state.state import State

__all__ = ["Conversation", "State", "Turn", "title_of"]
