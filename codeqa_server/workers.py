"""The page served by several processes: forks of this one, which all listen on its socket.

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
"""Seconds before a new process at most, where those before ended within as many: 1, 3, 7, …"""

log = logging.getLogger(__name__)


def serve_with_workers(number: int, serve: Callable[[], None]) -> None:
    """Have `number` forks `serve`, and new ones in place of those that end, until this process is
    told to end, which they are told as well. Raises SystemExit where one fails."""
    running: dict[int, float] = {}
    told: list[int] = []
    pause = 0.0
    held, alive = os.pipe()

    def end(signum: int, frame: object = None) -> None:
        told.append(signum)
        for process in [*running]:
            with suppress(ProcessLookupError):
                os.kill(process, signum)

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, end)
    failed = False
    while True:
        while len(running) < number and not told:
            if not (process := os.fork()):
                os.close(alive)
                _serve(serve, held)
            running[process] = time.monotonic()
            if told:  # while it was made
                os.kill(process, told[-1])
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
        elif not told:
            says = "A process of the server ended (%d); a new one takes its place in %d s."
            log.error(says, code, pause)
            until = time.monotonic() + pause
            while time.monotonic() < until and not told:
                time.sleep(0.1)


def _serve(serve: Callable[[], None], held: int) -> None:
    """What a fork does, and ends with; also when the process that made it is gone."""

    def end_with_parent() -> None:
        os.read(held, 1)
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
