"""Fixtures of all web tests: a written-down engine with Flask's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser.fakes import FakeEngine
from flask.testing import FlaskClient
from serving import client_of

from codeqa.settings import Settings


@pytest.fixture
def fake_engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def client(settings: Settings, fake_engine: FakeEngine) -> Iterator[FlaskClient]:
    with client_of(settings, fake_engine) as client:
        yield client
