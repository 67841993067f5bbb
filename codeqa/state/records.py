"""Values of the state: turns, conversations, and how much is stored of a user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codeqa.text import strip_tag
from codeqa.text.tokens import well_formed

LOCAL_USER = "local"
Group = tuple[str, str, str]  # user, repository and conversation ('' for none)
TITLE_CHARACTERS = 80

_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, line breaks, and marks that would turn the text around a title."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question with its answer."""

    id: str
    conversation: str  # '' for a turn that belongs to none
    question: str
    answer: str
    context: str
    details: Mapping[str, Any]
    created: float = 0.0  # seconds since the epoch, 0 for now
    user: str = LOCAL_USER
    repository: str = ""  # id of the indexed repository
    parent: str = ""
    """Id of the turn before it on its branch, '' for the first one of its conversation. On
    saving a new turn '' stands for the last turn of the active branch."""


@dataclass(frozen=True, slots=True)
class TurnExtras:
    """Data stored with a turn besides its texts; vectors are float16, little endian."""

    embedding: str = ""  # name of what made the vectors
    question: bytes | None = None  # vector of the question
    facts: Mapping[str, str] = field(default_factory=dict)  # about the user, by their key
    begun: float = 0.0
    """When the turn began, in seconds since the epoch: it does not bring back what its user has
    deleted since then. 0 where nothing can have been deleted."""


NO_EXTRAS = TurnExtras()


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """The vector of an earlier question."""

    turn: str
    conversation: str
    vector: bytes  # float16, little endian


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it is listed; times are in seconds since the epoch."""

    id: str
    user: str
    repository: str
    title: str
    created: float
    updated: float  # when its latest turn was saved
    turns: int  # of all branches
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ConversationMatch:
    """A conversation that contains the searched words."""

    conversation: Conversation
    turn_id: str  # its latest turn with them; '' when only the title has them
    snippet: str  # one line of text around them


@dataclass(frozen=True, slots=True)
class DataCounts:
    """Numbers of what is stored of a user, in all repositories."""

    repositories: int  # those with a conversation
    conversations: int
    turns: int
    thumbs: int
    vectors: int  # questions that are also kept as vectors
    facts: int


def one_line(text: str) -> str:
    """Return `text` on one line, without control characters."""
    return " ".join(_NOT_SHOWN.sub(" ", text).split())


def title_of(text: str) -> str:
    """Return `text` as a title: without `@codebase`, one line of TITLE_CHARACTERS at most."""
    line = one_line(strip_tag(well_formed(text)))
    if len(line) <= TITLE_CHARACTERS:
        return line or "Untitled"
    head = line[: TITLE_CHARACTERS - 1]
    words, _, _ = head.rpartition(" ")
    if len(words) > TITLE_CHARACTERS // 2:  # else a cut at a word would cost half of the title
        head = words
    return f"{head.rstrip()}…"
