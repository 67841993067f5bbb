"""Count requests for all processes of a server together, in Redis."""

from __future__ import annotations

import re

from codeqa.state.cache import RedisCache
from codeqa.web.errors import RequestRefusedError
from codeqa.web.security import Allowance, token_digest


class SharedAllowance(Allowance):
    """Count the requests of all processes that use `redis`.

    A window of `seconds` begins with a request. Each process counts alone while Redis is gone.
    """

    def __init__(self, redis: RedisCache, name: str, most: int, seconds: int) -> None:
        super().__init__(name, most, seconds)
        self._redis = redis

    def redis_key(self, key: str) -> str:
        return f"codeqa:allowance:{self._name}:{token_digest(key)}"

    def check(self, key: str, advice: str = "") -> None:
        super().check(key, advice)
        redis_key = self.redis_key(key)
        replies = self._redis.together([("GET", redis_key), ("TTL", redis_key)])
        number, lifetime = replies or ("0", 0)
        if number and (lifetime < 0 or not re.fullmatch("[0-9]{1,9}", number)):  # none of ours
            self._redis.delete(redis_key)
        elif int(number or 0) >= self._most:
            raise RequestRefusedError(429, advice)

    def count(self, key: str, advice: str = "") -> None:
        super().count(key, advice)
        redis_key = self.redis_key(key)
        commands = [("SET", redis_key, 0, "NX", "EX", self._seconds), ("INCR", redis_key)]
        replies = self._redis.together(commands)
        if replies and replies[1] > self._most:
            raise RequestRefusedError(429, advice)
