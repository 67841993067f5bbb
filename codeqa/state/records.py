"""What the state keeps of a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeqa.tag import strip_tag
from codeqa.tokens import well_formed

LOCAL_USER = "local"
TITLE_CHARACTERS = 80
UNTITLED = "Untitled"

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


@dataclass(frozen=True, slots=True)
class Place:
    """Lines `start`..`end` of a file, 1-based and inclusive; `path` is the repository's."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a user thought of an answer."""

    turn_id: str
    question: str
    """Without `@codebase` and a leading `/mode`."""
    value: int
    """1 for a thumb up, -1 for a thumb down."""
    reason: str
    cited: tuple[Place, ...]
    """Verified citations of the answer; what was sent for it where it has none."""
    created: float
    """When it was last changed, in seconds since the epoch."""
    searched: bool = True
    """The question had `@codebase`: another one may make no sense outside its conversation."""


def parse_details(text: str) -> dict[str, Any]:
    """A turn's details as stored; {} when they cannot be read."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def title_of(text: str) -> str:
    """`text` as a title: without `@codebase`, one line of at most `TITLE_CHARACTERS`."""
    shown = _NOT_SHOWN.sub(" ", strip_tag(well_formed(text)))
    line = " ".join(shown.split())
    if len(line) <= TITLE_CHARACTERS:
        return line or UNTITLED
    head = line[: TITLE_CHARACTERS - 1]
    # A cut at a word, unless that would cost half of the title.
    words, _, _ = head.rpartition(" ")
    return f"{(words if len(words) > TITLE_CHARACTERS // 2 else head).rstrip()}…"
