"""A turn while it is being answered: the only thing that the pipeline writes to."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from codeqa.account.requests import PersonalReading, read_personal
from codeqa.chat.citations import Citation, CitationChecker
from codeqa.chat.cited_code import CitedCode
from codeqa.chat.features import Features
from codeqa.chat.followup import Standalone
from codeqa.chat.generation import (
    NO_CONTEXT,
    Exchange,
    GenerationInput,
    ModelRequest,
    Piece,
    ToolStep,
    count_tokens,
)
from codeqa.chat.grounding import Sentence, as_data
from codeqa.chat.options import AskOptions
from codeqa.chat.policy import PolicyDecision
from codeqa.chat.record import (
    BROKE_OFF,
    NO_TOKENS,
    NOTHING_RETRIEVED,
    TurnRecord,
    looked_up_as_data,
    search_as_data,
)
from codeqa.chat.topic import STAYS, Leaving
from codeqa.chat.vectors import Vector
from codeqa.context import format_block
from codeqa.errors import CodeQAError, UsageError
from codeqa.intents import ISSUE, Intent, read_mode, read_whole
from codeqa.llm import Thought, TokenUsage, cut_off
from codeqa.search import Query, SearchResult, parse_query
from codeqa.text.citation_format import ShownLines
from codeqa.text.tag import has_tag, strip_tag
from codeqa.text.tokens import estimate_tokens, well_formed
from codeqa.types import Chunk, ContextBlock, Event

CUT_QUESTION = (
    "The model's server read {:,} tokens and left out the rest of what it was sent, without saying "
    "so: start it with a larger context window (Ollama: OLLAMA_CONTEXT_LENGTH=16384), or set "
    "CODEQA_CONTEXT_TOKENS lower."
)
CUT_ANSWER = "The answer reached the model's limit of length and ends there."

NO_INTENT = Intent("", 0.0, "")


@dataclass(frozen=True, slots=True)
class ConversationSoFar:
    """What is known when a question arrives."""

    history: tuple[Exchange, ...] = ()
    """The latest answered questions of the conversation, oldest first."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """What the user has told of themselves."""
    messages: int = 0
    """Length of the conversation, questions and answers."""
    context: ContextBlock = NO_CONTEXT
    """What was found for an earlier question."""
    names: tuple[str, ...] = ()
    """Definitions that the last search found, as `TurnRecord.found_names` orders them."""
    path: tuple[str, ...] = ()
    """Ids of the turns before this one, the latest last, as far as they were read."""
    parent: str = ""
    """Id of the turn that this one follows; '' for none."""
    replaced: TurnRecord | None = None
    """The turn that this one takes the place of."""


@dataclass(slots=True)
class TurnState:
    """A question on its way to an answer; fields stand in the order in which they are filled, and
    those that are kept are explained in `TurnRecord`."""

    options: AskOptions
    """As `AskOptions.checked` gives them."""
    question: str
    """With its tag, as it is kept."""
    text: str
    """Without tag and mode."""
    mode: str
    mode_chosen: bool
    """The user chose it; else the words did."""
    whole: str
    mask: str
    """`files` or `all` where whole files are asked for, and which of all of them."""
    query: Query
    personal: PersonalReading
    """`text`, taken apart: what it looks for, and what it says of its writer."""
    keep: bool
    """Whether it is to be stored."""
    asked: GenerationInput
    """All that the answer may draw on, as far as it is known."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.time)
    """In seconds since the epoch."""
    stored: bool = False
    """Something of it is kept already."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What the reader should know about the answer, as sentences."""
    hook_problems: list[str] = field(default_factory=list)

    # Steps 1 to 6: what the message is, and what is to be done about it.
    vector: Vector | None = None
    """Of the question; None for one that the embedding knows no word of."""
    loaded: bool = False
    """What it starts from is known: from here on it is kept however it ends."""
    so_far: ConversationSoFar = ConversationSoFar()
    by_rules: Intent = NO_INTENT
    """What the words alone say that it is."""
    intent: Intent = NO_INTENT
    leaving: Leaving = STAYS
    standalone: Standalone | None = None
    """What a model made of the question, where it was asked before the policy."""
    features: Features = field(default_factory=Features)
    decision: PolicyDecision = field(default_factory=lambda: PolicyDecision(""))
    facts: Mapping[str, str] = field(default_factory=dict)
    """About its writer, that are to be kept."""

    # Steps 7 to 9: what the answer may draw on.
    reply: str = ""
    generator: str = ""
    effort: str = ""
    """What was searched and packed with; '' where nothing was."""
    rewritten: str = ""
    search: SearchResult | None = None
    retrieved: Mapping[str, int] = field(default_factory=lambda: NOTHING_RETRIEVED)
    block: ContextBlock = NO_CONTEXT
    """The code that the answer is made from, as it is sent."""

    # Steps 10 to 12: the answer.
    request: ModelRequest = field(default_factory=ModelRequest)
    usage: TokenUsage | None = None
    looked_up: list[ToolStep] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    """Of the reasoning that goes on."""
    thinking_since: float = 0.0
    thinking_until: float = 0.0
    pieces: list[str] = field(default_factory=list)
    """The answer as it was streamed."""
    finished: bool = False
    error: Mapping[str, str] | None = None
    revised: str = ""
    """The answer as a hook changed it after it was read; '' when none did."""
    checker: CitationChecker | None = None
    """Of the citations so far."""
    citations: Sequence[Citation] = ()
    judged: list[Sentence] = field(default_factory=list)
    left_out: list[Sentence] = field(default_factory=list)
    """The sentences with their evidence, and those among them that strict mode left out."""
    suggestions: tuple[str, ...] = ()
    concluded: bool = False
    """Nothing more will come."""

    @property
    def tagged(self) -> bool:
        return has_tag(self.question)

    @property
    def answer(self) -> str:
        """As it is kept."""
        return self.revised or "".join(self.pieces)

    def stopped(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.options.cancelled()

    def end_step(self, name: str, started: float) -> Event:
        """Note that the step ends now which began at `started` (`time.perf_counter`)."""
        took = (time.perf_counter() - started) * 1000
        self.steps.append({"name": name, "milliseconds": round(took, 2)})
        return Event("step", self.steps[-1])

    def classification(self) -> dict[str, Any]:
        """Data of the `classified` event: what the message is taken for, and why."""
        decision = self.decision
        return {
            "intent": decision.intent,
            "confidence": self.intent.confidence,
            "source": self.intent.source,
            "reason": self.intent.reason,
            "rules": list(decision.rules),
            "searched_automatically": decision.searched_automatically,
            "searches": decision.inject_rag,
            "goes_on": decision.use_cached_context,
            "left_out": self.leaving.why,
            # Once there is code, asking for it would be odd.
            "suggest_codebase": decision.suggest_codebase and not self.block.chunks,
        }

    def take(self, piece: Piece, cited: Callable[[Sequence[Chunk]], CitedCode]) -> Iterator[Event]:
        """Note what a generator yields, and tell of it what is for the reader. `cited` gives what
        citations are checked against."""
        if isinstance(piece, Thought):
            self.thinking_until = time.perf_counter()
            self.thinking_since = self.thinking_since or self.thinking_until
            self.thoughts.append(well_formed(piece.text))
            yield Event("thought", {"text": self.thoughts[-1]})
            return
        if reasoning := self.end_thought():
            yield Event("looked_up", looked_up_as_data(reasoning))
        if isinstance(piece, ModelRequest):
            self.request, self.block = piece, piece.block
            self.checker = None  # something else may be cited
        elif isinstance(piece, TokenUsage):
            self.usage = piece
        elif isinstance(piece, ToolStep):
            self.looked_up.append(piece)
            yield Event("looked_up", looked_up_as_data(piece))
        elif text := well_formed(piece):
            self.pieces.append(text)
            with suppress(CodeQAError):  # the index may be gone by now
                self.checker = self.checker or CitationChecker(
                    self.shown(), cited(self.block.chunks)
                )
                if checked := self.checker.feed(text):
                    yield Event("cited", {"citations": [asdict(one) for one in checked]})
            yield Event("token", {"text": text})

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

    def shown(self) -> list[ShownLines]:
        """The lines that its citations may be of."""
        evidence = self.asked.evidence
        sent = (ShownLines(c.path, c.start_line, c.end_line) for c in self.block.chunks)
        return [*(evidence.spans() if evidence else ()), *sent]

    def record(self) -> TurnRecord:
        """The turn as it is now, to be kept and told."""
        request = self.request
        cut = bool(self.usage and self.usage.cut)
        warnings = [*self.warnings, request.warning, self._cut_question()]
        warnings += [CUT_ANSWER] if cut else []
        return TurnRecord(
            id=self.id,
            typed=self.question,
            answer=self.answer,
            created=time.time(),
            parent=self.so_far.parent,
            mode=self.mode,
            effort=self.effort,
            **self.classification(),
            **(search_as_data(self.search) if self.search else {}),
            retrieval_info=self.retrieved,
            generator=self.generator,
            reply=self.reply,
            model=request.model,
            host=request.host,
            notice=" ".join(filter(None, warnings)),
            cut=cut,
            tokens=self._tokens(),
            looked_up=[looked_up_as_data(step) for step in self.looked_up],
            citations=[asdict(citation) for citation in self.citations],
            grounding=as_data(self.judged, self.left_out),
            rewritten=self.rewritten,
            suggestions=list(self.suggestions),
            hook_problems=list(self.hook_problems),
            steps=list(self.steps),
            finished=self.finished,
            error=self.error if self.concluded else BROKE_OFF,
            messages=_without_block(request.messages, format_block(self.block.chunks)),
            chunks=self.block.chunks,
            dropped=self.block.dropped,
        )

    def _cut_question(self) -> str:
        """What to say when the server read less than it was sent."""
        if self.usage is None:
            return ""
        sent = sum(len(part) for message in self.request.messages for part in message["parts"])
        read = self.usage.prompt_tokens
        return CUT_QUESTION.format(read) if cut_off(read, sent) else ""

    def _tokens(self) -> Mapping[str, Any]:
        """What the provider counted; an estimate when it did not say or was not heard out."""
        usage = self.usage
        if usage and (usage.prompt_tokens or usage.completion_tokens):
            counted = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
            return {**counted, "estimated": False}
        if not self.request.messages:
            return NO_TOKENS
        return {
            "prompt": count_tokens(self.request.messages),
            "completion": estimate_tokens("".join(self.pieces)),
            "estimated": True,
        }


def begin_turn(options: AskOptions) -> TurnState:
    """The turn that answers `options`. Raises UsageError for what cannot be asked."""
    options = options.checked()
    untagged = strip_tag(options.question)
    mode, text = read_mode(untagged, options.mode)
    whole, mask, _ = read_whole(untagged)
    if not text:
        raise UsageError("The question is empty.", "Type a question.")
    return TurnState(
        options=options,
        question=options.question,
        text=text,
        mode=mode,
        mode_chosen=bool(options.mode) or text != untagged,
        whole=whole,
        mask=mask,
        query=parse_query(text, path=mask),
        personal=read_personal(text),
        keep=options.keep,
        asked=GenerationInput(
            text,
            mode,
            instructions=options.instructions,
            strict=options.strict and mode != ISSUE,  # a review is checked as it is made
            cancelled=options.cancelled,
        ),
    )


def _without_block(messages: Iterable[Mapping[str, Any]], block: str) -> list[dict[str, Any]]:
    """`messages` with None for the block, whose chunks are kept anyway."""
    return [
        {"role": m["role"], "parts": [None if block and p == block else p for p in m["parts"]]}
        for m in messages
    ]
