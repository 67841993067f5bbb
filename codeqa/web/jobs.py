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
from codeqa.repository.clones import Report
from codeqa.repository.remotes import read_remote
from codeqa.settings import Settings
from codeqa.types import Progress
from codeqa.web.errors import explained

LONGEST_WAIT = 10.0
"""Seconds until a job that was cancelled is left to itself; it looks several times a second."""
BUSY = "is being cloned or refreshed."

Arguments = Sequence[str]
"""Address and branch of what is cloned, else the folder."""
Work = Callable[[str, Arguments, Report], object]
"""Takes the kind of a job, as `before_indexing` does, its arguments and a listener of progress."""


def before_indexing(settings: Settings, doing: str, arguments: Arguments, report: Report) -> Path:
    """Do what comes before indexing and return the folder: clone it (`cloning`), fetch a clone anew
    (`refreshing`) or have a model describe its methods (`describing`); `indexing` needs nothing.
    Raises CodeQAError, and what `report` raises."""
    if doing == "cloning":
        return take_clone(settings, read_remote(*arguments), report).root
    location = open_location(settings, Path(arguments[0]))
    if doing == "refreshing":
        sync_clone(settings, location, report)
    elif doing == "describing":
        with closing(Models(settings)) as models:
            if (model := models.answer_model()) is None:
                raise UsageError("No language model is chosen.", "Choose one, or set CODEQA_MODEL.")
            units, ask = plan_comments(settings, location, model.name).units, model.complete
            add_comments(settings, location, units, ask, model.name, report, model.close)
    return location.root


class Jobs(Protocol):
    """Do such work behind the page, one job for each repository (by id) at a time."""

    def reports(self) -> dict[str, RepositoryReport]:
        """Return what is being done, and what failed until it is started anew or dismissed."""

    def start(
        self, repo: str, before: RepositoryReport, doing: str, arguments: Arguments
    ) -> RepositoryReport:
        """Start a job of the kind `doing` and return its report, `before` with that state; if it
        fails it is `before` again, with the problem. Raises IndexBusyError while another job goes
        on for that repository."""

    def cancel(self, repo: str) -> None:
        """End the job of that repository and wait for it, or forget that it failed."""

    def close(self) -> None:
        """End the jobs of this process."""


class ThreadJobs:
    """Do jobs in threads of this process, by `work`."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._reports: dict[str, RepositoryReport] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def reports(self) -> dict[str, RepositoryReport]:
        return dict(self._reports)

    def start(
        self, repo: str, before: RepositoryReport, doing: str, arguments: Arguments
    ) -> RepositoryReport:
        thread = threading.Thread(
            target=self._run, args=(repo, before, doing, arguments), daemon=True
        )
        with self._lock:
            if repo in self._threads:
                raise IndexBusyError(f"{before.name} {BUSY}", "Wait for it, or cancel it.")
            self._cancelled.discard(repo)
            self._threads[repo] = thread
            started = replace(before, state=doing, progress=Progress("waiting", 0, 0), problem="")
            self._reports[repo] = started
        thread.start()
        return started

    def _run(self, repo: str, before: RepositoryReport, doing: str, arguments: Arguments) -> None:
        def report(step: Progress) -> None:
            if repo in self._cancelled:
                raise CancelledError("It was cancelled.")
            self._reports[repo] = replace(self._reports[repo], progress=step)

        problem = ""
        try:
            self._work(doing, arguments, report)
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
