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

    @property
    def ended(self) -> bool:
        return self._lines[-1:] == [END]

    def make(self, events: Iterator[Event], cite: Cite) -> None:
        """Take all of `events`, which end soon once this is cancelled."""
        try:
            for line in encode_stream(self._noted(events), cite=cite):
                self._add(line)
        finally:  # readers wait for it, however that ended
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
        with self._longer:
            self._longer.wait_for(
                lambda: self.ended or (for_turn and self.turn is not None), ENDING_SECONDS
            )

    def _noted(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if event.kind == "asked":
                self.turn = str(event.data["turn"])
            yield event


class AnswerStreams:
    """The answers in the making, at most `most` at once, and the last that ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
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
        with self._lock:
            live = [at for at, one in self._streams.items() if not one.ended]
            if place in live or len(live) >= self._most:
                raise RequestRefusedError(409 if place in live else 503)
            ended = [at for at in self._streams if at not in live]
            for at in {place, *ended[:-ENDED_KEPT]}:
                self._streams.pop(at, None)
            self._streams[place] = stream
        threading.Thread(target=stream.make, args=(events, cite), daemon=True).start()
        return stream.read(gone)

    def turn(self, place: Place) -> str:
        """Id of the turn that is answered there; '' for none."""
        stream = self._streams.get(place)
        if stream is None or stream.ended:
            return ""
        stream.wait(for_turn=True)
        return stream.turn or ""

    def join(self, place: Place, gone: Cancelled) -> Iterator[bytes]:
        """The lines of the answer there, from its first one on. Raises NotFoundError."""
        stream = self._streams.get(place)
        if stream and (not stream.ended or (stream.turn and not stream.stop.is_set())):
            return stream.read(gone)
        raise NotFoundError("Nothing is being answered here.", "Load the conversation.")

    def stop(self, repository: str = "", user: str = "", conversation: str = "") -> int:
        """End the answers there, '' for anywhere, and wait until they are kept; how many."""
        wanted = (repository, user, conversation)
        there = {
            place: stream
            for place, stream in [*self._streams.items()]
            if all(want in ("", has) for want, has in zip(wanted, place, strict=True))
        }
        live = [stream for stream in there.values() if not stream.ended]
        for stream in live:
            stream.stop.set()
        for stream in live:
            stream.wait()
        with self._lock:
            for place, stream in there.items():
                if stream.ended and self._streams.get(place) is stream:
                    del self._streams[place]
        return len(live)
