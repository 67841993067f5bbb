"""Providers that speak OpenAI's embeddings API, and their function in LanceDB's registry.

It stands there under ALIAS, beside LanceDB's own `openai` and `jina`. It takes their place for
these two because it bounds the time of a request, tells queries from passages where the model
does, and logs no texts; LanceDB's `jina` besides reports 768 dimensions for a model of 1,024.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codeqa.hosts import keep_needed_headers
from codeqa.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from lancedb.embeddings import EmbeddingFunction

ALIAS = "codeqa-http"
RETRIES = 3
"""Further tries of the SDK, which waits for as long as a provider asks, two minutes at most."""
REQUEST_SECONDS = 60.0
REQUEST_TOKENS = 200_000
"""Tokens (≈) per request; OpenAI refuses more than 300,000."""


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """A provider that speaks OpenAI's API; `dimensions` are of its known models."""

    title: str
    key_variable: str
    url: str
    dimensions: dict[str, int]
    shortens: tuple[str, ...] = ()
    """Beginnings of the names of models that give shorter vectors on request."""
    task_query: str = ""
    """What models that tell questions from passages are told, '' for none."""
    task_passage: str = ""


PROVIDERS = {
    "openai": EmbeddingProvider(
        "OpenAI",
        "OPENAI_API_KEY",
        "https://api.openai.com/v1",
        {
            "text-embedding-3-large": 3072,
            "text-embedding-3-small": 1536,
            "text-embedding-ada-002": 1536,
        },
        ("text-embedding-3",),
    ),
    "jina": EmbeddingProvider(
        "Jina",
        "JINA_API_KEY",
        "https://api.jina.ai/v1",
        {"jina-embeddings-v3": 1024, "jina-embeddings-v2-base-code": 768},
        ("jina-embeddings-v3",),
        "retrieval.query",
        "retrieval.passage",
    ),
}


def define_hosted() -> type[EmbeddingFunction]:
    """The class of such embeddings."""
    from lancedb.embeddings import TextEmbeddingFunction
    from pydantic import PrivateAttr

    class OpenAICompatibleEmbeddings(TextEmbeddingFunction):
        """One model of one of PROVIDERS."""

        provider: str
        name: str
        dim: int
        base_url: str
        max_retries: int = 0
        # No field, so that it ends up in no table's metadata.
        _key: str = PrivateAttr("")

        def with_key(self, key: str) -> Any:
            self._key = key
            return self

        def ndims(self) -> int:
            return self.dim

        def compute_query_embeddings(self, query: str, *args: Any, **kwargs: Any) -> list[Any]:
            return self._request([query], PROVIDERS[self.provider].task_query)

        def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
            task = PROVIDERS[self.provider].task_passage
            return [vector for part in requests_of(texts) for vector in self._request(part, task)]

        def _request(self, texts: Sequence[str], task: str) -> list[Any]:
            import openai

            options: dict[str, Any] = {}
            if self.base_url != PROVIDERS["openai"].url:
                # Not every compatible server knows the packed form that is the default.
                options["encoding_format"] = "float"
            provider = PROVIDERS[self.provider]
            usual = self.dim == provider.dimensions.get(self.name)
            if not usual and self.name.startswith(provider.shortens):
                options["dimensions"] = self.dim
            if task:
                options["extra_body"] = {"task": task}

            def bare(request: Any) -> None:
                keep_needed_headers(request.headers, self._key)

            with openai.OpenAI(
                api_key=self._key,
                base_url=self.base_url,
                timeout=REQUEST_SECONDS,
                max_retries=RETRIES,
                http_client=openai.DefaultHttpxClient(
                    follow_redirects=False,  # another host would get texts meant for this one
                    event_hooks={"request": [bare]},
                ),
            ) as client:
                answer = client.embeddings.create(model=self.name, input=list(texts), **options)
            return [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]

    return OpenAICompatibleEmbeddings


def requests_of(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split `texts` so that each part stays within REQUEST_TOKENS."""
    part: list[str] = []
    used = 0
    for text in texts:
        tokens = estimate_tokens(text)
        if part and used + tokens > REQUEST_TOKENS:
            yield part
            part, used = [], 0
        part.append(text)
        used += tokens
    if part:
        yield part
