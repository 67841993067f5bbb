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
"""Most seconds before a new process where the ones before lived no longer: 1, 3, 7, …"""

log = logging.getLogger(__name__)


def serve_with_workers(number: int, serve: Callable[[], None]) -> None:
    """Have `number` forks `serve`, and new ones in place of those that end, until a signal ends
    this process, which passes it on. Raises SystemExit where one fails."""
    running: dict[int, float] = {}
    signals: list[int] = []
    pause = 0.0
    pipe, own_end = os.pipe()  # which closes with this process, however it ends

    def end(signum: int, frame: object = None) -> None:
        signals.append(signum)
        for process in [*running]:
            with suppress(ProcessLookupError):
                os.kill(process, signum)

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, end)
    failed = False
    while True:
        while len(running) < number and not signals:
            if not (process := os.fork()):
                os.close(own_end)
                _serve(serve, pipe)
            running[process] = time.monotonic()
            if signals:  # while it was made
                os.kill(process, signals[-1])
        if not running and failed:
            sys.exit(1)
        if not running:
            return
        process, status = os.wait()
        soon = time.monotonic() - running.pop(process) < LONGEST_PAUSE
        pause = min(2 * pause + 1, LONGEST_PAUSE) if soon else 0.0
        if measured := metrics.started():
            measured.process_ended(process)
        code = os.waitstatus_to_exitcode(status)
        if code > 0:
            failed = True
            end(signal.SIGTERM)
        elif not signals:
            text = "A process of the server ended (%d); a new one takes its place in %d s."
            log.error(text, code, pause)
            until = time.monotonic() + pause
            while time.monotonic() < until and not signals:
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
