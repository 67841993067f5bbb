"""Run the indexing of one repository, in the foreground or in the background."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.embeddings.registry import Embedding, chosen_embedding, fast_embedding
from codeqa.errors import CodeQAError, EmbeddingError, IndexBusyError
from codeqa.indexing.freshness import RULES, is_outdated
from codeqa.indexing.passes import Builder, LocalBuilder, Outcome, build, refine_units
from codeqa.indexing.runs import (
    CANCELLED,
    INTERRUPTED,
    CancelledError,
    RunRecorder,
    count_reasons,
    hold,
    holder_of,
    is_paused,
    noted_state,
    read_status,
    refusals_explained,
)
from codeqa.repository.walk import Walk, checked_root, require_source, walk
from codeqa.settings import Settings
from codeqa.store.location import NOTE, Location, confirm, local_bytes, save_location
from codeqa.store.reader import damage, give_back_memory
from codeqa.store.schema import ROWS_VERSION, record_of
from codeqa.store.tables import Tables, open_once
from codeqa.store.writer import TableWriter
from codeqa.types import IndexStatus, IndexSummary, Progress

LONGEST_REST = 5.0
"""Seconds between a long background run and the next look at changes."""
KEEP_UP_SECONDS = 2.0
"""Longest wait of a question for changes on disk to be indexed."""
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

Listener = Callable[[Progress], None]
RunEnd = Callable[[IndexSummary | Exception], None]
"""Called with the result or error of a background run."""
Pass = tuple[TableWriter, Outcome]


class Indexer:
    """Indexes the repository of `location`, in the foreground or in the background.

    `tables` opens the tables that are searched meanwhile.
    """

    def __init__(
        self, settings: Settings, location: Location, tables: Callable[[], Tables] | None = None
    ) -> None:
        self.settings = settings
        self.location = location
        self._follows = settings.watch and not location.snapshot_of  # which never changes
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._verified = self._searchable = False
        self.hit_paths = set[str]()
        """Files with hits of questions: their vectors are made first."""
        self._open = tables or open_once(location)
        self._files_changed = threading.Event()
        """Files may have changed: vectors can wait."""
        self._pass_seconds = 0.0
        self._paused = threading.Event()
        self._runs = self._cancelled = False
        self.checked_ns = 0
        """When the last run of this process began to look at files."""
        self._keeping_up, self._kept_up = threading.Lock(), Future[bool]()
        self._kept_up.set_result(True)

    # The steps of a run, in the only order that leaves a valid index whenever it ends.
    @refusals_explained()
    def run(
        self,
        progress: Listener | None = None,
        *,
        refine: bool = True,
        full: bool = False,
        wait: bool = True,
        background: bool = False,
        builder: Builder | None = None,
    ) -> IndexSummary:
        """Bring the index up to date and return what that took.

        Text and symbols of every file come first and are searchable as they are committed; then,
        with `refine`, units without a vector of the chosen embedding get one. `full` reads every
        file again, beside the index in use. `background`: respect a pause, stop refining when a
        file changes, end on `stop`. Without a `builder` this machine does the work.

        Raises IndexBusyError (with `wait` false, when another run holds the index), UsageError,
        RepositoryError, StorageError, EmbeddingError and CancelledError; what was committed stays.
        """
        started, started_ns = time.monotonic(), time.time_ns()
        listener = progress or (lambda step: None)
        confirm(self.location)
        checked_root(self.location.root)  # raises before the note of a removed one is rewritten
        self.require_source()
        if background and self.was_removed():
            raise CancelledError("The index was removed.")
        save_location(self.location)
        if not background:
            self.resume()

        def ended() -> str:
            if self._cancelled:
                return CANCELLED
            return INTERRUPTED if background and self._stop.is_set() else ""

        def waiting(holder: str) -> None:
            listener(Progress("waiting", 0, 0, f"the index is held by {holder}"))
            if background and self._stop.is_set():
                raise CancelledError(INTERRUPTED)

        recorder = RunRecorder(self.location, listener, ended, self._paused.is_set)
        lock = hold(self.location, wait=wait, waiting=waiting)
        builder = builder or LocalBuilder()
        with lock, self._running(), recorder, builder.running(self.location), refusals_explained():
            fast = fast_embedding()
            chosen = chosen_embedding(self.settings) if refine else None
            writer, outcome = self._repaired(
                lambda: self._first_pass(fast, full, started_ns, recorder, builder),
                recorder,
                thorough=not background,
            )
            self._verified, self._pass_seconds = True, time.monotonic() - started
            self.checked_ns = started_ns
            self._open().look_again()  # else readers see it some seconds later
            if not self._open().counts().files:
                os.utime(self.location.folder / NOTE, (0, 0))  # no longer the one used last
                require_source(self._walk())
            if chosen is not None:
                self._refine(writer, chosen, recorder, background)
            self._open().look_again()
        return self._summary(outcome, time.monotonic() - started)

    def require_source(self) -> None:
        """Raise RepositoryError where nothing was ever indexed and no file can be."""
        if not (self.location.folder / NOTE).exists():
            require_source(self._walk())

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Let `cancel` end this run."""
        self._runs, self._cancelled = True, False
        try:
            yield
        finally:
            self._runs = False

    def _repaired(self, first_pass: Callable[[], Pass], progress: Listener, thorough: bool) -> Pass:
        """Run a pass; delete damaged tables before the first of this process and after errors."""
        if self._verified or not damage(self.location, thorough=thorough):
            try:
                return first_pass()
            except Exception:
                if not damage(self.location):
                    raise
        progress(Progress("replacing the damaged index", 0, 0))
        tables = Path(self.location.tables)
        if tables.is_dir():  # a link to a folder, on a disk of its own, stays one
            shutil.rmtree(tables.resolve())
            tables.resolve().mkdir()
        else:
            tables.unlink()
        return first_pass()

    def _first_pass(
        self,
        fast: Embedding | None,
        full: bool,
        started_ns: int,
        progress: Listener,
        builder: Builder,
    ) -> Pass:
        progress(Progress("looking at files", 0, 0))
        files = self._walk()
        vector = record_of(fast)
        beside = builder.beside
        writer = TableWriter.open(self.location, ROWS_VERSION, vector, rebuild=full, beside=beside)
        outcome = build(self.settings, files, writer, fast, progress, builder)
        if outcome.wrote:
            progress(Progress("building the text index", 0, 0))
            builder.tidy(writer, progress)
        # Files whose times were too young to trust have been compared by content as well.
        if outcome.wrote or outcome.read or writer.meta.growing:
            writer.finish(started_ns, ROWS_VERSION, vector)
        return writer, outcome

    def _refine(
        self, writer: TableWriter, chosen: Embedding, recorder: RunRecorder, background: bool
    ) -> None:
        recorder.state("refining")
        batch = self.settings.embedding_batch
        enough = self._files_changed if background else threading.Event()
        try:
            refine_units(writer, chosen, batch, recorder, enough, self.hit_paths)
        except EmbeddingError as error:
            hint = f"{error.hint} Text and symbols are indexed and can be searched."
            raise EmbeddingError(error.message, hint.strip()) from error

    def _walk(self) -> Walk:
        limit = self.settings.max_file_bytes
        return walk(self.location.root, max_file_bytes=limit, own=self._own())

    def _own(self) -> list[Path]:
        """Return the folders of CodeQA, which may lie in the repository."""
        folders = [self.settings.data_dir]
        if self.location.tables_are_local:
            tables = Path(self.location.tables)
            folders += [tables.parent, tables]
        # A clone lies in a folder of CodeQA itself.
        return [folder for folder in folders if not self.location.root.is_relative_to(folder)]

    def _summary(self, outcome: Outcome, seconds: float) -> IndexSummary:
        tables = self._open()
        counts = tables.counts()
        files = tables.files()
        return IndexSummary(
            repository=str(self.location.root),
            files=counts.files,
            methods=counts.methods,
            classes=counts.classes,
            documents=counts.documents,
            references=counts.references,
            changed=outcome.changed,
            removed=outcome.removed,
            unchanged=outcome.unchanged,
            replaced=sum(record.replaced > 0 for record in files),
            broken=sum(record.broken for record in files),
            skipped=count_reasons(tables.skipped()),
            seconds=seconds,
            bytes_on_disk=local_bytes(self.location),
            vectors={
                record.name: counts.embedded if column == "vector" else counts.refined
                for column, record in tables.vector_columns()
            },
        )

    # In the background

    def follow(self, on_end: RunEnd, progress: Listener | None = None) -> None:
        """Run now and after every change on disk, until `stop` or a cancelled run, or OSError."""
        trouble: list[Exception] = []

        def notice() -> None:
            try:
                for _ in changes(self.location.root, self._own(), self._stop):
                    self._files_changed.set()
            except Exception as error:
                trouble.append(error)
            self._files_changed.set()

        self._files_changed.clear()
        threading.Thread(target=notice, name="codeqa-watch", daemon=True).start()
        while True:
            self._files_changed.wait(LOOK_ANYWAY)
            if trouble:
                raise trouble[0]
            if self._stop.is_set():
                return
            self._files_changed.clear()
            try:
                on_end(self.run(progress, background=True))
            except Exception as error:
                if isinstance(error, CancelledError):
                    self._stop.set()
                on_end(error)
            give_back_memory()
            # Where files change all the time, half of the time is left to other programs.
            self._stop.wait(min(self._pass_seconds, LONGEST_REST))

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        """Bring the index up to date; return whether it is, after some seconds at most."""
        end = time.monotonic() + LONGEST_REST
        while time.monotonic() < end:
            if self._paused.is_set() or self._cancelled or is_paused(self.location):
                break
            try:
                self.run(refine=False, wait=False, background=True)
                return True
            except IndexBusyError:
                self._files_changed.set()
                time.sleep(0.05)
            except (CodeQAError, OSError, RuntimeError):  # nothing can be written, for example
                break
        return False

    def keep_up(self) -> str:
        """Index what has changed on disk before a question is searched.

        Returns '', or a sentence for the user where that fails or takes over KEEP_UP_SECONDS.
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
        with self._keeping_up:
            if self._kept_up.done():
                self._kept_up = Future()
                work = partial(_settle, self._kept_up, self.catch_up)
                threading.Thread(target=work, name="codeqa-keep-up", daemon=True).start()
            kept_up = self._kept_up
        try:
            done = kept_up.result(KEEP_UP_SECONDS)
        except TimeoutError:
            done = False
        if done:
            return ""
        at = time.strftime("%H:%M", time.localtime(meta.updated_at))
        progress = "could not be updated" if kept_up.done() else "is being updated"
        return f"Files have changed on disk. This comes from the index of {at}, which {progress}."

    def start_background(
        self,
        progress: Listener | None = None,
        on_end: RunEnd = lambda result: None,
    ) -> None:
        """Run in a thread, unless it lives, and after every change if the settings say so."""
        if not self._alive():
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._work, args=(on_end, progress), name="codeqa-index", daemon=True
            )
            self._thread.start()

    def _work(self, on_end: RunEnd, progress: Listener | None) -> None:
        try:
            if self._follows:
                self.follow(on_end, progress)
                return
            self._files_changed.set()
            while self._files_changed.is_set():  # `check` may set it while a run ends
                self._files_changed.clear()
                on_end(self.run(progress, background=True))
        except Exception as error:  # the record keeps it for the status
            on_end(error)

    def pause(self) -> None:
        """Let the runs of this process wait until `resume` or a run in the foreground."""
        self._paused.set()

    def resume(self) -> None:
        """Let paused runs go on."""
        self._paused.clear()

    def cancel(self) -> bool:
        """Ask the current run of this process to end; return whether there is one."""
        self._cancelled = self._runs
        return self._runs

    def check(self) -> None:
        """Bring the index up to date in the background, whether changes are followed or not."""
        self.resume()
        self._files_changed.set()
        self.start_background()

    def tables(self) -> Tables:
        """Return the index to search; wait some seconds for a first run's first commit."""
        end = time.monotonic() + LONGEST_REST
        while not self._searchable and time.monotonic() < end:
            status = self.status()
            self._searchable = status.files > 0
            begins = status.state == "missing" and self._alive()
            if status.state != "indexing" and not begins:
                break
            time.sleep(0.05)
        return self._open()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float = 30.0) -> None:
        """Ask the background run to end after its batch, and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        with contextlib.suppress(TimeoutError):
            self._kept_up.result(timeout)

    # State

    def was_removed(self) -> bool:
        """Return whether another process has removed the index that this one made or read."""
        return self._verified and not (self.location.folder / NOTE).exists()

    def state(self) -> str:
        """Return the state that `status` gives, where possible without loading the tables."""
        if self._paused.is_set():
            return "paused"
        return noted_state(self.location) or self.status().state

    def status(self) -> IndexStatus:
        """Return what the index holds and what any process is doing with it now."""
        # Tables that grow are opened anew: those in use would keep this version for seconds.
        tables = None if holder_of(self.location) else self._open
        status = read_status(self.settings, self.location, tables)
        if self._paused.is_set():
            status = replace(status, state="paused", error="")
        return replace(status, watched=self._alive() and self._follows)


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
