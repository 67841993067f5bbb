from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from codeqa import state as state_module
from codeqa.errors import StorageError
from codeqa.state import State, Turn


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def test_a_value_is_kept_replaced_and_deleted(state: State) -> None:
    assert state.get("k") is None
    state.set("k", "one")
    state.set("k", "two")
    assert state.get("k") == "two"
    state.delete("k")
    state.delete("k")
    assert state.get("k") is None


def test_a_value_is_gone_when_its_lifetime_is_over(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(state_module.time, "time", lambda: now[0])
    state.set("k", "v", seconds=60)
    now[0] = 1059.0
    assert state.get("k") == "v"
    now[0] = 1061.0
    assert state.get("k") is None


def test_an_expired_value_leaves_the_file_with_the_next_write(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(state_module.time, "time", lambda: now[0])
    state.set("old", "v", seconds=1)
    now[0] = 1002.0
    state.set("new", "v")
    with contextlib.closing(sqlite3.connect(state.path)) as connection:
        keys = [row[0] for row in connection.execute("SELECT key FROM value")]
    assert keys == ["new"]


def test_a_turn_comes_back_as_it_was_saved(state: State) -> None:
    turn = Turn("t1", "c1", "who?", "him\n", "[CONTEXT]\n\x00", {"chunks": [1, "é"]}, 5.0)
    state.save_turn(turn)
    state.save_turn(turn)
    assert state.turn("t1") == turn
    assert state.turn("t2") is None


def test_only_the_newest_turns_are_kept(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "TURNS_KEPT", 3)
    for number in range(5):
        state.save_turn(Turn(str(number), "c", "q", "a", "", {}, float(number + 1)))
    assert [number for number in range(5) if state.turn(str(number))] == [2, 3, 4]


def test_recent_repositories_come_latest_first_and_once_each(state: State) -> None:
    for path in (Path("/a"), Path("/b"), Path("/a")):
        state.remember_repository(path)
    assert state.recent_repositories() == [Path("/a"), Path("/b")]
    state.forget_repository(Path("/a"))
    assert state.recent_repositories() == [Path("/b")]


def test_many_threads_open_a_fresh_state_at_once(state: State) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                state.set(f"{number}-{step}", "v")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(state.get(f"{n}-{s}") == "v" for n in range(8) for s in range(10))


def test_a_switch_to_wal_that_others_hold_up_is_tried_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy: list[str] = []

    class Busy(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and len(busy) < 3:
                busy.append(sql)
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            return super().execute(sql, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Busy, **k))
    state.set("k", "v")
    assert state.get("k") == "v"
    assert len(busy) == 3


def test_a_state_that_stays_busy_is_an_error_after_a_while(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.set("k", "v")
    monkeypatch.setattr(state_module, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(state.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="database is locked"):
        state.set("k", "w")
    other.execute("COMMIT")
    other.close()
    assert state.get("k") == "v"


def test_a_failed_write_changes_nothing(state: State) -> None:
    state.set("k", "v")
    with pytest.raises(RuntimeError), state._connect() as connection:
        connection.execute("DELETE FROM value")
        raise RuntimeError
    assert state.get("k") == "v"


@pytest.mark.parametrize("damage", ["garbage", "folder"])
def test_a_state_that_cannot_be_opened_is_said_in_a_sentence(state: State, damage: str) -> None:
    state.path.parent.mkdir(parents=True)
    if damage == "folder":
        state.path.mkdir()
    else:
        state.path.write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match=r"state\.sqlite cannot be used: .*\. See that"):
        state.get("k")
