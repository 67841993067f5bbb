"""The board of running answers: the answers in the making by their place, at most one at each."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codeqa.llm.values import Cancelled
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
END = b""
"""Stands behind the last line."""


class Place(NamedTuple):
    """Where at most one answer is made at a time."""

    repository: str
    user: str
    conversation: str

    def matches(self, wanted: Sequence[str]) -> bool:
        """Whether its parts are those of `wanted`, of which '' stands for any."""
        return all(want in ("", part) for want, part in zip(wanted, self, strict=True))


class RunningAnswer(Protocol):
    """An answer in the making, by this process or another one."""

    turn: str | None
    """Id under which it is kept, '' for none; None until it tells that."""

    def end(self) -> None:
        """Ask for its end."""

    def wait(self, *, for_turn: bool = False) -> None:
        """Wait for its end, or until it tells its turn, but not for ever."""

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        """Yield its lines so far at once, the others as they come, until the reader is `gone`."""


class AnswerBoard(Protocol):
    """Which answers are made where, as far as this process knows."""

    def enter(self, place: Place, answer: AnswerLines, most: float) -> None:
        """Put an answer of this process at its place, where this makes fewer than `most`. Raises
        RequestRefusedError: 409 while there is another one at this place, 503 for too many."""

    def leave(self, place: Place) -> None:
        """Take an answer of this process from its place."""

    def at(self, place: Place) -> RunningAnswer | None:
        """Return the answer at a place."""

    def find(self, wanted: Sequence[str], *, here: bool = False) -> Sequence[RunningAnswer]:
        """Return the answers at the places that match; `here` those of this process alone."""


class AnswerLines:
    """The lines of an answer that this process makes, for any number of readers."""

    def __init__(self, turn: str | None = None) -> None:
        self.id = uuid.uuid4().hex
        self.stop = threading.Event()
        self.turn = turn
        self.lines: list[bytes] = []
        self._longer = threading.Condition()
        self._begun = self._read = time.monotonic()

    def end(self) -> None:
        self.stop.set()

    def unread(self) -> bool:
        """Whether nobody reads it any more."""
        return time.monotonic() > self._read + UNREAD_SECONDS

    def late(self) -> bool:
        """Whether it waits for long to be taken up: for a processor, or for the state."""
        return self.turn is None and time.monotonic() > self._begun + LATE

    def add(self, line: bytes) -> None:
        with self._longer:
            self.lines.append(line)
            self._longer.notify_all()

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        at, new = 0, [b"none yet"]
        while new[-1:] != [END] and not gone():
            with self._longer:
                if len(self.lines) == at:
                    self._longer.wait(LOOKS_EVERY)
            new = self.lines[at:]
            at += len(new)
            self._read = time.monotonic()
            yield b"".join(new)

    def wait(self, *, for_turn: bool = False) -> None:
        with self._longer:
            self._longer.wait_for(
                lambda: self.lines[-1:] == [END] or (for_turn and self.turn is not None),
                ENDING_SECONDS,
            )


class LocalBoard:
    """The answers of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[Place, AnswerLines] = {}

    def enter(self, place: Place, answer: AnswerLines, most: float) -> None:
        if (earlier := self._answers.get(place)) and earlier.stop.is_set():
            earlier.wait()
        with self._lock:
            if place in self._answers:
                raise RequestRefusedError(409)
            late = sum(one.late() for one in self._answers.values())
            if len(self._answers) >= most or late >= MOST_LATE:
                raise RequestRefusedError(503, "Too many questions at once: ask again in a moment.")
            self._answers[place] = answer

    def leave(self, place: Place) -> None:
        self._answers.pop(place).add(END)

    def places(self) -> list[Place]:
        return [*self._answers]

    def at(self, place: Place) -> AnswerLines | None:
        return self._answers.get(place)

    def find(self, wanted: Sequence[str], *, here: bool = False) -> Sequence[AnswerLines]:
        return [one for place, one in [*self._answers.items()] if place.matches(wanted)]
