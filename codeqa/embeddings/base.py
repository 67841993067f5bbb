"""A function that embeds made to behave: what the rest of the system embeds with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.failures import KEPT, explain_failure
from codeqa.errors import EmbeddingError
from codeqa.text.tokens import CHARACTERS_PER_TOKEN, estimate_tokens

if TYPE_CHECKING:
    import numpy as np
    from lancedb.embeddings import EmbeddingFunction


@dataclass(frozen=True, slots=True)
class Embedding:
    """Turns texts into vectors, questions and passages each in their own way.

    Texts are cut to what it reads, failures are sentences, and the dimension is checked on every
    answer. `name` and `version` together say whether stored vectors still fit.
    """

    name: str
    version: str
    dimension: int
    """Length of a vector."""
    max_tokens: int
    """(≈) Of the longest text that counts to its end."""
    function: Any
    """An instance of LanceDB's EmbeddingFunction, or the shipped table's encoder."""
    title: str
    host: str = ""
    """Where texts are sent; '' where that is nowhere, or unknown."""
    key_variable: str = ""

    def embed_query(self, text: str) -> np.ndarray:
        """Vector (dimension,) float32 of a question. Raises EmbeddingError."""
        short = cut(text, self.max_tokens)
        vector: np.ndarray = self._embed(self.function.compute_query_embeddings, short, 1)[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors (n, dimension) float32 of `texts`. Raises EmbeddingError."""
        short = [cut(text, self.max_tokens) for text in texts]
        return self._embed(self.function.compute_source_embeddings, short, len(short))

    def _embed(self, function: Callable[[Any], Any], texts: Any, count: int) -> np.ndarray:
        import numpy as np

        try:
            found = function(texts)
        except Exception as error:
            raise explain_failure(error, self.title, self.host, self.key_variable) from error
        given = sum(vector is not None for vector in found)
        if given != count or len(found) != count:
            raise EmbeddingError(f"{self.title} answered {count} texts with {given} vectors.", KEPT)
        other = {len(vector) for vector in found} - {self.dimension}
        if other:
            raise EmbeddingError(
                f"{self.name} gives vectors of {max(other)} dimensions, {self.dimension} were "
                "expected.",
                f"Set CODEQA_EMBEDDING_DIMENSION={max(other)}, or unset it.",
            )
        vectors = np.asarray(found, dtype=np.float32).reshape(count, self.dimension)
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"{self.name} gives vectors that are no numbers.", KEPT)
        return vectors


def registered(alias: str, define: Callable[[], type[EmbeddingFunction]]) -> Any:
    """The class that stands under `alias` in LanceDB's registry, defined on first use."""
    from lancedb.embeddings import get_registry

    registry = get_registry()
    if alias not in registry._functions:
        registry.register(alias)(define())
    return registry.get(alias)


def cut(text: str, max_tokens: int) -> str:
    """The beginning of `text` that stays within `max_tokens` (≈), cut between lines.

    A first line that is too long by itself is cut inside; no other statement is embedded by half.
    """
    if estimate_tokens(text) <= max_tokens:
        return text
    # One character is at most one estimated token, and CHARACTERS_PER_TOKEN at best.
    end = int(max_tokens * CHARACTERS_PER_TOKEN)
    while end > 0 and estimate_tokens(text[:end]) > max_tokens:
        end = end * 19 // 20
    line_end = text.rfind("\n", 0, end)
    return text[: line_end if line_end > 0 else end]
