"""From a question to a kept answer, in five stages, as a stream of events.

Question → Routed → Gathered → (the answer as it streams) → Checked → the turn that is kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from codeqa.chat import events
from codeqa.chat.check import check
from codeqa.chat.conversations import FLUSH_SECONDS, Conversations
from codeqa.chat.events import Event, Events, Failed, Failure
from codeqa.chat.gather import Gatherer
from codeqa.chat.question import read_question
from codeqa.chat.record import Done
from codeqa.chat.route import Router
from codeqa.chat.stream import Stream
from codeqa.chat.values import AnswerGenerator, AskOptions, ConversationSoFar
from codeqa.chat.writers import Writers, write
from codeqa.errors import CodeQAError, StorageError
from codeqa.llm.client import DONE, generate_bounded
from codeqa.metrics import measure
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.followup import ANSWER_CHARACTERS, MOST_TOKENS, QUESTION_CHARACTERS
from codeqa.routing.intents import by_words, read
from codeqa.state.records import title_of

SAVED_EVERY = 0.5
"""Seconds after which an answer is saved as far as it is: a process that dies may lose a second."""
TEXT_EVENTS = (events.Token, events.Cited, events.Thought, events.Waiting)
"""Events that change nothing of a stored turn but its text."""
TITLE_WORDS, TITLE_SECONDS = 6, 8.0
"""Most words of a title that a model writes, and the time that it has: nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers questions about one repository; nothing of one turn is left for the next."""

    router: Router
    gatherer: Gatherer
    writers: Writers
    conversations: Conversations
    generator: AnswerGenerator | None = None
    """Writes every answer instead, and no model is asked: for tests, and for who embeds CodeQA."""

    def warm_up(self) -> None:
        """Read what the first question would have to wait for: lexicon and embedding."""
        by_words(read(""), has_history=False)
        self.conversations.vectors("warm")

    def ask(self, options: AskOptions) -> Events:
        """Yield the events of an answer, as `events` lists them.

        What was answered so far is stored as a turn even when the model fails, or the caller stops
        or goes away, which ends this at a `yield`.
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
                # Yielded below: a generator that is being closed must not yield here.
                if stream.loaded:
                    last_steps = list(self._end(stream))
        yield from last_steps
        yield self._last_event(stream)

    def _saving(self, stream: Stream, answering: Iterator[Event]) -> Iterator[Event]:
        """Yield the events, and save the turn behind them every SAVED_EVERY seconds."""
        saving, due, text_only, silent = None, time.monotonic() + SAVED_EVERY, False, True
        for event in answering:
            if silent and isinstance(event, events.Token):
                silent = False
                measure("first_text_seconds", time.time() - stream.begun)
            yield event
            text_only &= isinstance(event, TEXT_EVENTS)
            late = stream.saved_as and time.monotonic() > due
            if late and not (saving and not saving.done()):
                keep = self.conversations.keep_text if text_only else self.conversations.keep
                saving, due, text_only = keep(stream), time.monotonic() + SAVED_EVERY, True

    def give_title(self, options: AskOptions, turn_id: str) -> None:
        """Have the model that gave the first answer of a conversation write its title, in place of
        the question: not at `fast`, nor over a user's own. Nothing is said of a failure."""
        with suppress(CodeQAError):
            turn = self.conversations.turn(turn_id, options.user)
            was = self.conversations.get(options.conversation, options.user).title
            first = not turn.parent and was == title_of(turn.typed)
            model = self.gatherer.answer_model(options.with_model)
            asked = model and (model.name, model.host) == (turn.model, turn.host)
            fast = (options.effort or self.gatherer.settings.effort) == "fast"
            if not (model and asked and first) or fast:
                return
            parts = (turn.question[:QUESTION_CHARACTERS], turn.answer[:ANSWER_CHARACTERS])
            exchange = mask_secrets("\n\n".join(parts))
            system = render_prompt("title", self.writers.config_dir)
            sent = [{"role": "system", "content": system}, {"role": "user", "content": exchange}]
            limits = (MOST_TOKENS, TITLE_SECONDS, options.cancelled)
            *_, stage = generate_bounded("title", model, lambda: sent, *limits)
            title = stage.text.replace("`", "").strip(" \"'“”*#.")
            if title and stage.outcome == DONE and len(title.split()) <= TITLE_WORDS:
                self.conversations.rename(options.conversation, title, options.user, was)

    def _answer(self, stream: Stream) -> Generator[Event, None, None]:
        """Run the stages of a turn in their order; `stream` holds the result of each."""
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
        writer = self.writers.choose(routed, gathered, self.generator)
        stream.gather(gathered, writer.name)
        with steps.time("generate"):
            yield from write(writer, gathered, stream, self.gatherer.toolbox)
        yield from steps.ended()

    def _load(self, stream: Stream) -> ConversationSoFar:
        so_far = self.conversations.load(stream.question)
        stream.parent, stream.loaded = so_far.parent, True
        if stream.keep:  # before anybody hears of it: a process that dies then loses no question
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
        """Check what was written, and keep it."""
        stream.end_thought()
        with stream.steps.time("after_generation"):
            stream.checked = check(stream, self.gatherer.hooks, self.gatherer.toolbox)
        with stream.steps.time("persist"):
            stream.conclude()
            if stream.question.options.keep:  # where it is no longer to be kept, it is taken back
                saving = self.conversations.keep(stream)
                try:  # who hears of its end can rely on it
                    problem = saving.result(0 if stream.error else FLUSH_SECONDS)
                except TimeoutError:
                    problem = "It may be kept in a moment."
                if problem:
                    stream.warnings.append(f"This answer could not be kept. {problem}")
        yield from stream.steps.ended()

    def _last_event(self, stream: Stream) -> Event:
        routed, checked = stream.routed, stream.checked
        if stream.error:
            return Failed(stream.error, stream.saved_as)
        if not (stream.finished and routed and checked):
            return events.Stopped(stream.saved_as)
        return Done(stream.record(), stream.saved_as, checked.revised, routed.facts)


@contextmanager
def _measured(stream: Stream) -> Iterator[None]:
    """Count the question, and measure when its answer begins and ends."""
    measure("questions")
    measure("answers_open")
    try:
        yield
    finally:
        failed = stream.error or isinstance(sys.exception(), Exception)
        end = "error" if failed else "done" if stream.finished else "stopped"
        measure("answer_seconds", time.time() - stream.begun, end=end)
        measure("answers_open", -1)
