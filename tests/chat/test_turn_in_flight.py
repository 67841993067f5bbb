"""The turn in flight: kept while it is answered, read along by whoever opens its conversation, and
ended when it is told to; over a real connection, and by a process that is killed."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_shop import QUESTION, copied_settings
from conftest import ROOT
from openai_server import Streamed, delta, openai_server
from pydantic import SecretStr
from redis_server import RedisServer, redis_server
from serving import PATIENT, serving
from waiting import AT_ONCE, LOOK_AGAIN, PATIENCE, Clock, until

from codeqa.chat.events import Asked, Event
from codeqa.chat.values import AnswerPiece, AskOptions, Gathered
from codeqa.engine import Engine, open_engine
from codeqa.errors import CodeQAError
from codeqa.settings import Settings
from codeqa.state import cache, database
from codeqa.web import board
from codeqa.web.app import bind, create_app
from codeqa.web.board import ConversationKey, LocalBoard
from codeqa.web.errors import RequestRefusedError
from codeqa.web.run import Runs
from codeqa.web.security import TERMINAL_TOKEN, Gate
from codeqa_server import streams

pytest_plugins = ("cli_shop",)


ANNA = "anna"


@dataclass
class Dictated:
    """Writes what it is told, when it is told; None ends the answer."""

    name: str = "dictated"
    pieces: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def generate(self, asked: Gathered) -> Iterator[AnswerPiece]:
        while True:
            until(lambda: asked.cancelled() or not self.pieces.empty())
            if asked.cancelled() or (piece := self.pieces.get()) is None:
                return
            yield piece

    def say(self, *pieces: str | None) -> None:
        for piece in pieces:
            self.pieces.put(piece)


@dataclass
class Page:
    """One that somebody has open."""

    port: int
    token: str = ""

    def send(self, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
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


@pytest.fixture(scope="module")
def settings(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a data folder that holds the shop's index, and nothing of other tests."""
    more = {"hyde": "off", "effort": "fast", "watch": False, "token": SecretStr("anna,bela")}
    return copied_settings(shop, tmp_path_factory.mktemp("in-flight"), threads=24, **more)


@pytest.fixture(scope="module")
def dictated() -> Dictated:
    return Dictated()


@pytest.fixture
def model(dictated: Dictated) -> Dictated:
    dictated.pieces = queue.Queue()
    return dictated


@pytest.fixture(scope="module")
def engine(shop: Path, settings: Settings, dictated: Dictated) -> Iterator[Engine]:
    with open_engine(settings, shop, generator=dictated) as engine:
        yield engine


@pytest.fixture(scope="module")
def port(settings: Settings, engine: Engine) -> Iterator[int]:
    with serving(settings, engine=engine) as port:
        yield port


@pytest.fixture
def page(port: int, model: Dictated) -> Iterator[Page]:
    """Anna's, who has no conversation when a test begins."""
    yield (page := Page(port, ANNA))
    page.get("DELETE", "/api/privacy/everything")


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


def begin(page: Page, model: Dictated, **more: Any) -> Any:
    """A question whose answer has come as far as its first word."""
    answer = page.ask(**more)
    model.say("One. ")
    read_to(answer, "One.")
    return answer


def assert_closed(page: Page) -> None:
    """Assert that the conversation takes no second question, and is nobody else's."""
    for refused in (page.ask("another one"), page.ask(render=False), in_one_piece(page)):
        assert refused.status == 409 and json.load(refused)["error"]["code"] == "busy"
    bela = Page(page.port, "bela")
    assert bela.join().status == bela.send("GET", "/api/conversations/c").status == 404
    assert bela.get("POST", "/api/conversations/c/stop") == {"stopped": 0}


def ended(page: Page) -> None:
    """Wait until nothing is being answered any more."""
    until(lambda: not page.opened()["answering"])


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
    first = begin(page, model)
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


def in_one_piece(page: Page, question: str = QUESTION, **more: Any) -> Any:
    return page.send("POST", "/chat", {"question": question, "conversation": "c", **more})


def test_a_conversation_answers_one_question_at_a_time(page: Page, model: Dictated) -> None:
    plain = begin(page, model, render=False)
    assert_closed(page)
    # A program's answer cannot be read along, but its user can stop it.
    assert page.opened()["answering"] == "" and page.join().status == 404
    assert page.get("POST", "/api/conversations/c/stop") == {"stopped": 1}
    plain.read()
    model.say("Two.", None)
    assert json.load(in_one_piece(page))["response"] == "Two."
    rendered = begin(page, model)
    assert_closed(page)
    elsewhere = page.ask("in another one", "d")
    assert elsewhere.status == 200
    model.say(None, None)
    assert read_on(rendered)[0] == "" and read_on(elsewhere)
    assert [turn["answer"] for turn in page.opened()["turns"]] == ["One. ", "Two.", "One. "]


def test_terminals_answer_beside_each_other(
    settings: Settings, engine: Engine, model: Dictated
) -> None:
    app = create_app(settings, engine=engine)
    app.config[TERMINAL_TOKEN] = "terminal"
    with serving(settings, engine=engine, app=app) as port:
        terminal = Page(port, "terminal")
        first = begin(terminal, model)
        terminal.send("DELETE", "/api/conversations/c").read()  # as `codeqa ask` begins without -c
        second = terminal.ask("another one")
        assert second.status == 200
        model.say(None, None)
        for answer in (first, second):
            assert read_on(answer)[1].get("stopped") is None
        terminal.get("DELETE", "/api/privacy/everything")


def test_a_program_that_leaves_or_fails_frees_its_conversation(page: Page, model: Dictated) -> None:
    begin(page, model, render=False).close()
    again = until(lambda: (sent := page.ask(render=False)).status != 409 and sent)
    model.say(None)
    again.read()
    assert in_one_piece(page, after="no such turn").status == 404
    model.say("Two.", None)
    assert in_one_piece(page).status == 200


@pytest.mark.parametrize("path", ["/api/conversations/c", "/api/privacy/everything"])
def test_what_is_deleted_while_it_is_answered_is_neither_written_on_nor_kept(
    page: Page, model: Dictated, engine: Engine, path: str
) -> None:
    reader = begin(page, model)
    page.get("DELETE", path)
    assert read_on(reader)[1]["stopped"] is True
    assert page.send("GET", "/api/conversations/c").status == 404
    assert kept(engine) == []


def test_a_new_version_is_saved_while_written_and_dropped_if_empty(
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
    page: Page, settings: Settings, engine: Engine, model: Dictated
) -> None:
    with serving(settings, engine=engine) as port:
        reader = begin(Page(port, ANNA), model)
    assert not reader.closed  # it is not that nobody reads
    engine.conversations.flush()
    ((answer, details),) = kept(engine)
    assert answer == "One. " and json.loads(details)["finished"] is False


def test_an_answer_that_nobody_reads_any_more_ends(
    page: Page, model: Dictated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "time", clock := Clock())
    begin(page, model).close()

    def ended_later() -> bool:
        clock.advance(board.UNREAD_SECONDS)
        return not page.opened()["answering"]

    until(ended_later)
    (turn,) = page.opened()["turns"]
    assert turn["answer"] == "One. " and not turn["finished"]


class Held(Clock):
    """Time of a state to which another program writes until somebody waits for it."""

    def hold(self, state: Path) -> None:
        self.slept.clear()
        self.other = sqlite3.connect(state, isolation_level=None, check_same_thread=False)
        self.other.execute("BEGIN IMMEDIATE")

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        self.other.close()


def test_questions_and_answers_are_saved_before_they_are_announced(
    page: Page, engine: Engine, model: Dictated, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, clock = engine.conversations.state, Held()
    assert state.user_data.counts().turns == 0  # the file is there from now on
    monkeypatch.setattr(database, "time", clock)
    monkeypatch.setattr(database, "BUSY_SECONDS", AT_ONCE)  # SQLite itself does not wait
    state._database.close()
    clock.hold(state.path)
    events = engine.chat.ask(AskOptions(QUESTION, conversation="c", user="token-anna"))
    turn = next(event.data["turn"] for event in events if event.kind == "asked")
    # Read past the queue of saves, for which all other readers wait.
    asked = state.turns.get(turn, "token-anna")
    assert clock.slept and asked and asked.question == QUESTION
    model.say("One.")
    next(event for event in events if event.kind == "token")
    clock.hold(state.path)
    model.say(None)
    next(event for event in events if event.kind == "done")
    answered = state.turns.get(turn, "token-anna")
    assert clock.slept and answered and answered.answer == "One." and answered.details["finished"]
    state.user_data.delete("token-anna")


def test_another_process_finds_what_is_kept_of_an_answer_and_that_it_broke_off(
    page: Page,
    shop: Path,
    settings: Settings,
    engine: Engine,
    model: Dictated,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("codeqa.chat.ask.SAVED_EVERY", AT_ONCE)
    begin(page, model)

    def kept_by_now() -> str:
        model.say("And ")  # it is kept after another piece, unless it is being kept
        return str(kept(engine)[0][0])

    until(kept_by_now)
    user = engine.conversations.state._database.row("SELECT user FROM turn")
    with open_engine(settings, shop) as later:  # as the next one begins after a crash
        (turn,) = later.conversations.turns("c", *user or ())
    assert turn.question in QUESTION and turn.answer.startswith("One. ")
    assert not turn.finished and turn.error and turn.error.code == "broke_off"


def engine_that(ask: Callable[[AskOptions], Iterator[Event]]) -> Any:
    return SimpleNamespace(
        chat=SimpleNamespace(ask=ask), conversations=SimpleNamespace(flush=lambda: None)
    )


def test_where_questions_wait_for_long_the_next_is_refused_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "LATE", AT_ONCE)
    runs, goes_on = Runs(settings, LocalBoard()), threading.Event()

    def slow(options: AskOptions) -> Iterator[Event]:
        goes_on.wait(PATIENCE)
        yield Asked("t")

    def ask(number: int) -> Iterator[bytes]:
        place = ConversationKey("shop", "anna", f"c{number}")
        options = AskOptions("how?")
        return runs.start_for_page(
            engine_that(slow), options, place, lambda *_: None, lambda: False
        )

    waiting = [ask(number) for number in range(3)]
    with pytest.raises(RequestRefusedError, match="Too many questions at once") as refused:
        ask(3)
    assert refused.value.http_status == 503  # with Retry-After, as all that have it
    goes_on.set()
    assert all(b"".join(one) for one in waiting) and b"".join(ask(3))


# Several processes that share a Redis server.


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def ports(
    shop: Path, settings: Settings, dictated: Dictated, redis: RedisServer
) -> Iterator[list[int]]:
    """Two servers of one data folder, each with all that a process has."""
    settings = settings.model_copy(update={"redis_url": redis.url})
    with ExitStack() as stack:
        opened = (open_engine(settings, shop, generator=dictated) for _ in range(2))
        engines = [stack.enter_context(engine) for engine in opened]
        yield [stack.enter_context(serving(settings, engine=engine)) for engine in engines]


@pytest.fixture
def both(
    ports: list[int], model: Dictated, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Page, Page]]:
    """Anna's page at each."""
    monkeypatch.setattr(streams, "COPIED_EVERY", LOOK_AGAIN)
    here, there = (Page(port, ANNA) for port in ports)
    yield here, there
    here.get("DELETE", "/api/privacy/everything")


def test_another_process_reads_an_answer_along_refuses_a_second_and_goes_on_from_it(
    both: tuple[Page, Page], model: Dictated
) -> None:
    here, there = both
    first = here.ask()
    model.say("One. ", "Two. ")
    read_to(first, "Two.")
    (turn,) = there.opened()["turns"]
    assert there.opened()["answering"] == turn["id"]
    second = there.join()
    assert read_to(second, "Two.") == "One. Two. "
    assert_closed(there)
    model.say("Three – ä.", None)
    assert read_on(second) == ("Three – ä.", read_on(first)[1])
    third = there.ask("and then?")
    model.say("Four.", None)
    done = read_on(third)[1]
    assert [one["id"] for one in here.opened()["turns"]] == [turn["id"], done["turn"]]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/conversations/c/stop"),
        ("DELETE", "/api/conversations/c"),
        ("DELETE", "/api/privacy/everything"),
    ],
)
def test_another_process_stops_an_answer_for_all_its_readers(
    both: tuple[Page, Page], model: Dictated, redis: RedisServer, method: str, path: str
) -> None:
    here, there = both
    first = begin(here, model)
    second = there.join()
    read_to(second, "One.")
    there.get(method, path)
    for reader in (first, second):
        assert read_on(reader)[1]["stopped"] is True
    if method == "POST":
        again = there.ask("and then?")
        model.say(None)
        read_on(again)
    else:
        assert here.send("GET", "/api/conversations/c").status == 404
    for key in ("codeqa:answering:*", "codeqa:answer:*"):  # nothing stays for good
        for name in redis.command("KEYS", key).split()[2::2]:
            assert not redis.command("TTL", name).startswith(":-1")


def test_a_copy_takes_the_place_of_no_answer_that_begins(
    redis: RedisServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread copies, which may come between."""
    shared = cache.RedisCache(redis.url)
    copying, together = streams.SharedBoard(shared), shared.together

    def between(commands: list[tuple[Any, ...]]) -> Any:
        if commands[0][0] == "SET":
            copying.copy()
        return together(commands)

    monkeypatch.setattr(shared, "together", between)
    begun = Runs(settings, copying).start_for_page(
        engine_that(lambda _: (one for one in ())), AskOptions("how?"),
        ConversationKey("r", "u", "c"), lambda *_: None, lambda: False,
    )  # fmt: skip
    assert b"finishReason" in b"".join(begun)


def test_an_answer_goes_on_for_its_own_reader_when_redis_dies_and_is_shared_again(
    both: tuple[Page, Page],
    model: Dictated,
    redis: RedisServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = both
    monkeypatch.setattr(cache, "time", clock := Clock())
    first = begin(here, model)
    redis.kill()
    model.say("Two. ")
    read_to(first, "Two.")
    assert there.join().status == 404
    redis.start()

    def joined_later() -> http.client.HTTPResponse | None:
        clock.advance(cache.PAUSE_SECONDS)
        return answer if (answer := there.join()).status == 200 else None

    second = until(joined_later)
    assert read_to(second, "Two.") == "One. Two. "
    model.say("Three.", None)
    assert read_on(first)[0] == read_on(second)[0] == "Three."
    (turn,) = there.opened()["turns"]
    assert turn["answer"] == "One. Two. Three." and turn["finished"]
    assert "does not work" in caplog.text


def test_guesses_and_questions_are_counted_by_all_processes_together(
    settings: Settings, redis: RedisServer
) -> None:
    settings = settings.model_copy(update={"redis_url": redis.url})
    gates = [create_app(settings).extensions["codeqa_gate"] for _ in range(2)]
    assert all(isinstance(gate, Gate) for gate in gates)
    for number in range(5):
        assert gates[number % 2].admit("wrong", "192.0.2.1") is None
    for number in range(120):
        gates[number % 2].count_question("anna")
    for gate in gates:
        with pytest.raises(CodeQAError, match="too many"):
            gate.admit("anna", "192.0.2.1")
        with pytest.raises(CodeQAError, match="too many"):
            gate.count_question("anna")
        assert gate.admit("anna", "192.0.2.2")
        gate.count_question("bela")
    assert (
        0 < int(redis.command("TTL", gates[0]._guesses.redis_key("192.0.2.1")).strip(":\r\n")) <= 30
    )


def process_of(response: http.client.HTTPResponse, processes: list[int]) -> int:
    """Which of `processes` has the other end of a connection."""
    own = f"{response.fp.raw._sock.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{own}")}
    for process in processes:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if file.is_symlink() and str(file.readlink()) in inodes:
                return process
    raise AssertionError("nobody has it")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_of_two_processes_one_is_killed_and_the_other_ends_its_answers_before_itself(
    shop: Path, settings: Settings, redis: RedisServer
) -> None:
    goes_on = threading.Event()

    def written(path: str, body: dict[str, Any]) -> Streamed:
        def words() -> Iterator[bytes]:
            yield delta("begun ")
            while not goes_on.wait(10 * LOOK_AGAIN):
                yield delta("and ")
            yield delta("whole")

        return Streamed(words())

    with openai_server(written) as models:
        with bind("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
        variables = {"CODEQA_DATA": str(settings.data_dir), "CODEQA_MODEL": "custom/m",
                     "CODEQA_MODEL_URL": models.base_url, "REDIS_URL": redis.url,
                     "CODEQA_WORKERS": "1", "CODEQA_LOG_LEVEL": "error"}  # fmt: skip
        command = ["-c", PATIENT, "serve", shop, "--port", str(port), "--workers", "2"]
        server = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env={**os.environ, **variables},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert server.stdout is not None and server.stderr is not None
            assert f":{port}/" in server.stdout.readline()
            page, answers = Page(port), dict[int, list[Any]]()
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
            for number in itertools.count():
                answer = page.ask(conversation=f"c{number}")
                read_to(answer, "and ")
                processes = [*map(int, children.read_text().split())]
                if (process := process_of(answer, processes)) in answers:
                    page.get("POST", f"/api/conversations/c{number}/stop")
                answers.setdefault(process, [answer, f"c{number}"])
                if len(answers) == 2:
                    break
            # LanceDB, state and threads are those of the processes that serve.
            assert "lancedb" not in Path(f"/proc/{server.pid}/maps").read_text()
            files = [file.readlink() for file in Path(f"/proc/{server.pid}/fd").iterdir()]
            assert not any(file.is_relative_to(settings.data_dir) for file in files)
            assert len([*Path(f"/proc/{server.pid}/task").iterdir()]) == 1
            (killed, (lost, asked)), (other, (kept_on, _)) = answers.items()
            while process_of(along := page.join(asked), processes) != other:
                along.close()
            read_to(along, "and ")
            until(lambda: "and " in page.opened(asked)["turns"][0]["answer"])
            os.kill(killed, signal.SIGKILL)
            with pytest.raises((http.client.HTTPException, OSError)):
                lost.read()
            end = read_on(along)[1]
            assert end["error"]["code"] == "broke_off"
            (turn,) = page.opened(asked)["turns"]
            assert "begun and " in turn["answer"] and turn["error"]["code"] == "broke_off"
            assert end["turn"] == turn["id"]
            server.send_signal(signal.SIGTERM)
            until(lambda: page.get("GET", "/health")["status"] == "draining")
            refused = page.ask("one more", "d")
            assert refused.status == 503 and refused.headers["Retry-After"]
            assert page.send("GET", "/ready").status == 503
            goes_on.set()
            assert read_on(kept_on)[0].endswith("and whole")
            assert server.wait(PATIENCE) == 0 and server.stderr.read().endswith("Stopped.\n")
        finally:
            goes_on.set()
            server.kill()
            server.communicate()


def test_several_processes_without_redis_are_refused(
    shop: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CodeQAError, match="need Redis") as caught:
        create_app(settings.model_copy(update={"web_workers": 2}))
    assert "REDIS_URL" in str(caught.value)
