"""Thumbs in the state: whose they are, what they stand on, and when they go."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from codeqa.errors import NotFoundError, UsageError
from codeqa.state import State
from codeqa.state import turns as turns_module
from codeqa.state.records import CitedLines, Turn
from codeqa.state.user_data import REASON_CHARACTERS


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def ask(state: State, turn_id: str = "t1", **given: Any) -> None:
    fields = {"conversation": "c", "question": "@codebase who pays?", "answer": "him",
              "context": "", "details": {}, "repository": "shop", **given}  # fmt: skip
    state.turns.save(Turn(id=turn_id, **fields))


def values(state: State) -> list[tuple[str, int, str]]:
    return [(one.turn_id, one.value, one.reason) for one in state.feedback.given("shop")]


def test_a_thumb_is_kept_changed_and_taken_back(state: State) -> None:
    ask(state)
    assert values(state) == [] and state.feedback.of_conversation("c", "local", "shop") == {}
    state.feedback.save("t1", "local", 1)
    assert values(state) == [("t1", 1, "")]
    state.feedback.save("t1", "local", -1, "  wrong file\n")
    assert values(state) == [("t1", -1, "wrong file")]
    assert state.feedback.of_conversation("c", "local", "shop") == {"t1": (-1, "wrong file")}
    state.feedback.save("t1", "local", 0, "no reason without a thumb")
    state.feedback.save("t1", "local", 0)
    assert values(state) == []


def test_a_thumb_says_what_was_asked_and_when(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(state, "t1", question="@codebase /locate  the till", details={"mode": "locate"})
    ask(state, "t2", question="/usr is what?", details={"mode": "explain"})
    monkeypatch.setattr(turns_module.time, "time", lambda: 1_234.5)
    for turn in ("t1", "t2"):
        state.feedback.save(turn, "local", 1)
    first, second = state.feedback.given("shop")
    assert (first.question, first.searched, first.created) == ("the till", True, 1_234.5)
    assert (second.question, second.searched) == ("/usr is what?", False)


def test_a_thumb_stands_on_what_the_answer_cites_and_else_on_what_was_sent(state: State) -> None:
    cited = {"path": "a.py", "start": 3, "end": 9, "verified": True}
    invented = {"path": "b.py", "start": 1, "end": 2, "verified": False}
    ask(state, "t1", details={"citations": [invented, cited, cited]})
    ask(state, "t2", details={"citations": [invented]})
    sent = [CitedLines("c.py", 1, 5), CitedLines("ünï.py", 7, 7)]
    state.feedback.save("t1", "local", 1, sent=sent)
    state.feedback.save("t2", "local", 1, sent=sent)
    assert [one.cited for one in state.feedback.given("shop")] == [
        (CitedLines("a.py", 3, 9),),
        tuple(sent),
    ]


@pytest.mark.parametrize("details", ["[1", '{"citations": null}'])
def test_details_that_cannot_be_read_do_not_hide_the_thumb(state: State, details: str) -> None:
    ask(state)
    state.feedback.save("t1", "local", -1, "no")
    with state._database.writing() as connection:
        connection.execute("UPDATE turn SET details = ?", (details,))
    (thumb,) = state.feedback.given("shop")
    assert (thumb.value, thumb.cited, thumb.question) == (-1, (), "who pays?")


def test_only_the_turns_owner_gives_it_a_thumb(state: State) -> None:
    ask(state, "t1", user="ann")
    ask(state, "t2", user="ben")
    for user, turn in (("ben", "t1"), ("local", "t1"), ("ann", "missing")):
        with pytest.raises(NotFoundError, match="no such answer"):
            state.feedback.save(turn, user, 1)
    assert values(state) == []
    state.feedback.save("t1", "ann", 1)
    state.feedback.save("t2", "ben", -1)
    assert values(state) == [("t1", 1, ""), ("t2", -1, "")]
    assert state.feedback.of_conversation("c", "ben", "shop") == {"t2": (-1, "")}
    assert state.feedback.given("elsewhere") == []


@pytest.mark.parametrize("value", [2, -2, 7])
def test_what_is_no_thumb_is_refused_and_the_old_one_stays(state: State, value: int) -> None:
    ask(state)
    state.feedback.save("t1", "local", 1)
    with pytest.raises(UsageError, match="no thumb"):
        state.feedback.save("t1", "local", value)
    with pytest.raises(UsageError, match="longer than 2,000 characters"):
        state.feedback.save("t1", "local", -1, "x" * (REASON_CHARACTERS + 1))
    assert values(state) == [("t1", 1, "")]


def test_a_reason_may_hold_any_text(state: State) -> None:
    ask(state)
    state.feedback.save("t1", "local", -1, "two\nlines \ud800 and '; DROP TABLE turn; --")
    assert values(state) == [("t1", -1, "two\nlines ? and '; DROP TABLE turn; --")]


def rows(state: State) -> int:
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        return int(connection.execute("SELECT count(*) FROM feedback").fetchone()[0])


def test_a_thumb_goes_with_its_conversation(state: State) -> None:
    for turn, conversation in (("t1", "c"), ("t2", "d")):
        ask(state, turn, conversation=conversation)
        state.feedback.save(turn, "local", 1)
    state.conversations.delete("c", repository="shop")
    assert values(state) == [("t2", 1, "")] and rows(state) == 1
