"""The fourth stage of a turn: one writer, chosen once, writes the answer while it is read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

from codeqa.account.privacy import Privacy
from codeqa.chat.agent import model_generator
from codeqa.chat.citations import CitedCode
from codeqa.chat.gather import Gatherer
from codeqa.chat.generation import AnswerGenerator, Gathered
from codeqa.chat.generators import AppGenerator, QuotingGenerator
from codeqa.chat.grounding import only_supported
from codeqa.chat.route import Routed
from codeqa.chat.stream import Stream
from codeqa.errors import CodeQAError
from codeqa.llm import Model
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.types import Chunk, Event

NEED_A_MODEL = ("review", "plan", "change")
"""Modes that a quoted answer does not really serve."""
QUOTED_ONLY = (
    "To review, plan or change something takes a language model: this quotes the code that was "
    "found for it."
)
NOT_SHOWN = "Answered without the language model, for the code that was found shows too little."


@dataclass(frozen=True, slots=True)
class Writers:
    """Who may write an answer."""

    repository_name: str
    gatherer: Gatherer
    privacy: Privacy
    review: Callable[[Model | None], AnswerGenerator]
    """What answers an issue, given the model, if any."""

    def choose(self, routed: Routed, gathered: Gathered, stream: Stream) -> AnswerGenerator:
        """The one that writes this answer: the app, a review, quotes, an agent or a model."""
        writer, warning = self._chosen(routed, gathered, stream)
        stream.warnings += filter(None, (*gathered.warnings, warning))
        stream.generator = writer.name
        return writer

    def _chosen(
        self, routed: Routed, gathered: Gathered, stream: Stream
    ) -> tuple[AnswerGenerator, str]:
        """The writer, and what the reader should know about the choice."""
        reply, model, evidence = routed.decision.reply, gathered.model, gathered.evidence
        given = self.gatherer.generator
        if reply == ISSUE and not given:
            stream.reply = reply
            return self.review(model), ""
        # What is stored is told by the app, whatever else there is.
        if reply == "privacy" or (reply and not (given or model)):
            stream.reply = reply
            conversations = self.gatherer.conversations
            return AppGenerator(stream, conversations, self.privacy, self.repository_name), ""
        if evidence and evidence.whole and not given:  # what was counted needs no model
            return QuotingGenerator(), ""
        if not (given or model):
            return QuotingGenerator(), QUOTED_ONLY if gathered.mode in NEED_A_MODEL else ""
        weak = evidence is None or (evidence.weak and not evidence.cached)
        if gathered.strict and weak and gathered.intent in NEED_CODE:
            # Nothing is written about code that was not found.
            return QuotingGenerator(), "" if given and given.needs_evidence else NOT_SHOWN
        if given or model is None:
            return given or QuotingGenerator(), ""
        return model_generator(gathered, model, self.gatherer), ""


def write(
    writer: AnswerGenerator,
    gathered: Gathered,
    stream: Stream,
    cited: Callable[[Sequence[Chunk]], CitedCode],
) -> Generator[Event, None, None]:
    """The answer, piece by piece; in strict mode without the sentences that have no evidence."""
    if stream.stopped():
        return
    yield Event("generating")
    try:
        with closing(writer.generate(gathered)) as written:
            strict = gathered.strict and not gathered.counted
            pieces = only_supported(written, stream.judged, stream.left_out) if strict else written
            for piece in pieces:
                if stream.stopped():
                    return
                yield from stream.take(piece, cited)
        stream.finished = not stream.stopped()
    except CodeQAError as error:
        stream.error = error.as_data()
