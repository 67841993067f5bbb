"""Serve the page by several processes: forks of this one, which all listen on its socket.

Each opens its tables, its state and its threads after the fork: a table that was opened before it
hangs.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from codeqa import metrics
from codeqa.web.errors import explained

LONGEST_PAUSE = 60.0
"""Longest pause, in seconds, before a process that lived shorter is replaced: 1, 3, 7, …"""

log = logging.getLogger(__name__)


def serve_with_workers(number: int, serve: Callable[[], None]) -> None:
    """Let `number` forks `serve` until a signal ends this process, which passes it on.

    Forks that are killed are replaced. Raises SystemExit when one fails.
    """
    workers = _Workers(number, serve)
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, workers.end)
    workers.start()
    while workers.running:
        workers.wait()
        workers.start()
    if workers.failed:
        sys.exit(1)


class _Workers:
    """The forks of this process that serve."""

    def __init__(self, number: int, serve: Callable[[], None]) -> None:
        self._number, self._serve = number, serve
        self._pipe, self._own_end = os.pipe()  # closes with this process, however it ends
        self._signals: list[int] = []
        self._pause = 0.0
        self.running: dict[int, float] = {}
        """Process id → when it started."""
        self.failed = False

    def start(self) -> None:
        """Start the forks that are missing, unless a signal has come."""
        while len(self.running) < self._number and not self._signals:
            process = os.fork()
            if not process:
                os.close(self._own_end)
                _serve(self._serve, self._pipe)
            self.running[process] = time.monotonic()
            if self._signals:  # it came meanwhile
                os.kill(process, self._signals[-1])

    def end(self, signum: int, frame: object = None) -> None:
        """Pass a signal on to all forks; start none any more."""
        self._signals.append(signum)
        for process in list(self.running):
            with suppress(ProcessLookupError):
                os.kill(process, signum)

    def wait(self) -> None:
        """Wait until a fork ends. End the others if it failed, else pause if it lived shortly."""
        process, status = os.wait()
        soon = time.monotonic() - self.running.pop(process) < LONGEST_PAUSE
        self._pause = min(2 * self._pause + 1, LONGEST_PAUSE) if soon else 0.0
        if measured := metrics.started():
            measured.process_ended(process)
        code = os.waitstatus_to_exitcode(status)
        if code > 0:
            self.failed = True
            self.end(signal.SIGTERM)
        elif not self._signals:
            text = "A process of the server ended (%d); a new one takes its place in %d s."
            log.error(text, code, self._pause)
            until = time.monotonic() + self._pause
            while time.monotonic() < until and not self._signals:
                time.sleep(0.1)


def _serve(serve: Callable[[], None], pipe: int) -> None:
    """Serve in a fork, until the process that made it is gone, and end it."""

    def end_with_parent() -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    code = 1
    try:
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_DFL)
        os.setpgrp()  # so that Ctrl-C reaches it once, by its parent
        threading.Thread(target=end_with_parent, daemon=True).start()
        serve()
        code = 0
    except Exception as error:
        print(explained(error), file=sys.stderr)
    finally:
        os._exit(code)
