"""The values of a turn, in the order in which they come to be; `record` has the last, `TurnRecord`.

None changes: a stage takes what the ones before it made, and gives a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codeqa.chat.events import Citation, Classified, Retrieved, ToolStep
from codeqa.chat.options import QuestionOptions
from codeqa.chat.record import SentMessage, TurnRecord
from codeqa.code.counted import ExactQuestion
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, Thought, Waiting, never
from codeqa.quoted import QuotedEvidence
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.followup import Leaving
from codeqa.routing.intents import Intent, Reading
from codeqa.routing.personal import PersonalReading
from codeqa.routing.policy import Features, PolicyDecision
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.selection import Budget
from codeqa.state.records import LOCAL_USER
from codeqa.text import has_tag
from codeqa.types import NO_USAGE, Exchange, TokenUsage

Vector: TypeAlias = NDArray[np.float32]
"""Of a question, of shape (d,)."""

Place: TypeAlias = tuple[str, int, int]
"""Path, first and last line."""


# What is asked.


@dataclass(frozen=True, slots=True)
class AskOptions(QuestionOptions):
    """A question and what is wanted of its answer; built once, by the surface that is asked."""

    question: str
    """As typed. With `@codebase` or an `@name` it is searched for; what is done for one without
    is for the policy to say."""
    user: str = LOCAL_USER
    use_model: bool = True
    history: tuple[Exchange, ...] | None = None
    """The conversation so far where the client keeps it, oldest first; None where we do."""
    instructions: str = ""
    """What that client asks of its answers; stands beside our rules, never in their place."""
    keep: bool = True
    """Whether the turn is stored, and its context becomes the conversation's."""
    cancelled: Cancelled = never

    @property
    def chooses_chunks(self) -> bool:
        return bool(self.pin or self.exclude)


@dataclass(frozen=True, slots=True)
class Question:
    """A message, parsed and masked once, by `question.read_question`."""

    options: AskOptions
    """With well-formed text, secret-looking strings masked, and places that are some."""
    typed: str
    """With its tag, as it is kept."""
    text: str
    """Without tag and mode."""
    mode: str
    mode_chosen: bool
    """The user chose it; else the words did."""
    whole_files: str
    """`files` or `all` where whole files are asked for, else ''."""
    mask: str
    """Which of all files: a pattern, '' for every one."""
    query: Query
    """`text`, taken apart into what it looks for."""
    words: Reading
    """The same, by what its words may mean."""
    personal: PersonalReading
    """What `text` says of its writer."""
    exact: ExactQuestion | None
    """What it asks for that is counted rather than searched for; None for any other."""

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed)


@dataclass(frozen=True, slots=True)
class ConversationSoFar:
    """What is known when a question arrives; made by `conversations`."""

    history: tuple[Exchange, ...] = ()
    """The latest answered questions of the conversation, oldest first."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """What the user has told of themselves."""
    messages: int = 0
    """Length of the conversation, questions and answers."""
    context: ContextBlock = NO_CONTEXT
    """What was found for an earlier question."""
    context_lost: bool = False
    """It would be in the cache, which cannot be asked."""
    shown: Callable[[], Iterable[str]] = tuple
    """Paths of the files that its turns have shown lines of; read when they are asked for."""
    cites_code: bool = False
    """Its answers are known from the client alone, and cite code."""
    names: tuple[str, ...] = ()
    """Definitions that the last search found, as `TurnRecord.found_names` orders them."""
    path: tuple[str, ...] = ()
    """Ids of the turns before this one, the latest last, as far as they were read."""
    parent: str = ""
    """Id of the turn that this one follows; '' for none."""
    replaced: TurnRecord | None = None
    """The turn that this one takes the place of."""

    @property
    def begun(self) -> bool:
        """There is something that a message may go on from: a client without conversations has
        only code."""
        return self.messages > 0 or self.context_lost or bool(self.context.chunks)


# What is to be done about it.


@dataclass(frozen=True, slots=True)
class Routed:
    """A question with its place in the conversation, and what is to be done; made by `route`."""

    question: Question
    so_far: ConversationSoFar
    vector: Vector | None
    """Of the question; None for one that the embedding knows no word of."""
    intent: Intent
    leaving: Leaving
    """Whether it leaves what the conversation was about."""
    features: Features
    decision: PolicyDecision
    standalone: str
    """What is searched for instead of a follow-up that says too little alone; '' for any other."""
    query: Query
    """What is searched for: the question, or `standalone`, taken apart."""
    completed_by: str
    """What made it complete: `model`, `carried` (words of earlier questions), or ''."""
    facts: Mapping[str, str]
    """About its writer, that are to be kept."""
    problems: tuple[str, ...]
    """Hooks whose part was left out, a sentence each."""
    usage: TokenUsage = NO_USAGE
    """What a model took to understand it, where one was asked."""

    @property
    def deletes(self) -> str:
        """What its writer has deleted by it: `profile`, …; '' for nothing. A program that keeps the
        conversation itself speaks for its user, and may repeat whatever it has read."""
        options = self.question.options
        from_program = options.history is not None or not options.keep
        if from_program or self.decision.reply != "privacy":
            return ""
        return self.question.personal.confirmed

    def classification(self) -> Classified:
        """Return what the message is taken for, and why."""
        decision = self.decision
        return Classified(
            intent=decision.intent,
            confidence=self.intent.confidence,
            source=self.intent.source,
            reason=self.intent.reason,
            rules=decision.rules,
            searched_automatically=decision.searched_automatically,
            searches=decision.inject_rag,
            goes_on=decision.use_cached_context,
            left_out=self.leaving.why,
            suggest_codebase=decision.suggest_codebase,
        )


# What the answer may draw on.


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that an answer may draw on; made by `gather`."""

    message: Question
    question: str
    """What the model is asked: the text of the message, unless a hook words it otherwise."""
    block: ContextBlock = NO_CONTEXT
    searched: bool = False
    """Whether the code base was searched for this question; else `block` is an earlier one's."""
    intent: str = "knowledge_base"
    """One of `intents.INTENTS`, as the policy decided."""
    history: tuple[Exchange, ...] = ()
    """Oldest first."""
    similar: tuple[Exchange, ...] = ()
    """Earlier questions that resemble this one, with their answers, the most similar first."""
    profile: str = ""
    """What the user told of themselves, as `key: value` lines."""
    instructions: str = ""
    """What the client program asks of the answer: wishes, beside the rules and never for them."""
    suggest: bool = False
    """Whether asking again with `@codebase` is to be suggested."""
    reply: str = ""
    """Which of the app's own replies the answer is; '' when it is none."""
    strict: bool = False
    """Whether the model is told to say only what the code shows."""
    evidence: QuotedEvidence | None = None
    """For a writer that quotes, and what was counted for every one."""
    model: Model | None = None
    """The model that may answer."""
    budget: Budget | None = None
    """How much code it may be given."""
    window: int = 0
    """Tokens that the model takes; 0 is unknown."""
    search: SearchResult | None = None
    """What the search found, as it is kept; None where nothing was searched."""
    effort: str = ""
    """`fast`, `normal` or `deep`; '' where nothing was searched."""
    may_look: bool = False
    """Whether the model may look further before it answers."""
    rewritten: str = ""
    """What was searched for instead of a follow-up that says too little alone."""
    warnings: tuple[str, ...] = ()
    """What the reader should know about it, as sentences."""
    problems: tuple[str, ...] = ()
    """Hooks whose part was left out, a sentence each."""

    @property
    def mode(self) -> str:
        return self.message.mode

    @property
    def cancelled(self) -> Cancelled:
        return self.message.options.cancelled

    @property
    def retrieved(self) -> Retrieved:
        """How much was retrieved for it."""
        found = len(self.block.chunks) if self.searched else 0
        return Retrieved(num_docs=found, similar_queries=len(self.similar))

    def masked(self) -> Gathered:
        """Return the same with secret-looking strings made asterisks: those of earlier answers and
        of hooks. The message is masked when it is read, the code when it is indexed."""
        read = (self.message.text, self.message.options.instructions)
        question, instructions = self.question, self.instructions
        if (question, instructions) != read:
            question, instructions = mask_secrets(question), mask_secrets(instructions)
        return replace(
            self,
            question=question,
            history=tuple(map(masked_exchange, self.history)),
            similar=tuple(map(masked_exchange, self.similar)),
            profile=mask_secrets(self.profile),
            instructions=instructions,
        )


def masked_exchange(one: Exchange) -> Exchange:
    """Return `one` with secret-looking strings made asterisks."""
    return replace(one, question=mask_secrets(one.question), answer=mask_secrets(one.answer))


# The answer as it is written.


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What left for a model: yielded before the request, and again when it is repeated."""

    model: str = ""
    """`provider/name`; '' when no model was asked."""
    host: str = ""
    messages: tuple[SentMessage, ...] = ()
    """Exactly as sent, in order."""
    block: ContextBlock = NO_CONTEXT
    """The block among them."""
    warning: str = ""
    """What the reader should know about it, as a sentence."""


Piece = str | ModelRequest | ToolStep | Thought | Waiting | TokenUsage
"""Text of the answer, what was sent for it, what was looked up, thought and waited for meanwhile,
and at the end what the provider counted."""


class AnswerGenerator(Protocol):
    @property
    def name(self) -> str:
        """What the surfaces call it: the model, `extractive` or `app`."""

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Ends when `asked.cancelled()` is true; closing the generator stops the work behind it.
        Raises ModelError, also after some text.
        """


# What of it holds.


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer, read against the code by `check`."""

    revised: str = ""
    """The answer as a hook changed it after it was read; '' when none did."""
    citations: Sequence[Citation] = ()
    suggestions: tuple[str, ...] = ()
    """What may be asked next."""
    problems: tuple[str, ...] = ()
    """Hooks whose part was left out, a sentence each."""
