"""A function that embeds made to behave: what the rest of the system embeds with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeqa.errors import EmbeddingError
from codeqa.text.tokens import CHARACTERS_PER_TOKEN, estimate_tokens

if TYPE_CHECKING:
    import numpy as np

KEPT = "What was embedded is kept; run it again to go on."
DETAIL_CHARACTERS = 200


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
    """What has `compute_query_embeddings` and `compute_source_embeddings`, as LanceDB's embedding
    functions do."""
    place: str
    """Who embeds, for messages: with the host where texts are sent to one that is known."""
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
            raise explain_failure(error, self.place, self.key_variable) from error
        given = sum(vector is not None for vector in found)
        if given != count or len(found) != count:
            raise EmbeddingError(f"{self.place} answered {count} texts with {given} vectors.", KEPT)
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


def explain_failure(error: Exception, place: str, key_variable: str) -> EmbeddingError:
    """What any client's exception means, told by what these have in common: a status, perhaps of a
    response, or a type that says "connection"."""
    if isinstance(error, EmbeddingError):
        return error
    names = " ".join(kind.__name__.lower() for kind in type(error).__mro__)
    unreached = any(word in names for word in ("connect", "timeout", "network"))
    answer = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(answer, "status_code", None)
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    detail = str(told or (unreached and error.__cause__) or error or type(error).__name__)
    detail = " ".join(detail.split())[:DETAIL_CHARACTERS].rstrip(".")
    if isinstance(error, ImportError):
        said = f"{place} needs a package that is not installed: {error.name or detail}."
        hint = "Install it into the same environment, or choose another CODEQA_EMBEDDING."
    elif status in (401, 403):  # its words may hold the key
        said, hint = f"{place} refused the key (status {status}).", f"Check {key_variable}."
    elif status is not None:
        said = f"{place} answered with status {status}: {detail}."
        hint = "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and the provider's base URL."
        if status in (408, 429) or status >= 500:
            hint = f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}"
    elif unreached:
        said = f"{place} cannot be reached: {detail}."
        hint = f"Check the network and the provider's base URL. {KEPT}"
    else:
        said = f"{place} failed: {type(error).__name__}: {detail}."
        hint = f"Check {key_variable}. {KEPT}" if key_variable else KEPT
    return EmbeddingError(said, hint)


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
