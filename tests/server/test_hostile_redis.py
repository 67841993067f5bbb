"""What lies in Redis may be of another version, or somebody else's: it ends nothing, and nothing is
run or shown for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from browser.fakes import FakeEngine
from flask.testing import FlaskClient
from redis_server import RedisServer, redis_server, server_binaries
from repositories import write
from waiting import until

from codeqa.chat.events import Asked, Event, Token
from codeqa.chat.values import AskOptions
from codeqa.settings import Settings, load_settings
from codeqa.state.cache import RedisCache
from codeqa.store import list_locations
from codeqa.web.app import create_app
from codeqa.web.board import ConversationKey
from codeqa.web.errors import RequestRefusedError
from codeqa.web.run import Runs
from codeqa_server import jobs
from codeqa_server.allowance import SharedAllowance
from codeqa_server.streams import SharedBoard, checked_line

pytest.importorskip("rq")
pytest_plugins = ("web_kit",)
pytestmark = pytest.mark.skipif(not server_binaries(), reason="no Redis server for this system")

CALLED = "somebody else's function"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis(running: RedisServer) -> RedisServer:
    running.command("FLUSHALL")
    return running


@pytest.fixture
def queued(redis: RedisServer, data_dir: Path) -> Settings:
    return load_settings(data=data_dir, jobs="rq", redis_url=redis.url, workers=1)


@pytest.fixture
def client(queued: Settings) -> Iterator[FlaskClient]:
    app = create_app(queued)
    yield app.test_client()
    app.extensions["codeqa"].close()


def record(redis: RedisServer, id_: str, **changed: str) -> None:
    """Put a job into the queue as RQ keeps one, but for what is `changed`."""
    meta = {"doing": "indexing", "before": {"name": id_, "path": "/", "state": "ready"}}
    fields = {
        "data": json.dumps(["codeqa.web.jobs.perform", None, ["indexing", id_, "/nowhere"], {}]),
        "created_at": "2026-01-01T00:00:00.000000Z", "origin": "codeqa", "status": "queued",
        "meta": json.dumps(meta),
    } | changed  # fmt: skip
    redis.command("HSET", f"rq:job:{id_}", *(part for pair in fields.items() for part in pair))
    redis.command("RPUSH", "rq:queue:codeqa", id_)


def spoil(redis: RedisServer) -> None:
    """Fill the queue with what is none of ours."""
    record(redis, "date", created_at="yesterday")
    record(redis, "version", meta=json.dumps({"doing": "indexing", "before": {"nom": 1}}))
    numbers = {"doing": "x", "before": {"name": "n", "path": "p", "state": "s", "updated_at": "no"}}
    record(redis, "numbers", meta=json.dumps(numbers))
    record(redis, "no meta", meta="[" * 10_000)
    record(redis, "no data", data="\\xff")
    record(redis, "function", data=json.dumps(["os.system", None, ["false"], {}]))
    record(redis, "arguments", data=json.dumps(["codeqa.web.jobs.perform", None, [1, {}], {}]))
    record(redis, "hooks", webhooks='[{"url": "http://127.0.0.1:1"}]', failure_callback_name="x.y")
    redis.command("SET", "rq:job:text", "no record")
    redis.command("RPUSH", "rq:queue:codeqa", "text", "\udcff\udcfe")
    for kind in ("wip", "failed", "finished"):
        redis.command("ZADD", f"rq:{kind}:codeqa", "9" * 12, "\udcff", "9" * 12, "a:b:c")
    redis.command("RPUSH", "rq:queue:codeqa:intermediate", "\udcff")
    redis.command("SADD", "rq:workers:codeqa", "\udcff")
    endless = {"name": "n", "path": "p", "state": "s", "updated_at": float("inf")}
    record(redis, "endless", meta=json.dumps({"doing": "x", "before": endless}))


def test_records_of_jobs_that_are_none_cost_the_list_of_repositories_nothing(
    client: FlaskClient, redis: RedisServer
) -> None:
    record(redis, "ours")
    spoil(redis)
    told = client.get("/api/repos")
    assert told.status_code == 200
    assert {one["id"] for one in told.json["repositories"]} >= {"ours"}
    assert not {"date", "version", "numbers", "text", "function", "endless"} & {
        one["id"] for one in told.json["repositories"]
    }


def test_a_worker_goes_on_after_entries_that_are_no_jobs_and_calls_nothing_for_them(
    queued: Settings, redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rq import SimpleWorker

    shop, ran = write(tmp_path / "shop", {"a.py": "x = 1\n"}), list[str]()
    monkeypatch.setattr("os.system", ran.append)
    monkeypatch.setenv("CODEQA_DATA", str(queued.data_dir))
    spoil(redis)
    private = write(tmp_path / "private", {"a.py": "x = 1\n"})
    ours, forged = ("indexing", "last", str(shop)), ["indexing", "forged", str(private), "0" * 64]
    signed = [*ours, jobs._signature(queued, *ours)]
    for id_, arguments in (("forged", forged), ("last", signed)):
        call = ["codeqa.web.jobs.perform", None, arguments, {}]
        record(redis, id_, data=json.dumps(call))
    monkeypatch.setattr("codeqa_server.jobs.Worker", SimpleWorker)
    work = SimpleWorker.work

    def to_the_end(worker: SimpleWorker, **options: Any) -> None:
        work(worker, burst=True, **options)
        if redis.command("LLEN", "rq:queue:codeqa") == ":0\r\n":
            worker._shutdown_requested_date = datetime.now(UTC)

    monkeypatch.setattr(SimpleWorker, "work", to_the_end)
    jobs.work(queued)
    assert ran == [] and redis.command("LLEN", "rq:queue:codeqa") == ":0\r\n"
    assert [one.name for one in list_locations(queued)] == ["shop"], "the last one alone was done"


def test_a_record_in_the_place_of_a_job_keeps_that_from_nothing(
    client: FlaskClient, redis: RedisServer, tmp_path: Path
) -> None:
    shop = write(tmp_path / "shop", {"a.py": "x = 1\n"})
    repo = client.post("/api/repos", json={"path": str(shop)}).json["id"]
    redis.command("FLUSHALL")
    record(redis, repo, created_at="yesterday")
    redis.command("DEL", "rq:queue:codeqa")
    client.post("/api/index", query_string={"repo": repo}, json={"action": "check"})
    assert redis.command("LLEN", "rq:queue:codeqa") == ":1\r\n"


@pytest.mark.parametrize("value", ["many", "-1", "²", "٣", "7", "9" * 5_000])
def test_what_is_no_number_under_an_allowance_is_none(redis: RedisServer, value: str) -> None:
    allowance = SharedAllowance(cache := RedisCache(redis.url), "questions", 3, 60)
    redis.command("SET", allowance.redis_key("anna"), value)
    for _ in range(3):
        allowance.check("anna")
        allowance.count("anna")
    assert cache.problem == ""
    with pytest.raises(RequestRefusedError):
        allowance.check("anna")


def test_redis_values_of_another_kind_count_as_none(
    redis: RedisServer, data_dir: Path, fake_engine: FakeEngine
) -> None:
    redis.command("RPUSH", "user:local:chat_context", "a")
    redis.command("RPUSH", "codeqa:answering:shop", "a")
    redis.command("SET", "codeqa:answering:too:few", "a")
    cache = RedisCache(redis.url)
    assert cache.get("user:local:chat_context") is None and cache.problem == ""
    app = create_app(load_settings(data=data_dir, redis_url=redis.url), engine=fake_engine)
    assert app.extensions["codeqa"].answers.stop("shop", "local") == 0


@pytest.mark.parametrize("line", ["", "x", "9:1", "8:", "8:[", f"8:{'[' * 100_000}", "q:{}"])
def test_a_line_of_an_answer_that_is_none_is_left_out(line: str) -> None:
    assert checked_line(line) == b""


def test_a_line_of_an_answer_keeps_its_text_and_loses_what_a_page_must_not_run() -> None:
    block = {"block": {"html": "<em>b</em><script>1</script>", "index": 1}, "a": "<script>"}
    told = json.loads(checked_line(f"8:{json.dumps([block])}\n")[2:])
    assert told == [{"block": {"html": "<em>b</em>", "index": 1}, "a": "<script>"}]


class Scripted:
    """An answer whose events a test hands out."""

    def __init__(self) -> None:
        self.events: Queue[Event | None] = Queue()

    def __call__(self, _: object) -> Iterator[Event]:
        yield Asked("t1")
        yield from iter(self.events.get, None)


def test_reading_along_survives_the_loss_of_redis_data(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedBoard, "_keep_copying", lambda _: None)  # the test says when
    board, beside = (SharedBoard(RedisCache(redis.url)) for _ in range(2))
    settings = load_settings(data="nowhere")
    makes, reads = Runs(settings, board), Runs(settings, beside)
    key, answer = ConversationKey("shop", "anna", "c"), Scripted()
    engine: Any = SimpleNamespace(chat=SimpleNamespace(ask=answer))
    options, gone = AskOptions("how?"), lambda: False
    lines = makes.start_for_page(engine, options, key, lambda *_: None, gone)
    stream = board.find(key, here=True)[0]
    for n, lost in enumerate((False, True, False)):
        answer.events.put(Token(f"part {n} "))
        until(lambda n=n: any(f"part {n} ".encode() in one for one in stream.lines))
        board.copy()
        if lost:
            redis.command("FLUSHALL")
    board.copy()
    along = reads.join(key, lambda: False)
    answer.events.put(None)
    told = b"".join(along)
    assert [told.count(f"part {n}".encode()) for n in range(3)] == [1, 1, 1]
    assert told.index(b"part 0") < told.index(b"part 1") < told.index(b"part 2")
    assert b"".join(lines).count(b"part 0") == 1
