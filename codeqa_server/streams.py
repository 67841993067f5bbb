"""Share running answers between the processes of a server, over Redis.

An answer is copied there several times a second, and other processes read it along and stop it. The
key of its conversation holds its id, then `:` and its turn once that is known; a list under its id
holds its lines. Both vanish ALIVE_SECONDS after the last sign of the process that makes it. A third
key says that it is to stop. One thread copies all answers at once.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from codeqa.chat.events import Failed
from codeqa.chat.record import BROKE_OFF
from codeqa.llm.values import Cancelled
from codeqa.render import sanitise
from codeqa.state.cache import RedisCache, escaped
from codeqa.web.ai_sdk import encode_stream
from codeqa.web.board import (
    END_OF_LINES,
    ENDING_SECONDS,
    AnswerLines,
    ConversationKey,
    LocalBoard,
    RunningAnswer,
)
from codeqa.web.errors import RequestRefusedError

COPIED_EVERY = 0.2
"""Seconds between two copies to Redis, and between two looks at one."""
ALIVE_SECONDS = 5
"""Without a sign for so long an answer's process counts as dead, and readers elsewhere are told."""
ANSWERING, COPIES = "codeqa:answering:", "codeqa:answer:"
LINE_CODES = frozenset("038de")


@dataclass
class _SharedAnswer:
    """An answer of this process as far as Redis has it."""

    answer: AnswerLines
    lines: int = 0
    """Lines that are there."""

    def commands(self, board_key: str, over: bool) -> list[tuple[Any, ...]]:
        """Return the commands that copy the rest.

        The reply to the last one is 0 where Redis lost the lines copied before; nothing is written
        then, as an answer must not lack its beginning.
        """
        answer, key = self.answer, f"{COPIES}{self.answer.id}"
        commands: list[tuple[Any, ...]] = [] if self.lines else [("DEL", key)]
        lines = answer.lines[self.lines :]
        push = "RPUSHX" if self.lines else "RPUSH"
        self.lines += len(lines)
        if over:
            lines = lines + [END_OF_LINES]
        if lines:
            commands.append((push, key, *lines))
        about = answer.id if answer.turn is None else f"{answer.id}:{answer.turn}"
        alive = ("DEL", board_key) if over else ("SET", board_key, about, "EX", ALIVE_SECONDS)
        return commands + [alive, ("EXPIRE", key, ALIVE_SECONDS)]


class SharedBoard:
    """The answers of all processes that share a Redis server."""

    def __init__(self, redis: RedisCache) -> None:
        self._redis, self._here = redis, LocalBoard()
        self._copies: dict[ConversationKey, _SharedAnswer] = {}
        self._copying = threading.Lock()
        self._copier: threading.Thread | None = None

    def enter(self, key: ConversationKey, answer: AnswerLines, most: float) -> None:
        self._here.enter(key, answer, most)
        claim = ("SET", _redis_key(key), answer.id, "NX", "EX", ALIVE_SECONDS)
        if self._redis.together([claim]) == [None]:
            self._here.leave(key)
            raise RequestRefusedError(409)
        with self._copying:
            self._copies[key] = _SharedAnswer(answer)
            if not self._copier:
                self._copier = threading.Thread(target=self._keep_copying, daemon=True)
                self._copier.start()

    def leave(self, key: ConversationKey) -> None:
        with self._copying:  # the rest goes before who has its end asks another process
            copy = self._copies.pop(key)
            if self._copy(key, copy, over=True):  # of its end nothing may be lost
                self._copy(key, copy, over=True)
        self._here.leave(key)

    def at(self, key: ConversationKey) -> RunningAnswer | None:
        return self._here.at(key) or next(iter(self._elsewhere(key)), None)

    def find(self, pattern: Sequence[str], *, here: bool = False) -> Sequence[RunningAnswer]:
        own = self._here.find(pattern)
        return own if here else [*own, *self._elsewhere(pattern)]

    def copy(self) -> None:
        """Copy what has come of all answers since."""
        with self._copying:
            for key, copy in self._copies.items():
                self._copy(key, copy)

    def _keep_copying(self) -> None:
        while True:
            time.sleep(COPIED_EVERY)
            self.copy()

    def _copy(self, key: ConversationKey, copy: _SharedAnswer, *, over: bool = False) -> bool:
        """Copy the rest of an answer, and stop it if another process requests that.

        Returns whether Redis lost what was copied before; then all of it is copied the next time.
        """
        stop = ("GET", f"{COPIES}{copy.answer.id}:stop")
        replies = self._redis.together([stop] + copy.commands(_redis_key(key), over))
        if replies and replies[0]:
            copy.answer.stop.set()
        if copy.lines and not (replies and replies[-1]):
            copy.lines = 0
            return bool(replies)
        return False

    def _elsewhere(self, pattern: Sequence[str]) -> list[_Elsewhere]:
        """Return the answers of such conversations that other processes make."""
        keys = [_redis_key(pattern)] if all(pattern) else self._redis.keys(ANSWERING) or []
        here = set(map(_redis_key, self._here.keys()))
        escaped_parts = list(map(escaped, pattern))
        answers = []
        for key in keys:
            parts = key.split(":")[2:]
            if key in here or len(parts) != len(pattern):
                continue
            if ConversationKey(*parts).matches(escaped_parts) and (about := self._redis.get(key)):
                answers.append(_Elsewhere(self._redis, key, about))
        return answers


class _Elsewhere:
    """An answer that another process makes; `about` is what the key of its conversation holds."""

    def __init__(self, redis: RedisCache, key: str, about: str) -> None:
        self._redis, self._key = redis, key
        self._id, colon, turn = about.partition(":")
        self.turn = turn if colon else None

    def end(self) -> None:
        self._redis.set(f"{COPIES}{self._id}:stop", "1", ENDING_SECONDS)

    def wait(self, *, for_turn: bool = False) -> None:
        until = time.monotonic() + ENDING_SECONDS
        while time.monotonic() < until and not (for_turn and self.turn is not None):
            id_, colon, turn = (self._redis.get(self._key) or "").partition(":")
            if id_ != self._id:
                return
            self.turn = turn if colon else None
            time.sleep(COPIED_EVERY / 4)

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        """Yield the lines of the answer; if its process dies, the last one says so."""
        at, alive = 0, time.monotonic()
        while not gone():
            lines = f"{COPIES}{self._id}"
            replies = self._redis.together([("LRANGE", lines, at, -1), ("GET", self._key)])
            copied, about = replies or ([], "")
            at += len(copied)
            yield b"".join(map(checked_line, copied))
            if copied[-1:] == [END_OF_LINES.decode()]:
                return
            if about and about.startswith(self._id):
                alive = time.monotonic()
            elif replies or time.monotonic() > alive + 2 * ALIVE_SECONDS:
                failed = Failed(BROKE_OFF, self.turn or "")
                yield from encode_stream([failed], cite=lambda path, start, end: None)
                return
            time.sleep(COPIED_EVERY)


def checked_line(line: str) -> bytes:
    """Return a line of a data stream from Redis with its HTML sanitised again; b'' for no line."""
    code, _, text = line.partition(":")

    def plain(value: dict[str, Any]) -> dict[str, Any]:
        html = {name: sanitise(str(value[name])) for name in value if name.endswith("html")}
        return value | html

    with suppress(ValueError, RecursionError):
        value = json.dumps(json.loads(text, object_hook=plain), ensure_ascii=False)
        return f"{code}:{value}\n".encode("utf-8", "replace") if code in LINE_CODES else b""
    return b""


def _redis_key(conversation: Sequence[str]) -> str:
    return ANSWERING + ":".join(map(escaped, conversation))
