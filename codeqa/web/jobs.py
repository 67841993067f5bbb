"""Background work: cloning, refreshing, indexing and describing repositories.

It runs in threads of this process or, with `CODEQA_JOBS=rq`, in `codeqa worker` processes
(`codeqa_server/jobs.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from codeqa.errors import IndexBusyError, UsageError
from codeqa.indexing.method_descriptions import add_descriptions, plan_descriptions
from codeqa.indexing.runs import CancelledError
from codeqa.llm.models import Models
from codeqa.repositories import RepositoryReport, open_location, sync_clone, take_clone
from codeqa.repository.clones import Report
from codeqa.repository.remotes import read_remote
from codeqa.settings import Settings
from codeqa.types import Progress
from codeqa.web.errors import explained

LONGEST_WAIT = 10.0
"""Longest wait for a cancelled job to end; it checks for that several times a second."""
BUSY = "is being cloned or refreshed."

Arguments = Sequence[str]
"""Address and branch of a repository to clone, or the folder of one."""
Work = Callable[[str, Arguments, Report], object]
"""Function that takes the kind of a job, its arguments and a listener, like `before_indexing`."""


def before_indexing(settings: Settings, doing: str, arguments: Arguments, report: Report) -> Path:
    """Prepare a repository for indexing and return its folder.

    `doing` is `cloning`, `refreshing` (fetch a clone again), `describing` (a model describes the
    methods) or `indexing` (no preparation). Raises CodeQAError, and what `report` raises.
    """
    if doing == "cloning":
        return take_clone(settings, read_remote(*arguments), report).root
    location = open_location(settings, Path(arguments[0]))
    if doing == "refreshing":
        sync_clone(settings, location, report)
    elif doing == "describing":
        with closing(Models(settings)) as models:
            if (model := models.answer_model()) is None:
                raise UsageError("No language model is chosen.", "Choose one, or set CODEQA_MODEL.")
            units, ask = plan_descriptions(settings, location, model.name).units, model.complete
            add_descriptions(settings, location, units, ask, model.name, report, model.close)
    return location.root


class Jobs(Protocol):
    """Background jobs, at most one for each repository (by id) at a time."""

    def reports(self) -> dict[str, RepositoryReport]:
        """Return running jobs, and failed ones until they are restarted or dismissed."""

    def start(
        self, repo: str, before: RepositoryReport, doing: str, arguments: Arguments
    ) -> RepositoryReport:
        """Start a job and return its report: `before` with the state `doing`.

        If the job fails, the report is `before` with the problem. Raises IndexBusyError while
        another job runs for that repository.
        """

    def cancel(self, repo: str) -> None:
        """Cancel the job of that repository and wait for its end, or dismiss a failed one."""

    def close(self) -> None:
        """End the jobs of this process."""


class ThreadJobs:
    """Jobs in threads of this process; `work` does them."""

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
                raise CancelledError("The job was cancelled.")
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
