"""Work by `codeqa worker`: a real Redis server, and real workers in processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from redis_server import RedisServer, redis_server, server_binaries

from codeqa.indexing.runs import hold
from codeqa.repositories import open_location
from codeqa.settings import load_settings
from codeqa.web.app import create_app
from codeqa.web.security import LOCAL
from codeqa.web.workspace import Workspace
from codeqa_server.jobs import QueuedJobs, _report, open_queue
from tests.kit.git_server import git_server
from tests.kit.repositories import write
from tests.kit.waiting import until

pytest_plugins = ("patient",)
pytest.importorskip("rq")
pytestmark = pytest.mark.skipif(not server_binaries(), reason="no Redis server for this system")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def client(
    patient: None, redis: RedisServer, data_dir: Path, tmp_path: Path
) -> Iterator[FlaskClient]:
    """The page; a repository `shop` stands beside it that is not indexed yet."""
    redis.command("FLUSHALL")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/store.py").write_text("def buy():\n    return 1\n")
    app = create_app(load_settings(data=data_dir, jobs="rq", redis_url=redis.url))
    yield app.test_client()
    app.extensions["codeqa"].close()


@contextmanager
def worker(redis: RedisServer, data: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"CODEQA_DATA": str(data), "CODEQA_JOBS": "rq"}
    environment |= {"REDIS_URL": redis.url, "CODEQA_WORKERS": "1"}
    command = [sys.executable, "-m", "codeqa", "worker"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        for child in [*children(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.wait()


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def row(client: FlaskClient, name: str = "shop") -> dict[str, Any]:
    rows: list[dict[str, Any]] = client.get("/api/repos").json["repositories"]
    return next((one for one in rows if one["name"] == name), {})


@dataclass(frozen=True)
class Job:
    """What Redis holds of the job of a repository: a look at the page reads its index as well."""

    redis: RedisServer
    repo: str

    def waits_for_the_index(self) -> bool:
        """Whether a worker said so; an index that is held says no more than `indexing`."""
        return "held by" in self.redis.command("HGET", f"rq:job:{self.repo}", "meta")

    def has(self, status: str) -> bool:
        return status in self.redis.command("HGET", f"rq:job:{self.repo}", "status")

    def is_gone(self) -> bool:
        return self.redis.command("EXISTS", f"rq:job:{self.repo}") == ":0\r\n"


def test_a_job_that_was_killed_is_done_again_one_is_cancelled_and_a_failure_is_told(
    client: FlaskClient, redis: RedisServer, data_dir: Path, tmp_path: Path
) -> None:
    folder = {"path": str(tmp_path / "shop")}
    repo = client.post("/api/repos", json=folder).json["id"]
    assert row(client)["state"] == "indexing"
    assert "codeqa worker" in row(client)["progress"]["phase"], "nobody is there to do it"
    client.post("/api/repos", json=folder)
    assert redis.command("LLEN", "rq:queue:codeqa") == ":1\r\n", "the second joined the first"

    def steer(action: str) -> int:
        sent = client.post("/api/index", query_string={"repo": repo}, json={"action": action})
        return sent.status_code

    assert steer("cancel") == 202 and steer("pause") == 400
    assert redis.command("LLEN", "rq:queue:codeqa") == ":0\r\n"
    steer("check")
    location, job = open_location(load_settings(data=data_dir), tmp_path / "shop"), Job(redis, repo)
    with worker(redis, data_dir) as process:
        with hold(location):
            until(job.waits_for_the_index)
            (killed,) = children(process.pid)
            os.kill(killed, signal.SIGKILL)  # as the system does that runs out of memory
            until(lambda: children(process.pid) not in ([], [killed]) and job.has("started"))
            assert steer("describe") == 409
            steer("cancel")
            until(job.is_gone)
        steer("check")
        until(job.is_gone)
        assert row(client)["state"] == "ready" and row(client)["files"] == 1
        steer("describe")
        until(lambda: job.has("finished"))
        assert "No language model" in row(client)["problem"]
        client.post(f"/api/repos/{repo}/cancel")
    assert row(client)["problem"] == ""


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_clones_what_the_page_asks_for(
    client: FlaskClient,
    redis: RedisServer,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = client.post("/api/repos", json={"path": str(tmp_path / "shop")}).json["id"]
    location = open_location(load_settings(data=data_dir), tmp_path / "shop")
    with hold(location), worker(redis, data_dir) as process:
        until(Job(redis, repo).waits_for_the_index)
        for pid in (process.pid, *children(process.pid)):
            os.kill(pid, signal.SIGKILL)  # as a machine that fails
        process.wait()
        # A minute passes without a word of it.
        started = redis.command("ZRANGE", "rq:wip:codeqa", "0", "-1").split("\r\n")[2]
        redis.command("ZADD", "rq:wip:codeqa", "1", started)
        assert row(client)["progress"]["phase"].startswith("waiting")
    with git_server(write(tmp_path / "server", {})) as server:
        write(tmp_path, {"gitconfig": f"[http]\n\tsslCAInfo = {server.certificate}\n"})
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        server.commit("anna/tools", {"tool.py": "def cut():\n    pass\n"})
        with worker(redis, data_dir):
            until(Job(redis, repo).is_gone)
            url = f"{server.address}/anna/tools"
            cloned = client.post("/api/repos", json={"path": url}).json
            assert cloned["state"] == "cloning"
            until(Job(redis, cloned["id"]).is_gone)
    assert row(client, "tools")["url"] == url and row(client, "tools")["files"] == 1
    assert row(client)["files"] == 1 and row(client)["id"] == repo
    assert client.get("/api/status", query_string={"repo": repo}).json["state"] == "ready"


def test_a_job_that_ends_while_it_is_looked_at_is_told_as_it_was(
    client: FlaskClient, redis: RedisServer, tmp_path: Path
) -> None:
    repo = client.post("/api/repos", json={"path": str(tmp_path / "shop")}).json["id"]
    jobs = client.application.extensions["codeqa"].jobs
    job = jobs._queue.fetch_job(repo)
    assert job and redis.command("DEL", f"rq:job:{repo}") == ":1\r\n"
    assert _report(job).state == "indexing"


def test_without_redis_what_is_indexed_stays_and_the_reason_is_said(
    tmp_path: Path, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"unix://{tmp_path}/nobody"
    jobs = QueuedJobs(load_settings(data=data_dir, jobs="rq", redis_url=url))
    assert jobs.reports() == {} and "queue of jobs cannot be reached" in caplog.text
    app = create_app(load_settings(data=data_dir, jobs="rq", redis_url=url))
    write(tmp_path / "shop", {"a.py": "def a(): pass\n"})
    added = app.test_client().post("/api/repos", json={"path": str(tmp_path / "shop")})
    repo = added.json["id"]
    refused = app.test_client().post(
        "/api/index", query_string={"repo": repo}, json={"action": "check"}
    )
    assert refused.status_code == 503 and "Redis" in refused.json["error"]["hint"]
    app.extensions["codeqa"].close()


def test_while_a_redis_that_hangs_is_asked_for_a_job_other_repositories_are_there(
    tmp_path: Path, data_dir: Path
) -> None:
    folders = [write(tmp_path / name, {"a.py": "def a(): pass\n"}) for name in ("open", "shop")]
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # the system accepts connections
        url = f"redis://127.0.0.1:{hangs.getsockname()[1]}"
        settings = load_settings(data=data_dir, jobs="rq", redis_url=url)
        space = Workspace(settings)
        known = space.open(folders[0], update=False)
        space.jobs._queue = open_queue(settings, None)  # it is never given up
        opening = threading.Thread(target=space.open, args=(folders[1],))
        opening.start()
        with hangs.accept()[0]:
            assert space.engine(known.location.id, LOCAL) is known
            assert opening.is_alive() and len([*space._engines]) == 2
    opening.join()
    space.close()
