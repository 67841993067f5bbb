"""Jobs in a queue of RQ in Redis, which `codeqa worker` does: `CODEQA_JOBS=rq`.

A job is named by its repository, so a second request joins the first. It says how far it is in its
`meta`; a key beside it says that it is cancelled. A run that is killed is completed by the next, so
the job of a dead worker is simply done again.
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
from codeqa.web.jobs import BUSY, LONGEST_WAIT, Given, before_indexing
from codeqa.web.security import secret_key

log = logging.getLogger(__name__)

TELL_SECONDS = 0.4
"""Between two words of a worker on how far it is, and looks whether it is to end."""
SHOWN, TRIED_AGAIN, KEPT_SECONDS = 500, 2, 7 * 86_400
"""Jobs of each state that are told of; tries after a worker died; how long a failure is told."""
DIED = (
    "The workers that did this were killed. It is not lost: start it again, and look at their log."
)
PERFORM = "codeqa.web.jobs.perform"
"""Under which Redis holds our jobs; nothing is imported by it."""
CANCELLED = "codeqa:cancelled:"


class QueuedJobs:
    """`codeqa.web.jobs.Jobs` in Redis, which outlive this process. Each call but `reports` raises
    RequestRefusedError (503) without Redis; SettingsError where it or RQ is not set up."""

    def __init__(self, settings: Settings) -> None:
        self._queue, self._settings = open_queue(settings), settings

    def reports(self) -> dict[str, RepositoryReport]:
        """Those at work, where dead workers are noticed; those that ended badly; those to come."""
        queue = self._queue
        with suppress(RequestRefusedError), self._asked():
            ended = queue.failed_job_registry, queue.finished_job_registry
            places = (queue.started_job_registry, *ended, queue)
            _drop_unreadable(queue)
            ids = dict.fromkeys(id_ for one in places for id_ in one.get_job_ids(0, SHOWN))
            jobs = filter(None, map(queue.fetch_job, ids))
            return {job.id: told for job in jobs if (told := _told(job))}
        return {}

    def start(
        self, repo: str, before: RepositoryReport, doing: str, given: Given
    ) -> RepositoryReport:
        queue = self._queue
        meta = {"doing": doing, "before": asdict(replace(before, progress=None))}
        with self._asked():
            waits = queue.get_job_position(repo) is not None
            if not waits and repo not in queue.started_job_registry.get_job_ids():
                queue.connection.delete(CANCELLED + repo)
                if ended := queue.fetch_job(repo):
                    ended.delete()
                queue.connection.delete(queue.job_class.key_for(repo))  # be it ours or not
            with suppress(DuplicateJobError):
                queue.enqueue_call(
                    PERFORM, (doing, repo, *given, _mark(self._settings, doing, repo, *given)),
                    job_id=repo, unique=True,
                    description=doing, timeout=-1, result_ttl=0, failure_ttl=KEPT_SECONDS,
                    retry=Retry(max=TRIED_AGAIN), meta=meta,
                )  # fmt: skip
            job = queue.fetch_job(repo)
            if job and job.args[0] != doing:
                raise IndexBusyError(f"{before.name} {BUSY}", "Wait, or cancel that.")
            return (job and _told(job)) or before

    def cancel(self, repo: str) -> None:
        end = time.monotonic() + LONGEST_WAIT
        with self._asked():
            while (job := self._queue.fetch_job(repo)) and _at_work(job) and time.monotonic() < end:
                self._queue.connection.set(CANCELLED + repo, 1, ex=KEPT_SECONDS)
                time.sleep(0.1)
            if job and not _at_work(job):
                job.delete()

    def close(self) -> None:
        self._queue.connection.close()

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except RedisError as error:  # its own words may quote what was sent
            log.warning("The queue of jobs cannot be reached: %s.", type(error).__name__)
            hint = "Redis, which holds the queue of jobs, is silent. What is indexed can be asked."
            raise RequestRefusedError(503, hint) from None


def _mark(settings: Settings, *arguments: str) -> str:
    """Return what tells a job of ours from one that somebody else wrote into Redis."""
    key = settings.secret_key.get_secret_value().encode() or secret_key(settings.data_dir)
    return hmac.new(key, json.dumps(arguments).encode(), "sha256").hexdigest()


def _drop_unreadable(queue: Queue) -> None:
    """Remove what is no id from the lists and sets of RQ, which would fail at it for ever."""
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


def _told(job: Job) -> RepositoryReport | None:
    """What a job says of itself; None for nothing that this version understands."""
    try:
        meta = _Meta.model_validate(job.meta)
    except ValidationError:
        return None
    if job.get_status(refresh=False) in ("failed", "finished"):
        return replace(meta.before, problem=meta.problem or DIED)
    told = meta.progress if _at_work(job) else None
    step = told or Progress("waiting for a `codeqa worker`", 0, 0)
    return replace(meta.before, state=meta.doing, progress=step, problem="")


class _Meta(BaseModel):
    """What a job tells; it comes from Redis, where others may have written it."""

    model_config = ConfigDict(allow_inf_nan=False)

    doing: str
    before: RepositoryReport
    progress: Progress | None = None
    problem: str = ""


def _at_work(job: Job) -> bool:
    """As it was when it was fetched: one that has ended since is gone from Redis."""
    return job.get_status(refresh=False) == "started"


class OwnJob(Job):
    """A job of ours: any other record in Redis is none, and of none is anything else called."""

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
        told = {key: raw_data[key] for key in raw_data if not re.search(b"callback|hook", key)}
        super().restore(told)


def open_queue(settings: Settings, seconds: float | None = 5.0) -> Queue:
    """The queue, in which arguments are JSON; nothing is connected yet. Raises SettingsError."""
    if not settings.redis_url:
        raise SettingsError("CODEQA_JOBS=rq needs Redis.", "Set REDIS_URL.")
    connection = redis_client(settings.redis_url, decode_responses=False, socket_timeout=seconds)
    return Queue("codeqa", connection=connection, serializer="json", job_class=OwnJob)


def perform(doing: str, repo: str, *arguments: str) -> None:
    """One job, in a process that a worker forked for it: its settings are those of the worker."""
    job, told = get_current_job(), 0.0
    assert job is not None

    def tell(step: Progress) -> None:
        nonlocal told
        if time.monotonic() > told + TELL_SECONDS:
            told = time.monotonic()
            with suppress(RedisError):  # the work goes on without it
                if job.connection.exists(CANCELLED + repo):
                    raise CancelledError("It was cancelled.")
                if job.connection.exists(job.key):
                    job.meta["progress"] = asdict(step)
                    job.save_meta()  # type: ignore[no-untyped-call]

    try:
        tell(Progress("beginning", 0, 0))
        *given, mark = arguments
        settings = load_settings(None if doing == "cloning" else Path(given[0]))
        if not hmac.compare_digest(mark.encode(), _mark(settings, doing, repo, *given).encode()):
            raise UsageError("This job is none of this server's.", "Start it on the page.")
        location = open_location(settings, before_indexing(settings, doing, given, tell))
        job.meta["doing"] = "indexing"  # a clone can be opened from now on
        Indexer(settings, location).run(tell)
        report_on(location)  # noted, so that the page need not count
    except CancelledError:
        pass
    except Exception as error:  # what RQ sees fail it would do again
        job.meta["problem"], job.result_ttl = str(explained(error)), KEPT_SECONDS
        job.save_meta()  # type: ignore[no-untyped-call]


def work(settings: Settings) -> None:
    """Do what the queue holds until a signal ends it, each job in a fork of this process, which
    therefore loads nothing of LanceDB. Raises SettingsError."""
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
        time.sleep(TELL_SECONDS)
