"""Thumbs that users gave to answers, with the places in the code that these stood on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from codeqa.errors import NotFoundError, UsageError
from codeqa.state.database import Database
from codeqa.state.records import CitedLines, Feedback, parse_details
from codeqa.text.tag import has_tag, strip_tag
from codeqa.text.tokens import well_formed

REASON_CHARACTERS = 2_000
"""Longest reason kept: some paragraphs."""


class FeedbackStore:
    """Thumbs; each belongs to its turn's user and goes with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(
        self,
        turn_id: str,
        user: str,
        value: int,
        reason: str = "",
        *,
        sent: Iterable[CitedLines] = (),
    ) -> None:
        """Give the turn of `user` a thumb (1 or -1), in place of an earlier one; 0 takes it back.

        `sent` are the places that were sent for the answer. Raises NotFoundError when the
        user has no such turn, UsageError for another value or too long a reason.
        """
        if value not in (-1, 0, 1):
            raise UsageError("That is no thumb.", "Give 1 for up, -1 for down, 0 for none.")
        if len(reason) > REASON_CHARACTERS:
            raise UsageError(
                f"The reason is longer than {REASON_CHARACTERS:,} characters.", "Shorten it."
            )
        places = [astuple(place) for place in sent]
        with self._database.writing() as connection:
            owned = connection.execute(
                "SELECT 1 FROM turn WHERE id = ? AND user = ?", (turn_id, user)
            ).fetchone()
            if owned is None:
                raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
            connection.execute("DELETE FROM feedback WHERE turn = ?", (turn_id,))
            if value:
                row = (turn_id, value, well_formed(reason.strip()), json.dumps(places), time.time())
                connection.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def given(self, repository: str) -> list[Feedback]:
        """All thumbs of every user on answers about `repository`, the oldest first."""
        rows = self._database.rows(
            "SELECT turn, question, details, value, reason, sent, feedback.created "
            "FROM feedback JOIN turn ON turn.id = feedback.turn "
            "WHERE repository = ? ORDER BY feedback.created, feedback.rowid",
            (repository,),
        )
        return [_feedback(row) for row in rows]

    def of_conversation(
        self, conversation: str, user: str, repository: str
    ) -> dict[str, tuple[int, str]]:
        """Id of each turn of the conversation that has a thumb → its value and reason."""
        rows = self._database.rows(
            "SELECT turn, value, reason FROM feedback JOIN turn ON turn.id = feedback.turn "
            "WHERE user = ? AND repository = ? AND conversation = ?",
            (user, repository, conversation),
        )
        return {turn: (value, reason) for turn, value, reason in rows}


def _feedback(row: tuple[Any, ...]) -> Feedback:
    turn_id, question, told, value, reason, sent, created = row
    details = parse_details(told)
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
    return Feedback(turn_id, text, value, reason, found, created, has_tag(question))
