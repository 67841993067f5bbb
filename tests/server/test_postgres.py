"""The state in PostgreSQL: what becomes of it when the server goes, who waits for whom, and how it
is copied from one place to another. What it keeps is in test_state.py, for both places."""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer, close_connections
from waiting import AT_ONCE, Clock, until

from codeqa.account import Privacy
from codeqa.cli.main import main
from codeqa.doctor import examine
from codeqa.engine import open_privacy
from codeqa.errors import SettingsError, StorageError, UsageError
from codeqa.settings import load_settings
from codeqa.state import State, database, open_database, open_state
from codeqa.state.database import NAMES, TABLES, GoneError
from codeqa.state.records import Turn, TurnExtras
from codeqa_server import postgres
from codeqa_server.state_copy import copy_state

pytest_plugins = ("patient", "postgres_server")
pytestmark = pytest.mark.usefixtures("patient")

NOWHERE = "postgresql://owner:se%2Fcret@/x?host=/nowhere"


def turn(number: int, conversation: str = "c", user: str = "local") -> Turn:
    return Turn(f"t{number}", conversation, f"who is {number}?", "him", "", {}, float(number), user)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, patient: None) -> State:
    """A file with rows in every table."""
    state = State(tmp_path_factory.mktemp("filled"))
    for number in range(1, 451):  # more than are read at once
        extras = TurnExtras("e", bytes([number % 256, 0]), {"name": f"Ada {number} \x00\x10"})
        state.turns.save(turn(number, f"c{number % 3}"), extras=extras)
    state.feedback.save("t7", "local", -1, "no")
    state.conversations.pin("c1", True, "local")
    state.values.set("key", "value", 1e9)
    state.values.set("kept", "value")
    return state


def everything(state: State) -> dict[str, list[Any]]:
    """All rows by their table, without the numbers that each place gives by itself."""
    found = {}
    for table in NAMES:
        with closing(sqlite3.connect(":memory:")) as empty:
            empty.executescript(TABLES)
            names = [row[1] for row in empty.execute(f"PRAGMA table_info({table})")]
        columns = ", ".join(name for name in names if name != "number")
        rows = state._database.rows(f"SELECT {columns} FROM {table}")
        found[table] = sorted(str(row).replace(r"\x00", "\ufffd") for row in rows)
    return found


@pytest.fixture
def server_state(data_dir: Path, empty_database: str) -> State:
    return State(data_dir, empty_database)


# The server goes


@pytest.fixture
def watched(
    postgres: PostgresServer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[State, list[None]]]:
    """A state with a turn in a database of its own, and one for each connection that is tried."""
    state, tries = State(data_dir, postgres.new_database()), list[None]()
    state.turns.save(turn(1))
    connect = state._database._connect  # type: ignore[attr-defined]
    monkeypatch.setattr(state._database, "_connect", lambda: (tries.append(None), connect())[1])
    yield state, tries
    close_connections(state.address)


def test_a_restart_of_the_server_takes_time_and_nothing_else(
    postgres: PostgresServer, watched: tuple[State, list[None]]
) -> None:
    state, tries = watched
    postgres.stop("immediate")
    with ThreadPoolExecutor(2) as pool:
        saving = pool.submit(state.turns.save, turn(2))
        looking = pool.submit(state.turns.get, "t1")
        until(lambda: len(tries) > 4)
        assert not saving.done() and not looking.done()
        postgres.start()
    assert saving.result() and looking.result() == turn(1)
    assert state.turns.active("c") == [turn(1), replace(turn(2), parent="t1")]


def test_a_server_that_stays_away_is_said_after_a_while_and_then_at_once(
    postgres: PostgresServer,
    watched: tuple[State, list[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, tries = watched
    monkeypatch.setattr("codeqa_server.postgres.time", clock := Clock())
    monkeypatch.setattr(database, "BUSY_SECONDS", 30)
    postgres.stop()
    for waited in (True, False):
        with pytest.raises(GoneError, match=r"^The state in PostgreSQL at /.* cannot be used: "):
            state.turns.get("t1")
        assert bool(clock.slept) == (len(tries) > 1) == waited
        tries.clear(), clock.slept.clear()
    postgres.start()
    assert state.turns.get("t1") == turn(1)


def test_a_server_that_is_frozen_is_given_up_and_said(
    postgres: PostgresServer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(data_dir, postgres.new_database())
    state.turns.save(turn(1))
    (idle,) = state._database._idle[(os.getpid(),)]  # type: ignore[attr-defined]
    monkeypatch.setattr(database, "BUSY_SECONDS", AT_ONCE)
    with postgres.frozen(idle.info.backend_pid), monkeypatch.context() as patched:
        patched.setattr("codeqa_server.postgres.SILENT_SECONDS", AT_ONCE)
        for said in ("it did not answer for", "connection timeout expired"):
            with pytest.raises(GoneError, match=said):
                state.turns.get("t1")
    assert state.turns.get("t1") == turn(1)


def test_a_statement_that_takes_too_long_is_ended_and_said(
    server_state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "TIMEOUT", "SET LOCAL statement_timeout = 1")
    with pytest.raises(StorageError, match="due to statement timeout") as late:
        server_state._database.row("SELECT pg_sleep(1000)")
    assert not isinstance(late.value, GoneError)


def test_a_server_that_is_not_there_is_said_in_a_sentence_without_the_password(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODEQA_STATE", NOWHERE)
    monkeypatch.setenv("CODEQA_DATA", str(data_dir))
    assert main(["privacy", "show", "--debug"]) == 1
    said = capsys.readouterr().err
    assert "cret" not in said and "psycopg" not in said.splitlines()[-1]
    assert "cannot be used: connection" in said.splitlines()[-1]
    assert "Check the server" in said.splitlines()[-1]
    assert "2Fcret" not in repr(load_settings())


def test_what_is_no_address_is_said_without_repeating_it() -> None:
    for address in (
        "postgresql://owner:se/cret@host/x", "postgresql://owner:se@cret@host/x",
        "postgresql://owner:se?cret@host/x", "postgresql://owner:se#cret@host/x?nonsense=cret",
        "mysql://owner:secret@host/x",
    ):  # fmt: skip
        with pytest.raises(
            SettingsError, match="not the address of a PostgreSQL server"
        ) as refused:
            State(Path("unused"), address)
        assert "cret" not in str(refused.value) and refused.value.__suppress_context__


def test_a_wrong_password_is_said_and_not_repeated(
    postgres: PostgresServer, data_dir: Path
) -> None:
    state = State(data_dir, postgres.address().replace("se%2Fcret", "wrong-word"))
    with pytest.raises(StorageError, match="password authentication failed") as refused:
        state.turns.get("t1")
    assert "wrong-word" not in str(refused.value)


# Who waits for whom


def test_the_transactions_of_a_user_come_one_after_the_other_and_hold_up_nobody_else(
    server_state: State,
) -> None:
    done: list[str] = []

    def save(number: int, user: str) -> None:
        server_state.turns.save(turn(number, user=user))
        done.append(user)

    with server_state._database.writing("local") as connection:
        mine = threading.Thread(target=save, args=(1, "local"))
        theirs = threading.Thread(target=save, args=(2, "ann"))
        for thread in (mine, theirs):
            thread.start()
        theirs.join()
        waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: not mine.is_alive() or server_state._database.rows(waiting))
        assert mine.is_alive() and done == ["ann"]
        columns = "(id, conversation, created, question, answer, context, details, repository)"
        insert = f"INSERT INTO turn {columns} VALUES ('t0', 'c', 0, '', '', '', '{{}}', '')"
        connection.execute(insert)
        columns = "(user, repository, id, title, created, updated, leaf)"
        values = "('local', '', 'c', '', 0, 0, 't0')"
        connection.execute(f"INSERT INTO conversation {columns} VALUES {values}")
    mine.join()
    assert [one.id for one in server_state.turns.active("c")] == ["t0", "t1"]


def test_what_waits_for_longer_than_the_server_lets_it_is_told_so(server_state: State) -> None:
    writing = server_state._database.writing
    lock = f"SELECT pg_advisory_xact_lock({zlib.crc32(b'local')})"
    with writing("local"), pytest.raises(StorageError, match="lock timeout") as late:  # noqa: SIM117
        with writing("ann") as connection:
            connection.execute("SET LOCAL lock_timeout = 10")
            connection.execute(lock)
    assert not isinstance(late.value, GoneError)


def test_more_threads_than_connections_are_served(server_state: State) -> None:
    turns = [turn(number, user=f"u{number}") for number in range(30)]
    with ThreadPoolExecutor(30, initializer=threading.Barrier(30).wait) as pool:
        assert all(pool.map(server_state.turns.save, turns))
    assert server_state._database.rows("SELECT count(*) FROM turn") == [(30,)]


# Other tables


@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
@pytest.mark.parametrize(("version", "which"), [(1, "an older"), (99, "a newer")])
def test_a_database_of_another_version_is_left_alone(
    server_state: State, version: int, which: str
) -> None:
    server_state.values.set("k", "v")
    change = "UPDATE codeqa SET version = {}".format
    with psycopg.connect(server_state.address, autocommit=True) as connection:
        connection.execute(change(version))
        try:
            close_connections(server_state.address)
            with pytest.raises(StorageError, match=f"written by {which} version of CodeQA"):
                server_state.values.set("k", "w")
        finally:
            connection.execute(change(database.VERSION))
    assert server_state.values.get("k") == "v"


def test_tables_that_the_last_version_did_not_have_are_added(server_state: State) -> None:
    server_state.turns.save(turn(1))
    with psycopg.connect(server_state.address, autocommit=True) as connection:
        connection.execute("DROP TRIGGER pin_of_conversation ON conversation; DROP TABLE pin")
        connection.execute(f"UPDATE codeqa SET version = {database.OLDEST}")
    close_connections(server_state.address)
    store = server_state.conversations
    store.pin("c", True, "local")
    (kept,) = store.latest("")
    assert kept.pinned


def test_the_doctor_looks_at_the_server(
    data_dir: Path, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = {
        address: next(
            one
            for one in examine(load_settings(data=data_dir, state=address), repair=True)
            if one.name == "state"
        )
        for address in (empty_database, NOWHERE)
    }
    assert checks[empty_database].ok and "PostgreSQL at /tmp" in checks[empty_database].detail
    assert not checks[NOWHERE].ok and "Check the server" in checks[NOWHERE].hint


# Deletion


def test_what_a_user_deletes_is_in_no_row_and_what_may_hold_it_still_is_told(
    data_dir: Path, empty_database: str, filled: State
) -> None:
    settings = load_settings(data=data_dir, state=empty_database)
    privacy: Privacy = open_privacy(settings)
    copy_state(filled._database, privacy.state._database)
    privacy.state.turns.save(turn(1_000, user="ann"))
    stored = privacy.stored("local")
    assert stored.turns == 450 and stored.state == privacy.state.place
    assert stored.state_bytes > 1_000_000 and "cret" not in str(stored)
    old = data_dir / "state.sqlite"
    State(data_dir).values.set("k", "v")
    erased = privacy.delete("everything", "local")
    assert erased.counts["turns"] == erased.counts["vectors"] == 450
    assert erased.counts["facts"] == erased.counts["thumbs"] == 1
    told, *files = erased.problems
    assert "Logs, copies and backups of PostgreSQL may hold it" in told
    assert any(one.startswith(f"{old} is an old copy") for one in files)
    left = str(everything(privacy.state))
    assert "Ada" not in left and "who is 7?" not in left and "who is 1000?" in left


# From one place to another


@pytest.fixture
def places(
    data_dir: Path, empty_database: str, filled: State, tmp_path: Path
) -> tuple[State, State, State]:
    """A file with rows in every table, an empty server, and an empty file."""
    return filled, State(data_dir, empty_database), State(tmp_path / "other")


def test_all_that_is_kept_is_the_same_in_a_server_and_back_in_a_file(
    places: tuple[State, State, State],
) -> None:
    file, server, other = places
    for source, target in ((file, server), (server, other)):
        for again in (False, True):
            counts = copy_state(source._database, target._database, again)
            assert counts["turn"] == counts["question"] == 450
    assert everything(other) == everything(file)
    whose = ("local", "", "e")
    for state in (server, other):
        assert state.turns.active("c1") == file.turns.active("c1")
        assert state.turns.past_questions(*whose) == file.turns.past_questions(*whose)
    server.turns.save(turn(451, "c0"), extras=TurnExtras("e", b"12"))
    assert server.turns.past_questions(*whose)[-1].turn == "t451"


def test_a_place_that_holds_something_else_is_not_written_over_unless_that_is_said(
    places: tuple[State, State, State],
) -> None:
    file, server, _ = places
    server.turns.save(turn(1, user="ann"))
    before = everything(server)
    with pytest.raises(UsageError, match=r"is not empty.*--replace"):
        copy_state(file._database, server._database)
    assert everything(server) == before
    copy_state(file._database, server._database, replace=True)
    assert everything(server)["turn"] != before["turn"]
    assert server.turns.get("t1", "ann") is None and server.turns.get("t450") is not None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StorageError("full")], ids=repr)
def test_a_copy_that_is_interrupted_changes_nothing(
    places: tuple[State, State, State],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    file, server, _ = places
    server.turns.save(turn(1, user="ann"))
    before = everything(server)
    reading = file._database.reading

    @contextmanager
    def interrupted() -> Iterator[Any]:
        class Rows:
            def execute(self, query: str, *values: Any) -> Any:
                if "FROM question" in query and "rowid" in query:
                    raise error
                return connection.execute(query, *values)

        with reading() as connection:
            yield Rows()

    monkeypatch.setattr(file._database, "reading", interrupted)
    with pytest.raises(type(error)):
        copy_state(file._database, server._database, replace=True)
    assert everything(server) == before


def test_a_copy_that_lacks_rows_is_not_kept(places: tuple[State, State, State]) -> None:
    file, server, _ = places
    server.values.set("k", "v")
    server.values.delete("k")
    with psycopg.connect(server.address, autocommit=True) as other:
        other.execute(
            "CREATE RULE lose AS ON INSERT TO fact DO INSTEAD NOTHING"  # what no backup notices
        )
        try:
            with pytest.raises(StorageError, match="Rows were lost while they were copied"):
                copy_state(file._database, server._database)
        finally:
            other.execute("DROP RULE lose ON fact")
    assert everything(server)["turn"] == []
    copy_state(file._database, server._database)
    assert everything(server) == everything(file)


def test_the_command_copies_to_where_the_setting_says(
    places: tuple[State, State, State],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, server, other = places
    assert main(["state", "copy"]) == 2
    monkeypatch.setenv("CODEQA_STATE", server.address)
    monkeypatch.setenv("CODEQA_DATA", str(file.path.parent))
    assert main(["state", "copy"]) == 0
    assert everything(server) == everything(file)
    assert "PostgreSQL at" in capsys.readouterr().out
    assert main(["state", "copy", "--from", str(other.path)]) == 2
    assert main(["state", "copy", "--from", server.address, "--to", str(other.path), "--json"]) == 0
    assert everything(other) == everything(file)
    assert '"turn": 450' in (said := capsys.readouterr()).out
    assert "cret" not in said.out + said.err


# Nothing of it unless it is chosen


def test_without_its_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "codeqa_server.postgres", None)
    with pytest.raises(SettingsError, match=r"pip install .*\[server\]"):
        open_state(load_settings(state="postgresql://host/without-package"))
    assert open_database  # the file needs none
