"""The seam between a turn and what writes its answer: a language model, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from codeqa.extractive.evidence import QuotedEvidence
from codeqa.llm import Cancelled, never
from codeqa.types import ContextBlock

NO_CONTEXT = ContextBlock("", ())


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


@dataclass(frozen=True, slots=True)
class Asked:
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


@dataclass(frozen=True, slots=True)
class Sent:
    """What left for a model: yielded before the request, and again when it is repeated."""

    model: str = ""
    """`provider/name`; '' when no model was asked."""
    host: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    """Exactly as sent, in order: `{"role": …, "parts": [text, …]}`."""
    block: ContextBlock = NO_CONTEXT
    """The block among them."""
    tokens: Mapping[str, Any] = field(default_factory=dict)
    """`prompt`, `completion` and whether they are `estimated`, once that is known."""
    notice: str = ""
    """What the reader should know about it, as a sentence."""


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens as the provider counted them, yielded at the end if it does."""

    prompt: int
    completion: int
    cut: bool = False
    """The answer ends where the model's limit of length was reached."""


Piece = str | Sent | Used


class Generator(Protocol):
    """Writes answers."""

    @property
    def name(self) -> str:
        """What the surfaces call it: the model, or `extractive`."""
        ...

    @property
    def needs_evidence(self) -> bool:
        """Whether `Asked.evidence` is to be gathered: it costs as much as the search."""
        ...

    def generate(self, asked: Asked) -> Iterator[Piece]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Ends when `asked.cancelled()` is true; closing the iterator stops the work behind it.
        Raises ModelError, also after some text.
        """
        ...


_T = TypeVar("_T")


@contextmanager
def closed_after(pieces: Iterator[_T]) -> Iterator[Iterator[_T]]:
    """`pieces`, closed on the way out if it can be: what works behind it stops then, not later."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
