"""Jobs in a queue of RQ in Redis, done by `codeqa worker`: `CODEQA_JOBS=rq`.

A job has the id of its repository, so a second request joins the first. Its `meta` holds its
progress; a key beside it cancels it. The next run completes one that was killed, so the job of a
dead worker is simply done again.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from redis import ConnectionError, RedisError, TimeoutError
from rq import Queue, Retry, Worker, get_current_job
from rq.exceptions import DuplicateJobError, NoSuchJobError
from rq.job import Job

from codeqa.errors import IndexBusyError, SettingsError, UsageError
from codeqa.indexing import Indexer
from codeqa.indexing.runs import CancelledError
from codeqa.repositories import RepositoryReport, open_location, report_on
from codeqa.settings import Settings, load_settings
from codeqa.state.cache import redis_client
from codeqa.types import Progress
from codeqa.web.errors import RequestRefusedError, explained
from codeqa.web.jobs import BUSY, LONGEST_WAIT, Arguments, before_indexing
from codeqa.web.security import secret_key

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.4
"""Between two reports of a worker's progress, each with a look whether it is cancelled."""
MOST_JOBS, RETRIES, FAILURE_SECONDS = 500, 2, 7 * 86_400
"""Jobs of each state that are listed; tries after a worker died; how long a failure is listed."""
DIED = (
    "The workers that did this were killed. It is not lost: start it again, and look at their log."
)
PERFORM = "codeqa.web.jobs.perform"
"""Name of the function in our jobs, as Redis holds it; nothing is imported by it."""
CANCELLED = "codeqa:cancelled:"


class QueuedJobs:
    """Keep `codeqa.web.jobs.Jobs` in Redis, where they outlive this process.

    Raises SettingsError without REDIS_URL. Each call but `reports` raises RequestRefusedError (503)
    while Redis is gone.
    """

    def __init__(self, settings: Settings) -> None:
        self._queue, self._settings = open_queue(settings), settings

    def reports(self) -> dict[str, RepositoryReport]:
        """Return the jobs that run (reading these notices dead workers), failed, or wait."""
        queue, reports = self._queue, dict[str, RepositoryReport]()
        with suppress(RequestRefusedError), self._refusals():
            registries = queue.started_job_registry, queue.failed_job_registry
            _drop_unreadable(queue)
            for registry in registries + (queue.finished_job_registry, queue):
                for repo in registry.get_job_ids(0, MOST_JOBS):
                    job = queue.fetch_job(repo)
                    if job and (report := _report(job)):
                        reports.setdefault(repo, report)
        return reports

    def start(
        self, repo: str, before: RepositoryReport, doing: str, arguments: Arguments
    ) -> RepositoryReport:
        queue = self._queue
        meta = {"doing": doing, "before": asdict(replace(before, progress=None))}
        with self._refusals():
            waits = queue.get_job_position(repo) is not None
            if not waits and repo not in queue.started_job_registry.get_job_ids():
                queue.connection.delete(CANCELLED + repo)
                if old := queue.fetch_job(repo):
                    old.delete()
                queue.connection.delete(queue.job_class.key_for(repo))  # be it ours or not
            with suppress(DuplicateJobError):
                signature = _signature(self._settings, doing, repo, *arguments)
                queue.enqueue_call(
                    PERFORM, (doing, repo, *arguments, signature), job_id=repo, unique=True,
                    description=doing, timeout=-1, result_ttl=0, failure_ttl=FAILURE_SECONDS,
                    retry=Retry(max=RETRIES), meta=meta,
                )  # fmt: skip
            job = queue.fetch_job(repo)
            if job and job.args[0] != doing:
                raise IndexBusyError(f"{before.name} {BUSY}", "Wait for it, or cancel it.")
            return (job and _report(job)) or before

    def cancel(self, repo: str) -> None:
        end = time.monotonic() + LONGEST_WAIT
        with self._refusals():
            job = self._queue.fetch_job(repo)
            while job and _is_running(job) and time.monotonic() < end:
                self._queue.connection.set(CANCELLED + repo, 1, ex=FAILURE_SECONDS)
                time.sleep(0.1)
                job = self._queue.fetch_job(repo)
            if job and not _is_running(job):
                job.delete()

    def close(self) -> None:
        self._queue.connection.close()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise RequestRefusedError (503) in place of Redis' own errors."""
        try:
            yield
        except RedisError as error:  # its own words may quote what was sent
            log.warning("The queue of jobs cannot be reached: %s.", type(error).__name__)
            hint = "Redis, which holds the queue of jobs, is silent. What is indexed can be asked."
            raise RequestRefusedError(503, hint) from None


def _signature(settings: Settings, *arguments: str) -> str:
    """Sign the arguments of a job: others may write into Redis."""
    key = settings.secret_key.get_secret_value().encode() or secret_key(settings.data_dir)
    return hmac.new(key, json.dumps(arguments).encode(), "sha256").hexdigest()


def _drop_unreadable(queue: Queue) -> None:
    """Remove from RQ's lists and sets what is no id: RQ would fail at it for ever."""
    redis: Any = queue.connection
    for key in (queue.key, queue.intermediate_queue_key):
        _drop(redis.lrange(key, 0, -1), partial(redis.lrem, key, 0))
    for key in (f"rq:{kind}:{queue.name}" for kind in ("wip", "failed", "finished")):
        _drop(redis.zrange(key, 0, -1), partial(redis.zrem, key))
    workers = f"rq:workers:{queue.name}"
    _drop(redis.smembers(workers), partial(redis.srem, workers), b"rq:worker:")


def _drop(entries: Iterable[bytes], remove: Callable[[bytes], Any], begin: bytes = b"") -> None:
    for entry in entries:
        text = entry.removeprefix(begin).decode(errors="replace")
        if "\N{REPLACEMENT CHARACTER}" in text or text.count(":") > 1:
            remove(entry)


def _report(job: Job) -> RepositoryReport | None:
    """Return the state of a job; None for one that this version cannot read."""
    try:
        meta = _JobMeta.model_validate(job.meta)
    except ValidationError:
        return None
    if job.get_status(refresh=False) in ("failed", "finished"):
        return replace(meta.before, problem=meta.problem or DIED)
    progress = meta.progress if _is_running(job) else None
    progress = progress or Progress("waiting for a `codeqa worker`", 0, 0)
    return replace(meta.before, state=meta.doing, progress=progress, problem="")


class _JobMeta(BaseModel):
    """Hold the `meta` of a job, which others may have written into Redis."""

    model_config = ConfigDict(allow_inf_nan=False)

    doing: str
    before: RepositoryReport
    progress: Progress | None = None
    problem: str = ""


def _is_running(job: Job) -> bool:
    """Return whether a job ran when it was fetched; one that has ended since is gone from Redis."""
    return job.get_status(refresh=False) == "started"


class OwnJob(Job):
    """Read only jobs of ours from Redis, and call only `perform`, whatever is written there."""

    @property
    def func(self) -> Callable[..., None]:
        return perform

    @classmethod
    def fetch(cls, id: str, *args: Any, **options: Any) -> Job:
        try:
            job = super().fetch(id, *args, **options)
            if job.func_name == PERFORM:
                return job
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            log.warning("A record of a job cannot be read: %s.", type(error).__name__)
        raise NoSuchJobError

    def restore(self, raw_data: Any) -> None:
        fields = {key: raw_data[key] for key in raw_data if not re.search(b"callback|hook", key)}
        super().restore(fields)


def open_queue(settings: Settings, seconds: float | None = 5.0) -> Queue:
    """Return the queue, not yet connected; arguments are JSON. Raises SettingsError."""
    if not settings.redis_url:
        raise SettingsError("CODEQA_JOBS=rq needs Redis.", "Set REDIS_URL.")
    connection = redis_client(settings.redis_url, decode_responses=False, socket_timeout=seconds)
    return Queue("codeqa", connection=connection, serializer="json", job_class=OwnJob)


def perform(doing: str, repo: str, *arguments: str) -> None:
    """Do one job, in the process that a worker forked for it, with the worker's settings."""
    job, reported_at = get_current_job(), 0.0
    assert job is not None

    def report(step: Progress) -> None:
        nonlocal reported_at
        if time.monotonic() > reported_at + REPORT_SECONDS:
            reported_at = time.monotonic()
            with suppress(RedisError):  # the work goes on without it
                if job.connection.exists(CANCELLED + repo):
                    raise CancelledError("It was cancelled.")
                if job.connection.exists(job.key):
                    job.meta["progress"] = asdict(step)
                    job.save_meta()  # type: ignore[no-untyped-call]

    try:
        report(Progress("beginning", 0, 0))
        *own, signature = arguments
        settings = load_settings(None if doing == "cloning" else Path(own[0]))
        expected = _signature(settings, doing, repo, *own)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            raise UsageError("This job does not belong to this server.", "Start it on the page.")
        location = open_location(settings, before_indexing(settings, doing, own, report))
        job.meta["doing"] = "indexing"  # a clone can be opened from now on
        Indexer(settings, location).run(report)
        report_on(location)  # noted, so that the page need not count
    except CancelledError:
        pass
    except Exception as error:  # what RQ sees fail it would do again
        job.meta["problem"], job.result_ttl = str(explained(error)), FAILURE_SECONDS
        job.save_meta()  # type: ignore[no-untyped-call]


def work(settings: Settings) -> None:
    """Do the jobs of the queue until a signal ends this process. Raises SettingsError.

    Each is done in a fork of this process, which therefore must not load LanceDB.
    """
    queue = open_queue(settings, None)
    while True:
        _drop_unreadable(queue)
        worker = Worker(
            [queue], connection=queue.connection, serializer="json", job_class=OwnJob,
            job_monitoring_interval=5, maintenance_interval=30,
        )  # fmt: skip
        with suppress(ValueError):  # at an entry that is no id; at some it ends without a word
            worker.work(logging_level="WARNING")
        if worker._shutdown_requested_date:
            return
        time.sleep(REPORT_SECONDS)
