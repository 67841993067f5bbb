"""Saving behind the answers: in order, and done before the process ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from codeqa.errors import StorageError, places_of

HEARD_SECONDS = 0.25
"""How long the end of an answer waits to hear that it was kept: saving takes some milliseconds."""
FLUSH_SECONDS = 15.0
"""Longest wait of somebody who wants to read: the state itself waits up to ten for a lock."""

Saving = Future[str]
"""Its result is why the work failed, as sentences; '' when it worked."""

log = logging.getLogger(__name__)


class Persistence:
    """Runs what is submitted, one after the other, in a thread of its own.

    A process that ends waits for that thread: a crash loses at most the turn in flight.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="persistence")

    def submit(self, work: Callable[[], None]) -> Saving:
        """Have `work` done soon."""
        try:
            return self._thread.submit(_attempt, work)
        except RuntimeError:  # the interpreter is ending and takes no new work
            saving: Saving = Future()
            saving.set_result(_attempt(work))
            return saving

    def flush(self) -> None:
        """Wait until all that was submitted is done, or FLUSH_SECONDS are over."""
        problem_of(self.submit(lambda: None), FLUSH_SECONDS)


def problem_of(saving: Saving, seconds: float = HEARD_SECONDS) -> str:
    """Why `saving` failed, as sentences; '' when it worked or is not over after `seconds`."""
    try:
        return saving.result(seconds)
    except TimeoutError:
        return ""


def _attempt(work: Callable[[], None]) -> str:
    """Do `work`; what stood in its way as sentences, '' for nothing."""
    try:
        work()
    except StorageError as error:
        log.warning("an answer could not be kept: %s", error)
        return str(error)
    except Exception as error:
        log.error("an answer could not be kept: %s", places_of(error))
        return "The log says why."
    return ""
