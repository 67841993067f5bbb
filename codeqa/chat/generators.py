"""What writes answers about the code: a language model, or the code itself, quoted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from codeqa.chat.citations import ChunkNames
from codeqa.chat.generation import (
    EXTRACTIVE,
    GenerationInput,
    ModelRequest,
    Piece,
    as_sent,
    build_messages,
)
from codeqa.context import pack
from codeqa.errors import ContextLengthError, ModelError
from codeqa.extractive.extractive import quoted_answer
from codeqa.llm import Model, TokenUsage

SMALLER = 0.5
"""Part of the block that is sent when the whole was too long for the model: what it can hold
is not known, and a second refusal costs more time than a little code left out."""
SHORTENED = (
    "The whole context was too long for this model: at most half of the code was sent, and no "
    "earlier questions."
)


class QuotingGenerator:
    """Says only what the code itself says: quoted, cited, most relevant first."""

    name = EXTRACTIVE
    needs_evidence = True

    def generate(self, asked: GenerationInput) -> Generator[Piece, None, None]:
        """Yield the answer line by line; each section is made when it is reached."""
        looked_up = asked.searched or asked.block.chunks
        evidence = asked.evidence if looked_up else None
        yield from quoted_answer(evidence, about_code=asked.intent != "general")


@dataclass(frozen=True, slots=True)
class ModelGenerator:
    """Asks `model`."""

    model: Model
    config_dir: Path | None = None
    needs_evidence: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.model.name

    def generate(self, asked: GenerationInput) -> Generator[Piece, None, None]:
        """Ask; once again with less when the model says that it was too long."""
        try:
            yield from self._ask(asked)
        except ContextLengthError:
            if (smaller := shrink(asked)) == asked:
                raise
            yield from self._ask(smaller, SHORTENED)

    def _ask(self, asked: GenerationInput, warning: str = "") -> Generator[Piece, None, None]:
        messages = build_messages(asked, self.config_dir)
        model = self.model
        yield ModelRequest(model.name, model.host, as_sent(messages), asked.block, warning)
        answered, names = False, ChunkNames(asked.block.chunks)
        try:
            with closing(model.stream(messages, cancelled=asked.cancelled)) as stream:
                for piece in stream:
                    if isinstance(piece, TokenUsage):
                        yield piece
                    else:
                        answered = True
                        yield names.feed(piece)
        except ModelError as error:
            yield names.close()
            if answered and isinstance(error, ContextLengthError):
                # Too late to begin anew: the reader already has a part of the answer.
                raise ModelError(error.message, error.hint) from error
            raise
        yield names.close()


def shrink(asked: GenerationInput) -> GenerationInput:
    """`asked` without history and with the block packed anew to half of its length; a block that
    cannot be halved stays as it is."""
    whole = asked.block
    room = int(len(whole.text) * SMALLER)
    half = pack(whole.chunks, room)
    if not half.chunks:  # all are long: the best alone may use all of the room
        half = pack(whole.chunks[:1], room)
    kept = {(c.path, c.start_line) for c in half.chunks}
    left_out = [c for c in whole.chunks if (c.path, c.start_line) not in kept]
    half = replace(half, dropped=(*left_out, *whole.dropped))
    return replace(asked, block=half if half.chunks else whole, history=(), similar=())
