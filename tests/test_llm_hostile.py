"""Servers that mean harm or are broken: an error in a sentence, soon and in little memory."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from codeqa.errors import ModelError
from codeqa.llm import Model, ModelAddress, ModelChoice, Models
from codeqa.llm import client as client_module
from codeqa.llm import models as models_module
from codeqa.settings import Settings, load_settings
from tests.openai_server import delta, event, openai_server, stream

MESSAGES = [{"role": "user", "content": "hello"}]
KEY = "sk-secret-0123456789"
DEEP = b"[" * 200_000

Reply = Callable[[socket.socket], None]


def raw(
    body: bytes, status: str = "200 OK", kind: str = "text/event-stream", **headers: str
) -> Reply:
    """A reply of exactly these bytes, ended by closing the connection."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    def send(connection: socket.socket) -> None:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    return send


def endless(portion: bytes, delay: float = 0.0, **more: str) -> Reply:
    """A reply that goes on for as long as anybody listens."""

    def send(connection: socket.socket) -> None:
        raw(b"", **more)(connection)
        while True:
            connection.sendall(portion)
            time.sleep(delay)

    return send


@contextmanager
def model_at(reply: Reply) -> Iterator[Model]:
    """The model of a server that answers every request so."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(20)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65_536)
            head, _, body = asked.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            while length and len(body) < int(length[1]):  # what is left unread resets the reply
                body += connection.recv(65_536)
            reply(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with Model(ModelAddress(address, "m", KEY), timeout=10) as model:
            yield model
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "reply",
    [
        raw(b"data: " + DEEP + b"\n\n"),
        raw(DEEP, kind="application/json"),
        raw(DEEP, "400 Bad Request", "application/json"),
        raw(b"no", "400 Bad Request", "text/plain; charset=idna"),
        raw(b"no", "400 Bad Request", "text/plain; charset=nonsense"),
    ],
    ids=["deep event", "deep reply", "deep refusal", "impossible charset", "unknown charset"],
)
def test_what_nobody_can_read_is_an_error_in_our_words(reply: Reply) -> None:
    with model_at(reply) as model:
        for attempt in (lambda: list(model.stream(MESSAGES)), model.list_models):
            with pytest.raises(ModelError) as caught:
                attempt()
            assert KEY not in str(caught.value)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_the_same_however_they_arrive(end: bytes) -> None:
    """Cut anywhere, with any line ends, and without a last one."""
    whole = b"".join(
        line + end
        for line in (*delta("a\u2028ü").splitlines(), b": comment", b"",
                     b"event: x", *delta("b", "stop").splitlines())
    )  # fmt: skip

    def drip(connection: socket.socket) -> None:
        raw(b"")(connection)
        for at in range(len(whole)):
            connection.sendall(whole[at : at + 1])

    with model_at(drip) as model:
        assert list(model.stream(MESSAGES)) == ["a\u2028ü", "b"]


def test_an_answer_without_an_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LONGEST_ANSWER", 10_000)
    with (
        model_at(endless(delta("and so on ") * 10)) as model,
        pytest.raises(ModelError, match=r"broke off: it is longer than 10,000 characters"),
    ):
        list(model.stream(MESSAGES))
    with openai_server(lambda path, body: stream(["x" * 9_999])) as server:
        model = Model(ModelAddress(server.base_url, "m"))
        assert model.complete(MESSAGES, 10) == "x" * 9_999
        model.close()


@pytest.fixture
def settings(data_dir: Any) -> Settings:
    return load_settings(data=data_dir, model_timeout=1)


def test_a_test_of_a_model_that_only_shows_signs_of_life_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models_module, "TEST_SECONDS", 0.2)
    with model_at(endless(b": still here\n\n", 0.05)) as model:
        models = Models(settings)
        with pytest.raises(ModelError, match="stayed silent"):
            models.test(ModelChoice("custom", "m", model.address.base_url))


def test_names_of_models_that_a_terminal_would_obey_are_left_out(settings: Settings) -> None:
    models = Models(settings)
    with openai_server() as server:
        server.models = ["\x1b]0;owned\x07", "a\nb", "  ", "x" * 5_000, "\u202elanigiro", "good"]
        choice = ModelChoice("custom", "", server.base_url)
        assert models.list_models(choice) == ["good"]
        model = models.answer_model(choice)
        assert model is not None and model.name == "custom/good"
    models.close()


def test_a_flood_without_text_can_be_stopped() -> None:
    """The loop must come to notice it although there is always more to read."""
    flood = event({"choices": [{"index": 0, "delta": {"reasoning": "x"}}]}) * 200
    began = time.monotonic()
    with model_at(endless(flood)) as model:
        stopped = model.stream(MESSAGES, cancelled=lambda: time.monotonic() - began > 0.1)
        assert not any(isinstance(one, str) for one in stopped)  # but what it thinks
