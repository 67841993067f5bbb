"""Cache values that may be lost, in Redis or in the local state.

A failing Redis server costs no answer: `get` gives None, `set` and `delete` give up. Keys, values,
passwords and the server's own words never reach the log: they hold conversation ids and code.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from codeqa.errors import SettingsError
from codeqa.settings import Settings
from codeqa.state.database import PUT_VALUE, StateTable

if TYPE_CHECKING:
    from redis import Redis

SOCKET_SECONDS = 0.25
"""Longest wait for a connection, and for each reply: a server nearby needs a thousandth of a
second. A call with its four round trips takes a second at most."""
PAUSE_SECONDS = 5.0  # after a failure, for which calls return at once

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class ValueStore(StateTable):
    """Small values in the local state, each under a key."""

    problem = ""

    def get(self, key: str) -> str | None:
        """Return the value of `key`; None when there is none or its lifetime is over."""
        row = self._database.row(
            "SELECT value FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)",
            (key, time.time()),
        )
        return None if row is None else str(row[0])

    def set(self, key: str, value: str, seconds: float | None = None) -> None:
        """Store `value` for `seconds`, without them until it is deleted."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute("DELETE FROM value WHERE expires <= ?", (now,))
            expires = None if seconds is None else now + seconds
            connection.execute(PUT_VALUE, (key, value, expires))

    def delete(self, key: str) -> None:
        self._database.change("DELETE FROM value WHERE key = ?", (key,))

    def keys(self, prefix: str) -> list[str]:
        rows = self._database.rows(
            "SELECT key FROM value WHERE substr(key, 1, ?) = ? "
            "AND (expires IS NULL OR expires > ?) ORDER BY key",
            (len(prefix), prefix, time.time()),
        )
        return [row[0] for row in rows]

    def delete_prefix(self, prefix: str) -> int:
        """Delete all keys that begin with `prefix`; return how many there were."""
        return self._database.change(
            "DELETE FROM value WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
        )


class RedisCache:
    """The same in the Redis server at `url`; threads may share it.

    While the server fails nothing changes there: a value that could not be replaced or deleted
    stays until its lifetime is over. Raises SettingsError when `url` cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._client = redis_client(url)
        parts = urlsplit(url)
        self.address = f"{parts.netloc.rpartition('@')[2]}{parts.path}" or "localhost"
        """Host, port and database, or the socket's path; without name and password."""
        self._lock = threading.Lock()
        self.problem = ""  # what is wrong with the server; '' while it works
        self._try_at = 0.0

    def get(self, key: str) -> str | None:
        value: Any = self._ask(lambda client: client.get(key))
        return None if value is None else str(value)

    def set(self, key: str, value: str, seconds: float) -> None:
        """Store `value` for `seconds`, a thousandth at least."""
        self._ask(lambda client: client.set(key, value, px=round(seconds * 1000)))

    def delete(self, key: str) -> None:
        self._ask(lambda client: client.delete(key))

    def together(self, commands: Sequence[tuple[Any, ...]]) -> list[Any] | None:
        """Run commands as one transaction and return the replies; None while the server fails."""

        def send(client: Redis) -> list[Any]:
            with client.pipeline() as pipe:
                for command in commands:
                    pipe.execute_command(*command)  # type: ignore[no-untyped-call]
                return list(pipe.execute())

        return self._ask(send)

    def keys(self, prefix: str) -> list[str] | None:
        """Return the keys that begin with `prefix`; None while the server fails."""
        pattern = re.sub(r"([\\*?\[\]^-])", r"\\\1", prefix) + "*"
        return self._ask(lambda client: sorted(set(client.scan_iter(pattern, 1_000))))

    def delete_prefix(self, prefix: str) -> int | None:
        """Delete keys that begin with `prefix`; return how many, None while the server fails."""
        keys = self.keys(prefix)
        if not keys:
            return None if keys is None else 0
        return self._ask(lambda client: int(client.delete(*keys)))

    def _ask(self, work: Callable[[Redis], _T]) -> _T | None:
        """Return the result of `work`; None when the server fails or a pause goes on."""
        with self._lock:
            if self.problem and time.monotonic() < self._try_at:
                return None
            self._try_at = time.monotonic() + PAUSE_SECONDS  # one call tries, the others go on
        try:
            result = work(self._client)
        except Exception as error:
            if "WRONGTYPE" in str(error):  # the value is none of ours; the server works
                self.problem = ""
                return None
            # Client, resolver and TLS fail in their own ways; none may cost an answer. The server's
            # own words may quote keys and values.
            cause = error.__cause__ or error.__context__
            reason = cause.strerror if isinstance(cause, OSError) else ""
            problem = f"The Redis server at {self.address} does not work"
            with self._lock:
                first = not self.problem
                self.problem = f"{problem}: {reason or type(error).__name__}."
                # A resolver may have taken longer than the pause that began with the call.
                self._try_at = time.monotonic() + PAUSE_SECONDS
            if first:
                log.warning("%s Until it works again nothing is cached or shared.", self.problem)
            return None
        self.problem = ""
        return result


def redis_client(url: str, **options: Any) -> Redis:
    """Return a client of the server at `url`, not yet connected. Raises SettingsError."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    defaults: dict[str, Any] = {
        "socket_connect_timeout": SOCKET_SECONDS,
        "socket_timeout": SOCKET_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": True,
        "encoding_errors": "replace",
        # The protocol that every server speaks, without an introduction, which costs round trips.
        "protocol": 2,
        "driver_info": None,
    }
    try:
        if not re.fullmatch(r"\w+://([^/?#@]*@)?[^@]*", url):  # a password that is not escaped
            raise ValueError
        client = redis.Redis.from_url(url, **defaults | options)
        client.connection_pool.make_connection()
    except (ValueError, TypeError, redis.RedisError):
        # Not even as its cause: these errors quote the address, and with it the password.
        raise SettingsError(
            "REDIS_URL is not the address of a Redis server.",
            "Write it as redis://host:6379/0, rediss://… for TLS or unix:///path/of/socket, "
            "special characters of a password as %XX.",
        ) from None
    return client


Cache = ValueStore | RedisCache


def open_redis(settings: Settings) -> RedisCache | None:
    """Return the Redis server of the settings, not yet connected, or None. Raises SettingsError."""
    return RedisCache(settings.redis_url) if settings.redis_url else None


def context_key(user: str, conversation: str) -> str:
    """Return the key of a cached context; without a conversation it is the user's."""
    middle = f":conversation:{escaped(conversation)}" if conversation else ""
    return f"user:{escaped(user)}{middle}:chat_context"


def escaped(name: str) -> str:
    """Return `name` without colons, so that it cannot spell the key of another user."""
    return name.replace("%", "%25").replace(":", "%3A")
