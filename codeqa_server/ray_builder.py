"""Build the index with Ray: a task reads, parses and embeds a chunk of files, and writes its rows.

Rows do not pass through Ray. A task writes them as fragments into the folders of the tables, where
nobody sees them before the commit that also deletes the rows they replace. A task that is lost with
its machine is done again, and its fragments are removed.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

from codeqa import __version__
from codeqa.embeddings.registry import Embedding, fast_embedding
from codeqa.environment import only_variables
from codeqa.errors import ClusterError, UsageError
from codeqa.extensions import not_installed
from codeqa.indexing.passes import PACKER, add_result, embed
from codeqa.parsing.pool import parse_many
from codeqa.repository.walk import FileEntry
from codeqa.settings import Settings
from codeqa.store.location import Location, connect
from codeqa.store.records import Batch, FileRecord
from codeqa.store.schema import ROWS_VERSION, TABLES, one_of, read_meta, record_of
from codeqa.store.writer import TableWriter, create_index, existing_tables, index_config
from codeqa.types import Progress

STALLED_SECONDS = 600.0
"""A run fails when no chunk is finished for so long; a file that hangs its parser takes 30."""
SILENT_SECONDS = 25.0
"""A run fails when the head accepts no connection for so long; after 60 Ray ends this process."""
CHUNK_BYTES = 256_000, 8_000_000
"""Least and most source in a chunk: each starts a parser, 0.2 s, and takes ten times the memory."""
CHUNKS_PER_TASK = 8
"""Many, so that no machine waits long for the last one, and a lost one costs little."""
FILES_PER_COMMIT = 1_000
"""Most files whose rows one commit replaces: longer conditions slow the parser of LanceDB."""
DISTRIBUTED_ROWS = 200_000
"""Rows from which on an index is built across machines: its start takes as long as so many."""
VARIABLES = "PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "RAY_"
STORE_VARIABLES = "AWS_", "AZURE_", "GOOGLE_"
"""Beginnings of variables that a Ray started here inherits; the latter where tables are there."""

GO_ON = "Check `ray status` and run it again to continue, or leave out --engine to build here."
FRAGMENTS = "fragments"
"""Column in the batch of a task: the fragments that it wrote, as Lance describes them."""


class RayBuilder:
    """Build indices on the cluster of `ray=HOST:PORT` or `ray=auto`; `ray` starts one here.

    Raises UsageError for another name, SettingsError where Ray is not installed.
    """

    beside = True

    def __init__(self, name: str, *, stalled: float = STALLED_SECONDS) -> None:
        kind, _, self._address = name.partition("=")
        if kind != "ray":
            raise UsageError(f"There is no engine called {kind}.", "Give ray or ray=HOST:PORT.")
        if not (find_spec("ray") and find_spec("lance_ray")):
            raise not_installed("ray_builder", "Ray", "cluster")
        self._stalled, self._answered = stalled, 0.0

    @contextmanager
    def running(self, location: Location) -> Iterator[None]:
        """Connect Ray meanwhile, if it is not connected. Raises ClusterError."""
        if "ray" in sys.modules and sys.modules["ray"].is_initialized():
            yield
            return
        path = [*filter(os.path.isabs, sys.path), str(Path(__file__).resolve().parents[1])]
        added = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
        added["PYTHONPATH"] = os.pathsep.join(path)
        alone: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        variables = VARIABLES + (() if location.tables_are_local else STORE_VARIABLES)
        # Workers import from the working directory, which may be somebody else's repository.
        with only_variables(variables, added), chdir(Path(sys.executable).parent):
            import ray

            try:
                where, options = (self._address, {}) if self._address else ("local", alone)
                ray.init(where, log_to_driver=False, logging_level=logging.ERROR, **options)
            except Exception as error:
                how = "Every machine needs RAY_AUTH_MODE=token and what `ray get-auth-token` shows."
                raise _failed("Ray does not answer", error, how) from error
        try:
            yield
        finally:
            ray.shutdown()

    @property
    def tasks(self) -> int:
        """Return the number of tasks at a time; one processor stays free for lost ones."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)

    def read(
        self,
        settings: Settings,
        entries: Sequence[FileEntry],
        manifest: Mapping[str, FileRecord],
        writer: TableWriter,
        progress: Callable[[Progress], None],
    ) -> Iterator[Batch]:
        """Read `entries`, as `LocalBuilder` does, and write their rows as fragments.

        Raises ClusterError when a machine cannot, or none makes progress.
        """
        import ray

        chunks = _chunks(entries, manifest, self.tasks * CHUNKS_PER_TASK)
        job = (writer.location, writer.meta.identity, writer.generation, _made_with())
        task = ray.remote(read_chunk).options(max_retries=-1)
        calls = [partial(task.remote, *chunk, job, settings.max_file_bytes) for chunk in chunks]
        done, replaced, batch = 0, 0, Batch()

        def report() -> None:
            progress(Progress("indexing", done, len(entries)))

        for part in self._results(calls, self._stalled, report):
            if isinstance(part, ClusterError):
                raise part
            batch.join(part)
            done += len(part.files) + len(part.unchanged)
            report()
            replaced += sum(record.path in manifest for record in part.files)
            if replaced >= FILES_PER_COMMIT:
                yield batch
                replaced, batch = 0, Batch()
        yield batch

    def commit(
        self, writer: TableWriter, batch: Batch, replaced: Sequence[str], fast: Embedding | None
    ) -> None:
        """Replace the rows of the files `replaced` by the fragments of the tasks.

        There is one commit for each table, in the order of `TableWriter.write`.
        """
        import lance

        writer.invalidate(replaced)
        old = one_of("path", replaced)
        for table in TABLES:
            dataset = _dataset(writer.location, writer.tables[table].name)
            rows = dataset.to_table(columns=[], filter=old, with_row_address=True)["_rowaddr"]
            hit = {address >> 32 for address in rows.to_pylist()}
            left = {number: dataset.get_fragment(number).delete(old) for number in hit}
            change = lance.LanceOperation.Update(
                removed_fragment_ids=[number for number, rest in left.items() if rest is None],
                updated_fragments=[rest for rest in left.values() if rest is not None],
                new_fragments=batch.tables.get(table, {}).get(FRAGMENTS, []),
                fields_modified=[],
            )
            lance.LanceDataset.commit(dataset.uri, change, read_version=dataset.version)

    def tidy(self, writer: TableWriter, progress: Callable[[Progress], None]) -> None:
        """Merge fragments and build the indices, large ones across the cluster.

        Fragments of lost tasks and dead runs are removed. Raises ClusterError.
        """
        import ray

        def create(handle: Any, column: str) -> None:
            step = Progress("building the text index", 0, 0, f"{column} of {handle.name}")
            progress(step)
            rows = handle.count_rows()
            if rows < DISTRIBUTED_ROWS:
                create_index(handle, column)
                return
            task = ray.remote(_create_index).options(num_cpus=0, max_retries=2)
            call = partial(task.remote, writer.location, handle.name, column, rows, self.tasks)
            list(self._results([call], self._stalled + rows / 1_000, lambda: progress(step)))

        writer.tidy(create)
        for handle in writer.tables.values():  # which nobody else writes: the run holds the lock
            dataset = _dataset(writer.location, handle.name)
            dataset.cleanup_old_versions(timedelta(days=7), delete_unverified=True)

    def _results(
        self, calls: Sequence[Callable[[], Any]], seconds: float, waiting: Callable[[], None]
    ) -> Iterator[Any]:
        """Begin tasks by `calls` and yield their results as they come.

        `waiting` is called meanwhile, and may raise to give up. Raises ClusterError when Ray fails,
        and when no result comes for so many `seconds`.
        """
        import ray

        left, running, most = list(reversed(calls)), list[Any](), self.tasks
        last = self._answered = time.monotonic()
        try:
            while left or running:
                while left and len(running) < most:
                    running.append(left.pop()())
                done, running = ray.wait(running, timeout=0.2)
                for task in done:
                    yield ray.get(task)
                    last = self._answered = time.monotonic()  # the head need not be asked
                if not done:
                    self._ask_head()
                    waiting()
                    if time.monotonic() > last + seconds:
                        raise ClusterError(
                            f"The cluster made no progress for {seconds:,.0f} seconds.", GO_ON
                        )
        except ray.exceptions.RayError as error:
            raise _failed("Ray failed", error, GO_ON) from error
        finally:
            for task in running:
                ray.cancel(task)

    def _ask_head(self) -> None:
        """Raise ClusterError once the head of the cluster has been silent too long."""
        import ray

        if (now := time.monotonic()) < self._answered + 5:
            return
        host, port = ray.get_runtime_context().gcs_address.rsplit(":", 1)
        try:
            socket.create_connection((host, port), timeout=2).close()
            self._answered = now
        except OSError as error:
            if now > self._answered + SILENT_SECONDS:
                raise _failed("The head of the cluster is gone", error, GO_ON) from error


def _chunks(
    entries: Sequence[FileEntry], manifest: Mapping[str, FileRecord], number: int
) -> Iterator[tuple[list[FileEntry], dict[str, str]]]:
    """Yield `entries` in about `number` chunks, each with the hashes in the manifest."""
    ends = list(accumulate(entry.size for entry in entries))
    size = min(max(CHUNK_BYTES[0], sum(ends[-1:]) // number), CHUNK_BYTES[1])
    for _, part in groupby(zip(ends, entries, strict=True), lambda pair: pair[0] // size):
        files = [entry for _, entry in part]
        paths = [entry.path for entry in files]
        yield files, {path: manifest[path].hash for path in paths if path in manifest}


def _create_index(location: Location, name: str, column: str, rows: int, tasks: int) -> None:
    """Build the index of `index_config`, as LanceDB would on one machine, in parts."""
    import lance_ray

    config, uri = index_config(column), _dataset(location, name).uri
    again = {"max_restarts": 2, "max_task_retries": 2}  # where a machine is lost
    options: dict[str, Any] = {"column": column, "num_workers": tasks, "ray_remote_args": again}
    kind = type(config).__name__.upper()
    if kind == "IVFSQ":
        options |= {"metric": config.distance_type, "num_partitions": max(1, rows // 4_096)}
        lance_ray.create_index(uri, index_type="IVF_SQ", **options)
        return
    if kind == "FTS":
        names = "base_tokenizer", "stem", "remove_stop_words", "max_token_length"
        options |= {name: getattr(config, name) for name in names}
    lance_ray.create_scalar_index(uri, index_type=kind, **options)


def _dataset(location: Location, name: str) -> Any:
    import lance

    return lance.dataset(f"{location.tables}/{name}.lance")


def _failed(what: str, error: Exception, how: str) -> ClusterError:
    """Return the error to raise, with the last line of `error`, which may quote a traceback."""
    return ClusterError(f"{what}: {(str(error) or repr(error)).split(chr(10))[-1]}.", how)


def _made_with() -> tuple[object, ...]:
    """Return versions that are equal on machines that make the same rows of a file."""
    return __version__, ROWS_VERSION, record_of(fast_embedding())


# In the tasks, on any machine.


class _Table:
    """Take the rows of a writer, as a table does, and write them as fragments."""

    def __init__(self, location: Location, handle: Any) -> None:
        self._dataset, self.schema = _dataset(location, handle.name), handle.schema
        self.fragments: list[Any] = []

    def add(self, rows: Any) -> None:
        from lance.fragment import write_fragments

        self.fragments += write_fragments(rows, self._dataset, self.schema)


def read_chunk(
    files: Sequence[FileEntry], hashes: Mapping[str, str], job: tuple[Any, ...], max_bytes: int
) -> Batch | ClusterError:
    """Return the batch of a chunk with FRAGMENTS in place of rows, or why this machine cannot."""
    batch, root = Batch(), job[0].root
    try:
        writer = _writer(*job)
        if not any((root / entry.path).is_file() for entry in files):
            raise _unfit(f"sees none of {len(files)} files in {root}")
        # In a process of its own, so that a file which kills its parser ends neither task nor run.
        for parsed in parse_many(
            root, files, workers=1, max_file_bytes=max_bytes, hashes=hashes, packer=PACKER
        ):
            add_result(batch, parsed)
        writer.write(batch, embed(writer, batch, fast_embedding()))
    except ClusterError as error:
        return error
    tables: Any = writer.tables
    fragments = {name: {FRAGMENTS: table.fragments} for name, table in tables.items()}
    return replace(batch, tables=fragments)


def _writer(location: Location, identity: str, generation: int, made_with: object) -> TableWriter:
    """Return a writer of fragments. Raises ClusterError where this machine is unlike the first."""
    if _made_with() != made_with:
        raise _unfit(f"has another CodeQA or embedding, {_made_with()}")
    database = connect(location)
    meta = read_meta(database)
    if meta is None or meta.identity != identity:
        raise _unfit(f"sees other tables in {location.tables}")
    previous = existing_tables(database, meta.generation)  # whose descriptions and vectors stay
    handles = existing_tables(database, generation)
    tables: Any = {name: _Table(location, handle) for name, handle in handles.items()}
    meta = replace(meta, dirty=True)
    writer = TableWriter(location, database, meta, generation, tables, previous, fresh=True)
    writer.begin({})
    return writer


def _unfit(why: str) -> ClusterError:
    how = "All need the same CodeQA, and the repository and the tables at the same paths."
    return ClusterError(f"{socket.gethostname()} {why}.", how)
