"""The values of a turn, in the order in which they are made; `record` has the last, `TurnRecord`.

All are immutable: a stage takes those of earlier stages and returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codeqa.chat.events import Citation, Classified, Retrieved, ToolStep
from codeqa.chat.options import QuestionOptions
from codeqa.chat.record import SentMessage, TurnRecord
from codeqa.code.counted import CountedQuestion
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, Reasoning, RetryWait, never
from codeqa.quoted import QuotedEvidence
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.followup import Leaving
from codeqa.routing.intents import Intent, Reading
from codeqa.routing.mode import WholeFiles
from codeqa.routing.personal import PersonalReading
from codeqa.routing.policy import Features, PolicyDecision
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.selection import Budget
from codeqa.state.records import LOCAL_USER
from codeqa.text import has_tag
from codeqa.types import NO_USAGE, Exchange, TokenUsage

Vector: TypeAlias = NDArray[np.float32]
"""The vector of a question, of shape (d,)."""

Span: TypeAlias = tuple[str, int, int]
"""Path, first and last line."""

CompletedBy = Literal["", "carried", "model"]


# The question.


@dataclass(frozen=True, slots=True)
class AskOptions(QuestionOptions):
    """A question with its options; built once, by the surface that receives it."""

    question: str
    """As typed. A message with `@codebase` or `@name` is searched for; the policy decides about
    others."""
    user: str = LOCAL_USER
    use_model: bool = True
    history: tuple[Exchange, ...] | None = None
    """The conversation so far where the client stores it, oldest first; None where CodeQA does."""
    instructions: str = ""
    """Instructions of that client for its answers; they never replace our rules."""
    task: str = ""
    """The answer without a model, where the client's program asks for a title or the like."""
    keep: bool = True
    """True if the turn is stored, and its context becomes the conversation's."""
    cancelled: Cancelled = never

    @property
    def chooses_chunks(self) -> bool:
        return bool(self.pin or self.exclude)


@dataclass(frozen=True, slots=True)
class Question:
    """A message, parsed and masked once, by `question.read_question`."""

    options: AskOptions
    """With well-formed text, secret-looking strings masked, and valid spans."""
    typed: str
    """The message with its tag, as it is stored."""
    text: str
    """The message without tag and mode."""
    mode: str
    mode_chosen: bool
    """True if the user chose the mode; else the words did."""
    whole_files: WholeFiles
    """`files` or `all` where whole files are asked for, else ''."""
    mask: str
    """The pattern for `all`; '' for every file."""
    query: Query
    """The text, parsed for a search."""
    words: Reading
    """The text, read by what its words may mean."""
    personal: PersonalReading
    """Facts about the user in the text."""
    counted: CountedQuestion | None
    """Set for a question that is answered by counting rather than by a search."""

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed) and not self.options.task


@dataclass(frozen=True, slots=True)
class ConversationSoFar:
    """The conversation when a question arrives; made by `conversations`."""

    history: tuple[Exchange, ...] = ()
    """The latest answered questions of the conversation, oldest first."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """Facts that the user has told about themselves."""
    messages: int = 0
    """Length of the conversation, questions and answers."""
    context: ContextBlock = NO_CONTEXT
    """The code of an earlier question."""
    context_lost: bool = False
    """True if that code would be in the cache, which cannot be reached."""
    shown_files: Callable[[], Iterable[str]] = tuple
    """Returns the paths of the files that its turns have shown lines of."""
    cites_code: bool = False
    """True if its answers come from the client alone, and cite code."""
    names: tuple[str, ...] = ()
    """Definitions that the last search found, as `TurnRecord.found_names` orders them."""
    path: tuple[str, ...] = ()
    """Ids of the turns before this one, the latest last, as far as they were loaded."""
    parent: str = ""
    """Id of the turn that this one follows; '' for none."""
    replaced: TurnRecord | None = None
    """The turn that this one replaces."""

    @property
    def begun(self) -> bool:
        """True if a message may be a follow-up, of a turn or of code that a client holds."""
        return self.messages > 0 or self.context_lost or bool(self.context.chunks)


# The decision.


@dataclass(frozen=True, slots=True)
class Routed:
    """A question in its conversation, with the decision what to do; made by `route`."""

    question: Question
    so_far: ConversationSoFar
    vector: Vector | None
    """Vector of the question; None if the embedding knows none of its words."""
    intent: Intent
    leaving: Leaving
    """The topic that it moves to: other code, another subject, or none (`to` is '')."""
    features: Features
    decision: PolicyDecision
    standalone: str
    """The completed text of a follow-up that says too little alone; '' for any other question."""
    query: Query
    """The query to search for: the question, or `standalone`, parsed."""
    completed_by: CompletedBy
    """How `standalone` was made; `carried`: with words of earlier questions."""
    facts: Mapping[str, str]
    """Facts about the user that are to be stored."""
    problems: tuple[str, ...]
    """Hooks whose part was left out, a sentence each."""
    usage: TokenUsage = NO_USAGE
    """Tokens of the model that helped to understand it, where one was asked."""

    @property
    def deletes(self) -> str:
        """The data that the user deletes with this message: `profile`, …; '' for nothing.

        Never from a program that stores the conversation itself: it speaks for its user, and may
        repeat whatever it has read.
        """
        options = self.question.options
        from_program = options.history is not None or not options.keep
        if from_program or self.decision.reply != "privacy":
            return ""
        return self.question.personal.confirmed

    def classification(self) -> Classified:
        """Return how the message is classified, and why."""
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


# The material of the answer.


@dataclass(frozen=True, slots=True)
class Gathered:
    """The material that an answer may use; made by `gather`."""

    message: Question
    question: str
    """The question for the model: the text of the message, unless a hook rewords it."""
    block: ContextBlock = NO_CONTEXT
    searched: bool = False
    """True if the code base was searched for this question; else `block` is an earlier one's."""
    intent: str = "knowledge_base"
    """One of `intents.INTENTS`, as the policy decided."""
    history: tuple[Exchange, ...] = ()
    """Oldest first."""
    similar: tuple[Exchange, ...] = ()
    """Earlier questions that resemble this one, with their answers, the most similar first."""
    profile: str = ""
    """Facts that the user told about themselves, as `key: value` lines."""
    instructions: str = ""
    """Instructions of the client program for the answer; they never replace the rules."""
    suggest: bool = False
    """Suggest asking again with `@codebase`."""
    reply: str = ""
    """Name of the app's own reply that is the answer; '' for none."""
    strict: bool = False
    """True if the model is told to say only what the code shows."""
    evidence: QuotedEvidence | None = None
    """Quotes for an answer without a model, and the counted list for any answer."""
    model: Model | None = None
    """The model that may answer."""
    budget: Budget | None = None
    """Most code that is sent."""
    window: int = 0
    """Tokens that the model takes; 0 is unknown."""
    search: SearchResult | None = None
    """The result of the search, as it is stored; None where nothing was searched."""
    effort: str = ""
    """`fast`, `normal` or `deep`; '' where nothing was searched."""
    may_look: bool = False
    """True if the model may look further before it answers."""
    rewritten: str = ""
    """The completed question, where it was searched for in place of a short follow-up."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user."""
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
        """The number of chunks and of earlier questions."""
        chunks = len(self.block.chunks) if self.searched else 0
        return Retrieved(num_docs=chunks, similar_queries=len(self.similar))

    def masked(self) -> Gathered:
        """Return a copy with secret-looking strings of earlier answers and of hooks masked.

        The message is masked when it is parsed, the code when it is indexed.
        """
        message_texts = (self.message.text, self.message.options.instructions)
        question, instructions = self.question, self.instructions
        if (question, instructions) != message_texts:
            question, instructions = mask_secrets(question), mask_secrets(instructions)
        return replace(
            self,
            question=question,
            history=tuple(map(masked_exchange, self.history)),
            similar=tuple(map(masked_exchange, self.similar)),
            profile=mask_secrets(self.profile),
            instructions=instructions,
        )


def masked_exchange(exchange: Exchange) -> Exchange:
    """Return `exchange` with secret-looking strings masked."""
    question, answer = mask_secrets(exchange.question), mask_secrets(exchange.answer)
    return replace(exchange, question=question, answer=answer)


# The answer.


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: yielded before it is sent, and again when it is repeated."""

    model: str = ""
    """`provider/name`; '' when no model was asked."""
    host: str = ""
    messages: tuple[SentMessage, ...] = ()
    """Exactly as sent, in order."""
    block: ContextBlock = NO_CONTEXT
    """The context block in the messages."""
    warning: str = ""
    """A sentence for the user."""


AnswerPiece = str | ModelRequest | ToolStep | Reasoning | RetryWait | TokenUsage
"""Text of the answer, and between it requests, looks, thoughts and pauses; at the end the tokens
that the provider counted."""


class AnswerGenerator(Protocol):
    """A responder: it makes the text of an answer."""

    @property
    def name(self) -> str:
        """Return its name for users: the model, `extractive` or `app`."""

    def generate(self, gathered: Gathered, /) -> Generator[AnswerPiece, None, None]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Ends when `gathered.cancelled()` is true; closing the generator stops the work. Raises
        ModelError, also after some text.
        """


# The check.


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking an answer against the code, made by `check`."""

    revised: str = ""
    """The answer as a hook changed it after the check; '' when none did."""
    citations: Sequence[Citation] = ()
    suggestions: tuple[str, ...] = ()
    """Suggested next questions."""
    problems: tuple[str, ...] = ()
    """Hooks whose part was left out, a sentence each."""
