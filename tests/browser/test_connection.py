"""The server goes away and comes back: nothing that was typed or read is lost."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser.actions import (
    answered,
    ask,
    being_written,
    comes,
    expecting,
    field_of,
    get_answer,
    new_conversation,
    pass_time,
    ready,
)
from browser.conftest import OpenPage, ScriptedServer, Server
from browser.fakes import PART, FakeEngine
from playwright.sync_api import Page, expect
from waiting import PATIENCE

from codeqa.settings import load_settings
from codeqa.types import Progress
from codeqa.web.app import bind, create_app, make_server

AWAY = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
        "ERR_EMPTY_RESPONSE", "ERR_CONTENT_LENGTH_MISMATCH", "ERR_SOCKET_NOT_CONNECTED",
        "ERR_INTERNET_DISCONNECTED")  # fmt: skip


class Restartable:
    """A server that ends as if it were killed, and starts again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.settings = load_settings(data=folder, threads=8)
        self.port = 0
        self.engine = FakeEngine()
        self._server: Any = None

    def start(self) -> None:
        app = create_app(self.settings, engine=self.engine)  # type: ignore[arg-type]
        listener = bind("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        self._server = make_server(app, self.settings, listener)
        self._app = app
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """All connections, as the system does it: at once, whatever a thread is just writing."""
        for channel in list(self._server.active_channels.values()):
            # A channel that just ended by itself has no socket any more.
            with contextlib.suppress(OSError, AttributeError):
                channel.socket.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        if self._server is None:
            return
        self.cut()
        server, self._server = self._server, None

        def cut() -> None:
            for channel in list(server.active_channels.values()):
                channel.handle_close()
            server.close()

        server.trigger.pull_trigger(cut)
        self._app.extensions["codeqa"].close()
        server.task_dispatcher.shutdown(timeout=PATIENCE)
        self._thread.join(PATIENCE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Restartable]:
    restartable = Restartable(tmp_path / "data")
    restartable.start()
    yield restartable
    restartable.kill()


@pytest.fixture
def page(server: Restartable, open_page: OpenPage) -> Page:
    page = open_page(Server(f"http://127.0.0.1:{server.port}", open_page))
    expecting(page, *AWAY)
    return page


def says(page: Page, words: str) -> None:
    """Wait until the note beside the question says so."""
    comes(page, page.locator("#connection", has_text=words))


def test_an_answer_is_taken_up_where_it_is_and_after_a_restart_as_far_as_it_was_kept(
    server: Restartable, page: Page
) -> None:
    get_answer(page, "say:Complete.")
    ask(page, "slow")
    being_written(page, PART)
    server.cut()
    says(page, "is back")
    server.engine.chat.more.release()
    being_written(page, 2 * PART)
    last, field = page.locator(".turn").last, field_of(page)
    expect(last.locator(".block").first).to_have_text("Paragraph 0 of a long answer.")
    expect(page.locator(".turn")).to_have_count(2)
    field.fill("half a question")
    server.kill()
    says(page, "The server does not answer.")
    expect(page.get_by_role("alert")).to_contain_text("The answer broke off.")
    expect(last.locator(".answer")).to_contain_text("Paragraph 3 of a long answer.")
    server.start()
    says(page, "The server is back.")
    expect(page.locator(".turn")).to_have_count(2)
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        expect(last).to_contain_text("Stopped before it was complete")
        expect(last.locator(".answer")).to_contain_text("Paragraph 3 of a long answer.")
        expect(field).to_have_value("half a question")


def test_a_server_that_is_away_is_said_and_what_met_none_is_in_the_field_again(
    server: Restartable, page: Page
) -> None:
    ready(page)
    state, field = page.locator("#index-state"), field_of(page)
    expect(state).to_contain_text("Ready")
    server.kill()
    says(page, "does not answer")  # while nothing is asked
    expect(state).to_contain_text("Server not reachable")
    ask(page, "where is it?")
    expect(page.get_by_role("alert")).to_be_visible()
    server.start()
    says(page, "is back")
    expect(state).to_contain_text("Ready")
    pass_time(page, 9)
    expect(page.locator("#connection")).to_be_hidden()
    expecting(page, "404")
    page.reload()
    expect(field).to_have_value("where is it?")
    ready(page)
    field.press("Enter")
    answered(page)
    field.fill("half a thought")
    new_conversation(page)
    expect(field).to_have_value("")
    page.go_back()
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        expect(field).to_have_value("half a thought")


def test_indexing_is_followed_paused_and_resumed_beside_the_question(
    scripted: ScriptedServer, scripted_server: tuple[str, FakeEngine]
) -> None:
    fake, far = scripted_server[1].index, Progress("indexing", 2_100, 4_800)
    fake.current = replace(fake.current, state="indexing", progress=far, seconds_left=47.2)
    page = scripted.open()
    page.locator("#index-state").click()
    index = page.get_by_role("dialog", name="Index")
    expect(index).to_contain_text("Indexing: 2,100 of 4,800, 48 s left")
    index.get_by_role("button", name="Pause").click()
    expect(page.locator("#index-state")).to_have_text("Paused")
    index.get_by_role("button", name="Resume").click()
    expect(index).to_contain_text("checked for changes just now; later changes are noticed")
    expect(index.get_by_role("button", name="Check now")).to_be_focused()
