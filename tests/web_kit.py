"""Fixtures of all web tests: a written-down engine with Flask's client, and the shop's index."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.fakes import FakeEngine
from flask.testing import FlaskClient
from serving import client_of

from codeqa.settings import Settings, load_settings


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def client(settings: Settings, engine: FakeEngine) -> Iterator[FlaskClient]:
    with client_of(settings, engine) as client:
        yield client


@pytest.fixture
def shop_settings(shop: Path, data_dir: Path) -> Settings:
    """Settings with a copy of the shop's index."""
    shutil.copytree(shop.parent / "data", data_dir)
    return load_settings(data=data_dir, threads=8)
