"""The page's server on a port of its own, for tests over a real connection."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from codeqa.settings import Settings
from codeqa.web.app import create_app
from codeqa.web.server import bind, make_server


@contextlib.contextmanager
def serving(settings: Settings, repository: Path) -> Iterator[int]:
    """The port of a server over `repository`."""
    listener = bind("127.0.0.1", 0)
    app = create_app(settings, repository)
    server = make_server(app, settings, listener)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        app.extensions["codeqa"].close()
        server.task_dispatcher.shutdown(timeout=5)
        server.trigger.pull_trigger(server.close)
        thread.join(5)
