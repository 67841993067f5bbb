"""Local state in one SQLite file: conversations, thumbs, values with a lifetime, recent
repositories."""

from codeqa.state.records import Conversation, Feedback, Place, Turn, title_of
from codeqa.state.state import State

__all__ = [
    "Conversation",
    "Feedback",
    "Place",
    "State",
    "Turn",
    "title_of",
]
