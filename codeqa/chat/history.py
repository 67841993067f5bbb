"""What a turn starts from, and what of the conversation so far a model is to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from codeqa.chat.topic import Vector, cosine
from codeqa.extractive.generator import NO_CONTEXT, Exchange
from codeqa.search import parse_query, written_forms
from codeqa.types import ContextBlock

HISTORY_MESSAGES = 20
"""Latest messages, questions and answers alike, that are loaded (S3.10)."""
RECENCY_WINDOW = 6
"""Latest messages that a model always sees (S3.17)."""
SEMANTIC_K = 3
"""And older questions, with their answers, that it sees when they resemble this one (S3.17)."""

TELLING_CHARACTERS = 4
"""Shorter words stand in all code."""

Embed = Callable[[str], Vector | None]
"""A question's vector; None for one that the embedding knows no word of, and without one."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known when a question arrives."""

    history: tuple[Exchange, ...] = ()
    """The latest answered questions of the conversation, oldest first."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """What the user has told of themselves."""
    messages: int = 0
    """Length of the conversation, questions and answers."""
    topic: Vector | None = None
    """What the conversation has been about."""
    context: ContextBlock = NO_CONTEXT
    """What was found for an earlier question (S1.37)."""
    names: tuple[str, ...] = ()
    """Definitions that were found for the question before, best first."""
    path: tuple[str, ...] = ()
    """Ids of the turns before this one, the latest last, as far as they were read."""


def prune(
    history: Sequence[Exchange], question: Vector | None, embed: Embed, threshold: float
) -> tuple[Exchange, ...]:
    """The window of the latest exchanges, and before it those older ones whose question is more
    similar to this one than `threshold` (S3.17, C-23, C-28); oldest first.

    A question always keeps its answer: neither says much without the other.
    """
    recent = RECENCY_WINDOW // 2
    older, latest = history[:-recent], history[-recent:]
    if question is None or not older:
        return tuple(latest)
    scored = []
    for number, exchange in enumerate(older):
        vector = embed(exchange.question)
        score = 0.0 if vector is None else cosine(question, vector)
        if score > threshold:
            scored.append((-score, number))
    kept = sorted(number for _, number in sorted(scored)[:SEMANTIC_K])
    return (*(older[number] for number in kept), *latest)


def other_names(text: str, other: str) -> bool:
    """Whether two questions name different code: `load_page` and `load_user` are not alike,
    however alike their vectors are."""
    one, two = parse_query(text), parse_query(other)
    named = {name.lower() for name in (*one.names, *one.qualified, *one.files)}
    also = {name.lower() for name in (*two.names, *two.qualified, *two.files)}
    return bool(named and also) and named.isdisjoint(also)


def touches(text: str, context: ContextBlock) -> bool:
    """Whether a word of `text` that does more than ask stands in the code of `context`: then
    it is about that, however little the words themselves have in common with the topic's."""
    code = context.text.lower()
    query = parse_query(text)
    found = (word for word in query.words if len(word) >= TELLING_CHARACTERS)
    return any(form in code for word in found for form in written_forms(word))
