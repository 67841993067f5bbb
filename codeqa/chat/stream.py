"""The answer as it streams: the one thing of a turn that changes while it is made."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from codeqa.chat import events
from codeqa.chat.citations import CitationChecker, CitedCode, files_in, files_told
from codeqa.chat.events import Classified, Event, Failure, HitPlace, Step, ToolStep, as_json
from codeqa.chat.messages import count_tokens, earlier_answer
from codeqa.chat.record import (
    BROKE_OFF,
    EarlierAnswer,
    RecordedHit,
    SentMessage,
    Tokens,
    TurnRecord,
)
from codeqa.chat.values import Checked, Gathered, ModelRequest, Piece, Question, Routed
from codeqa.code.tools import Toolbox
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.errors import CodeQAError
from codeqa.llm.values import Thought, Waiting
from codeqa.search.result import SearchResult
from codeqa.text.tokens import estimate_tokens, well_formed
from codeqa.types import NO_USAGE, TokenUsage

RETRIES = 2
"""Requests of one answer that are made again, whichever they are."""
CUT_ANSWER = "The answer reached the model's limit of length and ends there."


class Steps(list[Step]):
    """The named steps of a turn that have ended."""

    _yielded = 0
    """Number of those that `ended` has yielded."""

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """What is done inside is the step `name`; one that fails is none."""
        started = time.perf_counter()
        yield
        took = (time.perf_counter() - started) * 1000
        self.append(Step(name, round(took, 2)))

    def ended(self) -> Iterator[Event]:
        """Yield those that ended since this was asked last."""
        new = self[self._yielded :]
        self._yielded = len(self)
        yield from new


@dataclass(slots=True)
class Stream:
    """What has come of a turn so far: the stages that are done, and the answer up to now.

    A turn is kept from it at any moment. Its own methods write to it, and the stages in `ask.Chat`
    that note what they came to.
    """

    question: Question
    keep: bool
    """Whether it is to be stored."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.time)
    """In seconds since the epoch."""
    parent: str = ""
    """Id of the turn that it follows; '' for the first."""
    loaded: bool = False
    """What it starts from is known: from here on it is kept however it ends."""
    stored: bool = False
    """Something of it is kept already."""
    concluded: bool = False
    """Nothing more will come."""
    finished: bool = False
    error: Failure | None = None
    steps: Steps = field(default_factory=Steps)
    warnings: list[str] = field(default_factory=list)
    """What the reader should know about the answer, as sentences."""
    routed: Routed | None = None
    gathered: Gathered | None = None
    checked: Checked | None = None
    generator: str = ""
    """Name of what writes the answer."""

    request: ModelRequest | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    retries: int = 0
    looked_up: list[ToolStep] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    """Of the reasoning that goes on."""
    thinking_since: float = 0.0
    thinking_until: float = 0.0
    pieces: list[str] = field(default_factory=list)
    """The answer as it was streamed."""
    checker: CitationChecker | None = None
    """Of the citations so far."""

    @property
    def answer(self) -> str:
        """As it is kept."""
        return (self.checked.revised if self.checked else "") or "".join(self.pieces)

    @property
    def saved_as(self) -> str:
        """Id under which it is kept; '' where it is not."""
        return self.id if self.stored and self.keep else ""

    @property
    def block(self) -> ContextBlock:
        """The code that the answer is made from, as it is sent."""
        if self.request:
            return self.request.block
        return self.gathered.block if self.gathered else NO_CONTEXT

    def stopped(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.question.options.cancelled()

    # What the stages came to.

    def route(self, routed: Routed) -> None:
        self.routed, self.question = routed, routed.question

    def gather(self, gathered: Gathered, generator: str) -> None:
        self.gathered, self.generator = gathered, generator
        self.warnings += gathered.warnings
        # Of what deletes a conversation nothing is kept, not even that it was asked for.
        self.keep &= self.routed is None or self.routed.deletes in ("", "profile")

    def end(self, error: CodeQAError | None = None) -> None:
        """Nothing more is written; `error` ended it."""
        self.error = Failure(**error.as_data()) if error else None
        self.finished = not error and not self.stopped()

    def conclude(self) -> None:
        """It is kept as it is now. An earlier answer stays where this one is empty."""
        self.concluded = True
        replaced = self.routed.so_far.replaced if self.routed else None
        self.keep &= bool(self.pieces or not (replaced and replaced.answer))

    def take(self, piece: Piece, toolbox: Toolbox) -> Iterator[Event]:
        """Note what a writer yields, and tell of it what is for the reader. Citations are checked
        against what `toolbox` finds. Raises ModelError when its requests have failed too often."""
        if isinstance(piece, Waiting):
            self.retries += piece.begins
            if self.retries > RETRIES:
                raise piece.error
            yield events.Waiting(piece.text, piece.seconds, piece.begins)
            return
        if isinstance(piece, Thought):
            self.thinking_until = time.perf_counter()
            self.thinking_since = self.thinking_since or self.thinking_until
            self.thoughts.append(well_formed(piece.text))
            yield events.Thought(self.thoughts[-1])
            return
        if reasoning := self.end_thought():
            yield reasoning.shortened()
        if isinstance(piece, ModelRequest):
            self.request = piece
            self.checker = None  # something else may be cited
        elif isinstance(piece, TokenUsage):  # of an agent that of each step
            self.usage += piece
        elif isinstance(piece, ToolStep):
            self.looked_up.append(piece)
            yield piece.shortened()
        elif text := well_formed(piece):
            self.pieces.append(text)
            with suppress(CodeQAError):  # the index may be gone by now
                if self.checker is None:
                    self.checker = CitationChecker(self.cited_code(toolbox))
                if checked := self.checker.feed(text):
                    yield events.Cited(checked)
            yield events.Token(text)

    def end_thought(self) -> ToolStep | None:
        """Note that the model has thought to an end; returns its reasoning, where there was any."""
        text = "".join(self.thoughts).strip()
        took = self.thinking_until - self.thinking_since
        self.thoughts, self.thinking_since = [], 0.0
        if not text:
            return None
        summary = f"Reasoning · {took:.0f} s" if took >= 1 else "Reasoning"
        self.looked_up.append(ToolStep("", "", summary, text, milliseconds=1000 * took))
        return self.looked_up[-1]

    def cited_code(self, toolbox: Toolbox) -> CitedCode:
        """Return what its citations are checked against. Raises IndexMissingError and the like."""
        files, tables = toolbox.files, toolbox.tables()
        return CitedCode(files, tables, self.block.chunks, self._files_shown)

    def _files_shown(self) -> Iterator[str]:
        """Yield the paths of files that the conversation has shown lines of, beside the code that
        is sent now."""
        if self.gathered and self.gathered.evidence:
            yield from files_in(self.gathered.evidence.cited)
        if self.request:
            yield from files_told(self.request.messages)
        if self.routed:
            yield from self.routed.so_far.shown()

    def classification(self) -> Classified:
        """Return what the message is taken for; once there is code, asking for it would be odd."""
        classified = self.routed.classification() if self.routed else Classified()
        suggests = classified.suggest_codebase and not self.block.chunks
        return replace(classified, suggest_codebase=suggests)

    def record(self) -> TurnRecord:
        """Return the turn as it is now, to be stored and shown."""
        gathered = self.gathered or Gathered(self.question, "")
        request = self.request or ModelRequest()
        checked = self.checked or Checked()
        warnings = [*self.warnings, request.warning]
        warnings += [CUT_ANSWER] if self.usage.cut else []
        hooks = (*(self.routed.problems if self.routed else ()), *gathered.problems)
        block = self.block.text
        sent = "\n".join(part or "" for message in request.messages for part in message.parts)
        messages = [  # with None for the block, whose chunks are kept anyway
            SentMessage(one.role, [None if block and part == block else part for part in one.parts])
            for one in request.messages
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
            earlier=[
                EarlierAnswer(one.question, one.answer, one.turn, one.conversation)
                for one in gathered.similar
                if one.elsewhere and earlier_answer(one) in sent
            ],
            rewritten=gathered.rewritten,
            suggestions=list(checked.suggestions),
            hook_problems=[*hooks, *checked.problems],
            steps=list(self.steps),
            finished=self.finished,
            error=self.error if self.concluded else BROKE_OFF,
            messages=messages,
            chunks=self.block.chunks,
            dropped=self.block.dropped,
        )

    def _tokens(self, request: ModelRequest) -> Tokens:
        """What the provider counted, for the answer and for all that helped with it; an estimate
        where it did not say or was not heard out."""
        usage, search = self.usage, self.gathered.search if self.gathered else None
        if request.messages and not (usage.prompt_tokens or usage.completion_tokens):
            written = estimate_tokens("".join(self.pieces))
            usage = TokenUsage(count_tokens(request.messages), written, estimated=True)
        for stage in search.stages if search else ():
            usage += stage.usage
        usage += self.routed.usage if self.routed else NO_USAGE
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return Tokens(prompt, completion, usage.estimated, round(usage.cost, 6))


def search_values(result: SearchResult) -> dict[str, Any]:
    """Return the fields of a record that come from a search: its hits are all that it returned and
    kept of each table, the best first."""
    hits = {hit.unit.id: hit for hit in (*result.units, *result.methods, *result.classes)}
    return {
        "coverage": result.coverage,
        "reranker": result.reranker,
        "hyde": result.hyde,
        "stages": [
            replace(stage, milliseconds=round(stage.milliseconds)) for stage in result.stages
        ],
        "hits": [
            RecordedHit(
                **as_json(HitPlace.of(hit)),
                unit_id=hit.unit.id,
                score=round(hit.score, 4),
                why=hit.why,
                channels=dict(hit.channels),
            )
            for hit in sorted(hits.values(), key=lambda hit: -hit.score)
        ],
    }
