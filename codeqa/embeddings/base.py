"""What the rest of the system asks of an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

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
