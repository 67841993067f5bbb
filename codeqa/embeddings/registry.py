"""What the rest of the system embeds with: the fast embedding, which is the table that CodeQA
brings along (package data in `embeddings/data`), and the one that was chosen.

A chosen one is of a provider that speaks OpenAI's API, a model that runs here, or any name of
LanceDB's registry. The adapter of providers is ours and not LanceDB's, because it bounds the time
of a request, tells questions from passages where the model does, sends nothing but what is needed
and logs no texts.
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
"""The table reads of a text what its fields take; cutting it before would part the fields."""
KEPT = "What was embedded is kept; run it again to go on."
DETAIL_CHARACTERS = 200
RETRIES = 3
"""Further tries of the SDK, which waits for as long as a provider asks, two minutes at most."""
REQUEST_SECONDS = 60.0
BY_PYTORCH = ("sentence-transformers", "huggingface")
"""Providers of LanceDB's whose models run here without PyTorch."""


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
        if len(found) != count or any(vector is None for vector in found):
            raise EmbeddingError(f"{self.place} did not give {count} texts a vector each.", KEPT)
        if other := {len(vector) for vector in found} - {self.dimension}:
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
    detail = str((body.get("message") if isinstance(body, dict) else "") or error)
    detail = " ".join(detail.split())[:DETAIL_CHARACTERS].rstrip(".")
    if isinstance(error, ImportError):
        said = f"{place} needs a package that is not installed: {error.name or detail}."
        hint = "Install it into the same environment, or choose another CODEQA_EMBEDDING."
    elif status in (401, 403):  # its words may hold the key
        said, hint = f"{place} refused the key (status {status}).", f"Check {key_variable}."
    elif status is not None:
        said = f"{place} answered with status {status}: {detail}."
        hint = "Check CODEQA_EMBEDDING, its _DIMENSION and _BATCH, and the provider's base URL."
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


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """A provider that speaks OpenAI's API; `dimensions` are of its known models."""

    title: str
    key_variable: str
    url: str
    dimensions: dict[str, int]
    task_query: str = ""
    """What models that tell questions from passages are told, '' for none."""
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
        """One vector in a list."""
        return self._request([query], self.provider.task_query)

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[Any]:
        """A vector for each text."""
        return self._request(texts, self.provider.task_passage)

    def _request(self, texts: Sequence[str], task: str) -> list[Any]:
        import openai

        # Not every compatible server knows the packed form that is the default.
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
                event_hooks={
                    "request": [lambda asked: keep_needed_headers(asked.headers, self.key)]
                },
            ),
        ) as client:
            answer = client.embeddings.create(model=self.name, input=list(texts), **options)
        return [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]


@lru_cache(maxsize=2)
def table_encoder(folder: str) -> TableEncoder:
    """The encoder of the table in `folder`. Raises EmbeddingError for a damaged one."""
    from codeqa.embeddings.table import TableEncoder, load_weights

    return TableEncoder(load_weights(folder))


def shipped_encoder() -> TableEncoder | None:
    """That of the table that was installed with CodeQA; None where there is none."""
    return table_encoder(str(SHIPPED)) if (SHIPPED / "manifest.json").is_file() else None


def question_matcher(question: str) -> QuestionMatcher | None:
    """`question`, for units to be held against one by one, with the shipped table; None without
    one. Raises EmbeddingError for a damaged table."""
    from codeqa.embeddings.table import QuestionMatcher

    encoder = shipped_encoder()
    return QuestionMatcher(encoder, question) if encoder else None


def fast_embedding() -> Embedding | None:
    """The embedding of the first pass, which fills `vector` of every row: the table that was
    installed with CodeQA; None where there is none. Raises EmbeddingError for a damaged one."""
    encoder = shipped_encoder()
    if encoder is None:
        return None
    name, version = encoder.weights.name, encoder.weights.version
    return Embedding(name, version, encoder.dimension, WHOLE_TEXT, encoder, name)


def chosen_embedding(settings: Settings) -> Embedding | None:
    """The embedding that CODEQA_EMBEDDING names, None when it names none. Nothing is sent yet; a
    model that runs here is loaded, and fetched if it has to be. Raises SettingsError for a name
    that cannot be, EmbeddingError for a missing key, package or model."""
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
        from lancedb.embeddings import get_registry

        try:
            kind: Any = get_registry().get(provider)
            named = {"name": name} if "name" in kind.model_fields else {}
            function = kind.create(**named)
            dimension = dimension or int(function.ndims())
            version = str(getattr(function, "version", version))
        except (NotImplementedError, TypeError) as error:
            raise _unknown_dimension(settings.embedding) from error
        except Exception as error:
            raise explain_failure(error, place, key_variable) from error
    tokens = settings.embedding_tokens
    return Embedding(settings.embedding, version, dimension, tokens, function, place, key_variable)


def query_embedding(settings: Settings, name: str) -> Embedding | None:
    """The embedding called `name` for questions, when it is the fast or the chosen one. Raises as
    `chosen_embedding` does."""
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


def _unknown_dimension(name: str) -> SettingsError:
    return SettingsError(
        f"The dimension of {name} is not known.", "Set CODEQA_EMBEDDING_DIMENSION to it."
    )


def is_hosted(setting: str) -> bool:
    """Whether texts are sent to a provider with this CODEQA_EMBEDDING."""
    return "/" in setting and not local_model(setting)


def local_model(setting: str) -> str:
    """The model on this machine, by name or folder, that CODEQA_EMBEDDING asks for: what begins
    with no provider's name, or with `huggingface/` or `sentence-transformers/`; else ''."""
    provider, _, name = setting.partition("/")
    if not name or provider in PROVIDERS:
        return ""
    from lancedb.embeddings import get_registry

    if provider == "huggingface" or (provider in BY_PYTORCH and "/" in name):
        return name
    hosted = set(get_registry()._functions).difference(BY_PYTORCH)
    return "" if provider in hosted else setting
