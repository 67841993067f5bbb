"""Waitress, with connections that make room where they bring no request, and threads that start
when they are needed. A connection that is being answered is never closed for it, however long the
model is silent."""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from contextlib import suppress

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import Task, ThreadedTaskDispatcher

from codeqa.web.security import TWICE

CONNECTIONS = 1_000
"""Open at once; with waitress's own limit of 100 the 101st reader would wait."""
AT_ONCE = 100
"""Connections that are taken before all are looked at again."""
RATE = 5_000.0
"""Bytes of a request for each second that it may take longer, as Apache's mod_reqtimeout has it."""


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        names = Counter(line.partition(b":")[0].upper() for line in header_plus.split(b"\r\n"))
        twice = b" ".join(name for name, many in names.items() if many > 1)
        self.headers[TWICE] = twice.decode("latin-1")
        if {b"CONTENT-LENGTH", b"TRANSFER-ENCODING"} <= names.keys():  # RFC 9112, 6.3
            self.headers["CONNECTION"] = "close"


class _Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser

    def received(self, data: bytes) -> bool:
        self._active: float = (self._active if self.request else time.time()) + len(data) / RATE
        taken = super().received(data)
        if self.request:  # not yet whole: a byte now and then is no activity
            self.last_activity = self._active
        return bool(taken)


class Server(TcpWSGIServer):  # type: ignore[misc]
    channel_class = _Channel
    waiting: int
    """Connections of an address, which may be a proxy's, on which nothing is answered; more than
    three addresses share what three may have."""

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        waiting = defaultdict(list)
        for one in sorted(self.active_channels.values(), key=lambda one: one.last_activity):
            if not one.requests:
                waiting[one.addr[0]].append(one)
        share = 3 * self.waiting // max(3, len(waiting)) or 1
        for channels in waiting.values():
            for one in channels[:-share]:
                one.will_close = True
            for one in channels:
                if one.will_close:  # waitress would wait for a reader that takes nothing
                    with suppress(OSError):
                        one.socket.shutdown(socket.SHUT_RDWR)

    def handle_accept(self) -> None:
        before, most = -1, len(self.active_channels) + AT_ONCE
        while before < len(self.active_channels) < most:
            before = len(self.active_channels)
            super().handle_accept()
        if len(self.active_channels) > CONNECTIONS:
            self.maintenance(time.time())


class Threads(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Up to `most` threads, one more only when all are busy.

    Waitress starts all at once and gives each request to the one that has waited longest. What a
    thread frees the system's allocator keeps for that thread: after some thousand requests a
    server with 256 threads, of which three were needed, held 60 MB more.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def add_task(self, task: Task) -> None:
        with self.lock:
            threads = len(self.threads) - self.stop_count
            busy = self.active_count + len(self.queue) >= threads
        if busy and threads < self._most:
            self.set_thread_count(threads + 1)
        super().add_task(task)
