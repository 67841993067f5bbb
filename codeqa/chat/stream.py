"""The state of a turn while its answer is made: what stages hand on and may still change."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from codeqa.chat import events
from codeqa.chat.citations import CitationChecker, CitedCode, files_in, files_in_messages
from codeqa.chat.events import (
    Classified,
    Event,
    Failure,
    HitSummary,
    Step,
    StepName,
    ToolStep,
    as_json,
)
from codeqa.chat.messages import PART_SENT, count_tokens, earlier_answer
from codeqa.chat.record import (
    BROKE_OFF,
    EarlierAnswer,
    RecordedHit,
    SentMessage,
    Tokens,
    TurnRecord,
)
from codeqa.chat.values import AnswerPiece, Checked, Gathered, ModelRequest, Question, Routed
from codeqa.code.tools import Toolbox
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.errors import CodeQAError
from codeqa.llm.values import Reasoning, RetryWait
from codeqa.search.result import SearchResult
from codeqa.text.tokens import estimate_tokens, well_formed
from codeqa.types import NO_USAGE, TokenUsage

RETRIES = 2
"""Failed requests of one answer that are repeated."""
CUT_ANSWER = "The answer ends early: it reached the model's length limit."


class Steps(list[Step]):
    """The named steps of a turn that are done."""

    _yielded = 0
    """Number of steps that `ended` has yielded."""

    @contextmanager
    def time(self, name: StepName) -> Iterator[None]:
        """Measure the code inside as the step `name`, unless it fails."""
        started = time.perf_counter()
        yield
        took = (time.perf_counter() - started) * 1000
        self.append(Step(name, round(took, 2)))

    def ended(self) -> Iterator[Event]:
        """Yield the steps that ended since the last call."""
        steps = self[self._yielded :]
        self._yielded = len(self)
        yield from steps


@dataclass(slots=True)
class Stream:
    """A turn so far: the results of its stages, and the answer up to now.

    It can be stored at any moment. Only its own methods and the stages in `ask.Chat` change it.
    """

    question: Question
    keep: bool
    """True if the turn is to be stored."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.time)
    """In seconds since the epoch."""
    parent: str = ""
    """Id of the turn that it follows; '' for the first."""
    loaded: bool = False
    """True if the conversation is loaded: from then on the turn is stored however it ends."""
    stored: bool = False
    """True if a part of it is stored already."""
    concluded: bool = False
    """True if it is complete, so that nothing changes any more."""
    finished: bool = False
    error: Failure | None = None
    steps: Steps = field(default_factory=Steps)
    warnings: list[str] = field(default_factory=list)
    """Sentences on what the user should know about the answer."""
    routed: Routed | None = None
    gathered: Gathered | None = None
    checked: Checked | None = None
    generator: str = ""
    """Name of the responder."""

    request: ModelRequest | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    retries: int = 0
    looked_up: list[ToolStep] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    """Pieces of the model's current reasoning."""
    thinking_since: float = 0.0
    thinking_until: float = 0.0
    pieces: list[str] = field(default_factory=list)
    """The answer as it was streamed."""
    retracted: bool = False
    """True if text was streamed that turned out to be reasoning."""
    checker: CitationChecker | None = None
    """Checker of the citations so far."""

    @property
    def answer(self) -> str:
        """The answer as it is stored."""
        return (self.checked.revised if self.checked else "") or "".join(self.pieces)

    @property
    def saved_as(self) -> str:
        """Id of the stored turn; '' while it is not stored."""
        return self.id if self.stored and self.keep else ""

    @property
    def block(self) -> ContextBlock:
        """The code that the answer is made from, as it is sent to a model."""
        if self.request:
            return self.request.block
        return self.gathered.block if self.gathered else NO_CONTEXT

    def stopped(self) -> bool:
        """Return whether nobody waits for the answer any more."""
        return self.question.options.cancelled()

    # Results of the stages.

    def route(self, routed: Routed) -> None:
        """Note the result of routing."""
        self.routed, self.question = routed, routed.question

    def gather(self, gathered: Gathered, generator: str) -> None:
        """Note the material of the answer, and the name of its responder."""
        self.gathered, self.generator = gathered, generator
        self.warnings += gathered.warnings
        # A turn that deletes a conversation is not stored, not even its question.
        self.keep &= self.routed is None or self.routed.deletes in ("", "profile")

    def end(self, error: CodeQAError | None = None) -> None:
        """End the answer, with `error` if it failed."""
        self.error = Failure(**error.as_data()) if error else None
        self.finished = not error and not self.stopped()

    def conclude(self) -> None:
        """Complete the turn. If it is empty, the answer that it should replace stays."""
        self.concluded = True
        replaced = self.routed.so_far.replaced if self.routed else None
        self.keep &= bool(self.pieces or not (replaced and replaced.answer))

    def take(self, piece: AnswerPiece, toolbox: Toolbox) -> Iterator[Event]:
        """Note a piece that a responder yields, and yield its events for the user.

        Citations are checked against the index of `toolbox`. Raises ModelError when requests have
        failed too often.
        """
        if isinstance(piece, RetryWait):
            self.retries += piece.begins
            if self.retries > RETRIES:
                raise piece.error
            yield events.Waiting(piece.text, piece.seconds, piece.begins)
            return
        if isinstance(piece, Reasoning):
            if piece.retracts:
                self.thoughts += self.pieces
                self.pieces, self.checker, self.retracted = [], None, True
            self.thinking_until = time.perf_counter()
            self.thinking_since = self.thinking_since or self.thinking_until
            self.thoughts.append(well_formed(piece.text))
            yield events.Thought(self.thoughts[-1])
            return
        if reasoning := self.end_thought():
            yield reasoning.shortened()
        if isinstance(piece, ModelRequest):
            self.request = piece
            self.checker = None  # other code may be cited now
        elif isinstance(piece, TokenUsage):  # one for each request
            self.usage += piece
        elif isinstance(piece, ToolStep):
            self.looked_up.append(piece)
            yield piece.shortened()
        elif text := well_formed(piece):
            yield from self._take_text(text, toolbox)

    def _take_text(self, text: str, toolbox: Toolbox) -> Iterator[Event]:
        self.pieces.append(text)
        with suppress(CodeQAError):  # the index may have been removed meanwhile
            if self.checker is None:
                self.checker = CitationChecker(self.cited_code(toolbox))
            citations = self.checker.feed(text)
            if citations:
                yield events.Cited(citations)
        yield events.Token(text)

    def end_thought(self) -> ToolStep | None:
        """Note that the model has stopped thinking; return its reasoning, if there was any."""
        text = "".join(self.thoughts).strip()
        took = self.thinking_until - self.thinking_since
        self.thoughts, self.thinking_since = [], 0.0
        if not text:
            return None
        summary = f"Reasoning · {took:.0f} s" if took >= 1 else "Reasoning"
        self.looked_up.append(ToolStep("", "", summary, text, milliseconds=1000 * took))
        return self.looked_up[-1]

    def cited_code(self, toolbox: Toolbox) -> CitedCode:
        """Return the code against which citations are checked. Raises IndexMissingError."""
        files, tables = toolbox.files, toolbox.tables()
        return CitedCode(files, tables, self.block.chunks, self._files_shown)

    def _files_shown(self) -> Iterator[str]:
        """Yield the paths of files, besides the code sent now, whose lines were shown before."""
        if self.gathered and self.gathered.evidence:
            yield from files_in(self.gathered.evidence.cited)
        if self.request:
            yield from files_in_messages(self.request.messages)
        if self.routed:
            yield from self.routed.so_far.shown_files()

    def classification(self) -> Classified:
        """Return how the message is understood; do not suggest `@codebase` once code was used."""
        classified = self.routed.classification() if self.routed else Classified()
        suggests = classified.suggest_codebase and not self.block.chunks
        return replace(classified, suggest_codebase=suggests)

    def record(self) -> TurnRecord:
        """Return the turn as it is now, for storage and display."""
        gathered = self.gathered or Gathered(self.question, "")
        request = self.request or ModelRequest()
        checked = self.checked or Checked()
        warnings = self.warnings + [request.warning]
        if PART_SENT in request.warning:
            warnings = [one for one in warnings if one != gathered.block.note]
        if self.usage.cut:
            warnings.append(CUT_ANSWER)
        hook_problems = gathered.problems + checked.problems
        if self.routed:
            hook_problems = self.routed.problems + hook_problems
        sent = "\n".join(part or "" for message in request.messages for part in message.parts)
        earlier = [
            EarlierAnswer(exchange.question, exchange.answer, exchange.turn, exchange.conversation)
            for exchange in gathered.similar
            if exchange.elsewhere and earlier_answer(exchange) in sent
        ]
        return TurnRecord(
            id=self.id,
            typed=self.question.typed,
            answer=self.answer,
            created=time.time(),
            parent=self.parent,
            mode=self.question.mode,
            effort=gathered.effort,
            **self.classification().data,
            **(search_values(gathered.search) if gathered.search else {}),
            retrieval_info=gathered.retrieved,
            generator=self.generator,
            reply=gathered.reply,
            model=request.model,
            host=request.host,
            notice=" ".join(filter(None, warnings)),
            cut=self.usage.cut,
            tokens=self._tokens(request),
            looked_up=[step.shortened() for step in self.looked_up],
            citations=checked.citations,
            earlier=earlier,
            rewritten=gathered.rewritten,
            suggestions=list(checked.suggestions),
            hook_problems=hook_problems,
            steps=list(self.steps),
            finished=self.finished,
            error=self.error if self.concluded else BROKE_OFF,
            messages=list(map(self._without_block, request.messages)),
            chunks=self.block.chunks,
            dropped=self.block.dropped,
        )

    def _without_block(self, message: SentMessage) -> SentMessage:
        """Return `message` with None for the context block, whose chunks are stored anyway."""
        block = self.block.text
        parts = [None if block and part == block else part for part in message.parts]
        return SentMessage(message.role, parts)

    def _tokens(self, request: ModelRequest) -> Tokens:
        """Return the tokens of all requests of this turn, as the provider counted them.

        They are estimated if it did not say, or if the answer was stopped before it could.
        """
        usage, search = self.usage, self.gathered.search if self.gathered else None
        if request.messages and not (usage.prompt_tokens or usage.completion_tokens):
            completion = estimate_tokens("".join(self.pieces))
            usage = TokenUsage(count_tokens(request.messages), completion, estimated=True)
        for stage in search.stages if search else ():
            usage += stage.usage
        usage += self.routed.usage if self.routed else NO_USAGE
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return Tokens(prompt, completion, usage.estimated, round(usage.cost, 6))


def search_values(result: SearchResult) -> dict[str, Any]:
    """Return the fields of a record that come from a search, with the hits of all tables."""
    hits = {hit.unit.id: hit for hit in result.units + result.methods + result.classes}
    return {
        "coverage": result.coverage,
        "reranker": result.reranker,
        "hyde": result.hyde,
        "stages": [
            replace(stage, milliseconds=round(stage.milliseconds)) for stage in result.stages
        ],
        "hits": [
            RecordedHit(
                **as_json(HitSummary.of(hit)),
                unit_id=hit.unit.id,
                score=round(hit.score, 4),
                why=hit.why,
                channels=dict(hit.channels),
            )
            for hit in sorted(hits.values(), key=lambda hit: -hit.score)
        ],
    }
