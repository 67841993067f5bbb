"""Count requests for all processes of a server together, in Redis."""

from __future__ import annotations

import re

from codeqa.state.cache import RedisCache
from codeqa.web.errors import RequestRefusedError
from codeqa.web.security import Allowance, token_digest


class SharedAllowance(Allowance):
    """The same for all processes that use `redis`, from the first request on anew after `seconds`;
    each counts alone while Redis is gone."""

    def __init__(self, redis: RedisCache, name: str, most: int, seconds: int) -> None:
        super().__init__(name, most, seconds)
        self._redis = redis

    def key(self, key: str) -> str:
        return f"codeqa:allowance:{self._name}:{token_digest(key)}"

    def check(self, key: str, advice: str = "") -> None:
        super().check(key, advice)
        name = self.key(key)
        told, left = self._redis.together([("GET", name), ("TTL", name)]) or ("0", 0)
        if told and (left < 0 or not re.fullmatch("[0-9]{1,9}", told)):  # none of ours, or for ever
            self._redis.delete(name)
        elif int(told or 0) >= self._most:
            raise RequestRefusedError(429, advice)

    def count(self, key: str, advice: str = "") -> None:
        super().count(key, advice)
        name = self.key(key)
        counted = [("SET", name, 0, "NX", "EX", self._seconds), ("INCR", name)]
        if (told := self._redis.together(counted)) and told[1] > self._most:
            raise RequestRefusedError(429, advice)
