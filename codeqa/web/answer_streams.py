"""An answer's events as the lines of the Vercel AI SDK's data stream, and answers that go on when
their page is closed.

A line is a code, a colon and compact JSON: `0` text, `8` a list of annotations, `3` an
error, `e` and `d` the end. A client that asks for rendering also receives the time of
each stage and step, finished blocks as HTML and what the page shows below an answer.

An answer of a page is made by a thread of its own, and whoever has its conversation open reads
along from the beginning. With Redis it is copied there several times a second, and other processes
of the server read it along and stop it: a key of its place holds its id, with `:` and its turn once
that is known, and a list of its id its lines. Both vanish ALIVE_SECONDS after the last sign of who
makes it. A third key says that it is to stop. One thread copies all answers at once.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from codeqa.chat.events import Asked, Event, Failed
from codeqa.chat.record import BROKE_OFF
from codeqa.errors import NotFoundError
from codeqa.llm.values import Cancelled
from codeqa.render import Cite, sanitise
from codeqa.state.cache import RedisCache, escaped
from codeqa.web.ai_sdk import encode_stream
from codeqa.web.errors import RequestRefusedError

LATE, MOST_LATE = 3.0, 3
"""Seconds until a question is late, which takes milliseconds to be taken up; and how many late ones
are waiting when the next is refused: it would only make all of them later."""
LOOKS_EVERY = 0.5
"""Seconds between two looks whether a reader is still there."""
UNREAD_SECONDS = 1_800.0
"""After which an answer is stopped that nobody reads at the process that makes it: more than any
takes that is waited for."""
ENDING_SECONDS = 5.0
"""Longest wait for an answer that was stopped, or for one to tell under which id it is kept."""
COPIED_EVERY = 0.2
"""Seconds between two copies to Redis, and between two looks at one."""
ALIVE_SECONDS = 5
"""Without a sign for so long an answer's process counts as dead, and readers elsewhere are told."""
PLACES, COPIES = "codeqa:answering:", "codeqa:answer:"
LINE_CODES = frozenset("038de")
END = b""
"""Stands behind the last line."""


class Place(NamedTuple):
    """Where at most one answer is made at a time."""

    repository: str
    user: str
    conversation: str


class _AnswerStream:
    """The lines of an answer that this process makes."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self.stop = threading.Event()
        self.over = False
        self.copied = 0
        """Lines that are in Redis."""
        self.turn: str | None = None
        """Id under which it is kept, '' for none; None until it tells that."""
        self._lines: list[bytes] = []
        self._longer = threading.Condition()
        self._begun = self._read = time.monotonic()

    def end(self) -> None:
        self.stop.set()

    def cancelled(self) -> bool:
        """Whether it was stopped, or nobody reads it any more."""
        return self.stop.is_set() or time.monotonic() > self._read + UNREAD_SECONDS

    def late(self) -> bool:
        """Whether it waits for long to be taken up: for a processor, or for the state."""
        return self.turn is None and time.monotonic() > self._begun + LATE

    def noted(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Asked):
                self.turn = event.turn
            yield event

    def add(self, line: bytes) -> None:
        with self._longer:
            self._lines.append(line)
            self._longer.notify_all()

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        """The lines that there are at once, the others as they come, until the reader is `gone`."""
        at, new = 0, [b"none yet"]
        while new[-1:] != [END] and not gone():
            with self._longer:
                if len(self._lines) == at:
                    self._longer.wait(LOOKS_EVERY)
            new = self._lines[at:]
            at += len(new)
            self._read = time.monotonic()
            yield b"".join(new)

    def copy(self, place: str) -> list[tuple[Any, ...]]:
        """What Redis is told of it. The reply to the last command is 0 where it lost the lines
        copied before: nothing is put in the place of what would then be the beginning."""
        lines, new = f"{COPIES}{self.id}", self._lines[self.copied :]
        push = ("RPUSHX" if self.copied else "RPUSH", lines, *new, *[END] * self.over)
        before = [] if self.copied else [("DEL", lines)]
        self.copied += len(new)
        about = self.id if self.turn is None else f"{self.id}:{self.turn}"
        return [
            *before,
            *([push] if len(push) > 2 else []),
            ("DEL", place) if self.over else ("SET", place, about, "EX", ALIVE_SECONDS),
            ("EXPIRE", lines, ALIVE_SECONDS),
        ]

    def wait(self, *, for_turn: bool = False) -> None:
        """Wait for its end, or until it tells its turn, but not for ever."""
        with self._longer:
            self._longer.wait_for(
                lambda: self._lines[-1:] == [END] or (for_turn and self.turn is not None),
                ENDING_SECONDS,
            )


def _key(place: Sequence[str]) -> str:
    return PLACES + ":".join(map(escaped, place))


def checked_line(line: str) -> bytes:
    """Return a line of a data stream that comes from Redis, its HTML sanitised anew; nothing for
    what is none."""
    code, _, text = line.partition(":")

    def plain(value: dict[str, Any]) -> dict[str, Any]:
        html = {name: sanitise(str(value[name])) for name in value if name.endswith("html")}
        return value | html

    with suppress(ValueError, RecursionError):
        value = json.dumps(json.loads(text, object_hook=plain), ensure_ascii=False)
        return f"{code}:{value}\n".encode("utf-8", "replace") if code in LINE_CODES else b""
    return b""


class _Elsewhere:
    """An answer that another process makes; `about` is what the key of its place holds."""

    def __init__(self, redis: RedisCache, place: str, about: str) -> None:
        self._redis, self._place = redis, place
        self._id, told, turn = about.partition(":")
        self.turn = turn if told else None

    def end(self) -> None:
        self._redis.set(f"{COPIES}{self._id}:stop", "1", ENDING_SECONDS)

    def wait(self, *, for_turn: bool = False) -> None:
        until = time.monotonic() + ENDING_SECONDS
        while time.monotonic() < until and not (for_turn and self.turn is not None):
            id_, told, turn = (self._redis.get(self._place) or "").partition(":")
            if id_ != self._id:
                return
            self.turn = turn if told else None
            time.sleep(COPIED_EVERY / 4)

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        """As that of an answer made here; where its process dies, words that say so come last."""
        at, alive = 0, time.monotonic()
        while not gone():
            lines = f"{COPIES}{self._id}"
            told = self._redis.together([("LRANGE", lines, at, -1), ("GET", self._place)])
            new, about = told or ([], "")
            at += len(new)
            yield b"".join(map(checked_line, new))
            if new[-1:] == [END.decode()]:
                return
            if about and about.startswith(self._id):
                alive = time.monotonic()
            elif told or time.monotonic() > alive + 2 * ALIVE_SECONDS:
                failed = Failed(BROKE_OFF, self.turn or "")
                yield from encode_stream([failed], cite=lambda path, start, end: None)
                return
            time.sleep(COPIED_EVERY)


class AnswerStreams:
    """The answers in the making, at most `most` at once here; with `redis` those of all processes
    are read along and stopped."""

    def __init__(self, most: int, redis: RedisCache | None = None) -> None:
        self._most, self._redis = most, redis
        self._lock, self._copying = threading.Lock(), threading.Lock()
        self._copier: threading.Thread | None = None
        self._streams: dict[Place, _AnswerStream] = {}

    def start(
        self, place: Place, ask: Callable[[Cancelled], Iterator[Event]], cite: Cite, gone: Cancelled
    ) -> Iterator[bytes]:
        """The lines of an answer that is made from now on, for a reader until that is `gone`.

        Raises RequestRefusedError: 409 while there is another one at this place, 503 for too many.
        """
        if (earlier := self._streams.get(place)) and earlier.stop.is_set():
            earlier.wait()
        stream = _AnswerStream()
        events = ask(stream.cancelled)
        self._take(place, stream, self._most)
        threading.Thread(target=self._make, args=(place, stream, events, cite), daemon=True).start()
        return stream.read(gone)

    def alone(
        self, place: Place, ask: Callable[[Cancelled], Iterator[Event]], gone: Cancelled
    ) -> Generator[Event]:
        """The events of an answer that only who asked for it reads, until they are `gone`.

        Raises RequestRefusedError: 409 as `start` does.
        """
        stream = _AnswerStream()
        stream.turn = ""  # nobody can read it along
        asked = ask(lambda: stream.stop.is_set() or gone())
        self._take(place, stream)

        def until_end() -> Generator[Event]:
            try:
                yield Asked()
                yield from asked
            finally:
                self._leave(place, stream)

        events = until_end()
        next(events)  # what is begun comes to its end however it is left
        return events

    def _take(self, place: Place, stream: _AnswerStream, most: float = math.inf) -> None:
        stream.over = bool(self._redis)  # a copy would take the place that is asked for below
        with self._lock:
            if place in self._streams:
                raise RequestRefusedError(409)
            late = sum(one.late() for one in self._streams.values())
            if len(self._streams) >= most or late >= MOST_LATE:
                raise RequestRefusedError(503, "Too many questions wait: ask again in a moment.")
            self._streams[place] = stream
        if self._redis:
            first = ("SET", _key(place), stream.id, "NX", "EX", ALIVE_SECONDS)
            if self._redis.together([first]) == [None]:
                del self._streams[place]
                raise RequestRefusedError(409)
            stream.over = False
            with self._lock:
                if not self._copier:
                    self._copier = threading.Thread(target=self._keep_copying, daemon=True)
                    self._copier.start()

    def _leave(self, place: Place, stream: _AnswerStream) -> None:
        self._copy({place: stream}, over=True)
        del self._streams[place]
        stream.add(END)

    def _keep_copying(self) -> None:
        while True:
            time.sleep(COPIED_EVERY)
            self._copy({**self._streams})

    def _copy(self, streams: Mapping[Place, _AnswerStream], *, over: bool = False) -> None:
        """Copy to Redis what has come of answers, all of it anew after a failure. The last of it
        goes before who has its end asks another process the next question."""
        with self._copying:
            going = {place: stream for place, stream in streams.items() if not stream.over}
            if not self._redis or not going:
                return
            for stream in going.values():
                stream.over = over
            lost = self._copied(going)
            if over and lost:  # of its end nothing may be lost
                self._copied(lost)

    def _copied(self, streams: Mapping[Place, _AnswerStream]) -> dict[Place, _AnswerStream]:
        """Copy what has come of `streams`, and take note of who stops one. Returns those of which
        Redis lost what was copied before: all of that is copied the next time."""
        assert self._redis
        lost = dict[Place, _AnswerStream]()
        for place, stream in streams.items():
            stop = ("GET", f"{COPIES}{stream.id}:stop")
            told = self._redis.together([stop, *stream.copy(_key(place))])
            if told and told[0]:
                stream.stop.set()
            if stream.copied and not (told and told[-1]):
                stream.copied = 0
                lost |= {place: stream} if told else {}
        return lost

    def _make(
        self, place: Place, stream: _AnswerStream, events: Iterator[Event], cite: Cite
    ) -> None:
        """Take all of `events`, which end soon once the stream is cancelled."""
        try:
            for line in encode_stream(stream.noted(events), cite=cite):
                stream.add(line)
        finally:  # readers wait for it, however that ended
            self._leave(place, stream)

    def _at(self, place: Place) -> _AnswerStream | _Elsewhere | None:
        return self._streams.get(place) or next(iter(self._elsewhere(place)), None)

    def _elsewhere(self, wanted: Sequence[str]) -> list[_Elsewhere]:
        """Those at such places that other processes make."""
        if not self._redis:
            return []
        keys, parts = [_key(wanted)], [*map(escaped, wanted)]
        if not all(wanted):
            keys = self._redis.keys(PLACES) or []
        here = {*map(_key, [*self._streams])}
        found = [
            (key, self._redis.get(key))
            for key in keys
            if key not in here
            and len(has := key.split(":")[2:]) == len(parts)
            and all(want in ("", own) for want, own in zip(parts, has, strict=True))
        ]
        return [_Elsewhere(self._redis, key, id_) for key, id_ in found if id_]

    def turn(self, place: Place) -> str:
        """Id of the turn that is answered there; '' for none."""
        if stream := self._at(place):
            stream.wait(for_turn=True)
        return (stream and stream.turn) or ""

    def join(self, place: Place, gone: Cancelled) -> Iterator[bytes]:
        """The lines of the answer there, from its first one on. Raises NotFoundError."""
        if (stream := self._at(place)) and stream.turn != "":
            return stream.read(gone)
        raise NotFoundError("Nothing is being answered here.", "Load the conversation.")

    def stop(
        self, repository: str = "", user: str = "", conversation: str = "", *, here: bool = False
    ) -> int:
        """End the answers there, '' for anywhere, `here` for those that this process makes, and
        wait until they are kept; how many."""
        wanted = (repository, user, conversation)
        live: list[_AnswerStream | _Elsewhere] = [
            stream
            for place, stream in [*self._streams.items()]
            if all(want in ("", has) for want, has in zip(wanted, place, strict=True))
        ]
        live += [] if here else self._elsewhere(wanted)
        for stream in live:
            stream.end()
        for stream in live:
            stream.wait()
        return len(live)
