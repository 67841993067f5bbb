"""The page over real HTTP: many readers, ports, the front door, a clean end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.fakes import FakeEngine
from conftest import ROOT
from openai_server import openai_server, silent
from serving import serving
from waiting import PATIENCE, until

from app import generate_context, main
from codeqa.cli.serve import open_port, page_address
from codeqa.errors import CodeQAError, IndexMissingError, SettingsError
from codeqa.settings import load_settings
from codeqa.web.app import bind
from create_tables import create_tables

pytest_plugins = ("web_kit",)
pytestmark = pytest.mark.usefixtures("patient")


@contextlib.contextmanager
def request(
    port: int, path: str, body: dict[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """The response to a GET, or to a POST of `body`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request("POST" if body else "GET", path, body and json.dumps(body), headers)
        with connection.getresponse() as response:
            yield response


def ask(port: int, question: str) -> contextlib.AbstractContextManager[http.client.HTTPResponse]:
    return request(port, "/chat/stream", {"question": question})


def ready(port: int) -> int:
    with request(port, "/ready") as response:
        return response.status


def test_shipped_settings_serve_many_readers_and_refuse_long_bodies(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    with (
        serving(load_settings(data=data_dir), engine=fake_engine) as port,
        contextlib.ExitStack() as opened,
    ):
        responses = [opened.enter_context(ask(port, "slow")) for _ in range(60)]
        assert all(b"classified" in response.readline() for response in responses)
        assert all(response.readline() for response in responses)
        with request(port, "/chat/stream", {"question": "x" * 1_500_000}) as refused:
            assert refused.status == 413 and json.load(refused)["error"]["code"] == "too_large"


# Ports


def test_the_usual_port_gives_way_and_a_chosen_one_is_refused(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(data=data_dir)
    try:
        taken = bind(settings.host, settings.port)
    except OSError:
        taken = socket.socket()  # somebody else has it already
    with taken, open_port(settings) as listener:
        used = listener.getsockname()[1]
    assert used != settings.port
    assert capsys.readouterr().err == f"Port {settings.port} is in use; using {used} instead.\n"
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CodeQAError, match=rf"Port {port} is in use\."):
            open_port(load_settings(data=data_dir, port=port))
    with pytest.raises(SettingsError, match="cannot be served"):
        open_port(load_settings(data=data_dir, host="192.0.2.1", port=4321))


def test_the_address_that_is_printed_can_be_opened() -> None:
    for host, opened in (
        ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]"),
        ("box", "box"),
    ):  # fmt: skip
        assert page_address(host, 80) == f"http://{opened}:80/"


# The front door


def test_what_cannot_be_served_is_a_wrong_call_but_a_server_may_use_no_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, words in (
        (["/nowhere/at/all"], "There is no folder"),
        (["--host", "0.0.0.0"], "CODEQA_TOKEN"),
        (["--model", "no-such/model"], "no-such"),
    ):
        status, printed = main(arguments), capsys.readouterr()
        assert (status, printed.out, printed.err.count("\n")) == (2, "", 1)
        assert words in printed.err
    with bind("127.0.0.1", 0) as taken:
        assert main(["--model", "none", "--port", str(taken.getsockname()[1])]) == 1
    assert "is in use" in capsys.readouterr().err, "it came as far as its port"


def test_the_front_door_indexes_serves_and_ends_cleanly_while_somebody_reads(
    tmp_path: Path, write_files: Callable[..., Path]
) -> None:
    repository = write_files(tmp_path / "shop", {"cart.py": "def total(items):\n    return 1\n"})
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with openai_server(lambda *_: silent(600)) as model:
        server = subprocess.Popen(
            [sys.executable, "app.py", repository, "--port", str(port), "--model", "custom/m"],
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "CODEQA_WORKERS": "1", "CODEQA_MODEL_URL": model.base_url},
        )  # fmt: skip
        try:
            assert server.stdout is not None and server.stderr is not None
            assert f"http://127.0.0.1:{port}/" in server.stdout.readline()
            assert server.stdout.readline() == "Questions go to custom/m at 127.0.0.1.\n"
            until(lambda: ready(port) == 200)  # it is indexed behind the page
            with ask(port, "@codebase total") as reader:
                assert reader.readline() and model.wait_for_requests()
                server.send_signal(signal.SIGTERM)  # as containers are ended
                until(lambda: ready(port) == 503)
                for more in (
                    ask(port, "@codebase another total"),
                    request(port, "/api/repos", {"path": str(repository)}),
                ):
                    with more as refused:
                        assert refused.status == 503 and refused.headers["Retry-After"]
                with request(port, "/health") as health:
                    assert json.load(health) == {"status": "draining"}
                assert reader.readline()
                server.send_signal(signal.SIGTERM)  # Ctrl-C does not wait either
                assert server.wait(PATIENCE) == 0
            assert server.stderr.read().endswith("Stopped.\n")
        finally:
            server.kill()
            server.communicate()


def test_generate_context_gives_the_block_of_the_repository_used_last(
    tmp_path: Path, write_files: Callable[..., Path]
) -> None:
    with pytest.raises(IndexMissingError):
        generate_context("the total of a cart")
    create_tables(write_files(tmp_path / "shop", {"cart.py": "def total(items):\n    return 1\n"}))
    for rerank in (False, "false", "1"):
        block = generate_context("the total of a cart", rerank=rerank)
        assert block.startswith("[CONTEXT]\n") and "Path: cart.py" in block
