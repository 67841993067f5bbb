"""The search of one index, with the parts that the settings choose."""

from __future__ import annotations

import functools
from collections.abc import Callable

from codeqa.embeddings import query_embedding
from codeqa.llm import Models
from codeqa.search.channels import QueryEncoder
from codeqa.search.hybrid import Search
from codeqa.search.rerank import choose_reranker
from codeqa.settings import Settings
from codeqa.store import Tables


def open_search(
    settings: Settings,
    tables: Callable[[], Tables],
    *,
    models: Models | None = None,
    vectors: bool = True,
) -> Search:
    """The search of the index that `tables` opens.

    Without `models` nothing is written by a language model to search by, without `vectors` no
    embedding is used. Raises SettingsError for a reranker that cannot be used.
    """
    return Search(
        tables,
        settings,
        query_encoders(settings) if vectors else None,
        reranker=choose_reranker(settings),
        connect=models.connect_small if models else None,
    )


def query_encoders(settings: Settings) -> Callable[[str], QueryEncoder | None]:
    """Give a function from the name of an embedding to its query side, None if not at hand.

    Each is built once, when an index first asks for it.
    """
    return functools.cache(lambda name: query_embedding(settings, name))
