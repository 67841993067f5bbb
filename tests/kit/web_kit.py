"""Fixtures of all web tests: a written-down engine with Flask's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser.fakes import FakeEngine
from flask import Flask
from flask.testing import FlaskClient

from codeqa.settings import Settings
from codeqa.web.app import create_app
from codeqa.web.workspace import Workspace

pytest_plugins = ("patient",)

pages: list[Flask] = []
"""The one application of all clients: it takes longer to make than most tests run."""


@pytest.fixture
def fake_engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def client(patient: None, settings: Settings, fake_engine: FakeEngine) -> Iterator[FlaskClient]:
    """A client of an application with a workspace of its own."""
    pages[:] = pages or [create_app(settings)]
    pages[0].extensions["codeqa"] = Workspace(settings, None, fake_engine)
    with pages[0].test_client() as client:
        yield client
