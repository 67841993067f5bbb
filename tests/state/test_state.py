"""The state, in a file and in PostgreSQL: conversations with their branches, what turns teach, what
is found again, and a file that others hold, damage or may not read."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import close_connections
from waiting import AT_ONCE, Clock

from codeqa.errors import NotFoundError, StorageError
from codeqa.state import State, cache, database
from codeqa.state import turns as turns_module
from codeqa.state.records import (
    Conversation,
    ConversationMatch,
    PastQuestion,
    Turn,
    TurnExtras,
    title_of,
)
from codeqa.state.turns import SNIPPET_CHARACTERS, snippet

pytest_plugins = ("patient", "postgres_server")
pytestmark = pytest.mark.usefixtures("patient")
in_a_file = pytest.mark.parametrize("state", ["file"], indirect=True)
PLACE = ("local", "shop")


def save(
    state: State,
    turn_id: str,
    conversation: str = "c",
    question: str = "who?",
    answer: str = "him",
    *,
    created: float = 0.0,
    user: str = "local",
    repository: str = "shop",
    parent: str = "",
    replaces: str = "",
    again: bool = False,
    embedding: str = "e",
    vector: bytes | None = None,
    facts: Mapping[str, str] | None = None,
) -> bool:
    """Save a turn; `t12` is created at 12 seconds, unless told otherwise."""
    turn = Turn(turn_id, conversation, question, answer, "", {}, created or float(turn_id[1:]),
                user, repository, parent)  # fmt: skip
    extras = TurnExtras(embedding, vector, facts or {})
    return state.turns.save(turn, replaces, extras, again=again)


def active(
    state: State, conversation: str = "c", user: str = "local", repository: str = "shop",
    **wished: Any,
) -> list[str]:  # fmt: skip
    return [one.id for one in state.turns.active(conversation, user, repository, **wished)]


def test_a_turn_comes_back_as_it_was_saved(state: State) -> None:
    turn = Turn("t1", "c1", "who? 🙂", "him\n", "[CONTEXT]\n\x00", {"chunks": [1, "é\x00"]}, 1 / 3)
    state.turns.save(turn)
    state.turns.save(turn)
    kept = replace(turn, context="[CONTEXT]\n\ufffd") if state.address else turn
    assert state.turns.get("t1") == kept, "a server takes no NUL"
    assert state.turns.get("t2") is None


def test_details_that_cannot_be_read_do_not_hide_the_turn(state: State) -> None:
    save(state, "t1")
    with state._database.writing() as connection:
        connection.execute("UPDATE turn SET details = '[1'")
    assert [turn.details for turn in state.turns.active("c", *PLACE)] == [{}]


# Conversations


def test_the_first_question_opens_and_names_a_conversation(state: State) -> None:
    save(state, "t10", "c1", "@codebase  who\npays?")
    save(state, "t20", "c1", "and when?")
    expected = Conversation("c1", "local", "shop", "who pays?", 10.0, 20.0, 2)
    assert state.conversations.get("c1") == expected
    assert state.conversations.latest("shop") == [expected]
    assert active(state, "c1") == ["t10", "t20"]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"user": "ann"}, {"user": "Ann"}), ({"repository": "shop"}, {"repository": "site"})],
    ids=["users", "repositories"],
)
def test_the_same_id_elsewhere_is_another_conversation(
    state: State, one: dict[str, str], other: dict[str, str]
) -> None:
    one, other = ({"user": "ann", "repository": "shop"} | place for place in (one, other))
    save(state, "t1", question="mine", **one)  # type: ignore[arg-type]
    save(state, "t2", question="theirs", **other)  # type: ignore[arg-type]
    for place, title in ((one, "mine"), (other, "theirs")):
        listed = state.conversations.latest(place["repository"], place["user"])
        assert [item.title for item in listed] == [title]
    state.conversations.rename("c", "renamed", **other)
    state.conversations.delete("c", **other)
    found = state.conversations.get("c", **one)
    assert found is not None and (found.title, found.turns) == ("mine", 1)
    assert active(state, **one) == ["t1"]
    assert state.conversations.get("c", **other) is None


def test_a_pin_lists_a_conversation_first_and_goes_with_it(state: State) -> None:
    for number in range(3):
        save(state, f"t{number}", f"c{number}")
    store = state.conversations

    def order() -> list[tuple[str, bool]]:
        return [(one.id, one.pinned) for one in store.latest("shop")]

    for _ in range(2):  # the second time it is already
        store.pin("c0", True, *PLACE)
    store.pin("gone", True, *PLACE)
    store.pin("c1", True, "another", "shop")
    assert order() == [("c0", True), ("c2", False), ("c1", False)]
    assert store.find("who", "shop")[0].conversation.id == "c0"
    store.delete("c0", *PLACE)
    save(state, "t9", "c0")
    assert order() == [("c0", False), ("c2", False), ("c1", False)]
    store.pin("c1", True, *PLACE)
    store.pin("c1", False, *PLACE)
    store.pin("c2", True, *PLACE)
    state.user_data.delete()
    assert state._database.rows("SELECT * FROM pin") == []


def test_without_a_repository_the_one_last_continued_is_meant(state: State) -> None:
    for number, repository in enumerate(("shop", "site", "shop"), 1):
        save(state, f"t{number}", repository=repository)
        found = state.conversations.get("c")
        assert found is not None and found.repository == repository


def test_a_renamed_conversation_keeps_its_title_and_place(state: State) -> None:
    save(state, "t1", "c1")
    save(state, "t2", "c2")
    state.conversations.rename("c1", " Who\n@codebase pays \ud800", user="local", repository="shop")
    save(state, "t3", "c1", "later", created=1.5)
    assert [(one.id, one.title) for one in state.conversations.latest("shop")] == [
        ("c2", "who?"),
        ("c1", "Who pays ?"),
    ]


def test_a_turn_does_not_bring_back_the_conversation_that_was_deleted_under_it(
    state: State,
) -> None:
    assert save(state, "t1")
    assert save(state, "t1", again=True)
    state.conversations.delete("c", repository="shop")
    assert not save(state, "t1", again=True)
    assert state.conversations.get("c") is None and state.turns.get("t1") is None
    save(state, "t2")  # another one of the same name
    assert not save(state, "t1", again=True)
    assert active(state) == ["t2"]


@pytest.mark.parametrize(
    "place", [{"conversation": "d"}, {"user": "ann"}, {"repository": "site"}], ids=str
)
def test_a_turn_replaces_none_of_another_conversation(state: State, place: dict[str, str]) -> None:
    save(state, "t1")
    save(state, "t2", replaces="t1", **place)  # type: ignore[arg-type]
    assert active(state) == ["t1"]
    assert active(state, **place) == ["t2"]
    turn = state.turns.get("t2", place.get("user", "local"))
    assert turn is not None and turn.parent == ""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("where @CodeBase, is it?", "where , is it?"),
        ("mail me@codebase.org", "mail me@codebase.org"),
        ("one\r\n\ttwo\u2028three\x00\x1b[31m \u202ea\ud800", "one two three [31m a?"),
        ("@codebase", "Untitled"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("word " * 20, ("word " * 15).strip() + "…"),
        ("a " + "x" * 100, "a " + "x" * 77 + "…"),
    ],
)
def test_a_title_is_one_short_line_without_the_tag(text: str, title: str) -> None:
    assert title_of(text) == title


# Branches: what follows what, and which of several answers is shown


@pytest.mark.parametrize("parent", ["missing", "d1", "t9"])
def test_what_is_no_turn_of_the_conversation_is_not_followed(state: State, parent: str) -> None:
    save(state, "t1")
    save(state, "d1", "d")
    save(state, "t9", parent=parent)
    assert active(state) == ["t1", "t9"]


@pytest.mark.parametrize(
    "chosen",
    [
        ("c", "t9", "local", "shop"),
        ("d", "t1", "local", "shop"),
        ("c", "t1", "ann", "shop"),
        ("c", "t1", "local", "site"),
        ("c", "", "local", "shop"),
    ],
    ids=str,
)
def test_only_a_turn_of_the_conversation_can_be_chosen(
    state: State, chosen: tuple[str, str, str, str]
) -> None:
    save(state, "t1")
    save(state, "t2", replaces="t1")
    with pytest.raises(NotFoundError, match="There is no such answer"):
        state.turns.choose_branch(*chosen)
    assert active(state) == ["t2"]


def test_a_branch_can_be_read_up_to_any_turn(state: State) -> None:
    for number in range(1, 5):
        save(state, f"t{number}")
    save(state, "t5", replaces="t2")
    assert active(state, until="t3") == ["t1", "t2", "t3"]
    assert active(state, until="t3", last=2) == ["t2", "t3"]
    assert active(state, until="") == active(state, until=None) == ["t1", "t5"]
    assert active(state, until="missing") == []
    save(state, "t6", "d")
    assert active(state, until="t6") == [], "a turn of another conversation"


def test_turns_without_a_conversation_follow_nothing(state: State) -> None:
    save(state, "t1", "")
    save(state, "t2", "", parent="t1")
    save(state, "t3", "", replaces="t1")
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
    assert active(state) == ["t1", "t2"]
    assert state.turns.branches("c", *PLACE) == {"t1": ("t1",), "t2": ("t2", "t3")}


@settings(max_examples=20, deadline=None)
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
            given = {"save": {}, "replace": {"replaces": other}, "after": {"parent": other}}
            save(state, new, **given[action])  # type: ignore[arg-type]
            parents[new] = {
                "save": leaf, "replace": parents.get(other, leaf), "after": other or leaf,
            }[action]  # fmt: skip
            leaf = new
        expected = way(leaf, parents)[::-1]
        assert active(state) == expected
        assert active(state, last=3) == expected[-3:]
        assert state.turns.branches("c", *PLACE) == {
            turn: tuple(one for one in parents if parents[one] == parents[turn])
            for turn in expected
        }


def way(turn: str, parents: dict[str, str]) -> list[str]:
    """`turn` and what it follows, back to the first."""
    return [turn, *way(parents[turn], parents)] if turn else []


# What a turn teaches: vectors of questions, facts about the user


def vectors(state: State, embedding: str = "e", user: str = "local") -> list[str]:
    return [one.turn for one in state.turns.past_questions(user, "shop", embedding)]


def test_vectors_belong_to_a_user_a_repository_and_an_embedding_and_come_in_order(
    state: State,
) -> None:
    save(state, "t1", vector=b"\x01\x02")
    save(state, "t2", user="ann", vector=b"12")
    save(state, "t3", repository="site", vector=b"12")
    save(state, "t4", embedding="f", vector=b"12")
    save(state, "t5", "", vector=b"\x03\x04")
    save(state, "t6", vector=b"\x05\x06", replaces="t1")  # an answer given again
    assert vectors(state, "f") == ["t4"] and vectors(state, user="ann") == ["t2"]
    assert state.turns.past_questions(*PLACE, "e") == [
        PastQuestion("t1", "c", b"\x01\x02"),
        PastQuestion("t5", "", b"\x03\x04"),
        PastQuestion("t6", "c", b"\x05\x06"),
    ]


@pytest.mark.parametrize("way_of", ["conversation", "user"])
def test_a_vector_goes_with_its_turn(state: State, way_of: str) -> None:
    save(state, "t1", vector=b"12")
    save(state, "t2", "d", user="ann", vector=b"12")
    if way_of == "conversation":
        state.conversations.delete("c", *PLACE)
    else:
        state.user_data.delete("local")
    assert state._database.rows("SELECT turn FROM question") == [("t2",)]


def test_what_is_deleted_while_it_is_answered_is_not_kept(state: State) -> None:
    begun = TurnExtras(facts={"name": "Ada"}, begun=time.time())
    state.profile.clear("local")
    assert state.turns.save(Turn("t1", "c", "who?", "him", "", {}, 1.0), "", begun)
    assert state.turns.get("t1") and state.profile.facts() == {}
    state.user_data.delete("local")
    assert not state.turns.save(Turn("t2", "c", "who?", "him", "", {}, 2.0), "", begun)
    assert state.user_data.counts("local").turns == 0


def test_facts_are_kept_with_the_turn_that_said_them_and_outlive_it(state: State) -> None:
    save(state, "t5", facts={"name": "Ada", "role": "pilot \ud800"})
    save(state, "t6", facts={"name": "Bo"})
    save(state, "t7", user="ann", facts={"name": "Eve"})
    state.conversations.delete("c", *PLACE)
    facts = state.profile.facts()
    assert facts == {"role": "pilot ?", "name": "Bo"}
    assert list(facts) == ["role", "name"], "the latest last"
    state.profile.clear()
    assert state.profile.facts() == {} and state.profile.facts("ann") == {"name": "Eve"}


def test_a_turn_teaches_when_it_is_complete_and_once(state: State) -> None:
    assert save(state, "t1")  # as it is kept when it is asked
    assert vectors(state) == [] and state.profile.facts() == {}
    for _ in range(2):
        assert save(state, "t1", vector=b"12", facts={"name": "Ada"})
    assert vectors(state) == ["t1"]
    assert state.profile.facts() == {"name": "Ada"}


def test_a_turn_is_kept_with_all_that_it_teaches_or_not_at_all(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(state, "t1", vector=b"12")

    def fail(connection: Any, *_: object) -> None:
        connection.execute("SELECT missing FROM turn")

    monkeypatch.setattr(turns_module, "put_fact", fail)
    with pytest.raises(StorageError, match="missing"):
        save(state, "t2", vector=b"12", facts={"name": "Ada"})
    assert active(state) == ["t1"] and state.turns.get("t2") is None
    assert vectors(state) == ["t1"] and state.profile.facts() == {}


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


# Conversations found by what was said in them


def found(state: State, text: str) -> list[tuple[str, str, str]]:
    return [
        (one.conversation.id, one.turn_id, one.snippet)
        for one in state.conversations.find(text, "shop")
    ]


def test_questions_answers_and_titles_are_looked_through(state: State) -> None:
    save(state, "t1", "c1", "where is the till?", "here")
    save(state, "t2", "c2", "who?", "The TILL\nis **there**.")
    save(state, "t3", "c3")
    state.conversations.rename("c3", "About tills", user="local", repository="shop")
    save(state, "t4", "c4")
    assert found(state, "till") == [
        ("c3", "", "About tills"),
        ("c2", "t2", "The TILL is there."),
        ("c1", "t1", "where is the till?"),
    ]
    (one,) = state.conversations.find("there", "shop")
    assert one == ConversationMatch(state.conversations.get("c2"), "t2", "The TILL is there.")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("größe", "GRÖSSE der Kasse"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("İstanbul", "in İSTANBUL"),
        ("100%", "it is 100% so"),
        ("a_b", "a_b"),
        ("[CONTEXT]", "say [context]"),
        ("'; DROP--", "x'; drop-- y"),
        ("🙂", "well 🙂"),
        ("  two\twords ", "two\nwords"),
    ],
)
def test_any_text_is_found_in_any_case(state: State, text: str, hit: str) -> None:
    save(state, "t1", answer=hit)
    assert [turn for _, turn, _ in found(state, text)] == ["t1"]


def test_no_character_stands_for_others(state: State) -> None:
    save(state, "t1", question="abc", answer="abc")
    for text in ("a%c", "a_c", "a*c", "a.c", "%", "_", "", "  ", "\\", "\ud800"):
        assert found(state, text) == []


def test_all_words_must_be_in_one_turn_of_whatever_branch_and_the_tag_is_none(
    state: State,
) -> None:
    save(state, "t1", question="@codebase open the till", answer="no")
    save(state, "t2", answer="the owner", replaces="t1")
    assert found(state, "till owner") == found(state, "codebase") == []
    assert found(state, "NO till") == [("c", "t1", "no")]


def test_only_the_users_own_conversations_about_the_repository_are_found(state: State) -> None:
    save(state, "t1", question="till", user="ann")
    save(state, "t2", question="till", repository="site")
    save(state, "t3", "", "till")
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


# The file


def test_an_expired_value_leaves_the_file_with_the_next_write(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "time", clock := Clock())
    state.values.set("old", "v", seconds=60)
    clock.advance(61)
    state.values.set("new", "v")
    assert state._database.rows("SELECT key FROM value") == [("new",)]


@in_a_file
def test_a_state_that_stays_busy_is_an_error_after_a_while(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", AT_ONCE)
    state.values.set("k", "v")
    other = sqlite3.connect(state.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        StorageError, match=r"is busy: many answers .*\. Nothing is damaged"
    ) as busy:
        state.values.set("k", "w")
    assert "doctor" not in str(busy.value)
    other.execute("COMMIT")
    other.close()
    assert state.values.get("k") == "v"


@in_a_file
def test_writers_of_one_process_take_turns_and_none_is_passed_over(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself would let them try again at random, and of many some never had their turn."""
    state.values.set("k", "v")
    lock, comes = threading.Lock(), threading.Semaphore(0)

    class Patient:
        release = staticmethod(lock.release)

        def acquire(self, timeout: float) -> bool:
            comes.release()
            return lock.acquire()

    monkeypatch.setattr(database, "_WRITING", Patient())
    monkeypatch.setattr(database, "BUSY_SECONDS", AT_ONCE)  # no waiting in SQLite
    with ThreadPoolExecutor(8) as pool:
        with state._database.writing() as connection:
            comes.acquire()
            writers = [pool.submit(state.values.set, f"k{n}", "w") for n in range(8)]
            for _ in writers:
                comes.acquire()
            connection.execute("DELETE FROM value")
        for writer in writers:
            writer.result()
    assert state.values.keys("") == [f"k{n}" for n in range(8)]


@in_a_file
@pytest.mark.parametrize("damage", ["garbage", "folder", "file in the way", "read-only"])
def test_a_state_that_cannot_be_opened_is_said_in_a_sentence(
    state: State, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    def refuse(*arguments: Any, **options: Any) -> int:
        raise PermissionError(13, "Permission denied")

    if damage == "file in the way":
        state.path.parent.write_text("")
    else:
        state.path.parent.mkdir()
    if damage == "folder":
        state.path.mkdir()
    elif damage == "garbage":
        state.path.write_bytes(b"not a database" * 1000)
    elif damage == "read-only":
        # Whoever runs the tests may be allowed everything, so that no mode would stop them.
        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=r"state\.sqlite cannot be used: .*\. Check that"):
        state.values.set("k", "v")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_files_are_the_owners_alone_from_the_first_byte_on(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        state = State(tmp_path / "state")
        with state._database.writing() as connection:
            connection.execute("DELETE FROM value")
            modes = {path.name: path.stat().st_mode & 0o777 for path in state.path.parent.iterdir()}
            for path in state.path.parent.iterdir():
                path.chmod(0o644)
            assert state.values.get("k") is None
            again = {path.stat().st_mode & 0o777 for path in state.path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"), 0o600)
    assert again == {0o600}, "one that others could read becomes private"
    assert state.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_several_processes_fill_a_fresh_state_at_once_and_are_killed_then(
    state: State, request: pytest.FixtureRequest
) -> None:
    if state.address:
        address = request.getfixturevalue("postgres").new_database()
        request.addfinalizer(lambda: close_connections(address))
        state = State(state.path.parent, address)
    children = []
    for name in "abc":
        if child := os.fork():
            children.append(child)
            continue
        try:
            own = State(state.path.parent, state.address)
            for number in range(10):
                own.turns.save(Turn(f"{name}{number}", "c", name, "", "", {}, repository="shop"))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert {os.waitpid(child, 0)[1] for child in children} == {signal.SIGKILL}
    assert len(active(state)) == 30
    (conversation,) = state.conversations.latest("shop")
    assert conversation.turns == 30


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_and_a_file_that_is_made_anew_have_connections_of_their_own(
    state: State,
) -> None:
    save(state, "t1")
    query = "SELECT pg_backend_pid()"
    ours = state.address and state._database.row(query)
    child = os.fork()
    if not child:
        try:
            assert save(state, "t2")
            if state.address:
                assert state._database.row(query) not in (None, ours)
            else:
                assert len(state._database._idle) == 2
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert ours == (state.address and state._database.row(query))
    save(state, "t3")
    assert active(state) == ["t1", "t2", "t3"]
    if not state.address:
        state.path.rename(state.path.with_name("aside"))
        assert active(state) == []
        save(state, "t4")
        assert active(state) == ["t4"]


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [*connection.iterdump(), str(database.version(connection))]


@in_a_file
def test_tables_that_the_last_version_did_not_have_are_added(state: State) -> None:
    save(state, "t1")
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        connection.executescript("DROP TRIGGER pin_of_conversation; DROP TABLE pin")
        connection.execute(f"PRAGMA user_version = {database.OLDEST}")
    state._database.close()
    state.conversations.pin("c", True, *PLACE)
    (kept,) = state.conversations.latest("shop")
    assert kept.pinned and kept.turns == 1


@in_a_file
@pytest.mark.parametrize(("version", "which"), [(1, "an older"), (99, "a newer")])
def test_a_state_of_another_version_is_left_alone(state: State, version: int, which: str) -> None:
    state.values.set("k", "v")
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = dump(state.path)
    with pytest.raises(StorageError, match=f"written by {which} version of CodeQA"):
        state.values.get("k")
    assert dump(state.path) == before
