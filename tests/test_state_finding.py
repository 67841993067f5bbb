"""Conversations found by what was said in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.state import State
from codeqa.state.conversations import SNIPPET_CHARACTERS, snippet
from codeqa.state.records import ConversationMatch, Turn


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def say(
    state: State,
    turn_id: str,
    question: str = "who?",
    answer: str = "him",
    conversation: str = "c",
    user: str = "local",
    repository: str = "shop",
    replaces: str = "",
) -> None:
    created = float(turn_id[1:])
    turn = Turn(turn_id, conversation, question, answer, "the till", {"x": "the till"}, created)
    state.turns.save(
        Turn(*[getattr(turn, name) for name in turn.__slots__[:7]], user, repository), replaces
    )


def found(state: State, text: str) -> list[tuple[str, str, str]]:
    return [
        (one.conversation.id, one.turn_id, one.snippet)
        for one in state.conversations.find(text, "shop")
    ]


def test_questions_answers_and_titles_are_looked_through(state: State) -> None:
    say(state, "t1", "where is the till?", "here", "c1")
    say(state, "t2", "who?", "The TILL\nis **there**.", "c2")
    say(state, "t3", conversation="c3")
    state.conversations.rename("c3", "About tills", repository="shop")
    say(state, "t4", conversation="c4")
    assert found(state, "till") == [
        ("c3", "", "About tills"),
        ("c2", "t2", "The TILL is **there**."),
        ("c1", "t1", "where is the till?"),
    ]
    (one,) = state.conversations.find("there", "shop")
    assert one == ConversationMatch(state.conversations.get("c2"), "t2", "The TILL is **there**.")  # type: ignore[arg-type]


def test_every_branch_is_looked_through(state: State) -> None:
    say(state, "t1", "the till")
    say(state, "t2", "the purse", replaces="t1")
    assert found(state, "till") == [("c", "t1", "the till")]


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("größe", "GRÖSSE der Kasse"),
        ("GRÖSSE", "größe"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("илья", "ИЛЬЯ"),
        ("İstanbul", "in İSTANBUL"),
        ("100%", "it is 100% so"),
        ("a_b", "a_b"),
        ("[CONTEXT]", "say [context]"),
        ("'; DROP--", "x'; drop-- y"),
        ('say "x"', '"x" is what they say'),
        ("🙂", "well 🙂"),
        ("  two\twords ", "two\nwords"),
    ],
)
def test_any_text_is_found_in_any_case(state: State, text: str, hit: str) -> None:
    say(state, "t1", answer=hit)
    assert [turn for _, turn, _ in found(state, text)] == ["t1"]


@pytest.mark.parametrize("text", ["a%c", "a_c", "a*c", "a.c", "%", "_", "", "  ", "\\", "\ud800"])
def test_no_character_stands_for_others(state: State, text: str) -> None:
    say(state, "t1", "abc", "abc")
    assert found(state, text) == []


def test_all_words_must_be_in_one_turn(state: State) -> None:
    say(state, "t1", "open the till", "no")
    say(state, "t2", "who?", "the owner")
    assert found(state, "till owner") == []
    assert found(state, "NO till") == [("c", "t1", "no")]


def test_the_tag_counts_as_nothing_that_was_said(state: State) -> None:
    say(state, "t1", "@codebase who pays?")
    assert found(state, "codebase") == []
    assert found(state, "pays") == [("c", "t1", "who pays?")]


def test_only_the_users_own_conversations_about_the_repository_are_found(state: State) -> None:
    say(state, "t1", "till", user="ann")
    say(state, "t2", "till", repository="site")
    say(state, "t3", "till", conversation="")
    assert found(state, "till") == []
    assert [one.turn_id for one in state.conversations.find("till", "shop", "ann")] == ["t1"]


def test_a_snippet_is_a_line_around_the_hit_cut_at_words() -> None:
    text = "alpha " * 60 + "the\n\ttill\x00 opens " + "omega " * 60
    shown = snippet(text, ["till"])
    assert shown.startswith("…alpha") and "alpha the till opens omega" in shown
    assert shown.endswith("omega…") and len(shown) <= SNIPPET_CHARACTERS + 2
    assert snippet("till " + "x " * 200, ["till"]).startswith("till x")
    assert snippet("x " * 200 + "till", ["till"]).endswith("x till")
    assert snippet("short till", ["till"]) == "short till"


@given(
    st.text(st.sampled_from("aB \né…"), max_size=400),
    st.text(st.sampled_from("abé"), min_size=1, max_size=4),
    st.text(st.sampled_from("aB \né…"), max_size=400),
)
def test_every_snippet_is_short_and_holds_what_was_looked_for(
    before: str, word: str, after: str
) -> None:
    shown = snippet(f"{before}{word}{after}", [word.casefold()])
    assert word.casefold() in shown.casefold()
    assert len(shown) <= SNIPPET_CHARACTERS + 2 and shown.splitlines() == [shown]
