"""From a question to a kept answer, in five stages, as a stream of events.

Question → Routed → Gathered → (the answer as it streams) → Checked → the turn that is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from codeqa.chat.check import check
from codeqa.chat.citations import CitedCode
from codeqa.chat.conversations import Conversations
from codeqa.chat.gather import Gatherer
from codeqa.chat.generation import AnswerGenerator, answer_for_history
from codeqa.chat.options import AskOptions
from codeqa.chat.question import ConversationSoFar, read_question
from codeqa.chat.route import Router
from codeqa.chat.stream import Stream
from codeqa.chat.write import Writers, write
from codeqa.errors import CodeQAError
from codeqa.routing.intents import by_words
from codeqa.routing.words import read
from codeqa.store import Tables
from codeqa.types import Chunk, ContextBlock, Event, Exchange

HEARD_SECONDS = 0.25
"""How long the end of an answer waits to hear that it was kept: saving takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers questions about one repository; nothing of one turn is left for the next."""

    router: Router
    gatherer: Gatherer
    writers: Writers
    conversations: Conversations

    def written_by(self, generator: AnswerGenerator | None) -> Chat:
        """The same, where `generator` writes the answers instead of a model; None for no other."""
        gatherer = replace(self.gatherer, generator=generator)
        return replace(self, gatherer=gatherer, writers=replace(self.writers, gatherer=gatherer))

    def warm_up(self) -> None:
        """Read what the first question would have to wait for: lexicon and embedding."""
        by_words(read(""), has_history=False)
        self.conversations.vectors("warm")

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """As `Gatherer.build_context`."""
        return self.gatherer.build_context(question, rerank)

    def open_tables(self) -> Tables:
        """Raises IndexMissingError before there is an index."""
        return self.gatherer.open_tables()

    def cited(self, chunks: Sequence[Chunk]) -> CitedCode:
        """As `Gatherer.cited`."""
        return self.gatherer.cited(chunks)

    def ask(self, options: AskOptions) -> Iterator[Event]:
        """Yield the events of an answer, as `types.Event` lists them.

        What was answered so far is kept as a turn even when the model fails, or the caller stops
        or goes away, which ends this at a `yield`.
        """
        try:
            question = read_question(options)
        except CodeQAError as error:
            yield Event("error", error.as_data())
            return
        stream = Stream(question, options.keep)
        with self.conversations.answering(stream):
            try:
                yield from self._answer(stream)
            except CodeQAError as error:
                stream.error = error.as_data()
            finally:
                # Collected and told below: a generator that is being closed must not yield here.
                ended = list(self._end(stream)) if stream.loaded else []
            yield from ended
            yield self._last_event(stream)

    def _answer(self, stream: Stream) -> Generator[Event, None, None]:
        """The stages of a turn, in their order; `stream` holds what each came to."""
        question, steps, vectors = stream.question, stream.steps, self.conversations.vectors
        with steps.time("embed"):
            vector = vectors(question.text)
        with steps.time("load"):
            so_far = self._load(stream)
        yield from steps.ended()
        yield Event("asked", {"turn": stream.id if stream.keep else ""})
        routed = self.router.route(question, vector, so_far, steps)
        stream.routed, stream.question = routed, routed.question
        yield from steps.ended()
        yield Event("classified", stream.classification())
        if stream.stopped():
            return
        gathered = yield from self.gatherer.gather(routed, steps)
        stream.gathered = gathered
        writer = self.writers.choose(routed, gathered, stream)
        with steps.time("generate"):
            yield from write(writer, gathered, stream, self.cited)
        yield from steps.ended()

    def _load(self, stream: Stream) -> ConversationSoFar:
        so_far = self.conversations.load(stream.question)
        stream.parent, stream.loaded = so_far.parent, True
        if stream.keep:
            self.conversations.keep(stream)
        return so_far

    def _end(self, stream: Stream) -> Iterator[Event]:
        """Check what was written, and keep it."""
        stream.end_thought()
        with stream.steps.time("after_generation"):
            stream.checked = check(stream, self.gatherer)
        stream.warnings.append(stream.checked.not_known)
        with stream.steps.time("persist"):
            self._keep(stream)
        yield from stream.steps.ended()

    def _keep(self, stream: Stream) -> None:
        stream.concluded = True
        replaced = stream.routed.so_far.replaced if stream.routed else None
        if replaced and replaced.answer and not stream.pieces:
            stream.keep = False  # the earlier answer stays: better than an empty one
        if stream.question.options.keep:
            saving = self.conversations.keep(stream)
            with suppress(TimeoutError):  # whoever reads it waits for the rest
                if problem := saving.result(HEARD_SECONDS):
                    stream.warnings.append(f"This answer could not be kept. {problem}")

    def _last_event(self, stream: Stream) -> Event:
        kept_as = stream.id if stream.loaded and stream.keep else ""
        routed, gathered, checked = stream.routed, stream.gathered, stream.checked
        if stream.error:
            return Event("error", {**stream.error, "turn": kept_as})
        if not (stream.finished and routed and gathered and checked):
            return Event("stopped", {"turn": kept_as})
        exchange = Exchange(
            stream.question.text, answer_for_history(stream.answer, stream.generator)
        )
        before = routed.so_far
        history = before.history if stream.reply == "privacy" else (*before.history, exchange)
        block = stream.block if gathered.searched else before.context
        return Event(
            "done",
            {
                **stream.record().told(),
                "query_tags": ["codebase"] if stream.question.tagged else [],
                "turn": kept_as,
                "carries": self.conversations.weight(block, history),
                "revised": checked.revised,
                "profile": dict(routed.facts),
            },
        )
