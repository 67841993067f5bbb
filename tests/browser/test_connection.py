"""The server goes away and comes back: nothing that was typed or read is lost."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser.actions import (
    answered,
    ask,
    being_written,
    expecting,
    field_of,
    get_answer,
    ready,
    stop,
    until,
)
from browser.conftest import OpenPage, Server
from browser.fakes import FakeEngine
from playwright.sync_api import expect

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
        self._thread: threading.Thread | None = None

    def start(self) -> Server:
        app = create_app(self.settings, engine=self.engine)  # type: ignore[arg-type]
        listener = bind("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        self._server = make_server(app, self.settings, listener)
        self._app = app
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        return Server(f"http://127.0.0.1:{self.port}")

    def cut(self) -> None:
        """All connections, as the system does it: at once, whatever a thread is just writing."""
        for channel in list(self._server.active_channels.values()):
            # A channel that just ended by itself has no socket any more.
            with contextlib.suppress(OSError, AttributeError):
                channel.socket.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        self.cut()
        self._server = None

        def cut() -> None:
            for channel in list(server.active_channels.values()):
                channel.handle_close()
            server.close()

        server.trigger.pull_trigger(cut)
        self._app.extensions["codeqa"].close()
        server.task_dispatcher.shutdown(timeout=5)
        thread.join(5)


@pytest.fixture
def restartable(tmp_path: Path) -> Any:
    server = Restartable(tmp_path / "data")
    yield server
    server.kill()


def test_after_a_restart_the_page_shows_what_was_kept_of_the_answer_and_the_text_typed(
    restartable: Restartable, open_page: OpenPage
) -> None:
    page = open_page(restartable.start())
    field = field_of(page)
    expecting(page, *AWAY)
    get_answer(page, "say:Complete.")
    ask(page, "slow")
    being_written(page, blocks=4)
    field.fill("half a question")
    restartable.kill()
    note = page.locator("#connection")
    expect(note).to_contain_text("The server does not answer.")
    expect(page.get_by_role("alert")).to_contain_text("The answer broke off.")
    last = page.locator(".turn").last
    so_far = last.locator(".answer").text_content() or ""
    assert "Paragraph 3 of a long answer." in so_far
    restartable.start()
    expect(note).to_contain_text("The server is back.")
    expect(last).to_contain_text("Stopped before it was complete")
    expect(last.locator(".answer")).to_contain_text("Paragraph 3 of a long answer.")
    expect(page.locator(".turn")).to_have_count(2)
    expect(field).to_have_value("half a question")
    page.reload()
    expect(field).to_have_value("half a question")
    expect(last).to_contain_text("Stopped before it was complete")


def test_a_connection_that_is_lost_is_taken_up_where_the_answer_is_by_then(
    restartable: Restartable, open_page: OpenPage
) -> None:
    page = open_page(restartable.start())
    expecting(page, *AWAY)
    ask(page, "slow")
    being_written(page, blocks=4)
    restartable.cut()
    expect(page.locator("#connection")).to_contain_text("does not answer")
    expect(page.locator("#connection")).to_contain_text("is back")
    being_written(page, blocks=8)
    expect(page.locator(".answer .block").first).to_have_text("Paragraph 0 of a long answer.")
    expect(page.locator(".turn")).to_have_count(1)
    stop(page)


def test_while_nothing_is_asked_it_is_said_as_well_and_taken_back(
    restartable: Restartable, open_page: OpenPage
) -> None:
    page = open_page(restartable.start(), own=True)
    expecting(page, *AWAY)
    page.clock.install()
    page.reload()  # every timer is one of this clock
    expect(page.locator("#index-state")).to_contain_text("Ready")
    restartable.kill()

    def said(words: str) -> bool:
        page.clock.run_for(1_000)
        return words in (page.locator("#connection").text_content() or "")

    assert until(lambda: said("does not answer"))
    expect(page.locator("#index-state")).to_contain_text("Server not reachable")
    restartable.start()
    assert until(lambda: said("is back"))
    expect(page.locator("#index-state")).to_contain_text("Ready")
    page.clock.run_for(9_000)
    expect(page.locator("#connection")).to_be_hidden()


def test_indexing_is_followed_paused_and_resumed_beside_the_question(
    restartable: Restartable, open_page: OpenPage
) -> None:
    far = Progress("indexing", 2_100, 4_800)
    fake = restartable.engine.index
    fake.current = replace(fake.current, state="indexing", progress=far, seconds_left=7.2)
    page = open_page(restartable.start())
    page.locator("#index-state").click()
    index = page.get_by_role("dialog", name="Index")
    expect(index).to_contain_text("Indexing: 2,100 of 4,800, 8 s left")
    index.get_by_role("button", name="Pause").click()
    expect(page.locator("#index-state")).to_have_text("Paused")
    index.get_by_role("button", name="Resume").click()
    expect(index).to_contain_text("checked for changes just now; later ones are noticed")
    expect(index.get_by_role("button", name="Check now")).to_be_focused()


def test_a_question_that_met_no_server_is_in_the_field_again_after_a_reload(
    restartable: Restartable, open_page: OpenPage
) -> None:
    page = open_page(restartable.start())
    expecting(page, *AWAY, "404")
    ready(page)
    restartable.kill()
    ask(page, "where is it?")
    expect(page.locator("#connection")).to_contain_text("does not answer")
    restartable.start()
    expect(page.locator("#connection")).to_contain_text("is back")
    page.reload()
    field = page.get_by_label("Question about")
    expect(field).to_have_value("where is it?")
    ready(page)
    field.press("Enter")
    answered(page)
    field.fill("half a thought")
    page.get_by_role("button", name="New conversation").first.click()
    expect(field).to_have_value("")
    page.go_back()
    expect(field).to_have_value("half a thought")
    page.reload()
    expect(field).to_have_value("half a thought")
