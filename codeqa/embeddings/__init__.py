"""Embeddings behind one interface: the table that is shipped, and those of LanceDB's registry.

Importing this package is free. Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a
provider: a key in the environment alone does nothing.
"""

from codeqa.embeddings.base import Embedding
from codeqa.embeddings.registry import (
    chosen_embedding,
    fast_embedding,
    query_embedding,
    question_matcher,
    sentence_matcher,
    shipped_table,
    table_encoder,
)

__all__ = [
    "Embedding",
    "chosen_embedding",
    "fast_embedding",
    "query_embedding",
    "question_matcher",
    "sentence_matcher",
    "shipped_table",
    "table_encoder",
]
