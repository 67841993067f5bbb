"""Provide the embeddings: the shipped table (`embeddings/data`) and the one that the user chose.

The chosen one is of a provider that speaks OpenAI's API, a model on this machine, or any name of
LanceDB's registry. The adapter for providers is our own, because LanceDB's sets no time limit, does
not tell questions from passages, sends more than is needed and logs texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codeqa.embeddings.local import LocalModel
from codeqa.errors import EmbeddingError, SettingsError
from codeqa.hosts import keep_needed_headers
from codeqa.settings import Settings
from codeqa.text.tokens import CHARACTERS_PER_TOKEN, estimate_tokens

if TYPE_CHECKING:
    import numpy as np

    from codeqa.embeddings.table import QuestionMatcher, TableEncoder

SHIPPED = Path(__file__).resolve().parent / "data"

WHOLE_TEXT = 2**31
"""Limit of tokens for the table, which cuts each field of a text itself."""
RUN_AGAIN = "The vectors made so far are stored: run it again to continue."
DETAIL_CHARACTERS = 200
RETRIES = 3
"""Retries of the SDK, which waits for as long as a provider demands, two minutes at most."""
REQUEST_SECONDS = 60.0
BY_PYTORCH = ("sentence-transformers", "huggingface")
"""LanceDB's providers whose models CodeQA runs without PyTorch."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """Turns questions and passages into vectors, comparable where `name` and `version` agree."""

    name: str
    version: str
    dimension: int
    """Length of a vector."""
    max_tokens: int
    """Longest text, about; a longer one is cut."""
    function: Any
    """Has `compute_query_embeddings` and `compute_source_embeddings`, as LanceDB's functions do."""
    host: str
    """The name for messages, with the host that texts are sent to."""
    key_variable: str = ""

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector (dimension,) float32 of a question. Raises EmbeddingError."""
        short = cut(text, self.max_tokens)
        vector: np.ndarray = self._embed(self.function.compute_query_embeddings, short, 1)[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (n, dimension) float32 of `texts`. Raises EmbeddingError."""
        short = [cut(text, self.max_tokens) for text in texts]
        return self._embed(self.function.compute_source_embeddings, short, len(short))

    def _embed(self, function: Callable[[Any], Any], texts: Any, count: int) -> np.ndarray:
        import numpy as np

        try:
            rows = function(texts)
        except Exception as error:
            raise explain_failure(error, self.host, self.key_variable) from error
        if len(rows) != count or any(row is None for row in rows):
            raise EmbeddingError(
                f"{self.host} did not return a vector for each of {count} texts.", RUN_AGAIN
            )
        if other := {len(row) for row in rows} - {self.dimension}:
            raise EmbeddingError(
                f"{self.name} gives vectors of {max(other)} dimensions, {self.dimension} were "
                "expected.",
                f"Set CODEQA_EMBEDDING_DIMENSION={max(other)}, or unset it.",
            )
        vectors = np.asarray(rows, dtype=np.float32).reshape(count, self.dimension)
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"{self.name} returns vectors that are not numbers.", RUN_AGAIN)
        return vectors


def explain_failure(error: Exception, host: str, key_variable: str) -> EmbeddingError:
    """Return the error for users of any client's exception, by its status or type."""
    if isinstance(error, EmbeddingError):
        return error
    types = " ".join(kind.__name__.lower() for kind in type(error).__mro__)
    answer = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(answer, "status_code", None)
    body = getattr(error, "body", None)
    detail = str((body.get("message") if isinstance(body, dict) else "") or error)
    detail = " ".join(detail.split())[:DETAIL_CHARACTERS].rstrip(".")
    if isinstance(error, ImportError):
        message = f"{host} needs a package that is not installed: {error.name or detail}."
        hint = "Install it into the same environment, or choose another CODEQA_EMBEDDING."
    elif status in (401, 403):  # the detail may hold the key
        message, hint = f"{host} refused the key (status {status}).", f"Check {key_variable}."
    elif status is not None:
        message = f"{host} answered with status {status}: {detail}."
        hint = "Check CODEQA_EMBEDDING, its _DIMENSION and _BATCH, and the provider's base URL."
        if status in (408, 429) or status >= 500:
            hint = f"Wait, or lower CODEQA_EMBEDDING_BATCH. {RUN_AGAIN}"
    elif any(word in types for word in ("connect", "timeout", "network")):
        message = f"{host} cannot be reached: {detail}."
        hint = f"Check the network and the provider's base URL. {RUN_AGAIN}"
    else:
        message = f"{host} failed: {type(error).__name__}: {detail}."
        hint = f"Check {key_variable}. {RUN_AGAIN}" if key_variable else RUN_AGAIN
    return EmbeddingError(message, hint)


def cut(text: str, max_tokens: int) -> str:
    """Return the beginning of `text` within `max_tokens` (≈), cut between lines where possible."""
    if estimate_tokens(text) <= max_tokens:
        return text
    end = int(max_tokens * CHARACTERS_PER_TOKEN)
    while end > 0 and estimate_tokens(text[:end]) > max_tokens:
        end = end * 19 // 20
    line_end = text.rfind("\n", 0, end)
    return text[: line_end if line_end > 0 else end]


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """A provider that speaks OpenAI's API."""

    title: str
    key_variable: str
    url: str
    dimensions: dict[str, int]
    """Model → dimension."""
    task_query: str = ""
    """The `task` of a request, for models that embed questions and passages differently."""
    task_passage: str = ""


PROVIDERS = {
    "openai": EmbeddingProvider(
        "OpenAI", "OPENAI_API_KEY", "https://api.openai.com/v1",
        {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536}),
    "jina": EmbeddingProvider(
        "Jina", "JINA_API_KEY", "https://api.jina.ai/v1",
        {"jina-embeddings-v3": 1024, "jina-embeddings-v2-base-code": 768},
        task_query="retrieval.query", task_passage="retrieval.passage"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostedModel:
    """One model of a provider."""

    provider: EmbeddingProvider
    name: str
    dimension: int
    base_url: str
    key: str = field(repr=False)

    def compute_query_embeddings(self, query: str) -> list[Any]:
        """Return one vector in a list."""
        return self._request([query], self.provider.task_query)

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[Any]:
        """Return a vector for each text."""
        return self._request(texts, self.provider.task_passage)

    def _request(self, texts: Sequence[str], task: str) -> list[Any]:
        import openai

        # Not every compatible server knows the SDK's default, base64.
        options: dict[str, Any] = {"encoding_format": "float"}
        if self.dimension != self.provider.dimensions.get(self.name, self.dimension):
            options["dimensions"] = self.dimension
        if task:
            options["extra_body"] = {"task": task}
        with openai.OpenAI(
            api_key=self.key,
            base_url=self.base_url,
            timeout=REQUEST_SECONDS,
            max_retries=RETRIES,
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False,  # another host would get texts meant for this one
                event_hooks={"request": [lambda r: keep_needed_headers(r.headers, self.key)]},
            ),
        ) as client:
            answer = client.embeddings.create(model=self.name, input=list(texts), **options)
        return [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]


@lru_cache(maxsize=2)
def table_encoder(folder: str) -> TableEncoder:
    """Return the encoder of the table in `folder`. Raises EmbeddingError for a damaged one."""
    from codeqa.embeddings.table import TableEncoder, load_weights

    return TableEncoder(load_weights(folder))


def shipped_encoder() -> TableEncoder | None:
    """Return the encoder of the shipped table; None where it was not installed."""
    return table_encoder(str(SHIPPED)) if (SHIPPED / "manifest.json").is_file() else None


def question_matcher(question: str) -> QuestionMatcher | None:
    """Return a matcher of `question` with single units, None without the shipped table."""
    from codeqa.embeddings.table import QuestionMatcher

    encoder = shipped_encoder()
    return QuestionMatcher(encoder, question) if encoder else None


def fast_embedding() -> Embedding | None:
    """Return the embedding of the first pass, the shipped table; None where there is none."""
    encoder = shipped_encoder()
    if encoder is None:
        return None
    name, version = encoder.weights.name, encoder.weights.version
    return Embedding(name, version, encoder.dimension, WHOLE_TEXT, encoder, name)


def chosen_embedding(settings: Settings) -> Embedding | None:
    """Return the embedding that CODEQA_EMBEDDING names, None when it is empty.

    Loads a model of this machine, and fetches it if need be. Raises SettingsError for an impossible
    name, EmbeddingError for a missing key, package or model.
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
    host, key_variable = settings.embedding, f"{provider.upper().replace('-', '_')}_API_KEY"
    function: Any
    if provider in PROVIDERS:
        function = _hosted_model(settings, provider, name)
        dimension = function.dimension
        host = f"{function.provider.title} ({urlsplit(function.base_url).netloc})"
    elif model := local_model(settings.embedding):
        function = LocalModel(model)
        dimension = dimension or len(function.compute_query_embeddings("dimension")[0])
    else:
        from lancedb.embeddings import get_registry

        try:
            kind: Any = get_registry().get(provider)
            function = kind.create(name=name) if "name" in kind.model_fields else kind.create()
            dimension = dimension or int(function.ndims())
            version = str(getattr(function, "version", version))
        except (NotImplementedError, TypeError) as error:
            raise _unknown_dimension(settings.embedding) from error
        except Exception as error:
            raise explain_failure(error, host, key_variable) from error
    tokens = settings.embedding_tokens
    return Embedding(settings.embedding, version, dimension, tokens, function, host, key_variable)


def query_embedding(settings: Settings, name: str) -> Embedding | None:
    """Return the embedding called `name` if it is the fast or the chosen one."""
    if settings.embedding == name:
        return chosen_embedding(settings)
    fast = fast_embedding()
    return fast if fast is not None and fast.name == name else None


def _hosted_model(settings: Settings, alias: str, name: str) -> HostedModel:
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


def _unknown_dimension(name: str) -> SettingsError:
    return SettingsError(f"The dimension of {name} is unknown.", "Set CODEQA_EMBEDDING_DIMENSION.")


def is_hosted(setting: str) -> bool:
    """Return whether texts are sent to a provider with this CODEQA_EMBEDDING."""
    return "/" in setting and not local_model(setting)


def local_model(setting: str) -> str:
    """Return the name or folder of the model on this machine that CODEQA_EMBEDDING names; else ''.

    It begins with no provider's name, or with `huggingface/` or `sentence-transformers/`.
    """
    provider, _, name = setting.partition("/")
    if not name or provider in PROVIDERS:
        return ""
    from lancedb.embeddings import get_registry

    if provider == "huggingface" or (provider in BY_PYTORCH and "/" in name):
        return name
    hosted = set(get_registry()._functions).difference(BY_PYTORCH)
    return "" if provider in hosted else setting
