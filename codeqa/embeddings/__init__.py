"""Embeddings behind one interface, found in LanceDB's registry.

Importing this package is free. Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a
provider: a key in the environment alone does nothing.
"""

from codeqa.embeddings.base import Embedding
from codeqa.embeddings.registry import (
    FAST_ALIAS,
    chosen_embedding,
    fast_embedding,
    query_embedding,
    question_matcher,
    register_table,
    shipped_table,
    table_encoder,
    worker_table,
)

__all__ = [
    "FAST_ALIAS",
    "Embedding",
    "chosen_embedding",
    "fast_embedding",
    "query_embedding",
    "question_matcher",
    "register_table",
    "shipped_table",
    "table_encoder",
    "worker_table",
]
