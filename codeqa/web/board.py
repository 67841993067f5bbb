"""The board of running answers: at most one for each user in each conversation."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codeqa.llm.values import Cancelled
from codeqa.web.errors import RequestRefusedError

LATE, MOST_LATE = 3.0, 3
"""Seconds after which a question that has not begun is late (it takes milliseconds), and how many
late ones there may be: beyond that new questions are refused, as they would delay all others."""
LOOKS_EVERY = 0.5
"""Seconds between two checks whether the reader is still there."""
UNREAD_SECONDS = 1_800.0
"""Seconds after which an answer that nobody reads is stopped: longer than any real answer takes."""
ENDING_SECONDS = 5.0
"""Longest wait for a stopped answer to end, or for an answer to get the id of its turn."""
END_OF_LINES = b""
"""Marks the end of an answer's lines."""


class ConversationKey(NamedTuple):
    """A user's conversation, in which at most one answer is made at a time."""

    repository: str
    user: str
    conversation: str

    def matches(self, pattern: Sequence[str]) -> bool:
        """Return whether each part equals that of `pattern`, in which '' stands for any."""
        return all(expected in ("", part) for expected, part in zip(pattern, self, strict=True))


class RunningAnswer(Protocol):
    """An answer that this process or another one is making."""

    turn: str | None
    """Id of its turn: None while it is unknown, '' if the answer is not stored."""

    def end(self) -> None:
        """Ask it to end."""

    def wait(self, *, for_turn: bool = False) -> None:
        """Wait up to ENDING_SECONDS for its end, or with `for_turn` until `turn` is known."""

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        """Yield the lines so far, then further ones as they come, until the reader is `gone`."""


class AnswerBoard(Protocol):
    """The running answers, as far as this process knows them."""

    def enter(self, key: ConversationKey, answer: AnswerLines, most: float) -> None:
        """Note an answer of this process.

        Raises RequestRefusedError: 409 if the conversation has one, 503 if this process makes
        `most` answers already.
        """

    def leave(self, key: ConversationKey) -> None:
        """Forget an answer of this process."""

    def at(self, key: ConversationKey) -> RunningAnswer | None:
        """Return the running answer of a conversation, if there is one."""

    def find(self, pattern: Sequence[str], *, here: bool = False) -> Sequence[RunningAnswer]:
        """Return the answers of matching conversations; with `here` only those of this process."""


class AnswerLines:
    """The lines of an answer of this process, for any number of readers."""

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
        """Return whether nobody has read it for UNREAD_SECONDS."""
        return time.monotonic() > self._read + UNREAD_SECONDS

    def late(self) -> bool:
        """Return whether it has waited long to begin: for a processor, or for the database."""
        return self.turn is None and time.monotonic() > self._begun + LATE

    def add(self, line: bytes) -> None:
        with self._longer:
            self.lines.append(line)
            self._longer.notify_all()

    def read(self, gone: Cancelled) -> Iterator[bytes]:
        position, lines = 0, [b"none yet"]
        while lines[-1:] != [END_OF_LINES] and not gone():
            with self._longer:
                if len(self.lines) == position:
                    self._longer.wait(LOOKS_EVERY)
            lines = self.lines[position:]
            position += len(lines)
            self._read = time.monotonic()
            yield b"".join(lines)

    def wait(self, *, for_turn: bool = False) -> None:
        with self._longer:
            self._longer.wait_for(
                lambda: self.lines[-1:] == [END_OF_LINES] or (for_turn and self.turn is not None),
                ENDING_SECONDS,
            )


class LocalBoard:
    """The running answers of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[ConversationKey, AnswerLines] = {}

    def enter(self, key: ConversationKey, answer: AnswerLines, most: float) -> None:
        if (earlier := self._answers.get(key)) and earlier.stop.is_set():
            earlier.wait()
        with self._lock:
            if key in self._answers:
                raise RequestRefusedError(409)
            late = sum(running.late() for running in self._answers.values())
            if len(self._answers) >= most or late >= MOST_LATE:
                raise RequestRefusedError(503, "Too many questions at once: ask again in a moment.")
            self._answers[key] = answer

    def leave(self, key: ConversationKey) -> None:
        self._answers.pop(key).add(END_OF_LINES)

    def keys(self) -> list[ConversationKey]:
        return list(self._answers)

    def at(self, key: ConversationKey) -> AnswerLines | None:
        return self._answers.get(key)

    def find(self, pattern: Sequence[str], *, here: bool = False) -> Sequence[AnswerLines]:
        answers = list(self._answers.items())
        return [answer for key, answer in answers if key.matches(pattern)]
