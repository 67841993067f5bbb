"""Guard connections: idle ones make room for others, and threads start on demand.

A connection that is being answered is never closed, however long the model is silent.
"""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from contextlib import suppress

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import Task, ThreadedTaskDispatcher

TWICE = "CODEQA_TWICE"
"""Header that names the headers that came twice, which waitress would join."""
CONNECTIONS = 1_000
"""Most open connections; with waitress's own limit of 100 the 101st reader would wait."""
AT_ONCE = 100
"""Most connections that are accepted at a time, before the open ones are served again."""
RATE = 5_000.0
"""Bytes per second that a request must bring to get more time, as in Apache's mod_reqtimeout."""


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        names = Counter(line.partition(b":")[0].upper() for line in header_plus.split(b"\r\n"))
        repeated = b" ".join(name for name, count in names.items() if count > 1)
        self.headers[TWICE] = repeated.decode("latin-1")
        if {b"CONTENT-LENGTH", b"TRANSFER-ENCODING"} <= names.keys():  # RFC 9112, 6.3
            self.headers["CONNECTION"] = "close"


class _Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser

    def received(self, data: bytes) -> bool:
        self._active: float = (self._active if self.request else time.time()) + len(data) / RATE
        accepted = super().received(data)
        if self.request:  # incomplete: a byte now and then does not count as activity
            self.last_activity = self._active
        return bool(accepted)


class GuardedServer(TcpWSGIServer):  # type: ignore[misc]
    """A waitress server that closes the oldest connections on which nothing is answered."""

    channel_class = _Channel
    waiting: int
    """Most idle connections of one address, which may be a proxy's; more than three addresses share
    three times as many."""

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        idle_by_address = defaultdict(list)
        channels = self.active_channels.values()
        for channel in sorted(channels, key=lambda channel: channel.last_activity):
            if not channel.requests:
                idle_by_address[channel.addr[0]].append(channel)
        share = max(1, 3 * self.waiting // max(3, len(idle_by_address)))
        for channels in idle_by_address.values():
            for channel in channels[:-share]:
                channel.will_close = True
            for channel in channels:
                if channel.will_close:  # waitress would wait for a reader that takes nothing
                    with suppress(OSError):
                        channel.socket.shutdown(socket.SHUT_RDWR)

    def handle_accept(self) -> None:
        before, most = -1, len(self.active_channels) + AT_ONCE
        while before < len(self.active_channels) < most:
            before = len(self.active_channels)
            super().handle_accept()
        if len(self.active_channels) > CONNECTIONS:
            self.maintenance(time.time())


class Threads(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Up to `most` threads; a new one starts only when all others are busy.

    Waitress starts all at once and gives each request to the one that has waited longest. The
    memory that a thread frees stays reserved for it: after some thousand requests a server with
    256 threads, of which it needed three, held 60 MB more.
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
