"""A small repository with its index, and the command `codeqa` run on it in this process."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from repositories import write
from serving import serving

from codeqa.cli import main
from codeqa.cli.serve import terminal_door
from codeqa.settings import Settings, load_settings
from codeqa.web.app import create_app
from codeqa.web.running import SERVERS_FOLDER
from codeqa.web.security import TERMINAL_TOKEN
from research.evals.search.__main__ import main as judge_search

pytest_plugins = ("patient",)

FILES = {
    "store/basket.py": (
        '"""Baskets of the shop."""\n\n\n'
        "class Basket:\n"
        '    """Holds what a customer buys."""\n\n'
        "    def add_article(self, name, price):\n"
        '        """Put one article into the basket."""\n'
        "        self.articles.append((name, price))\n\n\n"
        "def total_price(basket):\n"
        '    """Sum up what the articles of a basket cost."""\n'
        "    return sum(price for _, price in basket.articles)\n"
    ),
    "store/checkout.go": (
        "package store\n\n"
        "// PayOrder charges the customer's card.\n"
        "func PayOrder(card string) error {\n\treturn charge(card)\n}\n"
    ),
    "README.md": "# Shop\n\nBaskets hold articles until the customer pays.\n",
    "logo.png": "\x89PNG\0\0\0",
}
QUESTION = "@codebase how is an article put into the basket?"
TITLE = QUESTION.removeprefix("@codebase ")
ANSWER = ["It is appended ", "[store/basket.py:7-9], ", "or not [store/basket.py:900-901].\n"]


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The error, which must be a single line."""
        assert self.err.startswith("codeqa: ") and self.err.count("\n") == 1, self.err
        return self.err.removeprefix("codeqa: ").rstrip("\n")


Command = Callable[..., Result]


@pytest.fixture(scope="session")
def indexed_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small repository in a folder with a space, and its index in `indexed` beside it."""
    base = tmp_path_factory.mktemp("cli")
    root = write(base / "my shop", FILES)
    summary, progress = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CODEQA_DATA", str(base / "indexed"))
        environment.setenv("HOME", str(base))
        with redirect_stdout(summary), redirect_stderr(progress):
            assert main(["index", str(root)]) == 0, progress.getvalue()
    (base / "summary.txt").write_text(summary.getvalue())
    (base / "progress.txt").write_text(progress.getvalue())
    return root


@pytest.fixture(scope="module")
def shop(indexed_shop: Path, patient: None) -> Path:
    """The same with the index in `data`, as it was made."""
    data = indexed_shop.parent / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(indexed_shop.parent / "indexed", data)
    return indexed_shop


def copied_settings(shop: Path, folder: Path, **more: Any) -> Settings:
    """Settings whose data, with a copy of the shop's index, lie in `folder`."""
    shutil.copytree(shop.parent / "data", folder / "data")
    return load_settings(data=folder / "data", **more)


def runner(capsys: pytest.CaptureFixture[str], program: Callable[[list[str]], int]) -> Command:
    """Runs the command line of `program` in this process."""

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        status = program([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return Result(status, shown.out, shown.err)

    return call


@pytest.fixture
def codeqa(capsys: pytest.CaptureFixture[str]) -> Command:
    """`codeqa("search", "…")`, with an empty data folder of its own."""
    return runner(capsys, main)


@pytest.fixture
def judged(capsys: pytest.CaptureFixture[str]) -> Command:
    """`python -m research.evals.search …`."""
    return runner(capsys, judge_search)


@pytest.fixture
def shop_codeqa(codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same with the shop's index."""
    monkeypatch.setenv("CODEQA_DATA", str(shop.parent / "data"))
    return codeqa


@pytest.fixture
def copied_codeqa(codeqa: Command, shop: Path, tmp_path: Path) -> Command:
    """The same with a copy of the shop's index in the test's own data folder."""
    shutil.copytree(shop.parent / "data", tmp_path / "data")
    return codeqa


@pytest.fixture
def shop_settings(shop: Path, tmp_path: Path) -> Settings:
    """Settings of the test's own data folder, with a copy of the shop's index."""
    return copied_settings(shop, tmp_path, threads=8)


@dataclass(frozen=True)
class Served:
    """A server that runs for the shop, and is announced in its data folder."""

    settings: Settings
    client: FlaskClient
    token: str
    port: int
    asked: list[str]
    """Addresses that were asked for."""

    @property
    def file(self) -> Path:
        (path,) = (self.settings.data_dir / SERVERS_FOLDER).iterdir()
        return path


@pytest.fixture
def served(shop: Path, shop_settings: Settings) -> Iterator[Served]:
    app = create_app(shop_settings, shop)
    asked: list[str] = []
    app.before_request(lambda: asked.append(_path()))
    app.extensions["codeqa"].open(shop, update=False)
    with (
        serving(shop_settings, app=app) as port,
        terminal_door(app, shop_settings, shop, port),
    ):
        token = app.config[TERMINAL_TOKEN]
        yield Served(shop_settings, app.test_client(), token, port, asked)


def _path() -> str:
    from flask import request

    return request.path
