"""The cache: both backends alike, and what a Redis server that fails may cost."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis_server import RedisServer, redis_server, server_binaries
from waiting import AT_ONCE, LOOK_AGAIN, Clock, until

from codeqa.errors import SettingsError
from codeqa.settings import load_settings
from codeqa.state import State
from codeqa.state import cache as cache_module
from codeqa.state.cache import Cache, RedisCache, open_redis

pytest_plugins = ("patient",)

KEY = "user:local:conversation:c1:chat_context"
pytestmark = pytest.mark.usefixtures("patient")
needs_server = pytest.mark.skipif(not server_binaries(), reason="no Redis server for this system")


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(cache_module, "time", clock := Clock())
    return clock


@pytest.fixture(params=["state", pytest.param("redis", marks=needs_server)])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Cache:
    """An empty cache of one kind."""
    if request.param == "state":
        return State(tmp_path / "state").values
    running: RedisServer = request.getfixturevalue("shared_server")
    running.command("FLUSHALL")
    return RedisCache(running.socket_url)


@contextmanager
def listener(serve: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that does `serve` with each connection: its URL, and the connections."""
    calls: list[socket.socket] = []

    class Serving(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            calls.append(self.request)
            with suppress(OSError):
                serve(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Serving) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(LOOK_AGAIN,))
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}", calls
        finally:
            server.shutdown()
            thread.join()


# Both backends alike


def test_a_value_is_kept_replaced_and_forgotten(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.set(KEY, "one", 60)
    cache.set(KEY, "two", 60)
    assert cache.get(KEY) == "two"
    cache.delete(KEY)
    cache.delete(KEY)
    assert cache.get(KEY) is None


def test_a_value_is_gone_after_its_lifetime(cache: Cache) -> None:
    cache.set("other", "long", 3_600)
    cache.set(KEY, "old", 3_600)
    cache.set(KEY, "new", 0.01)
    until(lambda: cache.get(KEY) is None)
    assert cache.get("other") == "long"


def test_keys_are_found_and_deleted_by_their_beginning_and_no_others(cache: Cache) -> None:
    users = ["a", "ab", "a*", "a?", "[ab]", "a\\\\", "é", "A"]
    for user in users:
        for number in range(3):
            cache.set(f"user:{user}:conversation:{number}", "v", 60)
    for user in users:
        assert cache.keys(f"user:{user}:") == [f"user:{user}:conversation:{n}" for n in range(3)]
        assert cache.delete_prefix(f"user:{user}:") == 3
        assert cache.keys(f"user:{user}:") == []
        assert cache.delete_prefix(f"user:{user}:") == 0
    assert cache.keys("user:") == []


def test_any_text_comes_back_as_it_was(cache: Cache) -> None:
    for text in ("", "é€𝄞 \u202e abc", "a\0b\r\n\tc", "$3\r\nabc\r\n", "x" * 300_000):
        cache.set(KEY, text, 60)
        cache.set(f"key {text[:50]}", "v", 60)
        assert cache.get(KEY) == text
        assert cache.get(f"key {text[:50]}") == "v"


# Which one


@needs_server
def test_the_setting_chooses_the_cache_whose_keys_and_lifetimes_are_those_of_the_caller(
    shared_server: RedisServer,
) -> None:
    shared_server.command("FLUSHALL")
    assert open_redis(load_settings()) is None
    open_redis(load_settings(redis_url=shared_server.url)).set(KEY, "v", 24 * 3600.0)
    assert shared_server.command("KEYS", "*").splitlines()[-1] == KEY
    assert "v" in shared_server.command("GET", KEY)
    left = int(shared_server.command("PTTL", KEY)[1:])
    assert 24 * 3600_000 - 5_000 < left <= 24 * 3600_000


def test_what_is_no_address_of_a_server_is_said_without_repeating_it() -> None:
    for url in (
        "localhost:6379", "redis://localhost:port", "redis://:secret/word@localhost",
        "redis://:1234/secret@localhost", "redis://:1234#secret@localhost",
        "redis://:12@secret@localhost",
        "redis://:secret@localhost?nonsense=secret",
    ):  # fmt: skip
        with pytest.raises(
            SettingsError, match=r"^REDIS_URL is not the address .* Write it as"
        ) as caught:
            open_redis(load_settings(redis_url=url))
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_the_address_is_shown_without_name_and_password() -> None:
    for url, shown in (
        ("redis://", "localhost"),
        ("redis://name:pass%2Fword@example.org/2?socket_timeout=60", "example.org/2"),
        ("rediss://:password@[::1]:7000/1", "[::1]:7000/1"),
        ("unix://name:password@/run/redis.sock?db=1", "/run/redis.sock"),
    ):
        assert RedisCache(url).address == shown


# Outages: real servers that are killed, freeze, or misbehave


@needs_server
def test_a_server_that_is_killed_costs_the_cache_and_comes_back_by_itself(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with redis_server(tmp_path / "redis") as server:
        cache = RedisCache(server.url)
        cache.set(KEY, "v", 60)
        assert cache.get(KEY) == "v"
        server.kill()
        for _ in range(3):
            assert cache.get(KEY) is None
            cache.set(KEY, "w", 60)
            cache.delete("other")
            clock.advance(cache_module.PAUSE_SECONDS)
        (warning,) = caplog.records
        refused = f"The Redis server at {cache.address} does not work: Connection refused."
        assert refused in warning.getMessage()
        assert warning.levelname == "WARNING" and KEY not in warning.getMessage()
        server.start()
        clock.advance(cache_module.PAUSE_SECONDS)
        cache.set(KEY, "again", 60)
        assert cache.get(KEY) == "again"
    assert caplog.records == [warning]


def test_a_failed_server_is_left_alone_for_its_pause_and_then_tried(clock: Clock) -> None:
    with listener(hang_up) as (url, calls):
        cache = RedisCache(url)
        for _ in range(3):
            assert cache.get(KEY) is None
            cache.set(KEY, "v", 60)
            cache.delete(KEY)
        assert len(calls) == 1
        clock.advance(cache_module.PAUSE_SECONDS)
        assert cache.get(KEY) is None and cache.get(KEY) is None
        assert len(calls) == 2


def test_a_name_that_is_looked_up_for_long_is_left_alone_as_long_as_another(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> object:
        hosts.append(host)
        clock.advance(2 * cache_module.PAUSE_SECONDS)  # no timeout of a socket ends it sooner
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    cache = RedisCache("redis://redis.invalid:6379")
    assert [cache.get(KEY), cache.get(KEY), cache.get(KEY)] == [None] * 3
    assert hosts == ["redis.invalid"]


def answer_in_http(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def be_silent(connection: socket.socket) -> None:
    while connection.recv(1000):
        pass


def hang_up(connection: socket.socket) -> None:
    connection.recv(1000)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
@pytest.mark.parametrize("serve", [answer_in_http, be_silent, hang_up])
def test_no_server_however_odd_costs_an_answer(
    serve: Callable[[socket.socket], None], scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    with listener(serve) as (url, calls):
        limit = f"?socket_timeout={AT_ONCE}" if serve is be_silent else ""
        cache = RedisCache(url.replace("redis", scheme, 1) + limit)
        cache.set(KEY, "v", 60)
        assert cache.get(KEY) is None
        assert f"The Redis server at {cache.address} does not work" in caplog.text
        until(lambda: calls)
    assert len(calls) == len(caplog.records) == 1


@needs_server
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--requirepass", "right"], "AuthenticationError"),
        (["--maxmemory", "1", "--maxmemory-policy", "noeviction"], "OutOfMemoryError"),
    ],
)
def test_a_server_that_refuses_is_said_in_words(
    tmp_path: Path, options: list[str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path / "redis", *options) as server:
        cache = RedisCache(server.url.replace("//", "//:wrong@"))
        if "--requirepass" not in options:
            cache = RedisCache(server.url)
        cache.set(KEY, "v", 60)
        assert cache.get(KEY) is None
        assert reason in caplog.text
    assert len(caplog.records) == 1
    assert "wrong" not in caplog.text and "right" not in caplog.text
