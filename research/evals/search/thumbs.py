"""What users thought of answers about a repository, and the code that these stood on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from codeqa.state import State, open_database
from codeqa.text import has_tag, json_object, strip_tag


@dataclass(frozen=True, slots=True)
class CitedLines:
    """Lines `start`..`end` of a file, 1-based and inclusive; `path` is the repository's."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Thumb:
    """What a user thought of an answer."""

    turn_id: str
    question: str
    """Without `@codebase` and a leading `/mode`."""
    value: int
    """1 for a thumb up, -1 for a thumb down."""
    reason: str
    cited: tuple[CitedLines, ...]
    """Verified citations of the answer; what was sent for it where it has none."""
    searched: bool
    """The question had `@codebase`: another one may make no sense outside its conversation."""


def thumbs_given(state: State, repository: str) -> list[Thumb]:
    """All thumbs of every user on answers about `repository`, the oldest first."""
    rows = open_database(state.address or str(state.path)).rows(
        "SELECT turn, question, details, value, reason, sent "
        "FROM feedback JOIN turn ON turn.id = feedback.turn "
        "WHERE repository = ? ORDER BY feedback.created, feedback.rowid",
        (repository,),
    )
    return [_thumb(*row) for row in rows]


def _thumb(turn_id: str, question: str, kept: str, value: int, reason: str, sent: str) -> Thumb:
    details = json_object(kept) or {}
    cited = [
        (one["path"], one["start"], one["end"])
        for one in details.get("citations") or ()
        if one["verified"]
    ]
    found = tuple(CitedLines(*place) for place in dict.fromkeys(cited) or json.loads(sent))
    text = strip_tag(question)
    command, *rest = text.split(maxsplit=1) or [""]
    if details.get("mode") and command.lower() == f"/{details['mode']}":
        text = " ".join(rest)
    return Thumb(turn_id, text, value, reason, found, has_tag(question))
