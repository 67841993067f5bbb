"""The turn in flight: kept while it is answered, read along by whoever opens its conversation, and
ended when it is told to; over a real connection, and by a process that is killed."""

from __future__ import annotations

import http.client
import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openai_server import openai_server, stream
from pydantic import SecretStr
from serving import serving

from codeqa.chat.values import Gathered, Piece
from codeqa.engine import Engine, open_engine
from codeqa.settings import Settings, load_settings
from codeqa.web import answer_streams
from codeqa.web.app import bind, create_app
from codeqa.web.security import TERMINAL_TOKEN

pytest_plugins = ("cli_shop",)

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "@codebase how is an article put into the basket?"
Opened = Callable[..., Engine]


@dataclass
class Dictated:
    """Writes what it is told, when it is told; None ends the answer."""

    name: str = "dictated"
    said: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def generate(self, asked: Gathered) -> Iterator[Piece]:
        while not asked.cancelled():
            try:
                piece = self.said.get(timeout=0.02)
            except queue.Empty:
                continue
            if piece is None:
                return
            yield piece

    def say(self, *pieces: str | None) -> None:
        for piece in pieces:
            self.said.put(piece)


@dataclass
class Page:
    """One that somebody has open."""

    port: int
    token: str = ""

    def send(self, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request(method, path, body and json.dumps(body), headers)
        return connection.getresponse()

    def get(self, method: str, path: str, status: int = 200) -> Any:
        response = self.send(method, path)
        assert response.status == status, response.status
        return json.load(response)

    def ask(self, question: str = QUESTION, conversation: str = "c", **more: Any) -> Any:
        body = {"question": question, "conversation": conversation, "render": True, **more}
        return self.send("POST", "/chat/stream", body)

    def join(self, conversation: str = "c") -> http.client.HTTPResponse:
        return self.send("GET", f"/api/conversations/{conversation}/answer")

    def opened(self, conversation: str = "c") -> dict[str, Any]:
        values: dict[str, Any] = self.get("GET", f"/api/conversations/{conversation}")
        return values


@pytest.fixture
def settings(shop: Path, data_dir: Path) -> Settings:
    """Of a data folder that holds the shop's index, and nothing of other tests."""
    shutil.copytree(shop.parent / "data", data_dir)
    return load_settings(data=data_dir, threads=24, token=SecretStr("anna,bela"))


@pytest.fixture
def model() -> Dictated:
    return Dictated()


@pytest.fixture
def engine(shop: Path, settings: Settings, model: Dictated) -> Iterator[Engine]:
    engine = open_engine(settings, shop, generator=model)
    yield engine
    engine.close()


@pytest.fixture
def page(settings: Settings, engine: Engine) -> Iterator[Page]:
    """Anna's."""
    with serving(settings, engine=engine) as port:
        yield Page(port, "anna")


def kept(engine: Engine) -> list[Any]:
    """Answer and details of all turns of everybody."""
    return engine.conversations.state.turns._database.rows("SELECT answer, details FROM turn")


def read_to(response: http.client.HTTPResponse, words: str) -> str:
    """The text of the answer up to `words`."""
    text = ""
    while words not in text:
        line = response.readline()
        assert line, f"it ended with {text!r}"
        text += json.loads(line[2:]) if line.startswith(b"0:") else ""
    return text


def ended(page: Page) -> None:
    """Wait until nothing is being answered any more."""
    deadline = time.monotonic() + 10
    while page.opened()["answering"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_on(response: http.client.HTTPResponse) -> tuple[str, dict[str, Any]]:
    """The rest of the text, and the last annotation."""
    lines = response.read().decode().splitlines()
    assert lines[-1].startswith("d:")
    text = "".join(json.loads(line[2:]) for line in lines if line.startswith("0:"))
    return text, [json.loads(line[2:])[0] for line in lines if line.startswith("8:")][-1]


def test_an_answer_goes_on_without_its_reader_and_is_read_along_from_its_beginning(
    page: Page, model: Dictated
) -> None:
    first = page.ask()
    model.say("One. ", "Two. ")
    read_to(first, "Two.")
    opened = page.opened()
    (turn,) = opened["turns"]
    assert opened["answering"] == turn["id"] and turn["question"] in QUESTION
    second = page.join()
    assert read_to(second, "Two.") == "One. Two. "
    first.close()
    second.close()
    model.say("Three.", None)
    ended(page)
    (turn,) = page.opened()["turns"]
    assert turn["answer"] == "One. Two. Three." and turn["finished"] and turn["error"] is None
    page.get("DELETE", "/api/conversations/c")
    assert page.join().status == 404


def test_it_is_stopped_for_all_its_readers_and_the_next_question_is_taken_at_once(
    page: Page, model: Dictated
) -> None:
    first = page.ask()
    model.say("One. ")
    read_to(first, "One.")
    second = page.join()
    assert page.get("POST", "/api/conversations/c/stop") == {"stopped": 1}
    third = page.ask("and then?")
    for reader in (first, second):
        assert read_on(reader)[1]["stopped"] is True
    model.say("Then.", None)
    text, done = read_on(third)
    assert text == "Then." and page.get("POST", "/api/conversations/c/stop") == {"stopped": 0}
    stopped, after = page.opened()["turns"]
    assert (stopped["answer"], stopped["finished"], stopped["error"]) == ("One. ", False, None)
    assert after["id"] == done["turn"] and after["parent"] == stopped["id"]


def test_one_question_is_answered_at_a_time_in_a_conversation_and_nobody_else_joins_it(
    page: Page, model: Dictated
) -> None:
    first = page.ask()
    model.say("One. ")
    read_to(first, "One.")
    refused = page.ask("another one")
    assert refused.status == 409 and json.load(refused)["error"]["code"] == "busy"
    bela = Page(page.port, "bela")
    assert bela.join().status == bela.send("GET", "/api/conversations/c").status == 404
    assert bela.get("POST", "/api/conversations/c/stop") == {"stopped": 0}
    elsewhere = page.ask("in another one", "d")
    assert elsewhere.status == 200
    model.say(None, None)
    assert read_on(first)[0] == "" and read_on(elsewhere)
    assert len(page.opened()["turns"]) == 1


def in_one_piece(page: Page, question: str = QUESTION, **more: Any) -> Any:
    return page.send("POST", "/chat", {"question": question, "conversation": "c", **more})


def test_a_conversation_is_answered_once_at_a_time_for_programs_as_well(
    page: Page, model: Dictated
) -> None:
    plain = page.ask(render=False)
    model.say("One. ")
    read_to(plain, "One.")
    for refused in (page.ask(), page.ask(render=False), in_one_piece(page)):
        assert refused.status == 409 and json.load(refused)["error"]["code"] == "busy"
    # It is nobody else's to read along, but its user can stop it.
    assert page.opened()["answering"] == "" and page.join().status == 404
    assert page.get("POST", "/api/conversations/c/stop") == {"stopped": 1}
    plain.read()
    model.say("Two.", None)
    assert json.load(in_one_piece(page))["response"] == "Two."
    rendered = page.ask()
    model.say("Three. ")
    read_to(rendered, "Three.")
    assert in_one_piece(page).status == page.ask(render=False).status == 409
    model.say(None)
    read_on(rendered)
    assert [turn["answer"] for turn in page.opened()["turns"]] == ["One. ", "Two.", "Three. "]


def test_terminals_answer_beside_each_other(
    settings: Settings, engine: Engine, model: Dictated
) -> None:
    app = create_app(settings, engine=engine)
    app.config[TERMINAL_TOKEN] = "terminal"
    with serving(settings, engine=engine, app=app) as port:
        terminal = Page(port, "terminal")
        first = terminal.ask()
        model.say("One. ")
        read_to(first, "One.")
        terminal.send("DELETE", "/api/conversations/c").read()  # as `codeqa ask` begins without -c
        second = terminal.ask("another one")
        assert second.status == 200
        model.say(None, None)
        for answer in (first, second):
            assert read_on(answer)[1].get("stopped") is None


def test_a_program_that_leaves_or_fails_frees_its_conversation(page: Page, model: Dictated) -> None:
    plain = page.ask(render=False)
    model.say("One. ")
    read_to(plain, "One.")
    plain.close()
    deadline = time.monotonic() + 10
    while (again := page.ask(render=False)).status == 409:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    model.say(None)
    again.read()
    assert in_one_piece(page, after="no such turn").status == 404
    model.say("Two.", None)
    assert in_one_piece(page).status == 200


@pytest.mark.parametrize("path", ["/api/conversations/c", "/api/privacy/everything"])
def test_what_is_deleted_while_it_is_answered_is_neither_written_on_nor_kept(
    page: Page, model: Dictated, engine: Engine, path: str
) -> None:
    reader = page.ask()
    model.say("One. ")
    read_to(reader, "One.")
    page.get("DELETE", path)
    assert read_on(reader)[1]["stopped"] is True
    assert page.send("GET", "/api/conversations/c").status == 404
    assert kept(engine) == []


def test_another_version_is_kept_while_it_is_written_and_taken_back_when_nothing_comes(
    page: Page, model: Dictated
) -> None:
    reader = page.ask()
    model.say("One.", None)
    first = read_on(reader)[1]["turn"]
    reader = page.ask(replaces=first)
    while b"generating" not in reader.readline():
        pass
    opened = page.opened()
    (turn,) = opened["turns"]
    assert turn["id"] == opened["answering"] and turn["siblings"] == [first, turn["id"]]
    page.get("POST", "/api/conversations/c/stop")
    assert read_on(reader)[1]["turn"] == ""
    assert [one["id"] for one in page.opened()["turns"]] == [first]


def test_a_server_that_ends_keeps_what_it_was_writing(
    settings: Settings, engine: Engine, model: Dictated
) -> None:
    with serving(settings, engine=engine) as port:
        reader = Page(port, "anna").ask()
        model.say("One. ")
        read_to(reader, "One.")
    engine.conversations.flush()
    ((answer, details),) = kept(engine)
    assert answer == "One. " and json.loads(details)["finished"] is False


def test_an_answer_that_nobody_reads_any_more_ends(
    page: Page, model: Dictated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_streams, "UNREAD_SECONDS", 1.0)
    reader = page.ask()
    model.say("One. ")
    read_to(reader, "One.")
    reader.close()
    ended(page)
    (turn,) = page.opened()["turns"]
    assert turn["answer"] == "One. " and not turn["finished"]


def test_what_a_server_that_is_killed_has_kept_of_an_answer_is_there_again(
    shop: Path, settings: Settings
) -> None:
    with openai_server(lambda path, body: stream(["word "] * 400, delay=0.05)) as models:
        with bind("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
        variables = {"CODEQA_DATA": str(settings.data_dir), "CODEQA_MODEL": "custom/m",
                     "CODEQA_MODEL_URL": models.base_url, "CODEQA_WORKERS": "1"}  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, "app.py", shop, "--port", str(port)],
            cwd=ROOT, env={**os.environ, **variables}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            assert f":{port}/" in server.stdout.readline()
            reader = Page(port).ask()
            read_to(reader, "word word")
            engine, deadline = open_engine(settings, shop), time.monotonic() + 20
            while "word" not in (before := kept(engine)[0][0]):
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            server.kill()
            server.communicate()
    (turn,) = engine.conversations.turns("c")
    engine.close()
    assert turn.question in QUESTION and turn.answer.startswith(before)
    assert not turn.finished and turn.error and turn.error["code"] == "broke_off"
