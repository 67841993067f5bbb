"""What a turn teaches: vectors of questions, the topic of a conversation, facts about the user."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from codeqa.errors import StorageError
from codeqa.state import State
from codeqa.state import turns as turns_module
from codeqa.state.records import PastQuestion, Turn, TurnExtras

PLACE = ("local", "shop")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def save(
    state: State,
    turn_id: str,
    conversation: str = "c",
    *,
    vector: bytes | None = b"12",
    facts: Mapping[str, str] | None = None,
    embedding: str = "e",
    user: str = "local",
    repository: str = "shop",
    created: float = 5.0,
    **rest: object,
) -> bool:
    turn = Turn(turn_id, conversation, "q?", "a", "", {}, created, user, repository)
    return state.turns.save(turn, extras=TurnExtras(embedding, vector, facts or {}), **rest)  # type: ignore[arg-type]


def asked(state: State, embedding: str = "e") -> list[str]:
    return [one.turn for one in state.turns.past_questions(*PLACE, embedding)]


def vectors(state: State) -> int:
    with state._database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM question").fetchone()[0])


def test_vectors_belong_to_a_user_a_repository_and_an_embedding(state: State) -> None:
    save(state, "t1")
    save(state, "t2", user="ann")
    save(state, "t3", repository="site")
    save(state, "t4", embedding="f")
    save(state, "t5", vector=None)
    assert asked(state) == ["t1"] and asked(state, embedding="f") == ["t4"]
    assert [one.turn for one in state.turns.past_questions("ann", "shop", "e")] == ["t2"]


@pytest.mark.parametrize("way", ["conversation", "limit", "user"])
def test_a_vector_goes_with_its_turn(
    state: State, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    save(state, "t1", created=1.0)
    save(state, "t2", "d", user="ann", created=2.0)
    if way == "conversation":
        state.conversations.delete("c", *PLACE)
    elif way == "user":
        state.user_data.delete("local")
    else:
        monkeypatch.setattr(turns_module, "TURNS_KEPT", 1)
        save(state, "t3", "d", user="ann", vector=None, created=3.0)
        assert state.turns.get("t2", "ann") is None
    assert asked(state) == [] and vectors(state) == (0 if way == "limit" else 1)


def test_vectors_come_in_order_also_those_of_answers_given_again(state: State) -> None:
    save(state, "t1", vector=b"\x01\x02")
    save(state, "t2", "", vector=b"\x03\x04")
    save(state, "t3", vector=b"\x05\x06", replaces="t1")
    assert state.turns.past_questions(*PLACE, "e") == [
        PastQuestion("t1", "c", b"\x01\x02"),
        PastQuestion("t2", "", b"\x03\x04"),
        PastQuestion("t3", "c", b"\x05\x06"),
    ]


def test_facts_are_kept_with_the_turn_that_said_them(state: State) -> None:
    save(state, "t1", facts={"name": "Ada", "role": "pilot \ud800"}, created=5.0)
    save(state, "t2", facts={"name": "Bo"}, created=6.0)
    assert state.profile.facts() == {
        "role": "pilot ?",
        "name": "Bo",
    }
    assert list(state.profile.facts()) == ["role", "name"], "the latest last"
    assert state.profile.facts("ann") == {}
    state.conversations.delete("c", *PLACE)
    assert list(state.profile.facts()) == ["role", "name"], "they outlive the conversation"


def test_facts_can_be_entered_and_forgotten(state: State) -> None:
    state.profile.save("name", "Ada")
    state.profile.save("name", "Eve", "ann")
    state.profile.save("role", "pilot")
    assert state.profile.facts("ann")["name"] == "Eve"
    assert state.profile.delete("name") and not state.profile.delete("name")
    assert list(state.profile.facts()) == ["role"]
    state.profile.clear()
    assert state.profile.facts() == {} and list(state.profile.facts("ann")) == ["name"]


def test_a_turn_teaches_when_it_is_complete_and_once(state: State) -> None:
    assert save(state, "t1", vector=None)  # as it is kept when it is asked
    assert asked(state) == [] and state.profile.facts() == {}
    for _ in range(2):
        assert save(state, "t1", facts={"name": "Ada"})
    assert asked(state) == ["t1"] and vectors(state) == 1
    assert state.profile.facts() == {"name": "Ada"}


def test_a_turn_is_kept_with_all_that_it_teaches_or_not_at_all(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(state, "t1")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(turns_module, "_limit_turns", fail)
    with pytest.raises(StorageError, match="disk full"):
        save(state, "t2", facts={"name": "Ada"})
    assert [turn.id for turn in state.turns.active("c", repository="shop")] == ["t1"]
    assert state.turns.get("t2") is None and asked(state) == ["t1"] and state.profile.facts() == {}


def test_turns_that_another_branch_took_the_place_of_do_not_stand(state: State) -> None:
    for turn, replaced in (("t1", ""), ("t2", ""), ("t3", "t2")):
        save(state, turn, replaces=replaced)
    save(state, "t4", "")
    save(state, "t5", "d")
    save(state, "t9", user="ann")
    found = state.turns.standing([f"t{number}" for number in range(1_500)])
    assert sorted(found) == ["t1", "t3", "t4", "t5"]
    assert found["t1"] == state.turns.get("t1")
    assert state.turns.standing([]) == {}
