"""Saving behind the answers: in order, tried again, and done before the process ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet

from codeqa.errors import StorageError, places_of

ATTEMPTS = 2
PAUSE_SECONDS = 0.1
"""Before the second attempt: what is written twice is written once, for every turn has its id."""
HEARD_SECONDS = 0.25
"""How long the end of an answer waits to hear that it was kept: saving takes some milliseconds."""
FLUSH_SECONDS = 15.0
"""Longest wait of somebody who wants to read: the state itself waits up to ten for a lock."""

Work = Callable[[], None]
Saving = Future[str]
"""Its result is why the work failed, as sentences; '' when it worked."""

log = logging.getLogger(__name__)


class Persistence:
    """Runs what is submitted, one after the other, in a thread of its own.

    A process that ends waits for that thread: a crash loses at most the turn in flight.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="persistence")

    def submit(self, work: Work) -> Saving:
        """Have `work` done soon. It may run twice, so it must bear that."""
        try:
            return self._thread.submit(_patiently, work)
        except RuntimeError:  # the interpreter is ending and takes no new work
            saving: Saving = Future()
            saving.set_result(_patiently(work))
            return saving

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all that was submitted is done; False when that took too long."""
        return _ended(self.submit(lambda: None), seconds)


def problem_of(saving: Saving, seconds: float = HEARD_SECONDS) -> str:
    """Why `saving` failed, as sentences; '' when it worked or is not over after `seconds`."""
    return saving.result() if _ended(saving, seconds) else ""


def _ended(saving: Saving, seconds: float) -> bool:
    try:
        saving.result(seconds)
    except NotYet:
        return False
    return True


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
