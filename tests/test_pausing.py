"""A run of the server is paused, goes on and is cancelled; what is committed can be searched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from serving import client_of

from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, open_engine
from codeqa.indexing import Indexer
from codeqa.indexing.runs import CANCELLED, CancelledError
from codeqa.repositories import report_on
from codeqa.settings import Settings, load_settings
from codeqa.types import IndexSummary, Progress
from tests.index_rows import clean_rows, rows
from tests.indexed import write

FILES = {f"m{n}.py": f"def buy_book_{n}():\n    return {n}\n" for n in range(60)}
QUESTION = "@codebase where is buy_book_1?"


@pytest.fixture
def engine(settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    few = settings.model_copy(update={"batch_files": 10})
    with closing(open_engine(few, write(tmp_path / "repo", FILES))) as opened:
        yield opened


@pytest.fixture
def other(engine: Engine) -> Indexer:
    """What another process has of the same index."""
    return Indexer(engine.settings, engine.location)


def until(indexer: Indexer, state: str, files: int = 0) -> None:
    end = time.monotonic() + 60
    while (now := indexer.status()).state != state or now.files < files:
        assert time.monotonic() < end, now
        time.sleep(0.01)


def begin_and_pause(engine: Engine) -> list[IndexSummary | Exception]:
    """Start the first run and pause it behind 30 files; gives the place where what comes of it
    will stand."""
    came: list[IndexSummary | Exception] = []

    def listen(step: Progress) -> None:
        if step.done == 30:
            engine.index.pause()

    engine.index.start_background(listen, came.append)
    until(engine.index, "paused", files=30)
    return came


def test_a_paused_first_run_can_be_asked_says_so_and_goes_on(
    engine: Engine, other: Indexer, tmp_path: Path
) -> None:
    came = begin_and_pause(engine)
    assert report_on(engine.location).state == "paused"
    assert not came
    told = "Answered from 30 of 60 files; the rest waits, for indexing is paused."
    *_, done = engine.chat.ask(AskOptions(QUESTION))
    assert done.data["notice"] == told
    assert done.data["coverage"].startswith("30 of 60 files so far, by words and names")
    assert other.status().state == "paused", "another process says so, too"
    assert not engine.index.catch_up() and not other.catch_up()
    engine.index.resume()
    until(other, "ready", files=60)
    assert not engine.search.search(QUESTION).warnings
    assert rows(engine.location) == clean_rows(engine.location.root, tmp_path)


def test_what_another_process_indexed_is_seen_before_a_run_is_waited_for(
    engine: Engine, other: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.index.run()
    # As long as a reader keeps a version while an index grows.
    monkeypatch.setattr("codeqa.store.reader.READ_INTERVAL", 60.0)
    before = engine.search.search(QUESTION).units[0].unit
    path = engine.location.root / before.path
    path.write_text(f"import os\n{path.read_text()}")
    other.run()
    search = replace(engine.search, catch_up=lambda _: pytest.fail("a run is asked for"))
    assert search.search(QUESTION).units[0].unit.start_line == before.start_line + 1


def test_a_cancelled_first_run_keeps_what_it_has_and_the_next_completes_it(
    engine: Engine, tmp_path: Path
) -> None:
    begin_and_pause(engine)
    assert engine.index.cancel()
    engine.index.resume()
    until(engine.index, "stopped")
    status = engine.index.status()
    assert (status.error, status.files) == (CANCELLED, 30)
    engine.tables().look_again()
    (told,) = engine.search.search(QUESTION).warnings
    assert told.endswith(" of 60 files; the rest is not indexed: `codeqa index` goes on.")
    assert not engine.index.cancel(), "nothing is being indexed"
    with pytest.raises(CancelledError, match="cancelled"):
        engine.index.run(lambda _: engine.index.cancel() and None)
    assert not engine.index.catch_up(), "nothing begins again by itself"
    assert engine.index.run().files == 60
    assert engine.index.status().state == "ready"
    assert rows(engine.location) == clean_rows(engine.location.root, tmp_path)


def test_a_pause_stands_until_somebody_asks_for_a_run(engine: Engine, other: Indexer) -> None:
    engine.index.pause()
    engine.index.start_background()
    until(other, "paused")
    assert other.status().files == 0
    engine.index.stop()
    assert (engine.index.run().files, engine.index.status().state) == (60, "ready")


def test_the_page_pauses_and_a_user_who_is_not_the_owner_does_not(engine: Engine) -> None:
    def send(client: FlaskClient, action: str, token: str) -> object:
        bearer = {"Authorization": f"Bearer {token}"}
        answer = client.post("/api/index", json={"action": action}, headers=bearer)
        assert answer.json
        return answer.json.get("state", answer.status_code)

    client = client_of(load_settings(data=engine.settings.data, token="mine,yours"), engine)
    assert send(client, "pause", "yours") == 403
    assert send(client, "pause", "mine") == "paused"
    send(client, "check", "mine")
    until(engine.index, "ready", files=60)
    write(engine.location.root, {"new.py": "def sell_book(): ..."})
    before = engine.index.status().checked_at
    send(client, "check", "mine")
    until(engine.index, "ready", files=61)
    assert engine.index.status().checked_at > before
    assert send(client, "cancel", "mine") == "ready"
