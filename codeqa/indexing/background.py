"""Keep the index of one repository up to date in the background, and before questions."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import CodeQAError, IndexBusyError
from codeqa.indexing.freshness import RULES, is_outdated
from codeqa.indexing.indexer import Indexer, Listener
from codeqa.indexing.runs import CancelledError, is_paused
from codeqa.settings import Settings
from codeqa.store.location import Location
from codeqa.store.reader import give_back_memory
from codeqa.store.tables import Tables
from codeqa.types import IndexStatus, IndexSummary

LONGEST_REST = 5.0
"""Seconds between a long background run and the next look at changes."""
UPDATE_SECONDS = 2.0
"""Longest wait of a question for changes on disk to be indexed."""
ALONE = 5
"""Factor of that wait where nothing follows the files: an update that is cut off helps nobody."""
LOOK_ANYWAY = 300.0
"""Seconds after which a followed repository is looked at without an event: the system loses some
when very many come at once, and the files that git keeps elsewhere are not watched."""

QUIET_MS, AT_MOST_MS = 50, 1_000
"""Changes are reported together once none has come for so long, or when the first is so old:
editors write a file in several steps, and a change of branch writes thousands."""
WAKE_MS = 250
POLL_MS = 2_000
"""Between two looks at all files where the system sends no events: a network folder, or more
folders than it watches for one user."""
_log = logging.getLogger(__name__)

RunEnd = Callable[[IndexSummary | Exception], None]
"""Called with the result or error of a background run."""


class BackgroundIndexer(Indexer):
    """An indexer with a thread of its own, which also follows changes on disk."""

    def __init__(
        self, settings: Settings, location: Location, tables: Callable[[], Tables] | None = None
    ) -> None:
        super().__init__(settings, location, tables)
        self._follows = settings.watch and not location.snapshot_of  # which never changes
        self._thread: threading.Thread | None = None
        self._has_files = False
        """True once the index has been seen to hold files."""
        self._update_lock = threading.Lock()
        self._update = Future[bool]()
        """The last update before a question, and whether it succeeded."""
        self._update.set_result(True)

    def start(self, progress: Listener | None = None, on_end: RunEnd = lambda result: None) -> None:
        """Run in a thread, unless it lives, and after every change if the settings say so."""
        if not self._alive():
            self.signals.stop.clear()
            self._thread = threading.Thread(
                target=self._work, args=(on_end, progress), name="codeqa-index", daemon=True
            )
            self._thread.start()

    def start_update(self) -> None:
        """Bring the index up to date in the background, whether changes are followed or not."""
        self.resume()
        self.signals.files_changed.set()
        self.start()

    def stop(self, timeout: float = 30.0) -> None:
        """Ask the background run to end after its batch, and wait for it."""
        self.signals.stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        with contextlib.suppress(TimeoutError):
            self._update.result(timeout)

    def _work(self, on_end: RunEnd, progress: Listener | None) -> None:
        try:
            if self._follows:
                self.follow(on_end, progress)
                return
            self.signals.files_changed.set()
            while self.signals.files_changed.is_set():  # `start_update` may set it while a run ends
                self.signals.files_changed.clear()
                on_end(self.run(progress, background=True))
        except Exception as error:  # the record keeps it for the status
            on_end(error)

    def follow(self, on_end: RunEnd, progress: Listener | None = None) -> None:
        """Run now and after every change on disk, until `stop` or a cancelled run, or OSError."""
        trouble: list[Exception] = []

        def notice() -> None:
            try:
                for _ in changes(self.location.root, self._own(), self.signals.stop):
                    self.signals.files_changed.set()
            except Exception as error:
                trouble.append(error)
            self.signals.files_changed.set()

        self.signals.files_changed.clear()
        threading.Thread(target=notice, name="codeqa-watch", daemon=True).start()
        while True:
            self.signals.files_changed.wait(LOOK_ANYWAY)
            if trouble:
                raise trouble[0]
            if self.signals.stop.is_set():
                return
            self.signals.files_changed.clear()
            try:
                on_end(self.run(progress, background=True))
            except Exception as error:
                if isinstance(error, CancelledError):
                    self.signals.stop.set()
                on_end(error)
            give_back_memory()
            # Where files change all the time, half of the time is left to other programs.
            self.signals.stop.wait(min(self._pass_seconds, LONGEST_REST))

    def update_now(self, changed: Iterable[str] = ()) -> bool:
        """Bring the index up to date; return whether it is, after some seconds at most."""
        end = time.monotonic() + LONGEST_REST
        while time.monotonic() < end:
            if self.signals.paused.is_set() or self.signals.is_cancelled:
                break
            if is_paused(self.location):
                break
            try:
                self.run(refine=False, wait=False, background=True)
                return True
            except IndexBusyError:
                self.signals.files_changed.set()
                time.sleep(0.05)
            except (CodeQAError, OSError, RuntimeError):  # nothing can be written, for example
                break
        return False

    def update_before_question(self) -> str:
        """Index what has changed on disk before a question is searched.

        Returns '', or a sentence for the user where that fails or takes over UPDATE_SECONDS,
        ALONE times as long for a command, whose end ends the update.
        """
        if not self._follows:
            return ""
        try:
            tables = self._open()
            meta = tables.meta()
        except CodeQAError:  # the search, which comes next, raises it
            return ""
        checked_ns = max(meta.checked_ns, self.checked_ns)
        if not (meta.complete and is_outdated(self.location.root, tables.catalogue(), checked_ns)):
            return ""
        with self._update_lock:
            if self._update.done():
                self._update = Future()
                work = partial(_settle, self._update, self.update_now)
                threading.Thread(target=work, name="codeqa-update", daemon=True).start()
            update = self._update
        try:
            done = update.result(UPDATE_SECONDS if self._alive() else UPDATE_SECONDS * ALONE)
        except TimeoutError:
            done = False
        if done:
            return ""
        at = time.strftime("%H:%M", time.localtime(meta.updated_at))
        progress = "could not be updated" if update.done() else "is being updated"
        return f"Files have changed since the index of {at}, which {progress}."

    def tables(self) -> Tables:
        """Return the index to search; wait some seconds for a first run's first commit."""
        end = time.monotonic() + LONGEST_REST
        while not self._has_files and time.monotonic() < end:
            status = self.status()
            self._has_files = status.files > 0
            begins = status.state == "missing" and self._alive()
            if status.state != "indexing" and not begins:
                break
            time.sleep(0.05)
        return self._open()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def status(self) -> IndexStatus:
        """Return what the index holds, what any process does with it, and if it is watched."""
        return replace(super().status(), watched=self._alive() and self._follows)


def _settle(future: Future[bool], work: Callable[[], bool]) -> None:
    """Set the result of `future` to that of `work`, False where it fails."""
    done = False
    try:
        done = work()
    finally:
        future.set_result(done)


def changes(root: Path, own: Sequence[Path], stop: threading.Event) -> Iterator[None]:
    """Yield once when watching has begun, then after changes below `root`, until `stop` is set.

    Leaves out the folders `own`, and `.git` but for its rules of which files count. Raises OSError
    when `root` is gone, and OSError or RuntimeError when polling fails.
    """
    from watchfiles import watch

    ignored = tuple(f"{folder.as_posix()}/" for folder in (root / ".git", *own))
    rules = {(root / name).as_posix() for name in RULES}

    def counts(_: object, path: str) -> bool:
        name = Path(path).as_posix()
        return name in rules or not f"{name}/".startswith(ignored)

    began = False
    for polling in (False, True):
        try:
            for changed in watch(
                root, watch_filter=counts, stop_event=stop, debounce=AT_MOST_MS, step=QUIET_MS,
                rust_timeout=WAKE_MS, yield_on_timeout=True, raise_interrupt=False,
                force_polling=polling, poll_delay_ms=POLL_MS,
                # With events this would hide that the limit of watched folders is reached.
                ignore_permission_denied=polling,
            ):  # fmt: skip
                if changed or not began:
                    began = True
                    yield
            return
        except (OSError, RuntimeError):  # such as the limit of watched folders
            if polling or not root.is_dir():
                raise
        _log.warning("The system sends no changes of %s, so its files are polled.", root)
