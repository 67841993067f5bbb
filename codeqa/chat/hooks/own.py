"""CodeQA's own hooks: what is always done to what is sent, whatever a plugin adds before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codeqa.chat.hooks.hooks import Retrieved, hookimpl
from codeqa.repository.secrets import mask_secrets

if TYPE_CHECKING:
    from codeqa.chat.generation import Exchange, GenerationInput
    from codeqa.types import Chunk

MOST_SIMILAR = 8
"""Past answers that are told at most: four of this conversation and four of others."""


@hookimpl(trylast=True, specname="after_retrieval")
def mask_what_was_found(retrieved: Retrieved) -> Retrieved:
    """Make secret-looking strings in chunks asterisks: those of the index are masked already,
    those that a plugin brings may not be."""
    chunks = (replace(one, content=mask_secrets(one.content)) for one in retrieved.chunks)
    return replace(retrieved, chunks=tuple(chunks))


@hookimpl(trylast=True, specname="after_retrieval")
def each_once(retrieved: Retrieved) -> Retrieved:
    """Leave out chunks that are there twice, and past answers beyond the most that are told."""
    chunks: dict[tuple[str, int, int], Chunk] = {}
    for chunk in retrieved.chunks:
        chunks.setdefault((chunk.path, chunk.start_line, chunk.end_line), chunk)
    similar: dict[str, Exchange] = {}
    for exchange in retrieved.similar:
        similar.setdefault(exchange.turn or exchange.question, exchange)
    told = tuple(similar.values())[:MOST_SIMILAR]
    return replace(retrieved, chunks=tuple(chunks.values()), similar=told)


@hookimpl(trylast=True, specname="before_generation")
def mask_what_is_told(asked: GenerationInput) -> GenerationInput:
    """Make secret-looking strings asterisks in the question, in earlier questions and answers,
    which a client may have told, in what it asks of answers, and in what is known of the user."""
    return replace(
        asked,
        question=mask_secrets(asked.question),
        history=_all_masked(asked.history),
        similar=_all_masked(asked.similar),
        profile=mask_secrets(asked.profile),
        instructions=mask_secrets(asked.instructions),
    )


def _all_masked(exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    return tuple(
        replace(one, question=mask_secrets(one.question), answer=mask_secrets(one.answer))
        for one in exchanges
    )
