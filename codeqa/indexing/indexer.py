"""Runs the indexing of one repository, in the foreground or behind a page."""

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
from typing import Any

from codeqa.embeddings.registry import Embedding, chosen_embedding, fast_embedding
from codeqa.errors import CodeQAError, EmbeddingError, IndexBusyError
from codeqa.indexing.freshness import is_behind
from codeqa.indexing.passes import Outcome, build, refine_units
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
from codeqa.store.writer import Writer
from codeqa.types import IndexStatus, IndexSummary, Progress

LONGEST_REST = 5.0
"""Seconds until changes are looked at again behind a long run."""
KEEP_UP_SECONDS = 2.0
"""Longest wait of a question for what has changed on disk to be indexed."""
LOOK_ANYWAY = 300.0
"""Seconds after which a followed repository is looked at though nothing told of a change: the
system loses some when very many come at once, and what git keeps elsewhere is not watched."""

QUIET_MS, AT_MOST_MS = 50, 1_000
"""Changes are told together once none has come for so long, or when the first is so old: editors
write a file in several steps, and a change of branch writes thousands."""
WAKE_MS = 250
POLL_MS = 2_000
"""Between two looks at all files, where events cannot be had: a network folder, or more folders
than the system watches for one user."""
_log = logging.getLogger(__name__)

Listener = Callable[[Progress], None]
Pass = tuple[Writer, Outcome]


class Indexer:
    """Indexes the repository of `location`, in the foreground or behind a page.

    `tables` opens what is searched meanwhile.
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
        self.asked = set[str]()
        """Files that were found for questions: their vectors are made first."""
        self._open = tables or open_once(location)
        self._wanted = threading.Event()
        """Somebody waits for a pass over the files: vectors can wait."""
        self._pass_seconds = 0.0
        self._paused = threading.Event()
        self._runs = self._cancelled = False
        self.checked_ns = 0
        """When the last run of this process began to look at files."""
        self._keeping_up, self._kept_up = threading.Lock(), Future[bool]()
        self._kept_up.set_result(True)

    @refusals_explained()
    def run(
        self,
        progress: Listener | None = None,
        *,
        refine: bool = True,
        full: bool = False,
        wait: bool = True,
        behind: bool = False,
        engine: Any = None,
    ) -> IndexSummary:
        """Bring the index up to date and say what that took.

        Text and symbols of every file come first and are searchable as they are
        committed; then, with `refine`, units without a vector of the chosen embedding
        get one. `full` reads every file again, beside the index in use. Raises IndexBusyError
        (with `wait` false, when another run holds the index), UsageError, RepositoryError,
        StorageError, EmbeddingError and CancelledError; what was committed stays in each case.
        A run that nobody asked for, `behind` a page, leaves a pause as it is, which others end,
        makes those vectors until a file changes, and ends with `stop`. An `engine` such as
        `RayBuilder` does the work of this machine.
        """
        started, started_ns = time.monotonic(), time.time_ns()
        listener = progress or (lambda step: None)
        confirm(self.location)
        checked_root(self.location.root)  # one that was removed is not noted anew
        self.require_source()
        if behind and self.was_removed():
            raise CancelledError("The index was removed.")
        save_location(self.location)
        if not behind:
            self.resume()

        def stopped() -> str:
            return INTERRUPTED if behind and self._stop.is_set() else ""

        def waiting(holder: str) -> None:
            listener(Progress("waiting", 0, 0, f"the index is held by {holder}"))
            if stopped():
                raise CancelledError(INTERRUPTED)

        def ended() -> str:
            return CANCELLED if self._cancelled else stopped()

        recorder = RunRecorder(self.location, listener, ended, self._paused.is_set)
        held = hold(self.location, wait=wait, waiting=waiting)
        machines = engine.running(self.location) if engine else contextlib.nullcontext()
        with held, self._running(), recorder, machines, refusals_explained():
            fast = fast_embedding()
            chosen = chosen_embedding(self.settings) if refine else None
            writer, outcome = self._sound(
                lambda: self._first_pass(fast, full, started_ns, recorder, engine), recorder, behind
            )
            self._verified, self._pass_seconds = True, time.monotonic() - started
            self.checked_ns = started_ns
            self._open().look_again()  # else it is seen some seconds later
            if not self._open().counts().files:
                os.utime(self.location.folder / NOTE, (0, 0))  # no longer the one used last
                require_source(self._walk())
            if chosen is not None:
                recorder.state("refining")
                batch = self.settings.embedding_batch
                enough = self._wanted if behind else threading.Event()
                try:
                    refine_units(writer, chosen, batch, recorder, enough, self.asked)
                except EmbeddingError as error:
                    kept = "Text and symbols are indexed and can be searched."
                    raise EmbeddingError(error.message, f"{error.hint} {kept}".strip()) from error
            self._open().look_again()
        return self._summary(outcome, time.monotonic() - started)

    def require_source(self) -> None:
        """Raise RepositoryError where nothing was ever indexed and no file can be: such a folder
        is not noted as a repository."""
        if not (self.location.folder / NOTE).exists():
            require_source(self._walk())

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Meanwhile a run of this process can be cancelled."""
        self._runs, self._cancelled = True, False
        try:
            yield
        finally:
            self._runs = False

    def _sound(self, first_pass: Callable[[], Pass], progress: Listener, behind: bool) -> Pass:
        """One pass over tables that are sound: damaged ones are made anew from the files. They are
        looked at before the first pass of this process, and when one fails."""
        if self._verified or not damage(self.location, thorough=not behind):
            try:
                return first_pass()
            except Exception:
                if not damage(self.location):
                    raise
        progress(Progress("replacing the damaged index", 0, 0))
        tables = Path(self.location.tables)
        if tables.is_dir():  # what is linked to from there stays a folder, on a disk of its own
            shutil.rmtree(tables.resolve())
            tables.resolve().mkdir()
        else:
            tables.unlink()
        return first_pass()

    def _first_pass(
        self, fast: Embedding | None, full: bool, started_ns: int, progress: Listener, engine: Any
    ) -> Pass:
        progress(Progress("looking at files", 0, 0))
        found = self._walk()
        vector = record_of(fast)
        writer = Writer.open(self.location, ROWS_VERSION, vector, rebuild=full, beside=bool(engine))
        outcome = build(self.settings, found, writer, fast, progress, engine)
        if outcome.wrote:
            progress(Progress("building the text index", 0, 0))
            engine.tidy(writer, progress) if engine else writer.tidy()
        # Files whose times were too young to trust have been compared by content as well.
        if outcome.wrote or outcome.read or writer.meta.growing:
            writer.finish(started_ns, ROWS_VERSION, vector)
        return writer, outcome

    def _walk(self) -> Walk:
        limit = self.settings.max_file_bytes
        return walk(self.location.root, max_file_bytes=limit, own=self._own())

    def _own(self) -> list[Path]:
        """Folders of CodeQA, which may lie in the repository."""
        tables = Path(self.location.tables)
        local = [tables.parent, tables] if self.location.tables_are_local else []
        folders = [self.settings.data_dir, *local]
        return [one for one in folders if not self.location.root.is_relative_to(one)]  # a clone

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
            replaced=sum(1 for record in files if record.replaced),
            broken=sum(1 for record in files if record.broken),
            skipped=count_reasons(tables.skipped()),
            seconds=seconds,
            bytes_on_disk=local_bytes(self.location),
            vectors={
                record.name: counts.embedded if column == "vector" else counts.refined
                for column, record in tables.vector_columns()
            },
        )

    # Behind a page

    def follow(
        self, ran: Callable[[IndexSummary | Exception], None], progress: Listener | None = None
    ) -> None:
        """Run now and after every change on disk, until `stop` is called or a run cancelled; `ran`
        is told what came of each run, also when it failed. Raises OSError when the repository is
        gone."""
        trouble: list[Exception] = []

        def notice() -> None:
            try:
                for _ in changes(self.location.root, self._own(), self._stop):
                    self._wanted.set()
            except Exception as error:
                trouble.append(error)
            self._wanted.set()

        self._wanted.clear()
        threading.Thread(target=notice, name="codeqa-watch", daemon=True).start()
        while True:
            self._wanted.wait(LOOK_ANYWAY)
            if trouble:
                raise trouble[0]
            if self._stop.is_set():
                return
            self._wanted.clear()
            try:
                ran(self.run(progress, behind=True))
            except Exception as error:
                if isinstance(error, CancelledError):
                    self._stop.set()
                ran(error)
            give_back_memory()
            # Where something writes all the time, half of it is for others.
            self._stop.wait(min(self._pass_seconds, LONGEST_REST))

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        """Bring the index up to date, for files that `changed`, before it is asked; whether it is.
        A run that is on its way, which may have passed them, is waited for, for some seconds."""
        end = time.monotonic() + LONGEST_REST
        while time.monotonic() < end:
            if self._paused.is_set() or self._cancelled or is_paused(self.location):
                break
            try:
                self.run(refine=False, wait=False, behind=True)
                return True
            except IndexBusyError:
                self._wanted.set()
                time.sleep(0.05)
            except (CodeQAError, OSError, RuntimeError):  # nothing can be written, for example
                break
        return False

    def keep_up(self) -> str:
        """Bring in what has changed on disk before the index is asked. Returns '', or, where that
        takes longer than KEEP_UP_SECONDS or cannot be done, a sentence that says so."""
        if not self._follows:
            return ""
        try:
            tables = self._open()
            meta = tables.meta()
        except CodeQAError:  # whoever asks hears of it
            return ""
        checked_ns = max(meta.checked_ns, self.checked_ns)
        if not (meta.complete and is_behind(self.location.root, tables.catalogue(), checked_ns)):
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
        does = "could not be brought up to date" if kept_up.done() else "is catching up"
        return f"Files have changed on disk: this is from the index of {at}, which {does}."

    def start_background(
        self,
        progress: Listener | None = None,
        ran: Callable[[IndexSummary | Exception], None] = lambda _: None,
    ) -> None:
        """Run in a thread of its own and, where the settings say so, after every change on disk;
        `progress` and `ran` are told of it. Does nothing while that lives."""
        if not self._alive():
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._work, args=(ran, progress), name="codeqa-index", daemon=True
            )
            self._thread.start()

    def _work(
        self, ran: Callable[[IndexSummary | Exception], None], progress: Listener | None
    ) -> None:
        try:
            if self._follows:
                return self.follow(ran, progress)
            self._wanted.set()
            while self._wanted.is_set():  # also when that is asked for while a run ends
                self._wanted.clear()
                ran(self.run(progress, behind=True))
        except Exception as error:  # the record keeps it for the status
            ran(error)

    def pause(self) -> None:
        """Let the runs of this process, now and later, wait until `resume`, or until somebody asks
        for a run; what is committed can be searched."""
        self._paused.set()

    def resume(self) -> None:
        """Let paused runs go on."""
        self._paused.clear()

    def cancel(self) -> bool:
        """Ask the run of this process that is on its way to end; whether there is one."""
        self._cancelled = self._runs
        return self._runs

    def check(self) -> None:
        """Bring the index up to date behind the page, now, whether changes are followed or not."""
        self.resume()
        self._wanted.set()
        self.start_background()

    def tables(self) -> Tables:
        """The index to be searched: what a first run commits first is waited for, some seconds.

        Raises IndexMissingError and IndexFormatError.
        """
        end = time.monotonic() + LONGEST_REST
        while not self._searchable and time.monotonic() < end:
            now = self.status()
            self._searchable = now.files > 0
            begins = now.state == "missing" and self._alive()
            if now.state != "indexing" and not begins:
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

    # What there is

    def was_removed(self) -> bool:
        """Whether the index that this made or read is gone: another process has removed it."""
        return self._verified and not (self.location.folder / NOTE).exists()

    def state(self) -> str:
        """The state that `status` gives, without the second that it takes to load the tables."""
        noted = "paused" if self._paused.is_set() else noted_state(self.location)
        return noted or self.status().state

    def status(self) -> IndexStatus:
        """What the index holds and what any process is doing with it now."""
        # What grows must not be read by what answers until somebody asks: it keeps it for seconds.
        tables = None if holder_of(self.location) else self._open
        status = read_status(self.settings, self.location, tables)
        if self._paused.is_set():
            status = replace(status, state="paused", error="")
        return replace(status, watched=self._alive() and self._follows)


def _settle(future: Future[bool], work: Callable[[], bool]) -> None:
    """Set the result of `future` to that of `work`; False where it fails."""
    done = False
    try:
        done = work()
    finally:
        future.set_result(done)


def changes(root: Path, own: Sequence[Path], stop: threading.Event) -> Iterator[None]:
    """Yield once when changes will be noticed from now on, then after changes below `root`, until
    `stop` is set. What git keeps for itself, but for what says which files count, and what lies in
    `own` is no change.

    What happens while nobody asks is told with the next step. Raises OSError when `root` is gone,
    and OSError or RuntimeError when looking fails as well.
    """
    from watchfiles import watch

    ignored = tuple(f"{folder.as_posix()}/" for folder in (root / ".git", *own))

    rules = {(root / ".git" / name).as_posix() for name in ("index", "info/exclude")}

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
                # Asked of events it would hide that the limit of watched folders is reached.
                ignore_permission_denied=polling,
            ):  # fmt: skip
                if changed or not began:
                    began = True
                    yield
            return
        except (OSError, RuntimeError):  # the limit of watched folders, and what has no name
            if polling or not root.is_dir():
                raise
        _log.warning("Changes of %s cannot be had from the system and are looked for.", root)
