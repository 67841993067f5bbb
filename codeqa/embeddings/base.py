"""What the rest of the system asks of an embedding, and cutting texts to what one reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from codeqa.text.tokens import CHARACTERS_PER_TOKEN, estimate_tokens

if TYPE_CHECKING:
    import numpy as np


class Embedding(Protocol):
    """Turns texts into vectors, questions and passages each in their own way.

    `name` and `version` together say whether stored vectors still fit, `dimension` is
    the vectors' length, `max_tokens` (≈) the longest text that counts to its end.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int: ...

    def embed_query(self, text: str) -> np.ndarray:
        """Vector (dimension,) float32 of a question. Raises EmbeddingError."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors (n, dimension) float32 of `texts`. Raises EmbeddingError."""
        ...


def cut(text: str, max_tokens: int) -> str:
    """The first lines of `text` that stay within `max_tokens` (≈).

    A first line that is too long by itself is cut inside; every other cut falls between
    lines, so that no statement is embedded by half.
    """
    if estimate_tokens(text) <= max_tokens:
        return text
    used = 0
    kept = []
    for line in text.split("\n"):
        used += estimate_tokens(line + "\n")
        if used > max_tokens:
            break
        kept.append(line)
    return "\n".join(kept) if kept else _cut_line(text.split("\n", 1)[0], max_tokens)


def _cut_line(line: str, max_tokens: int) -> str:
    # One character is at most one estimated token, and CHARACTERS_PER_TOKEN at best.
    end = int(max_tokens * CHARACTERS_PER_TOKEN)
    while end > 0 and estimate_tokens(line[:end]) > max_tokens:
        end = end * 9 // 10
    return line[:end]
