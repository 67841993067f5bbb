"""Finding embeddings: the fast one, and in LanceDB's registry the one that was chosen.

The fast one is the table that CodeQA brings along, as package data in `codeqa/embeddings/data`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codeqa.embeddings import hosted, local
from codeqa.embeddings.base import Embedding, registered
from codeqa.embeddings.failures import explain_failure
from codeqa.embeddings.hosted import PROVIDERS
from codeqa.embeddings.table.weights import MANIFEST, load_weights
from codeqa.errors import EmbeddingError, SettingsError
from codeqa.settings import Settings

if TYPE_CHECKING:
    from codeqa.embeddings.table.encoder import TableEncoder
    from codeqa.embeddings.table.matcher import QuestionMatcher, SentenceMatcher

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


def question_matcher(question: str) -> QuestionMatcher | None:
    """`question`, for units to be held against one by one, with the shipped table; None without
    one. Raises EmbeddingError for a damaged table."""
    from codeqa.embeddings.table.matcher import QuestionMatcher

    folder = shipped_table()
    return QuestionMatcher(table_encoder(str(folder)), question) if folder else None


def sentence_matcher(texts: Sequence[str]) -> SentenceMatcher | None:
    """`texts`, for sentences to be held against, with the shipped table; None without one.

    Raises EmbeddingError for a damaged table.
    """
    from codeqa.embeddings.table.matcher import SentenceMatcher

    folder = shipped_table()
    return SentenceMatcher(table_encoder(str(folder)), texts) if folder else None


def fast_embedding() -> Embedding | None:
    """The embedding of the first pass, which fills `vector` of every row: the table that was
    installed with CodeQA; None where there is none.

    Raises EmbeddingError when that table is damaged.
    """
    folder = shipped_table()
    if folder is None:
        return None
    encoder = table_encoder(str(folder))
    weights = encoder.weights
    return Embedding(
        weights.name, weights.version, encoder.dimension, WHOLE_TEXT, encoder, weights.name
    )


def chosen_embedding(settings: Settings) -> Embedding | None:
    """The embedding that CODEQA_EMBEDDING names, None when it names none.

    Nothing is sent yet; a model that runs here is loaded, and fetched if it has to be. Raises
    SettingsError for a name that cannot be, EmbeddingError for a missing key, package or model.
    """
    from lancedb.embeddings import get_registry

    if not settings.embedding:
        return None
    provider, _, name = settings.embedding.partition("/")
    if not name:
        raise SettingsError(
            f"CODEQA_EMBEDDING is {settings.embedding!r}, not of the form provider/name.",
            "For example openai/text-embedding-3-large or jina/jina-embeddings-v3; on this "
            "machine, jinaai/jina-embeddings-v2-base-code or the folder of a model.",
        )
    if provider in PROVIDERS:
        return _of_provider(settings, provider, name)
    if model := local.local_model(settings.embedding):
        return _of_registry(settings, registered(local.ALIAS, local.define_local), model)
    return _of_registry(settings, get_registry().get(provider), name)


def query_embedding(settings: Settings, name: str) -> Embedding | None:
    """The embedding called `name` for questions, when it is the fast or the chosen one.

    Raises as `chosen_embedding` does when it is the chosen one.
    """
    if settings.embedding == name:
        return chosen_embedding(settings)
    fast = fast_embedding()
    return fast if fast is not None and fast.name == name else None


def _of_provider(settings: Settings, alias: str, name: str) -> Embedding:
    provider = PROVIDERS[alias]
    key = settings.provider_key(provider.key_variable)
    url = settings.openai_base_url if alias == "openai" else settings.jina_base_url
    if not key and not url:
        raise EmbeddingError(
            f"{provider.title} was chosen as embedding, but {provider.key_variable} is not set.",
            f"Set {provider.key_variable}, or unset CODEQA_EMBEDDING.",
        )
    dimension = settings.embedding_dimension or provider.dimensions.get(name, 0)
    if not dimension:
        raise _unknown_dimension(settings.embedding)
    kind = registered(hosted.ALIAS, hosted.define_hosted)
    function = kind.create(
        provider=alias, name=name, dim=dimension, base_url=url or provider.url
    ).with_key(key or "none")
    return Embedding(
        name=settings.embedding,
        version="1",
        dimension=dimension,
        max_tokens=settings.embedding_tokens,
        function=function,
        title=provider.title,
        host=urlsplit(url or provider.url).netloc,
        key_variable=provider.key_variable,
    )


def _of_registry(settings: Settings, kind: Any, name: str) -> Embedding:
    provider = settings.embedding.partition("/")[0]
    key_variable = f"{provider.upper().replace('-', '_')}_API_KEY"
    try:
        function = kind.create(name=name) if "name" in kind.model_fields else kind.create()
        dimension = settings.embedding_dimension or int(function.ndims())
    except (NotImplementedError, TypeError) as error:
        raise _unknown_dimension(settings.embedding) from error
    except Exception as error:
        raise explain_failure(error, settings.embedding, "", key_variable) from error
    return Embedding(
        name=settings.embedding,
        version=str(getattr(function, "version", "1")),
        dimension=dimension,
        max_tokens=settings.embedding_tokens,
        function=function,
        title=settings.embedding,
        key_variable=key_variable,
    )


def _unknown_dimension(name: str) -> SettingsError:
    return SettingsError(
        f"The dimension of {name} is not known.", "Set CODEQA_EMBEDDING_DIMENSION to it."
    )
