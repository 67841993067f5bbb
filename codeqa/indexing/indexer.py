"""Bring the index of one repository up to date."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from codeqa.embeddings.registry import Embedding, chosen_embedding, fast_embedding
from codeqa.errors import EmbeddingError
from codeqa.indexing.passes import Builder, LocalBuilder, Outcome, build, refine_units
from codeqa.indexing.runs import (
    CANCELLED,
    INTERRUPTED,
    CancelledError,
    RunRecorder,
    count_reasons,
    hold,
    holder_of,
    noted_state,
    read_status,
    refusals_explained,
    skipped_paths,
)
from codeqa.repository.walk import Walk, checked_root, require_source, walk
from codeqa.settings import Settings
from codeqa.store.location import NOTE, Location, confirm, local_bytes, save_location
from codeqa.store.reader import damage
from codeqa.store.schema import ROWS_VERSION, record_of
from codeqa.store.tables import Tables, open_once
from codeqa.store.writer import TableWriter
from codeqa.types import IndexStatus, IndexSummary, Progress

Listener = Callable[[Progress], None]
Pass = tuple[TableWriter, Outcome]


@dataclass(eq=False)
class RunSignals:
    """Requests to the runs of this process, which obey between two batches."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Runs in the background end."""
    paused: threading.Event = field(default_factory=threading.Event)
    """Runs in the background wait."""
    files_changed: threading.Event = field(default_factory=threading.Event)
    """Files may have changed: vectors can wait."""
    is_running: bool = False
    is_cancelled: bool = False


class Indexer:
    """Brings the index of `location` up to date; `tables` opens the tables that are searched."""

    def __init__(
        self, settings: Settings, location: Location, tables: Callable[[], Tables] | None = None
    ) -> None:
        self.settings = settings
        self.location = location
        self.signals = RunSignals()
        self.hit_paths = set[str]()
        """Files with hits of questions: their vectors are made first."""
        self.checked_ns = 0
        """When the last run of this process began to look at files."""
        self._open = tables or open_once(location)
        self._verified = False
        """True once this process has checked the tables for damage."""
        self._pass_seconds = 0.0

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
            if self.signals.is_cancelled:
                return CANCELLED
            return INTERRUPTED if background and self.signals.stop.is_set() else ""

        def waiting(holder: str) -> None:
            listener(Progress("waiting", 0, 0, f"the index is held by {holder}"))
            if background and self.signals.stop.is_set():
                raise CancelledError(INTERRUPTED)

        recorder = RunRecorder(self.location, listener, ended, self.signals.paused.is_set)
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
        self.signals.is_running, self.signals.is_cancelled = True, False
        try:
            yield
        finally:
            self.signals.is_running = False

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
        enough = self.signals.files_changed if background else threading.Event()
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
        files, skipped = tables.files(), tables.skipped()
        broken = [record.path for record in files if record.broken]
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
            broken=len(broken),
            broken_files=broken,
            skipped=count_reasons(skipped),
            skipped_files=skipped_paths(skipped),
            seconds=seconds,
            bytes_on_disk=local_bytes(self.location),
            vectors={
                record.name: counts.embedded if column == "vector" else counts.refined
                for column, record in tables.vector_columns()
            },
        )

    def pause(self) -> None:
        """Let the runs of this process wait until `resume` or a run in the foreground."""
        self.signals.paused.set()

    def resume(self) -> None:
        """Let paused runs go on."""
        self.signals.paused.clear()

    def cancel(self) -> bool:
        """Ask the current run of this process to end; return whether there is one."""
        self.signals.is_cancelled = self.signals.is_running
        return self.signals.is_running

    # State

    def was_removed(self) -> bool:
        """Return whether another process has removed the index that this one made or read."""
        return self._verified and not (self.location.folder / NOTE).exists()

    def state(self) -> str:
        """Return the state that `status` gives, where possible without loading the tables."""
        if self.signals.paused.is_set():
            return "paused"
        return noted_state(self.location) or self.status().state

    def status(self) -> IndexStatus:
        """Return what the index holds and what any process is doing with it now."""
        # Tables that grow are opened anew: those in use would keep this version for seconds.
        tables = None if holder_of(self.location) else self._open
        status = read_status(self.settings, self.location, tables)
        if self.signals.paused.is_set():
            return replace(status, state="paused", error="")
        return status
