"""Conversations that were kept before chunks were kept as data open, show and go on as before."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from codeqa.chat import AskOptions, Conversations
from codeqa.chat.turn import begin_turn
from codeqa.chat.vectors import QuestionVectors
from codeqa.settings import load_settings
from codeqa.state import State

DUMP = Path(__file__).parent / "fixtures" / "state_of_version_4.sql"
"""Written by the version before: a question, a follow-up, and a quoted answer; one chunk had no
room. Its repository is called `shop`."""
BLOCK = "[CONTEXT]\n\n=== CHUNK 1 ===\nId: ctx_ad4b7b58\nPath: src/session.py\nLines: 6-10\n"


@pytest.fixture
def old(data_dir: Path) -> Conversations:
    data_dir.mkdir()
    with contextlib.closing(sqlite3.connect(data_dir / "state.sqlite")) as disk:
        disk.executescript(DUMP.read_text(encoding="utf-8"))
    state, settings = State(data_dir), load_settings(data=data_dir)
    return Conversations(state, state.values, settings, "shop", QuestionVectors(lambda: None))


def test_an_old_conversation_shows_what_it_showed(old: Conversations) -> None:
    first, second = old.turns("old")
    assert (first.question, first.tagged) == ("when does expire_session forget the visitor?", True)
    assert first.answer == "A visitor is forgotten after a month [src/session.py:6-10]."
    assert (first.finished, first.model, first.tokens["prompt"]) == (True, "openai/gpt-4o", 120)
    assert [one["verified"] for one in first.citations] == [True]
    assert (second.question, second.parent, second.goes_on) == (
        "and what is MONTH?",
        first.id,
        True,
    )
    assert {one.id for one in old.all()} == {"old", "quoted"}


def test_its_context_is_read_back_from_the_text_that_was_kept(old: Conversations) -> None:
    for record in (*old.turns("old"), *old.turns("quoted")):
        with contextlib.closing(sqlite3.connect(old.state.path)) as disk:
            query = "SELECT context FROM turn WHERE id = ?"
            (text,) = disk.execute(query, (record.id,)).fetchone()
        assert text.startswith("[CONTEXT]") and record.block.text == text
        assert all(chunk.unit_id and chunk.why for chunk in record.chunks)
    first, _ = old.turns("old")
    assert first.found_names[0] == "expire_session"
    assert all(first.hit_of(chunk) for chunk in first.chunks)
    assert first.sent[-1]["parts"][1] == first.block.text, "what was sent is shown as it was"
    assert [chunk.path for chunk in first.dropped] == ["src/session.py"]


def test_a_follow_up_goes_on_from_the_code_and_the_history(old: Conversations) -> None:
    assert old.has_context("old") and old.carries("old") > 150
    turn = begin_turn(AskOptions("and why?", conversation="old"))
    so_far = old.load(turn)
    assert so_far.context.text.startswith(BLOCK)
    assert [one.question for one in so_far.history][-1] == "and what is MONTH?"
    assert so_far.messages == 4
    assert old.turn(so_far.parent).question == "and what is MONTH?"


def test_what_is_kept_of_it_anew_is_kept_as_data(old: Conversations) -> None:
    first, second = old.turns("old")
    old.choose_branch("old", second.id)
    assert old.has_context("old")
    assert old.rate(first.id, 1, "it helped") == "it helped"
    (value,) = (
        old.state.values.get(key) for key in old.state.values.keys("user:local:conversation:old")
    )
    assert value is not None and '"content"' in value and "[CONTEXT]" not in value
