"""The page's server for tests: Flask's client over a written-down engine, and servers over a
real connection, of that engine or of the shop's real one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from codeqa.settings import Settings
from codeqa.web.app import bind, create_app, make_server
from tests.kit.waiting import PATIENCE

PATIENT = """
import sys
from codeqa.cli import main, served
from codeqa.state import cache
served.HELLO_SECONDS = cache.SOCKET_SECONDS = 120
sys.exit(main())
"""
"""A program for `python -c`: `codeqa` on a busy machine, as the fixture `patient` has it here."""


def client_of(settings: Settings, engine: Any) -> FlaskClient:
    return create_app(settings, engine=engine).test_client()


def ask(client: FlaskClient, question: str, conversation: str = "c", **more: Any) -> None:
    """Ask and read the answer to its end; `body` are more fields of the question."""
    body = {"question": question, "conversation": conversation, **more.pop("body", {})}
    response = client.post("/chat/stream", json=body, buffered=True, **more)
    assert response.get_data(as_text=True).endswith('d:{"finishReason":"stop"}\n')


def listed(client: FlaskClient, **more: Any) -> list[dict[str, Any]]:
    return client.get("/api/conversations", **more).json["conversations"]  # type: ignore[no-any-return]


@contextlib.contextmanager
def serving(
    settings: Settings,
    repository: Path | None = None,
    engine: Any = None,
    app: Flask | None = None,
    **limits: Any,
) -> Iterator[int]:
    """The port of a server over `repository`, or over `engine`, or of `app`."""
    listener = bind("127.0.0.1", 0)
    app = app or create_app(settings, repository, engine)
    # Pages that are loaded again are so in half the time.
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = 3600
    server = make_server(app, settings, listener, **limits)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:

        def end() -> None:  # connections that clients keep open among it
            for channel in [*server.active_channels.values()]:
                channel.handle_close()
            server.close()

        app.extensions["codeqa"].answers.closing.set()
        if engine is None:
            app.extensions["codeqa"].close()
        server.task_dispatcher.shutdown(timeout=PATIENCE)
        with contextlib.suppress(OSError):  # pulled and closed by an answer that ends now
            server.trigger.pull_trigger(end)
        thread.join(PATIENCE)
