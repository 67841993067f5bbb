"""What is kept of a user, and that nothing of it is left in the files when it is deleted."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from pathlib import Path

import pytest

from codeqa.errors import StorageError
from codeqa.state import State, database
from codeqa.state.records import DataCounts, Turn, TurnExtras

SECRET = "Zanzibar-Quagga"
VECTOR = struct.pack("<128e", *(0.37 + number / 1000 for number in range(128)))


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def fill(state: State, user: str = "local", word: str = SECRET, turns: int = 3) -> None:
    """A conversation with long texts, a lone turn, a thumb and a fact."""
    for number in range(turns):
        turn = Turn(f"{user}{number}", "c" if number else "", f"{word} {number}?", word * 50,
                    f"ctx {word} " * 900, {"x": word * 20}, 1.0 + number, user, "shop")  # fmt: skip
        extras = TurnExtras("e", VECTOR, {"name": word})
        state.turns.save(turn, extras=extras)
    state.feedback.save(f"{user}1", user, -1, f"{word} was wrong")


def left(state: State, *wanted: bytes) -> list[str]:
    """Files of the state that hold one of `wanted`."""
    files = [path for path in state.path.parent.iterdir() if path.is_file()]
    return [path.name for path in files if any(word in path.read_bytes() for word in wanted)]


def test_what_is_kept_of_a_user_is_counted(state: State) -> None:
    fill(state)
    fill(state, "ann", turns=2)
    assert state.user_data.counts() == DataCounts(
        repositories=1, conversations=1, turns=3, thumbs=1, vectors=3, facts=1
    )
    assert state.user_data.counts("ann") == DataCounts(1, 1, 2, 1, 2, 1)
    assert state.user_data.counts("bob") == DataCounts(0, 0, 0, 0, 0, 0)


def test_all_of_a_user_is_deleted_and_nothing_of_another(state: State) -> None:
    fill(state)
    fill(state, "ann", "other")
    state.user_data.delete()
    assert state.user_data.counts() == DataCounts(0, 0, 0, 0, 0, 0)
    assert state.user_data.counts("ann") == DataCounts(1, 1, 3, 1, 3, 1)
    assert state.profile.facts() == {} and state.turns.active("c", "local", "shop") == []


def test_no_byte_of_what_was_deleted_is_left_in_the_files(state: State) -> None:
    fill(state, "ann", "other")
    fill(state)
    assert left(state, SECRET.encode()) and left(state, VECTOR)
    state.user_data.delete("ann")
    state.conversations.delete("c", "local", "shop")
    state.profile.clear()
    state.compact()
    assert left(state, SECRET.encode()) == ["state.sqlite"], "the turn without a conversation"
    state.user_data.delete()
    state.compact()
    assert left(state, SECRET.encode(), VECTOR, b"ctx", b"wrong") == []


def test_bytes_that_an_earlier_version_left_behind_go_too(state: State) -> None:
    fill(state)
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute("DELETE FROM turn")
        connection.execute("DELETE FROM conversation")
        connection.execute("DELETE FROM fact")
        connection.commit()
    assert left(state, SECRET.encode())
    state.compact()
    assert left(state, SECRET.encode()) == []


def test_compacting_keeps_what_there_is_and_gives_back_room(state: State) -> None:
    fill(state, "ann", turns=40)
    fill(state, "bob")
    before, size = state.turns.active("c", "bob", "shop"), state.path.stat().st_size
    state.user_data.delete("ann")
    state.compact()
    assert state.turns.active("c", "bob", "shop") == before and len(before) == 2
    assert state.path.stat().st_size < size / 2
    state.compact()
    assert not Path(f"{state.path}-wal").exists()


def test_that_others_keep_it_from_being_compacted_is_said(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with contextlib.closing(sqlite3.connect(state.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM turn").fetchall()
        state.user_data.delete()
        with pytest.raises(StorageError, match=r"is being read\. Try again when other"):
            state.compact()
        reader.execute("COMMIT")
    state.compact()
    assert left(state, SECRET.encode()) == []
