"""Answer a question in five stages and yield events as it goes.

Question → Routed → Gathered → the streamed answer → Checked → the turn that is stored.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from codeqa.chat import events
from codeqa.chat.check import check
from codeqa.chat.conversations import FLUSH_SECONDS, Conversations
from codeqa.chat.events import Event, Events, Failed, Failure
from codeqa.chat.gather import Gatherer
from codeqa.chat.question import read_question
from codeqa.chat.record import Done
from codeqa.chat.responders import Responders, respond
from codeqa.chat.route import Router
from codeqa.chat.stream import Stream
from codeqa.chat.titles import write_title
from codeqa.chat.values import AnswerGenerator, AskOptions, ConversationSoFar
from codeqa.errors import CodeQAError, StorageError
from codeqa.metrics import measure
from codeqa.routing.intents import by_words, read

SAVED_EVERY = 0.5
"""Seconds between two saves of a growing answer: a process that dies may lose a second of it."""
TEXT_EVENTS = (events.Token, events.Cited, events.Thought, events.Waiting)
"""Events after which only the text of the stored turn has changed."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers questions about one repository; it keeps no state between turns."""

    router: Router
    gatherer: Gatherer
    responders: Responders
    conversations: Conversations
    generator: AnswerGenerator | None = None
    """Writes every answer in place of a model: for tests, and programs that embed CodeQA."""

    def warm_up(self) -> None:
        """Load the lexicon and the embedding, so that the first question need not wait for them."""
        by_words(read(""), has_history=False)
        self.conversations.vectors("warm")

    def ask(self, options: AskOptions) -> Events:
        """Yield the events of an answer.

        The text so far is stored as a turn even if the model fails or the caller stops iterating.
        """
        try:
            stream = Stream(read_question(options), options.keep)
        except CodeQAError as error:
            yield Failed(Failure(**error.as_data()))
            return
        last_steps: list[Event] = []
        with _measured(stream):
            try:
                with closing(self._answer(stream)) as answering:
                    yield from self._saving(stream, answering)
            except CodeQAError as error:
                stream.end(error)
            finally:
                # They are yielded below: a generator that is being closed must not yield here.
                if stream.loaded:
                    last_steps = list(self._end(stream))
        yield from last_steps
        yield self._last_event(stream)

    def _saving(self, stream: Stream, answering: Iterator[Event]) -> Iterator[Event]:
        """Yield the events, and save the turn in the background every SAVED_EVERY seconds."""
        saving, due = None, time.monotonic() + SAVED_EVERY
        only_text_changed, has_text = False, False
        for event in answering:
            if isinstance(event, events.Token) and not has_text:
                has_text = True
                measure("first_text_seconds", time.time() - stream.begun)
            yield event
            only_text_changed &= isinstance(event, TEXT_EVENTS)
            is_due = stream.saved_as and time.monotonic() > due
            if is_due and (saving is None or saving.done()):
                conversations = self.conversations
                save = conversations.keep_text if only_text_changed else conversations.keep
                saving, due = save(stream), time.monotonic() + SAVED_EVERY
                only_text_changed = True

    def give_title(self, options: AskOptions, turn_id: str) -> None:
        """Have a title written for a new conversation, unless at effort `fast`."""
        if (options.effort or self.gatherer.settings.effort) != "fast":
            config_dir, answer_model = self.responders.config_dir, self.gatherer.answer_model
            write_title(self.conversations, options, turn_id, answer_model, config_dir)

    def _answer(self, stream: Stream) -> Generator[Event, None, None]:
        """Run the stages of a turn in their order, and note the result of each in `stream`."""
        question, steps = stream.question, stream.steps
        with steps.time("embed"):
            vector = self.conversations.vectors(question.text)
        with steps.time("load"):
            so_far = self._load(stream)
        yield from steps.ended()
        yield events.Asked(stream.saved_as)
        routed = self.router.route(question, vector, so_far, steps)
        stream.route(routed)
        yield from steps.ended()
        yield stream.classification()
        if stream.stopped():
            return
        gathered = yield from self.gatherer.gather(
            routed, steps, other_responder=self.generator is not None
        )
        responder = self.responders.choose(routed, gathered, self.generator)
        stream.gather(gathered, responder.name)
        with steps.time("generate"):
            yield from respond(responder, gathered, stream, self.gatherer.toolbox)
        yield from steps.ended()

    def _load(self, stream: Stream) -> ConversationSoFar:
        so_far = self.conversations.load(stream.question)
        stream.parent, stream.loaded = so_far.parent, True
        if stream.keep:  # before the first event: a process that dies then loses no question
            try:
                self.conversations.keep(stream).result(FLUSH_SECONDS)
            except TimeoutError:
                raise StorageError(
                    f"The question could not be saved in {FLUSH_SECONDS:.0f} seconds and was "
                    "not answered.",
                    "Many are being saved just now: ask it again in a moment.",
                ) from None
        return so_far

    def _end(self, stream: Stream) -> Iterator[Event]:
        """Check the answer and save the turn; yield its last steps."""
        stream.end_thought()
        with stream.steps.time("after_generation"):
            stream.checked = check(stream, self.gatherer.hooks, self.gatherer.toolbox)
        with stream.steps.time("persist"):
            stream.conclude()
            if stream.question.options.keep:  # also removes a stored turn that must not be kept
                saving = self.conversations.keep(stream)
                # `Done` promises that the turn is stored; `Failed` does not, and is not delayed.
                try:
                    problem = saving.result(0 if stream.error else FLUSH_SECONDS)
                except TimeoutError:
                    stream.warnings.append("This answer is not saved yet; it may be in a moment.")
                else:
                    if problem:
                        stream.warnings.append(f"This answer could not be saved. {problem}")
        yield from stream.steps.ended()

    def _last_event(self, stream: Stream) -> Event:
        routed, checked = stream.routed, stream.checked
        if stream.error:
            return Failed(stream.error, stream.saved_as)
        if not (stream.finished and routed and checked):
            return events.Stopped(stream.saved_as)
        revised = checked.revised or (stream.answer if stream.retracted else "")
        return Done(stream.record(), stream.saved_as, revised, routed.facts)


@contextmanager
def _measured(stream: Stream) -> Iterator[None]:
    """Count the question, and measure how long its answer takes."""
    measure("questions")
    measure("answers_open")
    try:
        yield
    finally:
        failed = stream.error or isinstance(sys.exception(), Exception)
        end = "done" if stream.finished else "stopped"
        if failed:
            end = "error"
        measure("answer_seconds", time.time() - stream.begun, end=end)
        measure("answers_open", -1)
