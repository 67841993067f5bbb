"""Branches of a conversation: what follows what, and which of several answers is shown."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeqa.errors import NotFoundError
from codeqa.state import State
from codeqa.state import turns as turns_module
from codeqa.state.records import Turn

PLACE = ("local", "shop")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def save(
    state: State, turn_id: str, parent: str = "", replaces: str = "", conversation: str = "c"
) -> None:
    """Save a turn; `t12` is created at 12 seconds."""
    turn = Turn(turn_id, conversation, f"{turn_id}?", "him", "", {}, float(turn_id[1:]), *PLACE)
    state.turns.save(turn if not parent else with_parent(turn, parent), replaces)


def with_parent(turn: Turn, parent: str) -> Turn:
    return Turn(*[getattr(turn, name) for name in turn.__slots__[:-1]], parent)


def shown(state: State, conversation: str = "c", **wished: object) -> list[str]:
    return [turn.id for turn in state.turns.active(conversation, *PLACE, **wished)]  # type: ignore[arg-type]


@pytest.mark.parametrize("parent", ["missing", "d1", "t9"])
def test_what_is_no_turn_of_the_conversation_is_not_followed(state: State, parent: str) -> None:
    save(state, "t1")
    save(state, "d1", conversation="d")
    save(state, "t9", parent=parent)
    assert shown(state) == ["t1", "t9"]


@pytest.mark.parametrize(
    ("conversation", "turn", "user", "repository"),
    [
        ("c", "t9", "local", "shop"),
        ("d", "t1", "local", "shop"),
        ("c", "t1", "ann", "shop"),
        ("c", "t1", "local", "site"),
        ("c", "", "local", "shop"),
    ],
)
def test_only_a_turn_of_the_conversation_can_be_chosen(
    state: State, conversation: str, turn: str, user: str, repository: str
) -> None:
    save(state, "t1")
    save(state, "t2", replaces="t1")
    with pytest.raises(NotFoundError, match="There is no such answer"):
        state.turns.choose_branch(conversation, turn, user, repository)
    assert shown(state) == ["t2"]


def test_a_branch_can_be_read_up_to_any_turn(state: State) -> None:
    for number in range(1, 5):
        save(state, f"t{number}")
    save(state, "t5", replaces="t2")
    assert shown(state, until="t3") == ["t1", "t2", "t3"]
    assert shown(state, until="t3", last=2) == ["t2", "t3"]
    assert shown(state, until="") == shown(state, until=None) == ["t1", "t5"]
    assert shown(state, until="missing") == []
    save(state, "t6", conversation="d")
    assert shown(state, until="t6") == [], "a turn of another conversation"


def test_turns_without_a_conversation_follow_nothing(state: State) -> None:
    save(state, "t1", conversation="")
    save(state, "t2", conversation="", parent="t1")
    save(state, "t3", conversation="", replaces="t1")
    turns = [state.turns.get(f"t{number}") for number in (1, 2, 3)]
    assert [turn.parent for turn in turns if turn] == ["", "", ""]
    assert state.turns.branches("", *PLACE) == {}


def test_a_turn_that_is_saved_again_stays_where_it_is(state: State) -> None:
    for turn in ("t1", "t2"):
        save(state, turn)
    save(state, "t3", replaces="t2")
    state.turns.choose_branch("c", "t2", *PLACE)
    before = state.turns.get("t3")
    save(state, "t3")
    save(state, "t3", replaces="t1")
    assert state.turns.get("t3") == before
    assert shown(state) == ["t1", "t2"]
    assert state.turns.branches("c", *PLACE) == {"t1": ("t1",), "t2": ("t2", "t3")}


def test_where_the_beginning_is_gone_a_branch_begins_later(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "TURNS_KEPT", 3)
    for number in range(1, 5):
        save(state, f"t{number}")
    save(state, "t5", replaces="t4")
    assert shown(state) == ["t3", "t5"]
    assert state.turns.branches("c", *PLACE) == {"t3": ("t3",), "t5": ("t4", "t5")}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(("save", "replace", "after", "choose")), st.integers(0, 30)),
        min_size=1,
        max_size=25,
    )
)
def test_branches_are_those_of_a_tree(steps: list[tuple[str, int]]) -> None:
    """Whatever is done, the state agrees with a tree that is kept as plain dicts."""
    with tempfile.TemporaryDirectory() as folder:
        state = State(Path(folder))
        parents: dict[str, str] = {}
        leaf = ""
        for action, number in steps:
            new, known = f"t{len(parents) + 1}", list(parents)
            other = known[number % len(known)] if known else ""
            if action == "choose":
                if known:
                    state.turns.choose_branch("c", other, *PLACE)
                    leaf = max(
                        (turn for turn in known if other in way(turn, parents)
                         and turn not in parents.values()),
                        key=known.index,
                    )  # fmt: skip
                continue
            save(state, new, *{"save": (), "replace": ("", other), "after": (other,)}[action])
            parents[new] = {
                "save": leaf, "replace": parents.get(other, leaf), "after": other or leaf,
            }[action]  # fmt: skip
            leaf = new
        expected = way(leaf, parents)[::-1]
        assert shown(state) == expected
        assert shown(state, last=3) == expected[-3:]
        assert state.turns.branches("c", *PLACE) == {
            turn: tuple(one for one in parents if parents[one] == parents[turn])
            for turn in expected
        }


def way(turn: str, parents: dict[str, str]) -> list[str]:
    """`turn` and what it follows, back to the first."""
    return [turn, *way(parents[turn], parents)] if turn else []
