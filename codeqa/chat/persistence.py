"""Saving behind the answers: in order, tried again, and done before the process ends (S3.25)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from codeqa.errors import StorageError, places_of

ATTEMPTS = 2
PAUSE_SECONDS = 0.1
"""Before the second attempt: what is written twice is written once, for every turn has its id."""
HEARD_SECONDS = 0.25
"""How long the end of an answer waits to hear that it was kept: saving takes some milliseconds."""
FLUSH_SECONDS = 15.0
"""Longest wait of somebody who wants to read: the state itself waits up to ten for a lock."""

Work = Callable[[], None]

log = logging.getLogger(__name__)


class Saving:
    """A piece of work that was submitted."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.problem = ""
        self._ended = threading.Event()

    def heard(self, seconds: float = HEARD_SECONDS) -> str:
        """Why it failed, as sentences; '' when it worked or is not over after `seconds`."""
        self.ended(seconds)
        return self.problem

    def ended(self, seconds: float) -> bool:
        """Wait until it is over; False when that takes longer than `seconds`."""
        return self._ended.wait(seconds)

    def run(self) -> None:
        """Do it, once more after a StorageError."""
        self.problem = _patiently(self.work)
        self._ended.set()


class Persistence:
    """Runs what is submitted, one after the other, in a thread of its own.

    The thread ends when nothing is left and is started anew by the next submission. It is no
    daemon, so that a process that ends waits for it: a crash loses at most the turn in flight.
    """

    def __init__(self) -> None:
        self._waiting: deque[Saving] = deque()
        self._lock = threading.Lock()
        self._running = False

    def submit(self, work: Work) -> Saving:
        """Have `work` done soon. It may run twice, so it must bear that."""
        saving = Saving(work)
        with self._lock:
            self._waiting.append(saving)
            if self._running:
                return saving
            self._running = True
        try:
            threading.Thread(target=self._drain, name="persistence").start()
        except RuntimeError:  # the interpreter is ending and takes no new thread
            self._drain()
        return saving

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all that was submitted is done; False when that took too long."""
        with self._lock:
            if not self._running:
                return True
        return self.submit(_nothing).ended(seconds)

    def _drain(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                saving = self._waiting.popleft()
            saving.run()


def _patiently(work: Work) -> str:
    """Do `work`; what stood in its way as sentences, '' for nothing."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            work()
        except StorageError as error:
            if attempt == ATTEMPTS:
                log.warning("an answer could not be kept: %s", error)
                return str(error)
            time.sleep(PAUSE_SECONDS)
        except Exception as error:
            log.error("an answer could not be kept: %s", places_of(error))
            return "The log says why."
        else:
            return ""
    return ""


def _nothing() -> None:
    """What a reader waits for: by then all before it is done."""
