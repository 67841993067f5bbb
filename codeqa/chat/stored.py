"""Convert turns to rows of the state, with JSON for values without a column."""

from __future__ import annotations

from dataclasses import replace

from codeqa.chat.events import as_json
from codeqa.chat.record import COLUMNS, TurnRecord, read_value
from codeqa.state.records import Turn


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
    return replace(
        read_value(TurnRecord, turn.details),
        id=turn.id,
        typed=turn.question,
        answer=turn.answer,
        created=turn.created,
        parent=turn.parent,
    )
