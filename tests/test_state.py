"""The state: conversations and their turns, and a file that others hold, damage or may not read."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run

from codeqa.errors import StorageError
from codeqa.state import State, database, schema
from codeqa.state import turns as turns_module
from codeqa.state.records import Conversation, Turn, title_of


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def test_an_expired_value_leaves_the_file_with_the_next_write(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(turns_module.time, "time", lambda: now[0])
    state.values.set("old", "v", seconds=1)
    now[0] = 1002.0
    state.values.set("new", "v")
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        keys = [row[0] for row in connection.execute("SELECT key FROM value")]
    assert keys == ["new"]


def test_a_turn_comes_back_as_it_was_saved(state: State) -> None:
    turn = Turn("t1", "c1", "who?", "him\n", "[CONTEXT]\n\x00", {"chunks": [1, "é"]}, 5.0)
    state.turns.save(turn)
    state.turns.save(turn)
    assert state.turns.get("t1") == turn
    assert state.turns.get("t2") is None


def test_details_that_cannot_be_read_do_not_hide_the_turn(state: State) -> None:
    state.turns.save(ask("t1"))
    with state._database.writing() as connection:
        connection.execute("UPDATE turn SET details = '[1'")
    assert [turn.details for turn in state.turns.active("c", repository="shop")] == [{}]


# Conversations


def ask(
    turn_id: str,
    conversation: str = "c",
    question: str = "who?",
    created: float = 0.0,
    user: str = "local",
    repository: str = "shop",
) -> Turn:
    return Turn(turn_id, conversation, question, "him", "", {}, created, user, repository)


def ids(turns: list[Turn]) -> list[str]:
    return [turn.id for turn in turns]


def test_the_first_question_opens_and_names_a_conversation(state: State) -> None:
    state.turns.save(ask("t1", "c1", "@codebase  who\npays?", 10.0))
    state.turns.save(ask("t2", "c1", "and when?", 20.0))
    expected = Conversation("c1", "local", "shop", "who pays?", 10.0, 20.0, 2)
    assert state.conversations.get("c1") == expected
    assert state.conversations.latest("shop") == [expected]
    assert ids(state.turns.active("c1", repository="shop")) == ["t1", "t2"]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"user": "ann"}, {"user": "Ann"}), ({"repository": "shop"}, {"repository": "site"})],
    ids=["users", "repositories"],
)
def test_the_same_id_elsewhere_is_another_conversation(
    state: State, one: dict[str, str], other: dict[str, str]
) -> None:
    one, other = ({"user": "ann", "repository": "shop"} | place for place in (one, other))
    state.turns.save(ask("t1", question="mine", created=1.0, **one))
    state.turns.save(ask("t2", question="theirs", created=2.0, **other))
    for place, title in ((one, "mine"), (other, "theirs")):
        assert [
            item.title for item in state.conversations.latest(place["repository"], place["user"])
        ] == [title]
    state.conversations.rename("c", "renamed", **other)
    state.conversations.delete("c", **other)
    found = state.conversations.get("c", **one)
    assert found is not None and (found.title, found.turns) == ("mine", 1)
    assert ids(state.turns.active("c", **one)) == ["t1"]
    assert state.conversations.get("c", **other) is None


def test_without_a_repository_the_one_last_continued_is_meant(state: State) -> None:
    for number, repository in enumerate(("shop", "site", "shop"), 1):
        state.turns.save(ask(f"t{number}", created=float(number), repository=repository))
        found = state.conversations.get("c")
        assert found is not None and found.repository == repository


def test_a_renamed_conversation_keeps_its_title_and_place(state: State) -> None:
    state.turns.save(ask("t1", "c1", created=1.0))
    state.turns.save(ask("t2", "c2", created=2.0))
    state.conversations.rename("c1", " Who\n@codebase pays \ud800", repository="shop")
    state.turns.save(ask("t3", "c1", "later", created=1.5))
    assert [(one.id, one.title) for one in state.conversations.latest("shop")] == [
        ("c2", "who?"),
        ("c1", "Who pays ?"),
    ]


def test_a_turn_does_not_bring_back_the_conversation_that_was_deleted_under_it(
    state: State,
) -> None:
    assert state.turns.save(ask("t1", created=1.0))
    assert state.turns.save(ask("t1", created=1.0), again=True)
    state.conversations.delete("c", repository="shop")
    assert not state.turns.save(ask("t1", created=1.0), again=True)
    assert state.conversations.get("c") is None and state.turns.get("t1") is None
    state.turns.save(ask("t2", created=2.0))  # another one of the same name
    assert not state.turns.save(ask("t1", created=1.0), again=True)
    assert [turn.id for turn in state.turns.active("c", repository="shop")] == ["t2"]


@pytest.mark.parametrize(
    "place", [{"conversation": "d"}, {"user": "ann"}, {"repository": "site"}], ids=str
)
def test_a_turn_replaces_none_of_another_conversation(state: State, place: dict[str, str]) -> None:
    state.turns.save(ask("t1"))
    state.turns.save(ask("t2", **place), replaces="t1")
    assert ids(state.turns.active("c", repository="shop")) == ["t1"]
    assert ids(state.turns.active(**{"conversation": "c", "repository": "shop", **place})) == ["t2"]
    turn = state.turns.get("t2", place.get("user", "local"))
    assert turn is not None and turn.parent == ""


def test_beyond_the_limit_the_oldest_turns_go_and_conversations_without_any(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "TURNS_KEPT", 4)
    for number, name in enumerate(("old", "long", "", "long", "long"), start=1):
        state.turns.save(ask(f"t{number}", name, created=float(number)))
    assert [one.id for one in state.conversations.latest("shop")] == ["long"]
    state.turns.save(ask("t6", "new", created=1.5, user="ann", repository="site"))
    assert ids(state.turns.active("long", repository="shop")) == ["t4", "t5"]
    assert state.turns.get("t3") is not None
    assert ids(state.turns.active("new", "ann", "site")) == ["t6"], "the one just saved stays"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("@codebase where is it?", "where is it?"),
        ("where @CodeBase, is it?", "where , is it?"),
        ("mail me@codebase.org", "mail me@codebase.org"),
        ("one\r\n\ttwo\u2028three\x00\x1b[31m", "one two three [31m"),
        ("a\u202eb\u2066c", "a b c"),
        ("\ud800 lone", "? lone"),
        ("@codebase", "Untitled"),
        (" \n", "Untitled"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("word " * 20, ("word " * 15).strip() + "…"),
        ("a " + "x" * 100, "a " + "x" * 77 + "…"),
    ],
)
def test_a_title_is_one_short_line_without_the_tag(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_state_that_stays_busy_is_an_error_after_a_while(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.values.set("k", "v")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(state.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="database is locked"):
        state.values.set("k", "w")
    other.execute("COMMIT")
    other.close()
    assert state.values.get("k") == "v"


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
    with pytest.raises(StorageError, match=r"state\.sqlite cannot be used: .*\. See that"):
        state.values.set("k", "v")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_files_are_the_owners_alone_from_the_first_byte_on(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        state = State(tmp_path / "state")
        with state._database.writing() as connection:
            connection.execute("DELETE FROM value")
            modes = {path.name: path.stat().st_mode & 0o777 for path in state.path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"), 384)
    assert state.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_file_that_others_could_read_becomes_private(state: State) -> None:
    with state._database.writing():
        for path in state.path.parent.iterdir():
            path.chmod(0o644)
        assert state.values.get("k") is None
        assert {path.stat().st_mode & 0o777 for path in state.path.parent.iterdir()} == {0o600}


# Over restarts and versions


def test_conversations_survive_a_process_that_is_killed(state: State, run_python: Run) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from codeqa.state import State\n"
        "from codeqa.state.records import Turn\n"
        "state = State(Path(sys.argv[1]))\n"
        "for number in range(3):\n"
        "    state.turns.save(Turn(f't{number}', 'c', 'who?', 'him', '', {}, repository='shop'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert run_python("-c", code, state.path.parent).returncode != 0
    assert ids(state.turns.active("c", repository="shop")) == ["t0", "t1", "t2"]
    assert [(one.title, one.turns) for one in state.conversations.latest("shop")] == [("who?", 3)]


def test_several_processes_open_and_fill_a_fresh_state_at_once(state: State) -> None:
    code = (
        "import sys; from pathlib import Path; from codeqa.state import State\n"
        "from codeqa.state.records import Turn\n"
        "state = State(Path(sys.argv[1])); name = sys.argv[2]\n"
        "for number in range(10):\n"
        "    state.turns.save(Turn(f'{name}{number}', 'c', name, '', '', {}, repository='shop'))\n"
    )
    command = [sys.executable, "-c", code, str(state.path.parent)]
    workers = [
        subprocess.Popen([*command, name], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    assert [worker.communicate(timeout=60)[1] for worker in workers] == ["", "", ""]
    assert len(state.turns.active("c", repository="shop")) == 30
    (conversation,) = state.conversations.latest("shop")
    assert conversation.turns == 30


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [*connection.iterdump(), str(schema.version(connection))]


@pytest.mark.parametrize(("version", "which"), [(1, "an older"), (99, "a newer")])
def test_a_state_of_another_version_is_left_alone(state: State, version: int, which: str) -> None:
    state.values.set("k", "v")
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = dump(state.path)
    with pytest.raises(StorageError, match=f"written by {which} version of CodeQA"):
        state.values.get("k")
    assert dump(state.path) == before
