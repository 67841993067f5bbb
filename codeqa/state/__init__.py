"""Local state in one SQLite file: conversations with their branches, thumbs, vectors of questions,
facts about the user, values with a lifetime, recent repositories."""

from codeqa.state.records import (
    NOTHING,
    Conversation,
    Fact,
    Feedback,
    Found,
    Learnt,
    Owned,
    PastExchange,
    PastQuestion,
    Place,
    Turn,
    title_of,
)
from codeqa.state.state import State

__all__ = [
    "NOTHING",
    "Conversation",
    "Fact",
    "Feedback",
    "Found",
    "Learnt",
    "Owned",
    "PastExchange",
    "PastQuestion",
    "Place",
    "State",
    "Turn",
    "title_of",
]
