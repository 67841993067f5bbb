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
from collections.abc import Callable
from contextlib import suppress

from codeqa import metrics
from codeqa.web.errors import explained

log = logging.getLogger(__name__)


def serve_with_workers(number: int, serve: Callable[[], None]) -> None:
    """Have `number` forks `serve`, and new ones in place of those that end, until this process is
    told to end, which they are told as well. Raises SystemExit where one fails."""
    running: set[int] = set()
    told: list[int] = []
    held, alive = os.pipe()

    def end(signum: int, frame: object = None) -> None:
        told.append(signum)
        for process in running:
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
            running.add(process)
            if told:  # while it was made
                os.kill(process, told[-1])
        if not running and failed:
            sys.exit(1)
        if not running:
            return
        process, status = os.wait()
        running.discard(process)
        metrics.process_ended(process)
        code = os.waitstatus_to_exitcode(status)
        if code > 0:
            failed = True
            end(signal.SIGTERM)
        elif not told:
            log.error("A process of the server ended (%d), and a new one takes its place.", code)


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
