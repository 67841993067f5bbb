"""Serves the page with waitress, to a clean end."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Any

from flask import Flask

from codeqa.settings import Settings
from codeqa.web.security import BODY_BYTES
from codeqa.web.workspace import Workspace

CONNECTIONS = 1_000
"""Connections at once; with waitress's own limit of 100 the 101st reader would wait."""
LONGEST_BODY = 16 * BODY_BYTES
"""Where waitress itself hangs up; below that a body that is too long gets an explained 413."""


def serve(app: Flask, settings: Settings, listener: socket.socket) -> None:
    """Serve `app` on `listener` until the process is interrupted or told to end."""
    server = make_server(app, settings, listener)
    space: Workspace = app.extensions["codeqa"]

    def end(signum: int, frame: object) -> None:
        # Streams end themselves when they see this; waitress then has nothing to wait for.
        space.closing.set()
        raise KeyboardInterrupt

    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), end)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        space.closing.set()
        server.close()
        print("Stopped.", file=sys.stderr)


def make_server(app: Flask, settings: Settings, listener: socket.socket) -> Any:
    """A waitress server on a bound socket."""
    from waitress import create_server

    return create_server(
        app,
        sockets=[listener],
        threads=settings.threads,
        connection_limit=CONNECTIONS,
        # Reading ahead is how waitress notices that the reader of a stream has left.
        channel_request_lookahead=1,
        max_request_body_size=LONGEST_BODY,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=True,
        ident="",
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to `host` and `port`, taken from now on. Raises OSError."""
    both = host == "::" and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # It listens at once: a bound socket alone would not keep others off the port.
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    listener.setblocking(False)
    return listener
