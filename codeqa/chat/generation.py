"""What writes an answer, and what it is given: a language model, the quoted code, or the app."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from codeqa.extractive.evidence import QuotedEvidence
from codeqa.llm import Cancelled, TokenUsage, never
from codeqa.repository.secrets import mask_secrets
from codeqa.types import ContextBlock

NO_CONTEXT = ContextBlock("", ())
EXTRACTIVE = "extractive"
"""Name of the generator that quotes the code."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Stands in the history for a quoted answer: that is text of files, which has no place among
what the model itself is supposed to have said."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question of the conversation, and its answer as text."""

    question: str
    answer: str
    turn: str = ""
    """Its id; '' when a client told it."""
    elsewhere: bool = False
    """It resembles this question but stands in no row with it: another conversation, or long
    before."""


def answer_for_history(answer: str, generator: str) -> str:
    """`answer` as a model may see it in the history: one that quotes files is only mentioned."""
    return QUOTED if generator == EXTRACTIVE else answer


@dataclass(frozen=True, slots=True)
class GenerationInput:
    """All that an answer may draw on."""

    question: str
    """Without tag and mode."""
    mode: str
    block: ContextBlock
    searched: bool
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
    strict: bool = False
    """Whether only what the code shows may be said."""
    evidence: QuotedEvidence | None = None
    """Only for a generator that asks for it."""
    cancelled: Cancelled = never

    def masked(self) -> GenerationInput:
        """The same with secret-looking strings made asterisks, also in earlier questions and
        answers, which a client may have told; those in the code are masked in the index."""
        return replace(
            self,
            question=mask_secrets(self.question),
            history=tuple(map(_masked, self.history)),
            similar=tuple(map(_masked, self.similar)),
            profile=mask_secrets(self.profile),
            instructions=mask_secrets(self.instructions),
        )


def _masked(one: Exchange) -> Exchange:
    return replace(one, question=mask_secrets(one.question), answer=mask_secrets(one.answer))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What left for a model: yielded before the request, and again when it is repeated."""

    model: str = ""
    """`provider/name`; '' when no model was asked."""
    host: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    """Exactly as sent, in order: `{"role": …, "parts": [text, …]}`."""
    block: ContextBlock = NO_CONTEXT
    """The block among them."""
    warning: str = ""
    """What the reader should know about it, as a sentence."""


Piece = str | ModelRequest | TokenUsage
"""Text of the answer, what was sent for it, and at the end what the provider counted."""


class AnswerGenerator(Protocol):
    """Writes answers."""

    @property
    def name(self) -> str:
        """What the surfaces call it: the model, `extractive` or `app`."""
        ...

    @property
    def needs_evidence(self) -> bool:
        """Whether `GenerationInput.evidence` is to be gathered: it costs as much as the search."""
        ...

    def generate(self, asked: GenerationInput) -> Generator[Piece, None, None]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Ends when `asked.cancelled()` is true; closing the generator stops the work behind it.
        Raises ModelError, also after some text.
        """
        ...
