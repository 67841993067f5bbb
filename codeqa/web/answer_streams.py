"""Answers that go on when their page is closed: each is made by a thread of its own, and whoever
has its conversation open reads along from the beginning."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from codeqa.errors import NotFoundError
from codeqa.llm import Cancelled
from codeqa.render.markdown import Cite
from codeqa.types import Event
from codeqa.web.errors import RequestRefusedError
from codeqa.web.protocol import encode_stream

LOOKS_EVERY = 0.5
"""Seconds between two looks whether a reader is still there."""
UNREAD_SECONDS = 1_800.0
"""After which an answer that nobody reads is stopped: more than any takes that is waited for."""
ENDING_SECONDS = 5.0
"""Longest wait for an answer that was stopped, or for one to tell under which id it is kept."""
ENDED_KEPT = 8
"""Answers that ended and can still be read along: somebody may just have been told of one."""
END = b""
"""Stands behind the last line."""


class Place(NamedTuple):
    """Where at most one answer is made at a time."""

    repository: str
    user: str
    conversation: str


class _AnswerStream:
    """The lines of an answer in the making."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.turn: str | None = None
        """Id under which it is kept, '' for none; None until it tells that."""
        self._lines: list[bytes] = []
        self._longer = threading.Condition()
        self._read = time.monotonic()

    def cancelled(self) -> bool:
        """Whether it was stopped, or nobody reads it any more."""
        return self.stop.is_set() or time.monotonic() > self._read + UNREAD_SECONDS

    def make(self, events: Iterator[Event], cite: Cite, ended: Callable[[], None]) -> None:
        """Take all of `events`, which end soon once this is cancelled."""
        try:
            for line in encode_stream(self._noted(events), cite=cite):
                self._add(line)
        finally:  # readers wait for it, however that ended
            ended()
            self._add(END)

    def _add(self, line: bytes) -> None:
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

    def wait(self, *, for_turn: bool = False) -> None:
        """Wait for its end, or until it tells its turn, but not for ever."""

        def met() -> bool:
            return self._lines[-1:] == [END] or (for_turn and self.turn is not None)

        with self._longer:
            self._longer.wait_for(met, ENDING_SECONDS)

    def _noted(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if event.kind == "asked":
                self.turn = str(event.data["turn"])
            yield event


class AnswerStreams:
    """The answers in the making, at most `most` at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._streams: dict[Place, _AnswerStream] = {}
        self._ended: dict[Place, _AnswerStream] = {}
        """The last that ended and were kept."""

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

        def ended() -> None:
            with self._lock:
                del self._streams[place]
                self._ended.pop(place, None)
                if stream.turn and not stream.stop.is_set():
                    self._ended[place] = stream
                if len(self._ended) > ENDED_KEPT:
                    del self._ended[next(iter(self._ended))]

        with self._lock:
            if place in self._streams or len(self._streams) >= self._most:
                raise RequestRefusedError(409 if place in self._streams else 503)
            self._streams[place] = stream
        threading.Thread(target=stream.make, args=(events, cite, ended), daemon=True).start()
        return stream.read(gone)

    def turn(self, place: Place) -> str:
        """Id of the turn that is answered there; '' for none."""
        if stream := self._streams.get(place):
            stream.wait(for_turn=True)
        return (stream and stream.turn) or ""

    def join(self, place: Place, gone: Cancelled) -> Iterator[bytes]:
        """The lines of the answer there, from its first one on. Raises NotFoundError."""
        with self._lock:  # it is in one of them at any moment, but moves
            stream = self._streams.get(place) or self._ended.get(place)
        if stream:
            return stream.read(gone)
        raise NotFoundError("Nothing is being answered here.", "Load the conversation.")

    def stop(self, repository: str = "", user: str = "", conversation: str = "") -> int:
        """End the answers there, '' for anywhere, and wait until they are kept; how many."""
        wanted = (repository, user, conversation)

        def is_there(place: Place) -> bool:
            return all(want in ("", has) for want, has in zip(wanted, place, strict=True))

        stopped = [one for place, one in [*self._streams.items()] if is_there(place)]
        for stream in stopped:
            stream.stop.set()
        for stream in stopped:
            stream.wait()
        with self._lock:
            self._ended = {place: one for place, one in self._ended.items() if not is_there(place)}
        return len(stopped)
