"""Background jobs: clones and refreshes, one for each repository at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from codeqa.errors import IndexBusyError
from codeqa.indexing.runs import CancelledError
from codeqa.repositories import RepositoryReport
from codeqa.repository.clones import Report
from codeqa.types import Progress
from codeqa.web.errors import explained

LONGEST_WAIT = 10.0
"""Seconds until what was cancelled is left to itself; it looks several times a second."""


class Jobs:
    """All of a server, by the id of the repository."""

    def __init__(self) -> None:
        self._reports: dict[str, RepositoryReport] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def reports(self) -> dict[str, RepositoryReport]:
        """What is being done, and what failed until it is started anew or dismissed."""
        return dict(self._reports)

    def start(
        self, repo: str, before: RepositoryReport, doing: str, work: Callable[[Report], None]
    ) -> RepositoryReport:
        """Do `work` in the background, which the page is told as the state `doing`, and `before`
        again when it fails. Gives what is told; raises IndexBusyError while another job goes on
        for that repository."""
        thread = threading.Thread(target=self._run, args=(repo, before, work), daemon=True)
        with self._lock:
            if repo in self._threads:
                raise IndexBusyError(
                    f"{before.name} is being cloned or refreshed.", "Wait, or cancel that."
                )
            self._cancelled.discard(repo)
            self._threads[repo] = thread
            started = replace(before, state=doing, progress=Progress("waiting", 0, 0), problem="")
            self._reports[repo] = started
        thread.start()
        return started

    def _run(self, repo: str, before: RepositoryReport, work: Callable[[Report], None]) -> None:
        def tell(step: Progress) -> None:
            if repo in self._cancelled:
                raise CancelledError("It was cancelled.")
            self._reports[repo] = replace(self._reports[repo], progress=step)

        problem = ""
        try:
            work(tell)
        except CancelledError:
            pass
        except Exception as error:  # there is nobody to raise it to
            problem = str(explained(error))
        with self._lock:
            del self._threads[repo], self._reports[repo]
            if problem:
                self._reports[repo] = replace(before, problem=problem)

    def cancel(self, repo: str) -> None:
        """End what goes on for that repository and wait for it, or forget that it failed."""
        if thread := self._threads.get(repo):
            self._cancelled.add(repo)
            thread.join(LONGEST_WAIT)
        else:
            self._reports.pop(repo, None)

    def close(self) -> None:
        for repo in list(self._threads):
            self.cancel(repo)
