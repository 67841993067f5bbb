"""Work behind the page: repositories are cloned, refreshed, indexed and described in threads of
this process or, with `CODEQA_JOBS=rq`, by `codeqa worker` (`codeqa_server/jobs.py`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from codeqa.errors import IndexBusyError, UsageError
from codeqa.indexing.comments import add_comments, plan_comments
from codeqa.indexing.runs import CancelledError
from codeqa.llm.models import Models
from codeqa.repositories import RepositoryReport, open_location, sync_clone, take_clone
from codeqa.repository.git import Report, read_remote
from codeqa.settings import Settings
from codeqa.types import Progress
from codeqa.web.errors import explained

LONGEST_WAIT = 10.0
"""Seconds until a job that was cancelled is left to itself; it looks several times a second."""
BUSY = "is being cloned or refreshed."

Given = Sequence[str]
"""Address and branch of what is cloned, else the folder."""
Work = Callable[[str, Given, Report], object]
"""Takes what to do, as `before_indexing` does, what for, and whom to tell how far it is."""


def before_indexing(settings: Settings, doing: str, given: Given, tell: Report) -> Path:
    """What comes before an index is brought up to date: its folder is `cloning`, `refreshing` (if
    it is a clone) or `describing` by a model; `indexing` alone needs nothing. Raises CodeQAError,
    and what `tell` raises."""
    if doing == "cloning":
        return take_clone(settings, read_remote(*given), tell).root
    location = open_location(settings, Path(given[0]))
    if doing == "refreshing":
        sync_clone(settings, location, tell)
    elif doing == "describing":
        with closing(Models(settings)) as models:
            if (model := models.answer_model()) is None:
                raise UsageError("No language model is chosen.", "Choose one, or set CODEQA_MODEL.")
            units, ask = plan_comments(settings, location, model.name).units, model.complete
            add_comments(settings, location, units, ask, model.name, tell, model.close)
    return location.root


class Jobs(Protocol):
    """Such work behind the page, one job for each repository (by id) at a time."""

    def reports(self) -> dict[str, RepositoryReport]:
        """What is being done, and what failed until it is started anew or dismissed."""

    def start(
        self, repo: str, before: RepositoryReport, doing: str, given: Given
    ) -> RepositoryReport:
        """Do what is to be done in the background, which the page is told as the state `doing`, and
        `before` again when it fails. Gives what is told; raises IndexBusyError while another job
        goes on for that repository."""

    def cancel(self, repo: str) -> None:
        """End what goes on for that repository and wait for it, or forget that it failed."""

    def close(self) -> None:
        """End what this process does."""


class ThreadJobs:
    """Jobs in threads of this process, each of which does `work`."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._reports: dict[str, RepositoryReport] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def reports(self) -> dict[str, RepositoryReport]:
        return dict(self._reports)

    def start(
        self, repo: str, before: RepositoryReport, doing: str, given: Given
    ) -> RepositoryReport:
        thread = threading.Thread(target=self._run, args=(repo, before, doing, given), daemon=True)
        with self._lock:
            if repo in self._threads:
                raise IndexBusyError(f"{before.name} {BUSY}", "Wait, or cancel that.")
            self._cancelled.discard(repo)
            self._threads[repo] = thread
            started = replace(before, state=doing, progress=Progress("waiting", 0, 0), problem="")
            self._reports[repo] = started
        thread.start()
        return started

    def _run(self, repo: str, before: RepositoryReport, doing: str, given: Given) -> None:
        def tell(step: Progress) -> None:
            if repo in self._cancelled:
                raise CancelledError("It was cancelled.")
            self._reports[repo] = replace(self._reports[repo], progress=step)

        problem = ""
        try:
            self._work(doing, given, tell)
        except CancelledError:
            pass
        except Exception as error:  # there is nobody to raise it to
            problem = str(explained(error))
        with self._lock:
            del self._threads[repo], self._reports[repo]
            if problem:
                self._reports[repo] = replace(before, problem=problem)

    def cancel(self, repo: str) -> None:
        if thread := self._threads.get(repo):
            self._cancelled.add(repo)
            thread.join(LONGEST_WAIT)
        else:
            self._reports.pop(repo, None)

    def close(self) -> None:
        for repo in list(self._threads):
            self.cancel(repo)
