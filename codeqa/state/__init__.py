"""Local state in one SQLite file: conversations with their branches, thumbs, vectors of questions,
facts about the user, values with a lifetime, recent repositories."""

from codeqa.state.cache import ValueStore
from codeqa.state.records import (
    CitedLines,
    Conversation,
    ConversationMatch,
    Feedback,
    PastQuestion,
    Turn,
    TurnExtras,
)
from codeqa.state.state import State

__all__ = [
    "CitedLines",
    "Conversation",
    "ConversationMatch",
    "Feedback",
    "PastQuestion",
    "State",
    "Turn",
    "TurnExtras",
    "ValueStore",
]
