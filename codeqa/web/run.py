"""The answers that this process makes, each from its start to its end.

An answer of a page goes on when its page is closed: a thread of its own makes it, and whoever has
its conversation open reads along. Any other ends with the request that asked for it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from codeqa.chat.events import Asked, Event, Events
from codeqa.chat.record import Done
from codeqa.chat.values import AskOptions
from codeqa.engine import Engine
from codeqa.errors import NotFoundError
from codeqa.hosts import is_loopback
from codeqa.llm.values import Cancelled
from codeqa.render import Cite
from codeqa.settings import Settings
from codeqa.web.ai_sdk import encode_stream
from codeqa.web.board import AnswerBoard, AnswerLines, Place
from codeqa.web.errors import RequestRefusedError

LOOKS_EVERY = 0.05
"""Seconds between two looks whether all answers have ended."""


class AnswerRun:
    """One answer: an iterator over its events, which counts as running until it is closed.

    It ends when it is stopped, when the server ends, and when its reader is `gone`; without that
    it is read along at `place`, and ends when nobody does.
    """

    def __init__(
        self,
        runs: Runs,
        engine: Engine,
        options: AskOptions,
        place: Place | None,
        gone: Cancelled | None,
    ) -> None:
        self.read_along = gone is None
        self.lines = AnswerLines(turn=None if self.read_along else "")
        self.done: Done | None = None
        self.engine, self.place = engine, place
        self._runs, self._unwanted = runs, gone or self.lines.unread
        self._options = replace(options, cancelled=self.cancelled)
        self._events: Events = engine.chat.ask(self._options)

    def cancelled(self) -> bool:
        """Whether it is to end."""
        return self._runs.closing.is_set() or self.lines.stop.is_set() or self._unwanted()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        try:
            event = next(self._events)
        except BaseException:  # its end, too
            self.close()
            raise
        if isinstance(event, Asked) and self.lines.turn is None:
            self.lines.turn = event.turn
        elif isinstance(event, Done):
            self.done = event
        return event

    def close(self) -> None:
        """End it; what came of it is kept."""
        self._events.close()
        self._runs.end(self)

    def make(self, cite: Cite) -> None:
        """Make all of it for those who read along, and then a title for its conversation."""
        try:
            for line in encode_stream(self, cite=cite):
                self.lines.add(line)
        finally:  # readers wait for it, however that ended
            self._runs.leave(self)
        if self.done:
            alone = is_loopback(self.done.record.host)  # such a server makes one answer at a time
            stop = lambda: self._runs.closing.is_set() or (alone and self._runs.any())  # noqa: E731
            self.engine.chat.give_title(replace(self._options, cancelled=stop), self.done.turn)


class Runs:
    """The answers that this process makes; `board` knows those of all processes."""

    def __init__(self, settings: Settings, board: AnswerBoard) -> None:
        self.draining, self.closing = threading.Event(), threading.Event()
        self._settings, self._board = settings, board
        self._running: set[AnswerRun] = set()

    def any(self) -> bool:
        return bool(self._running)

    def start(
        self,
        engine: Engine,
        options: AskOptions,
        place: Place | None = None,
        gone: Cancelled | None = None,
    ) -> AnswerRun:
        """Start an answer. Raises RequestRefusedError as `refuse_at_the_end` does, and at a place
        as `AnswerBoard.enter` does."""
        self.refuse_at_the_end()
        run = AnswerRun(self, engine, options, place, gone)
        if place:
            most = self._settings.threads if run.read_along else math.inf
            self._board.enter(place, run.lines, most)
        self._running.add(run)
        return run

    def start_for_page(
        self, engine: Engine, options: AskOptions, place: Place, cite: Cite, gone: Cancelled
    ) -> Iterator[bytes]:
        """Start an answer that is read along, and yield its lines until this reader is `gone`.
        Raises as `start` does."""
        run = self.start(engine, options, place)
        threading.Thread(target=run.make, args=(cite,), name="answer", daemon=True).start()
        return run.lines.read(gone)

    def end(self, run: AnswerRun) -> None:
        """Count a run no longer, and free its place where nobody reads it along."""
        if run not in self._running:
            return
        if self._settings.redis_url:  # another process may go on from it, or delete it
            run.engine.conversations.flush()
        self._running.discard(run)
        if not run.read_along:
            self.leave(run)

    def leave(self, run: AnswerRun) -> None:
        if run.place:
            self._board.leave(run.place)

    def refuse_at_the_end(self) -> None:
        """Raises RequestRefusedError (503) when the server is to end."""
        if self.draining.is_set():
            raise RequestRefusedError(503, "This server is shutting down: ask again in a moment.")

    def drain(self) -> None:
        """Take no more questions and wait until those that were asked are answered, but no longer
        than is set."""
        self.draining.set()
        until = time.monotonic() + self._settings.drain_seconds
        time.sleep(LOOKS_EVERY)  # what was let in before begins
        while self._running and time.monotonic() < until and not self.closing.is_set():
            time.sleep(LOOKS_EVERY)

    def turn(self, place: Place) -> str:
        """Return the id of the turn that is answered there; '' for none."""
        answer = self._board.at(place)
        if answer is None:
            return ""
        answer.wait(for_turn=True)
        return answer.turn or ""

    def join(self, place: Place, gone: Cancelled) -> Iterator[bytes]:
        """Return the lines of the answer there, from its first one on. Raises NotFoundError."""
        answer = self._board.at(place)
        if answer is None or answer.turn == "":
            raise NotFoundError("No answer is being written here.", "Reload the conversation.")
        return answer.read(gone)

    def stop(
        self, repository: str = "", user: str = "", conversation: str = "", *, here: bool = False
    ) -> int:
        """End the answers there, '' for anywhere, `here` for those that this process makes, and
        wait until they are kept; returns how many."""
        answers = self._board.find((repository, user, conversation), here=here)
        for answer in answers:
            answer.end()
        for answer in answers:
            answer.wait()
        return len(answers)
