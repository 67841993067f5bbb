"""The page served by several processes: gunicorn with threads, in place of waitress.

Each process opens its tables, its state and its threads after the fork: a table that was opened
before it hangs. What waitress gives by itself is added here: a request has a deadline, nobody waits
for those that do not come whole, and a view learns that its reader has left.
"""

from __future__ import annotations

import io
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from codeqa.settings import Settings
from codeqa.web.connections import AT_ONCE, CONNECTIONS
from codeqa.web.security import BODY_BYTES, TWICE
from codeqa.web.workspace import Workspace

REQUEST_SECONDS = 60
"""In which a request has to come whole, and its reader to take something of the answer."""
LONGEST = struct.pack("ll", REQUEST_SECONDS, 0)


class Log(Logger):  # type: ignore[misc]
    """Gunicorn's words among all others, in the form that is set."""

    def setup(self, cfg: Config) -> None:
        self.error_log.propagate = True


class Worker(ThreadWorker):  # type: ignore[misc]
    """One of the processes."""

    def init_process(self) -> None:
        self._coming: dict[socket.socket, float] = {}
        """Connections that hold a thread until their request is there, and since when."""
        super().init_process()

    def load_wsgi(self) -> None:
        app: Flask = self.app.wsgi()
        self.space: Workspace = app.extensions["codeqa"]
        self.wsgi = partial(self._answered, app)

    def _answered(
        self, app: Flask, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        connection = environ["gunicorn.socket"]
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(BODY_BYTES + 1))
        self._coming.pop(connection, None)
        environ["waitress.client_disconnected"] = partial(_has_left, connection)
        return app(environ, start_response)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        many = Counter(name for name, _ in req.headers) - Counter({name for name, _ in req.headers})
        name = TWICE.replace("_", "-")  # a client's own of that name says nothing
        req.headers = [one for one in req.headers if one[0] != name] + [(name, " ".join(many))]
        return super().handle_request(req, conn)

    def enqueue_req(self, conn: TConn) -> None:
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, LONGEST)
        super().enqueue_req(conn)
        self._make_room()

    def handle(self, conn: TConn) -> Any:
        self._coming[conn.sock] = time.monotonic()
        try:
            return super().handle(conn)
        finally:
            self._coming.pop(conn.sock, None)

    def notify(self) -> None:  # called once a second
        super().notify()
        self._make_room()

    def _make_room(self) -> None:
        """Hang up requests that are late and, while others wait for a thread, the oldest ones that
        are not whole; the thread that reads one then finds its end."""
        idle = len(self.keepalived_conns) + len(self.pending_conns)
        too_many = self.nr_conns - idle - self.cfg.threads
        late = time.monotonic() - REQUEST_SECONDS
        for number, (connection, since) in enumerate(self._coming.copy().items()):
            if number < too_many or since < late:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_exit(self, sig: int, frame: object) -> None:
        """SIGTERM: go on serving until what was asked is answered; a second one ends that."""
        if self.space.draining.is_set():
            self.space.closing.set()
        else:
            threading.Thread(target=self._drain, args=(sig, frame), daemon=True).start()

    def _drain(self, sig: int, frame: object) -> None:
        self.space.drain()
        self.space.closing.set()
        super().handle_exit(sig, frame)


def _has_left(connection: socket.socket) -> bool:
    """Whether who reads this connection closed it."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except OSError as error:
        return not isinstance(error, BlockingIOError)


def serve_with_workers(
    app: Flask, settings: Settings, repository: Path | None, listener: socket.socket
) -> None:
    """Serve `app` on `listener`, in each process with `repository` open, until this one is told to
    end; then raises SystemExit."""

    class Application(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            for name, value in options.items():
                self.cfg.set(name, value)

        def load(self) -> Flask:
            if repository is not None:
                engine = app.extensions["codeqa"].open(repository.absolute())
                threading.Thread(target=engine.chat.warm_up, name="warm-up", daemon=True).start()
            return app

    options = {
        "workers": settings.web_workers,
        "worker_class": Worker,
        "threads": settings.threads,
        "bind": f"fd://{listener.detach()}",
        "worker_connections": CONNECTIONS + 2 * AT_ONCE,
        "keepalive": 15,
        "timeout": REQUEST_SECONDS,
        # Longer than processes wait themselves, which then close what they have open.
        "graceful_timeout": int(settings.drain_seconds) + 10,
        "limit_request_line": 8_190,  # the most
        "logger_class": Log,
        "forwarded_allow_ips": "",  # no header of a client counts for what a proxy would say
        "control_socket_disable": True,
        "worker_int": lambda worker: worker.space.closing.set(),
        "worker_exit": lambda server, worker: worker.booted and worker.space.close(),
        "on_exit": lambda server: print("Stopped.", file=sys.stderr),
    }
    Application().run()
