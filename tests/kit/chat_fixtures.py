"""Chat over a real index: one shop, indexed once, and for every test a state and a time of its own.

A plugin of pytest: `pytest_plugins = ("chat_fixtures",)`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_kit import FILES, Indexed, Listener, Open, Script, index
from indexed import indexed as index_files
from openai_server import openai_server
from waiting import AT_ONCE, Clock

from codeqa.engine import Engine
from codeqa.store import Tables

pytest_plugins = ("patient",)


@pytest.fixture
def clock(patient: None, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of models, which passes where a test says so or a try is waited for. No other limit
    is reached, and what is read of an index is kept at once."""
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    monkeypatch.setattr("codeqa.llm.client.time", clock)
    monkeypatch.setattr("codeqa.llm.failures.time", clock)
    monkeypatch.setattr("codeqa.llm.client.Model.sleep", staticmethod(sleep))
    monkeypatch.setattr("codeqa.store.copies.KEEP_AFTER", AT_ONCE)
    return clock


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """The shop of `FILES`."""
    return index(tmp_path_factory.mktemp("shop"), FILES)


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The index of a repository of the module's `FILES`."""
    return index_files(tmp_path_factory.mktemp("tables"), request.module.FILES)


@pytest.fixture
def opened(indexed: Indexed, data_dir: Path, clock: Clock) -> Iterator[Open]:
    """`opened(generator=…, **settings)`: the shop, with the state of this test."""
    with ExitStack() as ending:

        def open_(**settings: Any) -> Engine:
            engine = indexed.open(data_dir, **settings)
            ending.callback(engine.close)
            return engine

        yield open_


@pytest.fixture
def script(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    script = Script()
    monkeypatch.setattr("codeqa.llm.client.Model.window", lambda model: script.window)
    with openai_server(script) as script.server:
        yield script


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def engine(opened: Open, script: Script) -> Engine:
    """The shop, with a scripted model over HTTP."""
    return opened(**script.settings)


@pytest.fixture
def listened(opened: Open, listener: Listener) -> Engine:
    """The shop, where `listener` writes the answers."""
    return opened(generator=listener)


@pytest.fixture
def quoting(opened: Open) -> Engine:
    """The shop without any model."""
    return opened()


@pytest.fixture
def user() -> str:
    """Somebody else than the user of everything that names none."""
    return uuid.uuid4().hex
