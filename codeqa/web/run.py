"""The answers that this process makes, each from its start to its end.

An answer for the page goes on when the page is closed: a thread of its own makes it, and every page
with this conversation open reads along. Any other answer ends with its request.
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
from codeqa.web.board import AnswerBoard, AnswerLines, ConversationKey
from codeqa.web.errors import RequestRefusedError

LOOKS_EVERY = 0.05
"""Seconds between two checks whether all answers have ended."""


class AnswerRun:
    """One answer: an iterator over its events, which counts as running until it is closed.

    It ends when it is stopped, when the server ends, and when its reader is `gone`. Without `gone`
    pages read it along by the `key` of its conversation, and it ends when none does any more.
    """

    def __init__(
        self,
        runs: Runs,
        engine: Engine,
        options: AskOptions,
        key: ConversationKey | None,
        gone: Cancelled | None,
    ) -> None:
        self.read_along = gone is None
        self.lines = AnswerLines(turn=None if self.read_along else "")
        self.done: Done | None = None
        self.engine, self.key = engine, key
        self._runs, self._unwanted = runs, gone or self.lines.unread
        self._options = replace(options, cancelled=self.cancelled)
        self._events: Events = engine.chat.ask(self._options)

    def cancelled(self) -> bool:
        """Return whether it has to end."""
        return self._runs.closing.is_set() or self.lines.stop.is_set() or self._unwanted()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        try:
            event = next(self._events)
        except BaseException:  # including StopIteration
            self.close()
            raise
        if isinstance(event, Asked) and self.lines.turn is None:
            self.lines.turn = event.turn
        elif isinstance(event, Done):
            self.done = event
        return event

    def close(self) -> None:
        """End it; the text so far is stored."""
        self._events.close()
        self._runs.end(self)

    def make(self, cite: Cite) -> None:
        """Make the whole answer for its readers, and then a title for its conversation."""
        try:
            for line in encode_stream(self, cite=cite):
                self.lines.add(line)
        finally:  # readers wait for this
            self._runs.leave(self)
        if self.done:
            # A local model makes one answer at a time: a question goes before a title.
            is_local = is_loopback(self.done.record.host)

            def stop() -> bool:
                return self._runs.closing.is_set() or (is_local and self._runs.any())

            self.engine.chat.give_title(replace(self._options, cancelled=stop), self.done.turn)


class Runs:
    """The running answers of this process; `board` knows those of all processes."""

    def __init__(self, settings: Settings, board: AnswerBoard) -> None:
        self.draining, self.closing = threading.Event(), threading.Event()
        self._settings, self._board = settings, board
        self._running: set[AnswerRun] = set()

    def any(self) -> bool:
        """Return whether an answer is being made."""
        return bool(self._running)

    def start(
        self,
        engine: Engine,
        options: AskOptions,
        key: ConversationKey | None = None,
        gone: Cancelled | None = None,
    ) -> AnswerRun:
        """Start an answer.

        Raises RequestRefusedError as `refuse_at_the_end` does, and with a `key` as
        `AnswerBoard.enter` does.
        """
        self.refuse_at_the_end()
        run = AnswerRun(self, engine, options, key, gone)
        if key:
            most = self._settings.threads if run.read_along else math.inf
            self._board.enter(key, run.lines, most)
        self._running.add(run)
        return run

    def start_for_page(
        self, engine: Engine, options: AskOptions, key: ConversationKey, cite: Cite, gone: Cancelled
    ) -> Iterator[bytes]:
        """Start an answer that pages read along, and yield its lines until this reader is `gone`.

        Raises as `start` does.
        """
        run = self.start(engine, options, key)
        threading.Thread(target=run.make, args=(cite,), name="answer", daemon=True).start()
        return run.lines.read(gone)

    def end(self, run: AnswerRun) -> None:
        """Count a run no longer, and leave the board unless pages read it along."""
        if run not in self._running:
            return
        if self._settings.redis_url:  # another process may continue or delete the conversation
            run.engine.conversations.flush()
        self._running.discard(run)
        if not run.read_along:
            self.leave(run)

    def leave(self, run: AnswerRun) -> None:
        """Take a run off the board."""
        if run.key:
            self._board.leave(run.key)

    def refuse_at_the_end(self) -> None:
        """Raise RequestRefusedError (503) when the server is shutting down."""
        if self.draining.is_set():
            raise RequestRefusedError(503, "This server is shutting down: ask again in a moment.")

    def drain(self) -> None:
        """Refuse new questions and wait for running answers, but no longer than is set."""
        self.draining.set()
        until = time.monotonic() + self._settings.drain_seconds
        time.sleep(LOOKS_EVERY)  # lets accepted requests begin
        while self._running and time.monotonic() < until and not self.closing.is_set():
            time.sleep(LOOKS_EVERY)

    def turn(self, key: ConversationKey) -> str:
        """Return the id of the turn that is being answered there; '' for none."""
        answer = self._board.at(key)
        if answer is None:
            return ""
        answer.wait(for_turn=True)
        return answer.turn or ""

    def join(self, key: ConversationKey, gone: Cancelled) -> Iterator[bytes]:
        """Return the lines of the running answer from the first one on. Raises NotFoundError."""
        answer = self._board.at(key)
        if answer is None or answer.turn == "":
            raise NotFoundError("No answer is being written here.", "Reload the conversation.")
        return answer.read(gone)

    def stop(
        self, repository: str = "", user: str = "", conversation: str = "", *, here: bool = False
    ) -> int:
        """Stop the answers there, wait until they are stored, and return their number.

        '' stands for any; with `here` only answers of this process are stopped.
        """
        answers = self._board.find((repository, user, conversation), here=here)
        for answer in answers:
            answer.end()
        for answer in answers:
            answer.wait()
        return len(answers)
