"""Finding embeddings: the fast one, and the one that was chosen.

The fast one is the table that CodeQA brings along, as package data in `codeqa/embeddings/data`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codeqa.embeddings.base import Embedding, explain_failure
from codeqa.embeddings.hosted import PROVIDERS, HostedModel
from codeqa.embeddings.local import LocalModel, local_model
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


def _shipped_encoder() -> TableEncoder | None:
    folder = shipped_table()
    return table_encoder(str(folder)) if folder else None


def question_matcher(question: str) -> QuestionMatcher | None:
    """`question`, for units to be held against one by one, with the shipped table; None without
    one. Raises EmbeddingError for a damaged table."""
    from codeqa.embeddings.table.matcher import QuestionMatcher

    encoder = _shipped_encoder()
    return QuestionMatcher(encoder, question) if encoder else None


def sentence_matcher(texts: Sequence[str]) -> SentenceMatcher | None:
    """The same for `texts`, for sentences to be held against."""
    from codeqa.embeddings.table.matcher import SentenceMatcher

    encoder = _shipped_encoder()
    return SentenceMatcher(encoder, texts) if encoder else None


def fast_embedding() -> Embedding | None:
    """The embedding of the first pass, which fills `vector` of every row: the table that was
    installed with CodeQA; None where there is none.

    Raises EmbeddingError when that table is damaged.
    """
    encoder = _shipped_encoder()
    if encoder is None:
        return None
    name, version = encoder.weights.name, encoder.weights.version
    return Embedding(name, version, encoder.dimension, WHOLE_TEXT, encoder, name)


def chosen_embedding(settings: Settings) -> Embedding | None:
    """The embedding that CODEQA_EMBEDDING names, None when it names none.

    Nothing is sent yet; a model that runs here is loaded, and fetched if it has to be. Raises
    SettingsError for a name that cannot be, EmbeddingError for a missing key, package or model.
    """
    if not settings.embedding:
        return None
    provider, _, name = settings.embedding.partition("/")
    if not name:
        raise SettingsError(
            f"CODEQA_EMBEDDING is {settings.embedding!r}, not of the form provider/name.",
            "For example openai/text-embedding-3-large or jina/jina-embeddings-v3; on this "
            "machine, jinaai/jina-embeddings-v2-base-code or the folder of a model.",
        )
    dimension = settings.embedding_dimension
    version = "1"
    place, key_variable = settings.embedding, f"{provider.upper().replace('-', '_')}_API_KEY"
    function: Any
    if known := PROVIDERS.get(provider):
        function = _of_provider(settings, provider, name)
        dimension = function.dimension
        place = f"{known.title} ({urlsplit(function.base_url).netloc})"
    elif model := local_model(settings.embedding):
        function = LocalModel(model)
        dimension = dimension or len(function.compute_query_embeddings("dimension")[0])
    else:
        try:
            function = _of_registry(provider, name)
            dimension = dimension or int(function.ndims())
            version = str(getattr(function, "version", version))
        except (NotImplementedError, TypeError) as error:
            raise _unknown_dimension(settings.embedding) from error
        except Exception as error:
            raise explain_failure(error, place, key_variable) from error
    tokens = settings.embedding_tokens
    return Embedding(settings.embedding, version, dimension, tokens, function, place, key_variable)


def query_embedding(settings: Settings, name: str) -> Embedding | None:
    """The embedding called `name` for questions, when it is the fast or the chosen one.

    Raises as `chosen_embedding` does when it is the chosen one.
    """
    if settings.embedding == name:
        return chosen_embedding(settings)
    fast = fast_embedding()
    return fast if fast is not None and fast.name == name else None


def _of_provider(settings: Settings, alias: str, name: str) -> HostedModel:
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
    return HostedModel(provider, name, dimension, url or provider.url, key or "none")


def _of_registry(provider: str, name: str) -> Any:
    from lancedb.embeddings import get_registry

    kind: Any = get_registry().get(provider)
    return kind.create(name=name) if "name" in kind.model_fields else kind.create()


def _unknown_dimension(name: str) -> SettingsError:
    return SettingsError(
        f"The dimension of {name} is not known.", "Set CODEQA_EMBEDDING_DIMENSION to it."
    )
