"""A run of the server is paused, goes on and is cancelled; what is committed can be searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from serving import client_of
from waiting import Clock, until

from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, open_engine
from codeqa.indexing import BackgroundIndexer
from codeqa.indexing.runs import CANCELLED, CancelledError
from codeqa.repositories import report_on
from codeqa.settings import Settings, load_settings
from codeqa.store import reader
from codeqa.types import Progress
from tests.kit.index_rows import clean_rows, rows
from tests.kit.indexed import write

FILES = {f"m{n}.py": f"def buy_book_{n}():\n    return {n}\n" for n in range(12)}
QUESTION = "@codebase where is buy_book_1?"


@pytest.fixture
def engine(settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    few = settings.model_copy(update={"batch_files": 2})
    with closing(open_engine(few, write(tmp_path / "repo", FILES))) as opened:
        yield opened


@pytest.fixture
def other(engine: Engine) -> BackgroundIndexer:
    """What another process has of the same index."""
    return BackgroundIndexer(engine.settings, engine.location)


def wait_for(indexer: BackgroundIndexer, state: str, files: int) -> None:
    until(lambda: (indexer.status().state, indexer.status().files) == (state, files))


def test_a_paused_first_run_can_be_asked_and_be_cancelled(
    engine: Engine, other: BackgroundIndexer, tmp_path: Path
) -> None:
    def listen(step: Progress) -> None:
        if step.done == 6:
            engine.index.pause()

    engine.index.start(listen)
    wait_for(engine.index, "paused", files=6)
    assert report_on(engine.location).state == "paused"
    *_, done = engine.chat.ask(AskOptions(QUESTION))
    notice = "Answered from 6 of 12 files; the rest is not indexed yet, because indexing is paused."
    assert done.data["notice"] == notice
    assert done.data["coverage"].startswith("6 of 12 files so far, by words and names")
    assert other.status().state == "paused", "another process says so, too"
    assert not engine.index.update_now() and not other.update_now()

    assert engine.index.cancel()
    engine.index.resume()
    wait_for(engine.index, "stopped", files=6)
    assert engine.index.status().error == CANCELLED
    engine.tables().look_again()
    (warning,) = engine.search.search(QUESTION).warnings
    assert warning.endswith(
        " of 12 files; the rest is not indexed yet; run `codeqa index` to continue."
    )
    assert not engine.index.cancel(), "nothing is being indexed"
    with pytest.raises(CancelledError, match="cancelled"):
        engine.index.run(lambda _: engine.index.cancel() and None)
    assert not engine.index.update_now(), "nothing begins again by itself"
    assert engine.index.run().files == 12
    assert rows(engine.location) == clean_rows(engine.location.root, tmp_path)


def test_a_pause_stands_until_somebody_ends_it(engine: Engine, other: BackgroundIndexer) -> None:
    engine.index.pause()
    engine.index.start()
    wait_for(other, "paused", files=0)
    engine.index.resume()
    wait_for(other, "ready", files=12)
    assert not engine.search.search(QUESTION).warnings
    engine.index.pause()
    engine.index.stop()
    assert (engine.index.run().files, engine.index.status().state) == (12, "ready")


def test_what_another_process_indexed_is_seen_before_a_run_is_waited_for(
    engine: Engine, other: BackgroundIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.index.run()
    monkeypatch.setattr(reader, "time", Clock())  # a reader keeps its version
    before = engine.search.search(QUESTION).units[0].unit
    path = engine.location.root / before.path
    path.write_text(f"import os\n{path.read_text()}")
    other.run()
    monkeypatch.setattr(engine.index, "update_now", lambda _: pytest.fail("a run is asked for"))
    search = replace(engine.search, freshness=replace(engine.search.freshness, updates_hits=True))
    assert search.search(QUESTION).units[0].unit.start_line == before.start_line + 1


def test_the_page_pauses_and_a_user_who_is_not_the_owner_does_not(engine: Engine) -> None:
    def send(client: FlaskClient, action: str, token: str) -> object:
        bearer = {"Authorization": f"Bearer {token}"}
        answer = client.post("/api/index", json={"action": action}, headers=bearer)
        assert answer.json
        return answer.json.get("state", answer.status_code)

    client = client_of(load_settings(data=engine.settings.data, token="mine,yours"), engine)
    assert send(client, "pause", "yours") == 403
    assert send(client, "pause", "mine") == "paused"
    before = 0.0
    for files in (12, 13):
        send(client, "check", "mine")
        wait_for(engine.index, "ready", files)
        until(lambda: not engine.index._alive())
        assert engine.index.status().checked_at > before
        before = engine.index.status().checked_at
        write(engine.location.root, {"new.py": "def sell_book(): ..."})
    assert send(client, "cancel", "mine") == "ready"
