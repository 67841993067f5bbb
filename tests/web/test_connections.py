"""Connections that bring no request keep nobody else from being served."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.fakes import FakeEngine
from serving import serving
from waiting import LOOK_AGAIN, PATIENCE, Clock, until
from waitress.adjustments import Adjustments

from codeqa.settings import load_settings
from codeqa.web.app import bind, create_app, make_server
from codeqa.web.connections import GuardedServer

pytest_plugins = ("web_kit",)

HEAD = b"POST /chat/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF_A_BODY = HEAD + b'Content-Length: 500\r\n\r\n{"question": "'
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Eager(Adjustments):  # type: ignore[misc]
    """Of a server that looks at its connections all the time, not once in a second."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.cleanup_interval, self.asyncore_loop_timeout = 0, LOOK_AGAIN


class Watched(GuardedServer):
    """Keeps the one that was started last."""

    latest: GuardedServer

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        Watched.latest = self


@pytest.fixture(autouse=True)
def eager(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waitress.adjustments.Adjustments", Eager)
    monkeypatch.setattr("codeqa.web.connections.GuardedServer", Watched)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """By which connections are late."""
    clock = Clock()
    for module in ("codeqa.web.connections", "waitress.channel", "waitress.server"):
        monkeypatch.setattr(f"{module}.time", clock)
    return clock


def has_read(count: int) -> bool:
    """Whether something of so many requests has come."""
    channels = [*Watched.latest.active_channels.values()]
    return len(channels) == count and all(one.request or one.requests for one in channels)


class Connections(contextlib.ExitStack):
    """Opens connections to `port` and closes them at the end."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    def open(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        address = ("127.0.0.1", self._port)
        opened = socket.create_connection(address, PATIENCE, source_address=(source, 0))
        self.enter_context(opened)
        opened.sendall(sent)
        return opened


def hung_up(connection: socket.socket) -> bool:
    """Waits for the server to close it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def answers(connection: socket.socket) -> bool:
    connection.sendall(HEALTH)
    return connection.recv(15) == b"HTTP/1.1 200 OK"


@contextlib.contextmanager
def served(folder: Path, engine: FakeEngine, **limits: int) -> Iterator[Connections]:
    with (
        serving(load_settings(data=folder), engine=engine, **limits) as port,
        Connections(port) as connections,
    ):
        yield connections


def asked(connections: Connections) -> http.client.HTTPResponse:
    """An answer for which the model is silent."""
    body = json.dumps({"question": "silent", "conversation": "c", "render": True}).encode()
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    response = http.client.HTTPResponse(connections.open(HEAD + length + body), method="POST")
    response.begin()
    return response


def goes_on(answer: http.client.HTTPResponse, connections: Connections) -> bool:
    """Whether the end of the answer still reaches its reader: it is stopped."""
    stop = b"POST /api/conversations/c/stop HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    assert connections.open(stop + b"Content-Length: 0\r\n\r\n").recv(15) == b"HTTP/1.1 200 OK"
    return b'd:{"finishReason"' in answer.read()


@pytest.mark.parametrize("sent", [HEAD, HALF_A_BODY], ids=["half a head", "half a body"])
def test_a_request_that_does_not_come_whole_is_hung_up_and_answers_go_on(
    data_dir: Path, fake_engine: FakeEngine, clock: Clock, sent: bytes
) -> None:
    with served(data_dir, fake_engine) as connections:
        answer, late = asked(connections), connections.open(sent)
        until(lambda: has_read(2))
        clock.advance(61)
        assert hung_up(late)
        assert goes_on(answer, connections)


def test_an_upload_that_is_slow_but_comes_is_waited_for(
    data_dir: Path, fake_engine: FakeEngine, clock: Clock
) -> None:
    with served(data_dir, fake_engine) as connections:
        text = b'{"question": "' + b"hello " * 10_000
        upload = connections.open(HEAD + f"Content-Length: {len(text) + 2}\r\n\r\n".encode() + text)
        late = connections.open(HEAD)
        until(lambda: has_read(2))
        (begun, *_) = Watched.latest.active_channels.values()
        until(lambda: begun.last_activity > clock.now + 10)
        clock.advance(61)
        assert hung_up(late), "the server has looked for late ones"
        upload.sendall(b'"}')
        assert upload.recv(9) == b"HTTP/1.1 "


def test_an_address_with_many_waiting_connections_loses_the_oldest_but_no_answer(
    data_dir: Path, fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.web.connections.RATE", 1e9)
    with served(data_dir, fake_engine, waiting=2) as connections:
        oldest = [connections.open(sent) for sent in (b"", HEAD, HALF_A_BODY)]
        answer = asked(connections)  # so that what came before it has been read
        latest = [connections.open() for _ in range(2)]
        assert all(map(hung_up, oldest))
        assert all(map(answers, latest)) and goes_on(answer, connections)


def test_many_addresses_share_what_there_is(data_dir: Path, fake_engine: FakeEngine) -> None:
    with served(data_dir, fake_engine, waiting=2) as connections:
        addresses = [f"127.0.0.{number}" for number in range(1, 7)]
        first, last = ([connections.open(source=one) for one in addresses] for _ in range(2))
        assert all(map(hung_up, first)) and all(map(answers, last))


def test_whoever_takes_nothing_of_a_response_is_hung_up_too(data_dir: Path) -> None:
    def application(environ: object, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * 20_000_000]

    listener = bind("127.0.0.1", 0)
    settings = load_settings(data=data_dir)
    server = make_server(application, settings, listener, waiting=1)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    with Connections(listener.getsockname()[1]) as connections:
        for _ in range(2):
            assert connections.open(HEALTH).recv(15) == b"HTTP/1.1 200 OK"
        until(lambda: len(server.active_channels) < 2)
    server.task_dispatcher.shutdown()
    server.trigger.pull_trigger(server.close)
    thread.join()


def test_a_thread_is_started_only_when_all_others_are_busy(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    """Each keeps memory for itself, which one that was never needed does not."""

    class Task:
        def __init__(self) -> None:
            self.began, self.may_end, self.ended = (threading.Event() for _ in range(3))

        def service(self) -> None:
            self.began.set()
            self.may_end.wait(PATIENCE)
            self.ended.set()

    settings = load_settings(data=data_dir, threads=4)
    with bind("127.0.0.1", 0) as listener:
        server = make_server(create_app(settings, engine=fake_engine), settings, listener)
        threads = server.task_dispatcher
        for _ in range(9):
            task = Task()
            task.may_end.set()
            threads.add_task(task)
            assert task.ended.wait(PATIENCE) and len(threads.threads) == 1
            until(lambda: not threads.active_count)  # it is free a moment later
        tasks = [Task() for _ in range(6)]
        for number, task in enumerate(tasks, 1):
            threads.add_task(task)
            assert number > 4 or task.began.wait(PATIENCE)
            assert len(threads.threads) == min(number, 4)
        for task in tasks:
            task.may_end.set()
        assert all(task.ended.wait(PATIENCE) for task in tasks)
        server.close()
