"""Convert turns to rows of the state, with JSON for values without a column."""

from __future__ import annotations

import re
from dataclasses import replace

from codeqa.chat.events import Citation, as_json
from codeqa.chat.record import COLUMNS, TurnRecord, read_value
from codeqa.state.records import Turn

JUDGED_BY_WORDS = ("these lines do not show ", "other lines show what this says")
"""How problems began that version 0.1.0 saw in citations, by the words before them."""
JUDGED_ANSWER = re.compile(
    r" ?(?:Most of what this answer says is not backed|This answer cites lines that do not show)"
    r".*?Found first: (?:.*?\]\.|.*)"
)
"""The sentences of the same version about whole answers."""


def as_turn(record: TurnRecord, user: str, repository: str, conversation: str) -> Turn:
    """Return the row of a record."""
    details = as_json(record)
    for name in COLUMNS:
        del details[name]
    return Turn(
        id=record.id,
        conversation=conversation,
        question=record.typed,
        answer=record.answer,
        context="",
        details=details,
        created=record.created,
        user=user,
        repository=repository,
        parent=record.parent,
    )


def read_turn_record(turn: Turn) -> TurnRecord:
    """Inverse of `as_turn`; what an earlier version did not store has its default."""
    record = read_value(TurnRecord, turn.details)
    return replace(
        record,
        id=turn.id,
        typed=turn.question,
        answer=turn.answer,
        created=turn.created,
        parent=turn.parent,
        citations=tuple(map(_unjudged, record.citations)),
        notice=JUDGED_ANSWER.sub("", record.notice).strip(),
    )


def _unjudged(citation: Citation) -> Citation:
    """Return a citation as it was stored.

    One that was struck for the words before it counts as right: of 30 that were, none was wrong.
    """
    if citation.problem.startswith(JUDGED_BY_WORDS):
        return replace(citation, verified=True, exists=True, problem="")
    return citation
