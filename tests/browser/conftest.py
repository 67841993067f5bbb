"""A browser and three servers for all browser tests: written-down answers, and the real thing."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browser.actions import PHONE
from browser.bookshop import write_bookshop
from browser.fake_models import FakeModels
from browser.fakes import FakeChat, FakeEngine
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from repositories import git

from codeqa.settings import load_settings
from codeqa.web.app import create_app
from codeqa.web.server import bind, make_server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-gpu",  # its stand-in in software costs a tenth of every page
    "--disable-software-rasterizer",
    "--disable-quic",
    "--disable-sync",
    # No name but ours leads anywhere, whatever a page or the browser itself would like.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


OpenPage = Callable[..., Page]


@dataclass(frozen=True)
class Server:
    """A running server of the tests."""

    address: str


@dataclass(frozen=True)
class ScriptedServer(Server):
    """One whose answers and models are written down."""

    chat: FakeChat
    models: FakeModels


@dataclass
class Watched:
    """What a page did behind its surface."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of messages that the test provokes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    # Nothing takes so long but on a machine that is busy with other tests.
    expect.set_options(timeout=15_000)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield browser
    browser.close()


def serve(app: Any, settings: Any) -> Iterator[str]:
    listener = bind("127.0.0.1", 0)
    server = make_server(app, settings, listener)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    app.extensions["codeqa"].close()
    server.task_dispatcher.shutdown(timeout=5)
    server.trigger.pull_trigger(server.close)
    thread.join(5)


def serve_scripted(folder: Path, **settings: Any) -> Iterator[tuple[str, FakeEngine]]:
    loaded = load_settings(data=folder, threads=12, **settings)
    engine = FakeEngine()
    for address in serve(create_app(loaded, engine=engine), loaded):  # type: ignore[arg-type]
        yield address, engine


@pytest.fixture(scope="session")
def scripted_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, FakeEngine]]:
    yield from serve_scripted(tmp_path_factory.mktemp("scripted"))


@pytest.fixture
def scripted(scripted_server: tuple[str, FakeEngine]) -> ScriptedServer:
    """A server whose answers are written down; no test finds what another one left."""
    address, engine = scripted_server
    engine.begin_anew()
    return ScriptedServer(address, engine.chat, engine.models)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[ScriptedServer]:
    """The scripted server with two tokens: its owner's, `open sesame`, and `second key`."""
    for address, engine in serve_scripted(tmp_path, token="open sesame,second key"):
        yield ScriptedServer(address, engine.chat, engine.models)


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a generated repository with its real index."""
    yield from serve_bookshop(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Another one of its own, for tests in which a language model is chosen."""
    yield from serve_bookshop(tmp_path_factory.mktemp("modelled"))


def serve_bookshop(folder: Path) -> Iterator[Server]:
    from codeqa.engine import open_engine

    repository = write_bookshop(folder / "bookshop")
    git(repository, "init", "-q")
    git(repository, "add", ".")
    author = ("-c", "user.name=A. Tester", "-c", "user.email=tester@example.org")
    git(repository, *author, "commit", "-qm", "The shop as it began")
    git(repository, "tag", "v1")
    # HyDE makes requests of its own: a test that wants it chooses it.
    settings = load_settings(data=folder / "data", threads=24, workers=1, hyde="off")
    engine = open_engine(settings, repository)
    engine.index.run()
    for address in serve(create_app(settings, repository), settings):
        yield Server(address)


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """`open_page(server, "/?c=…", width=…, height=…, **context)` gives a page of its own.

    Afterwards: nothing was written to the console, and no request went elsewhere.
    """
    contexts: list[BrowserContext] = []
    watched: list[Watched] = []

    def opener(
        server: Server, path: str = "", width: int = 1280, height: int = 800, **options: Any
    ) -> Page:
        # Without animations a position that is measured is the final one.
        options.setdefault("reduced_motion", "reduce")
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        seen = Watched()
        watched.append(seen)
        page.watched = seen  # type: ignore[attr-defined]
        page.on("console", lambda message: seen.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.console.append(f"uncaught: {error}"))
        context.on("request", lambda request: seen.requests.append(request.url))
        page.goto(server.address + path)
        return page

    yield opener
    for context in contexts:
        context.close()
    for seen in watched:
        unexpected = [
            line for line in seen.console if not any(part in line for part in seen.expected)
        ]
        assert not unexpected
        elsewhere = [url for url in seen.requests if not url.startswith("http://127.0.0.1:")]
        assert not elsewhere, "a request left the machine"


@pytest.fixture
def page(open_page: OpenPage, scripted: ScriptedServer) -> Page:
    """The page over the scripted server."""
    return open_page(scripted)


@pytest.fixture
def phone(open_page: OpenPage, scripted: ScriptedServer) -> Page:
    """The same on a phone."""
    return open_page(scripted, **PHONE)
