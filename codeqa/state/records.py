"""What the state keeps of a conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codeqa.text import strip_tag
from codeqa.text.tokens import well_formed

LOCAL_USER = "local"
Group = tuple[str, str, str]
"""User, repository and conversation; the conversation is '' for turns that have none."""
TITLE_CHARACTERS = 80

_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, line breaks, and marks that would turn the text around a title."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, its answer and exactly the context that was packed for it.

    `conversation` is '' for a turn that belongs to none; `repository` is the id of the
    indexed repository; `created` is in seconds since the epoch, 0 stands for now.
    """

    id: str
    conversation: str
    question: str
    answer: str
    context: str
    details: Mapping[str, Any]
    created: float = 0.0
    user: str = LOCAL_USER
    repository: str = ""
    parent: str = ""
    """Id of the turn before it on its branch, '' for the first one of its conversation. On
    saving a new turn '' stands for the last turn of the active branch."""


@dataclass(frozen=True, slots=True)
class TurnExtras:
    """What is stored with a turn besides its texts; vectors are float16, little endian."""

    embedding: str = ""
    """Name of what made the vectors."""
    question: bytes | None = None
    """Vector of the question."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts about the user that the question states, by their key."""
    begun: float = 0.0
    """When the turn began, in seconds since the epoch: what its user has deleted since then
    does not come back with it. 0 for one that nothing was deleted before."""


NO_EXTRAS = TurnExtras()


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """The vector of a question asked before."""

    turn: str
    conversation: str
    vector: bytes
    """float16, little endian."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it is listed; times are in seconds since the epoch."""

    id: str
    user: str
    repository: str
    title: str
    created: float
    updated: float
    """When its latest turn was saved."""
    turns: int
    """Of all branches."""


@dataclass(frozen=True, slots=True)
class ConversationMatch:
    """A conversation that holds what was looked for."""

    conversation: Conversation
    turn_id: str
    """Its latest turn with it; '' when only the title has it."""
    snippet: str
    """One line of text around it."""


@dataclass(frozen=True, slots=True)
class DataCounts:
    """How much is kept of a user, in all repositories."""

    repositories: int
    """Those with a conversation."""
    conversations: int
    turns: int
    thumbs: int
    vectors: int
    """Questions that are also kept as vectors."""
    facts: int


def one_line(text: str) -> str:
    """`text` on one line, without characters that are not shown as such."""
    return " ".join(_NOT_SHOWN.sub(" ", text).split())


def title_of(text: str) -> str:
    """`text` as a title: without `@codebase`, one line of at most `TITLE_CHARACTERS`."""
    line = one_line(strip_tag(well_formed(text)))
    if len(line) <= TITLE_CHARACTERS:
        return line or "Untitled"
    head = line[: TITLE_CHARACTERS - 1]
    # A cut at a word, unless that would cost half of the title.
    words, _, _ = head.rpartition(" ")
    return f"{(words if len(words) > TITLE_CHARACTERS // 2 else head).rstrip()}…"
