"""A browser and three servers for all browser tests: written-down answers, and the real thing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.request import Request, urlopen

import pytest
from browser.actions import CLIPBOARD, PHONE
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
from serving import serving
from waiting import PATIENCE

from codeqa.chat.values import AskOptions
from codeqa.llm.providers import ModelChoice
from codeqa.settings import load_settings

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
    """A running server of the tests, with `open_page` for its pages."""

    address: str
    open_page: OpenPage

    def open(self, path: str = "", **options: Any) -> Page:
        return self.open_page(self, path, **options)


@dataclass(frozen=True)
class ScriptedServer(Server):
    """One whose answers and models are written down."""

    chat: FakeChat
    models: FakeModels

    def keep(self, *questions: str, conversation: str = "c", **options: Any) -> str:
        """Have questions answered before a page is opened; returns the page's path."""
        for question in questions:
            asked = AskOptions(question, conversation=conversation, **options)
            list(self.chat.ask(asked))
        return f"/?c={conversation}"

    def use_model(self) -> None:
        """Have questions answered by OpenAI's model."""
        self.models.choose(ModelChoice("openai", "gpt-4o"))


@dataclass
class Watched:
    """What a page wrote to the console."""

    console: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of messages that the test provokes."""

    def begin_anew(self) -> None:
        self.console.clear()
        self.expected[:] = ["/favicon.ico"]  # the browser's own wish where a document names none

    def check(self) -> None:
        unexpected = [
            line for line in self.console if not any(part in line for part in self.expected)
        ]
        assert not unexpected


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-references", action="store_true", help="draw all views anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def servers() -> Iterator[ExitStack]:
    """All servers. They end after the browser, which keeps connections to them open."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def chromium(playwright: Playwright, servers: ExitStack) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield browser
    browser.close()


def serve_scripted(servers: ExitStack, folder: Path, **settings: Any) -> tuple[str, FakeEngine]:
    loaded = load_settings(data=folder, threads=12, **settings)
    engine = FakeEngine()
    port = servers.enter_context(serving(loaded, engine=engine))
    return f"http://127.0.0.1:{port}", engine


@pytest.fixture(scope="session")
def scripted_server(
    servers: ExitStack, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, FakeEngine]:
    return serve_scripted(servers, tmp_path_factory.mktemp("scripted"))


@pytest.fixture(scope="session")
def guarded_server(
    servers: ExitStack, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, FakeEngine]:
    tokens = "open sesame,second key"
    return serve_scripted(servers, tmp_path_factory.mktemp("guarded"), token=tokens)


@pytest.fixture
def scripted(scripted_server: tuple[str, FakeEngine], open_page: OpenPage) -> ScriptedServer:
    """A server whose answers are written down; no test finds what another one left."""
    return begun_anew(*scripted_server, open_page)


@pytest.fixture
def guarded(guarded_server: tuple[str, FakeEngine], open_page: OpenPage) -> ScriptedServer:
    """Another one with two tokens: its owner's, `open sesame`, and `second key`."""
    return begun_anew(*guarded_server, open_page)


def begun_anew(address: str, engine: FakeEngine, open_page: OpenPage) -> ScriptedServer:
    engine.begin_anew()
    return ScriptedServer(address, open_page, engine.chat, engine.models)


@pytest.fixture(scope="session")
def real_server(servers: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> str:
    from codeqa.engine import open_engine

    folder = tmp_path_factory.mktemp("real")
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
    port = servers.enter_context(serving(settings, repository))
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def real(real_server: str, open_page: OpenPage) -> Server:
    """A server over a generated repository with its real index, and without a language model."""
    json = {"Content-Type": "application/json"}
    urlopen(Request(f"{real_server}/api/models", b'{"provider": ""}', json)).close()
    return Server(real_server, open_page)


@pytest.fixture(scope="session")
def idle_pages(chromium: Browser) -> dict[bool, list[Page]]:
    """Pages that no test uses, by whether they are a phone's: a new one takes three times as long
    to load."""
    return {True: [], False: []}


LEAVE = """async () => {
  window.stop();  // what is being answered
  await new Promise((resolve) => setTimeout(resolve));
  for (let timer = setTimeout(() => {}); timer; timer -= 1) clearTimeout(timer);
}"""
FORGET = """if (window === top && !window.name) {
  localStorage.clear();
  sessionStorage.clear();
  window.name = "begun";
}"""
"""What a page does before all else; its name outlives reloads."""
STAND_STILL = """{
  const { setTimeout: live, clearTimeout: forget } = window;
  const late = new Map();
  let now = 0;
  window.lateFrom = 500;
  window.setTimeout = (work, pause = 0, ...values) => {
    if (pause < window.lateFrom) return live(work, pause, ...values);
    const timer = live(() => {}, 2 ** 31 - 1);
    late.set(timer, { at: now + pause, work });
    return timer;
  };
  window.clearTimeout = (timer) => {
    late.delete(timer);
    forget(timer);
  };
  window.passTime = (milliseconds) => {
    const end = now + milliseconds;
    const due = () => [...late].filter(([, { at }]) => at <= end);
    for (let timers = due(); timers.length; timers = due()) {
      const [timer, { at, work }] = timers.reduce((a, b) => (b[1].at < a[1].at ? b : a));
      now = at;
      clearTimeout(timer);
      work();
    }
    now = end;
  };
}"""
"""What the page does after half a second or more, such as hiding a message or looking again how far
the index is, it does when a test lets time pass, by `actions.pass_time`."""


@pytest.fixture
def open_page(chromium: Browser, idle_pages: dict[bool, list[Page]]) -> Iterator[OpenPage]:
    """`open_page(server, "/?c=…", width=…, height=…)` gives a page of its own; with PHONE, a phone.

    With `own` it is a new one, and closed afterwards.
    Afterwards: nothing was written to the console, where a request that wants to leave the machine
    is written too: no name leads anywhere, and the page's policy forbids what is not its server's.
    (Listening to the requests of every page costs time.)
    """
    opened: list[tuple[bool, list[Page], Page]] = []

    def opener(
        server: Server,
        path: str = "",
        width: int = 1280,
        height: int = 800,
        own: bool = False,
        scheme: Literal["light", "dark"] = "light",
        **phone: Any,
    ) -> Page:
        idle = idle_pages[bool(phone)]
        size: Any = {"width": width, "height": height}
        if own or not idle:
            # Without animations a position that is measured is the final one.
            context = chromium.new_context(
                viewport=size, reduced_motion="reduce", permissions=CLIPBOARD, **phone
            )
            page = watched(context)
        else:
            page = idle.pop()
            page.set_viewport_size(size)
            page.evaluate("window.name = ''")
        opened.append((own, idle, page))
        page.emulate_media(color_scheme=scheme, forced_colors="none")
        page.watched.begin_anew()  # type: ignore[attr-defined]
        page.goto(server.address + path)
        return page

    yield opener
    for own, idle, page in opened:
        if own or page.is_closed():
            page.context.close()
            continue
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.evaluate(LEAVE)
        page.unroute_all(behavior="ignoreErrors")
        page.context.set_offline(False)
        page.context.clear_cookies()
        page.mouse.move(-1, -1)
        idle.append(page)
    for *_, page in opened:
        page.watched.check()  # type: ignore[attr-defined]


def watched(context: BrowserContext) -> Page:
    """A page of a context, with what it writes to the console as `page.watched`."""
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(FORGET + STAND_STILL)
    page = context.new_page()
    seen = page.watched = Watched()  # type: ignore[attr-defined]
    page.on("console", lambda m: seen.console.append(f"{m.type}: {m.text} {m.location['url']}"))
    page.on("pageerror", lambda error: seen.console.append(f"uncaught: {error}"))
    return page


@pytest.fixture
def page(scripted: ScriptedServer) -> Page:
    """The page over the scripted server."""
    return scripted.open()


@pytest.fixture
def modelled(scripted: ScriptedServer) -> Page:
    """The same with a language model."""
    scripted.use_model()
    return scripted.open()


@pytest.fixture
def phone(scripted: ScriptedServer) -> Page:
    """The same on a phone."""
    return scripted.open(**PHONE)
