"""What may be lost: values under a key, for a time. In Redis, or in the local state.

A cache costs no answer: whatever becomes of the Redis server, `get` gives None, `set` and
`delete` give up, and each returns within `CALL_SECONDS`. Keys, values, passwords and the
server's own words never reach the log: they hold conversation ids and code.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from codeqa.errors import SettingsError
from codeqa.settings import Settings

CALL_SECONDS = 1.0
"""Longest that a call takes, looking up the server's name included."""
SOCKET_SECONDS = 0.5
"""Longest wait for a connection, and for each reply: a server nearby needs a thousandth."""
PAUSE_SECONDS = 5.0
"""After a failure the server is left alone for so long, and calls return at once."""
SWEEP_SECONDS = 20.0
"""Longest that keys are looked for by their beginning: a server goes through all of its keys,
some hundred thousand a second."""
SWEEP_STEP = 1_000
"""Keys that the server looks at in one step, and that are deleted by one command at most."""
LOST_KEYS = 10_000
"""Keys remembered over an outage: about a megabyte."""
DEFAULT_PORT = 6379

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Cache(Protocol):
    """What `ValueStore` and `RedisCache` have in common; keys and values are well-formed text."""

    def get(self, key: str) -> str | None:
        """Value of `key`; None when there is none, its lifetime is over or it was lost."""

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep `value` for `seconds`, in place of an earlier one."""

    def delete(self, key: str) -> None:
        """Forget `key`; nothing happens when it is not there."""

    def keys(self, prefix: str) -> list[str] | None:
        """Keys that begin with `prefix`; None when nobody can say."""

    def delete_prefix(self, prefix: str) -> int | None:
        """Forget all keys that begin with `prefix`: how many there were, None when that is not
        known to be done."""


def open_cache(settings: Settings, values: Cache) -> Cache:
    """The Redis server that is set, else `values`. Nothing is connected yet.

    Raises SettingsError when the setting is no address of a Redis server.
    """
    return RedisCache(settings.redis_url) if settings.redis_url else values


class RedisCache:
    """Values in the Redis server at `url`; safe to share between threads.

    Every call opens a connection of its own: that takes a fraction of a millisecond, an
    answer needs two or three, and none meets a connection that died while it lay idle.
    A value that could not be replaced or deleted is deleted as soon as the server is back, so
    that no old one comes up in its place. Raises SettingsError when `url` cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._connect = _connector(url)
        self.address = _address(url)
        """Host, port and database, or the socket's path; without name and password."""
        self._lock = threading.Lock()
        self._problem = ""
        self._try_at = 0.0
        self._lost: dict[str, None] = {}
        self._lost_prefixes: dict[str, None] = {}

    def get(self, key: str) -> str | None:
        """Value of `key`, or None."""
        found = self._call("GET", key)
        return None if found is None else str(found)

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep `value` for `seconds`; a lifetime under a millisecond is over at once."""
        milliseconds = round(seconds * 1000)
        if milliseconds <= 0:
            self.delete(key)
        elif self._call("SET", key, value, "PX", milliseconds) is None:
            self._note_lost(key)

    def delete(self, key: str) -> None:
        """Forget `key`."""
        if self._call("DEL", key) is None:
            self._note_lost(key)

    def keys(self, prefix: str) -> list[str] | None:
        """Keys that begin with `prefix`; None while the server does not work."""

        def look(connection: Any, deadline: float) -> list[str]:
            return sorted({key for step in _scan(connection, prefix, deadline) for key in step})

        found: list[str] | None = self._ask(look, SWEEP_SECONDS)
        return found

    def delete_prefix(self, prefix: str) -> int | None:
        """Forget all keys that begin with `prefix`, and how many there were.

        None when the server does not work: what is left then goes as soon as it is back, if
        that is while this process runs, else at the end of its lifetime.
        """

        def sweep(connection: Any, deadline: float) -> int:
            return _sweep(connection, prefix, deadline)

        deleted: int | None = self._ask(sweep, SWEEP_SECONDS)
        if deleted is None:
            with self._lock:
                self._lost_prefixes[prefix] = None
        return deleted

    def problem(self) -> str:
        """What is wrong with the server now, as a sentence; '' when it works.

        A server that failed is asked again when its pause is over.
        """
        if self._problem:
            self._call("PING")
        return self._problem

    def _call(self, *command: str | int) -> Any:
        """The server's reply; None when it fails or is being left alone."""

        def exchange(connection: Any, deadline: float) -> Any:
            return _reply(connection, *command)

        return self._ask(exchange, CALL_SECONDS)

    def _ask(self, work: Callable[[Any, float], Any], seconds: float) -> Any:
        """Result of `work` with a connection, which ends before the moment it is given; None
        when the server fails or is being left alone."""
        if self._problem and time.monotonic() < self._try_at:
            return None
        deadline = time.monotonic() + seconds
        try:
            reply = _within(seconds, lambda: self._connected(work, deadline))
        except Exception as error:
            # The client, the resolver and TLS fail in their own ways; none may cost an answer.
            self._went_down(error)
            return None
        self._came_back()
        return reply

    def _connected(self, work: Callable[[Any, float], Any], deadline: float) -> Any:
        connection = self._connect()
        try:
            connection.connect()
            lost, prefixes = list(self._lost), list(self._lost_prefixes)
            if time.monotonic() > deadline:
                # Nobody waits any more: a value written now could replace a newer one.
                raise TimeoutError
            if lost:
                _reply(connection, "DEL", *lost)
                with self._lock:
                    for key in lost:
                        self._lost.pop(key, None)
            for prefix in prefixes:
                _sweep(connection, prefix, deadline)
                with self._lock:
                    self._lost_prefixes.pop(prefix, None)
            return work(connection, deadline)
        finally:
            connection.disconnect()

    def _went_down(self, error: Exception) -> None:
        reason = _reason(error)
        with self._lock:
            news = not self._problem
            self._problem = f"The Redis server at {self.address} {reason}."
            self._try_at = time.monotonic() + PAUSE_SECONDS
        if news:
            log.warning("%s Contexts are not cached until it works again.", self._problem)

    def _came_back(self) -> None:
        with self._lock:
            news, self._problem = bool(self._problem), ""
        if news:
            log.info("The Redis server at %s works again.", self.address)

    def _note_lost(self, key: str) -> None:
        with self._lock:
            self._lost[key] = None
            while len(self._lost) > LOST_KEYS:
                del self._lost[next(iter(self._lost))]


def _reply(connection: Any, *command: str | int) -> Any:
    connection.send_command(*command)
    return connection.read_response()


def _scan(connection: Any, prefix: str, deadline: float) -> Iterator[list[str]]:
    """Keys that begin with `prefix`, in steps; some may come twice. Raises TimeoutError."""
    pattern = re.sub(r"([\\*?\[\]^-])", r"\\\1", prefix) + "*"
    cursor = "0"
    while True:
        if time.monotonic() > deadline:
            raise TimeoutError
        cursor, found = _reply(connection, "SCAN", cursor, "MATCH", pattern, "COUNT", SWEEP_STEP)
        if found:
            yield found
        if cursor == "0":
            return


def _sweep(connection: Any, prefix: str, deadline: float) -> int:
    """Delete all keys that begin with `prefix`; how many there were. Raises TimeoutError."""
    return sum(
        int(_reply(connection, "DEL", *keys[first : first + SWEEP_STEP]))
        for keys in _scan(connection, prefix, deadline)
        for first in range(0, len(keys), SWEEP_STEP)
    )


def _connector(url: str) -> Callable[[], Any]:
    """What makes connections, not yet open, to the server at `url`. Raises SettingsError."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    parse_url: Any = redis.connection.parse_url
    ours = {
        "socket_connect_timeout": SOCKET_SECONDS,
        "socket_timeout": SOCKET_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": True,
        "encoding_errors": "replace",
        # The protocol that every server speaks, and no introduction, which costs round trips.
        "protocol": 2,
        "driver_info": None,
    }
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix" and not parts.path.strip("/"):
            raise ValueError("no socket")
        if parts.scheme != "unix" and not re.fullmatch(r"(/\d*)?", parts.path):
            raise ValueError("no number of a database")
        options = {**parse_url(url), **ours}
        make = options.pop("connection_class", redis.Connection)
        make(**options)
    except (ValueError, TypeError, redis.RedisError):
        # Not even as its cause: these errors quote the address, and with it the password.
        raise SettingsError(
            "REDIS_URL is no address of a Redis server.",
            "Write it as redis://host:6379/0, rediss://… for TLS or unix:///path/of/socket, "
            "special characters of a password as %XX.",
        ) from None
    return lambda: make(**options)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    host = parts.hostname or "localhost"
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{parts.port or DEFAULT_PORT}{parts.path.rstrip('/')}"


def _reason(error: Exception) -> str:
    """What the server does wrong, in our words: its own may quote keys and values."""
    import redis

    if isinstance(error, redis.TimeoutError | TimeoutError):
        return "does not answer"
    for kind, reason in (
        (redis.InvalidResponse, "answers, but not as a Redis server does"),
        (redis.AuthenticationError, "does not accept the name and password"),
        (redis.exceptions.NoPermissionError, "does not permit this user to read and write"),
        (redis.BusyLoadingError, "is still loading its data"),
        (redis.ReadOnlyError, "is a replica that takes no changes"),
        (redis.OutOfMemoryError, "has no memory left for values"),
        (redis.ResponseError, "refuses a command"),
    ):
        if isinstance(error, kind):
            return reason
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLError):
        return f"cannot be reached by TLS ({cause.reason or type(cause).__name__})"
    if isinstance(cause, OSError) and cause.strerror:
        return f"cannot be reached ({cause.strerror})"
    return "cannot be reached"


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """Result of `work`, or TimeoutError, after which it goes on unheeded.

    In a thread, because looking up a name has no time limit of its own.
    """
    outcome: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((True, work()))
        except BaseException as error:
            outcome.put((False, error))

    threading.Thread(target=run, name="redis", daemon=True).start()
    try:
        worked, result = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if not worked:
        raise result
    return result  # type: ignore[no-any-return]


def context_key(user: str, conversation: str) -> str:
    """Key of a cached context; without a conversation it is the user's (S1.38, C-35).

    Colons in a name are escaped: no name can spell the key of another user.
    """
    middle = f":conversation:{_escaped(conversation)}" if conversation else ""
    return f"user:{_escaped(user)}{middle}:chat_context"


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A")
