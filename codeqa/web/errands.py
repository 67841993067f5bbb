"""Clones and refreshes that go on behind the page, one for each repository at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from codeqa.errors import IndexBusyError
from codeqa.indexing.status import CancelledError
from codeqa.repositories import RepositoryReport
from codeqa.repository.clones import Report
from codeqa.types import Progress
from codeqa.web.errors import explained


@dataclass
class Errand:
    """One of them. It is kept when it failed, until it is begun anew or dismissed."""

    report: RepositoryReport
    """The repository as it was when it began; its state says what is done: `cloning` or
    `refreshing`."""
    progress: Progress = field(default_factory=lambda: Progress("waiting", 0, 0))
    problem: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Errands:
    """All of a server, by the id of the repository."""

    def __init__(self) -> None:
        self._by_id: dict[str, Errand] = {}
        self._lock = threading.Lock()

    def all(self) -> dict[str, Errand]:
        return dict(self._by_id)

    def begin(
        self,
        repo: str,
        report: RepositoryReport,
        work: Callable[[Report], None],
    ) -> None:
        """Do `work` behind, which tells how far it is. Raises IndexBusyError while another goes on
        for that repository."""
        errand = Errand(report)

        def tell(step: Progress) -> None:
            if errand.cancelled.is_set():
                raise CancelledError("It was cancelled.")
            errand.progress = step

        def run() -> None:
            try:
                work(tell)
            except CancelledError:
                pass
            except Exception as error:  # there is nobody to raise it to
                errand.problem = str(explained(error))
                return
            self._by_id.pop(repo, None)

        with self._lock:
            before = self._by_id.get(repo)
            if before is not None and not before.problem:
                raise IndexBusyError(
                    f"{report.name} is being cloned or refreshed.", "Wait, or cancel that."
                )
            self._by_id[repo] = errand
        errand.thread = threading.Thread(target=run, name="codeqa-errand", daemon=True)
        errand.thread.start()

    def cancel(self, repo: str, seconds: float = 10.0) -> None:
        """End what goes on for that repository and wait for it, or forget that it failed."""
        if errand := self._by_id.get(repo):
            errand.cancelled.set()
            if errand.thread is not None:
                errand.thread.join(seconds)
            if errand.problem:
                self._by_id.pop(repo, None)

    def close(self) -> None:
        for repo in self.all():
            self.cancel(repo)
