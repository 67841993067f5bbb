"""The table that CodeQA brings along, as a function of LanceDB's registry.

It is registered under the alias of the fast embedding when the table is there: as package
data in `codeqa/embeddings/data`, or in any folder that a caller names.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.table.weights import MANIFEST, load_weights

if TYPE_CHECKING:
    from lancedb.embeddings import EmbeddingFunction

    from codeqa.embeddings.table.encoder import TableEncoder
    from codeqa.embeddings.table.matcher import QuestionMatcher

SHIPPED = Path(__file__).resolve().parent / "data"

WHOLE_TEXT = 2**31
"""The table reads of a text what its fields take; cutting it before would part the fields."""


def shipped_table() -> Path | None:
    """The folder of the table that was installed with CodeQA; None where there is none."""
    return SHIPPED if (SHIPPED / MANIFEST).is_file() else None


@lru_cache(maxsize=2)
def table_encoder(folder: str) -> TableEncoder:
    """The encoder of the table in `folder`, loaded and verified once per process.

    Raises EmbeddingError for a damaged table; nothing is remembered then.
    """
    from codeqa.embeddings.table.encoder import TableEncoder

    return TableEncoder(load_weights(folder))


def question_matcher(folder: str, question: str) -> QuestionMatcher:
    """`question`, to be held against units one by one, with the table in `folder`.

    Raises EmbeddingError for a damaged table.
    """
    from codeqa.embeddings.table.matcher import QuestionMatcher

    return QuestionMatcher(table_encoder(folder), question)


def register_table(alias: str, folder: Path) -> type[EmbeddingFunction]:
    """Register the table in `folder` under `alias`, in the place of what may stand there."""
    from lancedb.embeddings import TextEmbeddingFunction, get_registry

    place = str(folder)

    class CodeTableEmbeddings(TextEmbeddingFunction):
        """Units and questions have sides of their own; nothing is downloaded or sent."""

        folder: str = place
        max_tokens: int = WHOLE_TEXT
        max_retries: int = 0

        @property
        def name(self) -> str:
            return self._encoder.weights.name

        @property
        def version(self) -> str:
            return self._encoder.weights.version

        @property
        def _encoder(self) -> TableEncoder:
            return table_encoder(self.folder)

        def ndims(self) -> int:
            return self._encoder.dimension

        def compute_query_embeddings(self, query: str, *args: Any, **kwargs: Any) -> Any:
            """One vector; zeros for a question of which no word is known."""
            vector = self._encoder.encode_query(query)
            return (vector if self._encoder.knows(query) else vector * 0)[None]

        def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> Any:
            return self._encoder.encode_documents(list(texts))

    registry = get_registry()
    registry._functions.pop(alias, None)
    return registry.register(alias)(CodeTableEmbeddings)  # type: ignore[no-any-return]
