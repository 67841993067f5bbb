"""What may be lost: values under a key, for a time. In Redis, or in the local state.

A cache costs no answer: whatever becomes of the Redis server, `get` gives None, `set` and
`delete` give up. Keys, values, passwords and the server's own words never reach the log: they
hold conversation ids and code.
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
"""Longest wait for a connection, and for each reply: a server nearby needs a thousandth. A call
that connects, names itself and its database and asks takes a second at most."""
PAUSE_SECONDS = 5.0
"""After a failure the server is left alone for so long, and calls return at once."""

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class ValueStore(StateTable):
    """Small values in the local state, each under a key."""

    problem = ""

    def get(self, key: str) -> str | None:
        """Value of `key`; None when there is none, its lifetime is over or it was lost."""
        row = self._database.row(
            "SELECT value FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)",
            (key, time.time()),
        )
        return None if row is None else str(row[0])

    def set(self, key: str, value: str, seconds: float | None = None) -> None:
        """Keep `value` for `seconds`, until deleted without, in place of an earlier one."""
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
        """Forget all keys that begin with `prefix`; how many there were."""
        return self._database.change(
            "DELETE FROM value WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
        )


class RedisCache:
    """The same in the Redis server at `url`; safe to share between threads.

    While the server does not work nothing changes there: a value that could not be replaced or
    deleted stays until its lifetime is over. Raises SettingsError when `url` cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._client = redis_client(url)
        parts = urlsplit(url)
        self.address = f"{parts.netloc.rpartition('@')[2]}{parts.path}" or "localhost"
        """Host, port and database, or the socket's path; without name and password."""
        self._lock = threading.Lock()
        self.problem = ""
        """What is wrong with the server; '' while it works."""
        self._try_at = 0.0

    def get(self, key: str) -> str | None:
        found: Any = self._ask(lambda client: client.get(key))
        return None if found is None else str(found)

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep `value` for `seconds`, a thousandth at least."""
        self._ask(lambda client: client.set(key, value, px=round(seconds * 1000)))

    def delete(self, key: str) -> None:
        self._ask(lambda client: client.delete(key))

    def together(self, commands: Sequence[tuple[Any, ...]]) -> list[Any] | None:
        """Replies to commands that are sent, and done, as one; None while the server fails."""

        def send(client: Redis) -> list[Any]:
            with client.pipeline() as pipe:
                for command in commands:
                    pipe.execute_command(*command)  # type: ignore[no-untyped-call]
                return list(pipe.execute())

        return self._ask(send)

    def keys(self, prefix: str) -> list[str] | None:
        """Keys that begin with `prefix`; None while the server does not work."""
        pattern = re.sub(r"([\\*?\[\]^-])", r"\\\1", prefix) + "*"
        return self._ask(lambda client: sorted(set(client.scan_iter(pattern, 1_000))))

    def delete_prefix(self, prefix: str) -> int | None:
        """Forget all keys that begin with `prefix`, and how many there were.

        None when the server does not work: what is left then goes at the end of its lifetime.
        """
        found = self.keys(prefix)
        if not found:
            return None if found is None else 0
        return self._ask(lambda client: int(client.delete(*found)))

    def _ask(self, work: Callable[[Redis], _T]) -> _T | None:
        """Result of `work`; None when the server fails or is being left alone."""
        with self._lock:
            if self.problem and time.monotonic() < self._try_at:
                return None
            self._try_at = time.monotonic() + PAUSE_SECONDS  # one call tries, the others go on
        try:
            result = work(self._client)
        except Exception as error:
            if "WRONGTYPE" in str(error):  # what lies there is none of ours; the server works
                self.problem = ""
                return None
            # The client, the resolver and TLS fail in their own ways; none may cost an answer. The
            # server's own words may quote keys and values.
            cause = error.__cause__ or error.__context__
            reason = cause.strerror if isinstance(cause, OSError) else ""
            problem = f"The Redis server at {self.address} does not work"
            with self._lock:
                begins = not self.problem
                self.problem = f"{problem}: {reason or type(error).__name__}."
                # A resolver may have taken longer than the pause that began with the call.
                self._try_at = time.monotonic() + PAUSE_SECONDS
            if begins:
                log.warning("%s Until it works again nothing is cached or shared.", self.problem)
            return None
        self.problem = ""
        return result


def redis_client(url: str, **options: Any) -> Redis:
    """A client of the server at `url`, not yet connected, with other `options` of its connections.
    Raises SettingsError."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    ours: dict[str, Any] = {
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
        if not re.fullmatch(r"\w+://([^/?#@]*@)?[^@]*", url):  # a password that is not escaped
            raise ValueError
        client = redis.Redis.from_url(url, **ours | options)
        client.connection_pool.make_connection()
    except (ValueError, TypeError, redis.RedisError):
        # Not even as its cause: these errors quote the address, and with it the password.
        raise SettingsError(
            "REDIS_URL is no address of a Redis server.",
            "Write it as redis://host:6379/0, rediss://… for TLS or unix:///path/of/socket, "
            "special characters of a password as %XX.",
        ) from None
    return client


Cache = ValueStore | RedisCache


def open_redis(settings: Settings) -> RedisCache | None:
    """The Redis server that is set, if one is; nothing is connected yet. Raises SettingsError."""
    return RedisCache(settings.redis_url) if settings.redis_url else None


def context_key(user: str, conversation: str) -> str:
    """Key of a cached context; without a conversation it is the user's.

    Colons in a name are escaped: no name can spell the key of another user.
    """
    middle = f":conversation:{escaped(conversation)}" if conversation else ""
    return f"user:{escaped(user)}{middle}:chat_context"


def escaped(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A")
