"""Chat over a real index: one shop, indexed once, and for every test a state of its own.

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
from openai_server import openai_server

from codeqa.engine import Engine


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """The shop of `FILES`."""
    return index(tmp_path_factory.mktemp("shop"), FILES)


@pytest.fixture
def opened(indexed: Indexed, data_dir: Path) -> Iterator[Open]:
    """`opened(generator=…, **settings)`: the shop, with the state of this test."""
    with ExitStack() as ending:

        def open_(**settings: Any) -> Engine:
            engine = indexed.open(data_dir, **settings)
            ending.callback(engine.close)
            return engine

        yield open_


@pytest.fixture
def script() -> Iterator[Script]:
    script = Script()
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
