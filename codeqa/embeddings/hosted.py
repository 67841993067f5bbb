"""Embeddings of providers that speak OpenAI's API.

The adapter is ours and not LanceDB's, because it bounds the time of a request, tells questions
from passages where the model does, sends nothing but what is needed and logs no texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from codeqa.hosts import keep_needed_headers
from codeqa.text.tokens import estimate_tokens

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
        task = self.provider.task_passage
        return [vector for part in requests_of(texts) for vector in self._request(part, task)]

    def _request(self, texts: Sequence[str], task: str) -> list[Any]:
        import openai

        options: dict[str, Any] = {}
        if self.base_url != PROVIDERS["openai"].url:
            # Not every compatible server knows the packed form that is the default.
            options["encoding_format"] = "float"
        usual = self.dimension == self.provider.dimensions.get(self.name)
        if not usual and self.name.startswith(self.provider.shortens):
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
                event_hooks={"request": [self._bare]},
            ),
        ) as client:
            answer = client.embeddings.create(model=self.name, input=list(texts), **options)
        return [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]

    def _bare(self, request: Any) -> None:
        keep_needed_headers(request.headers, self.key)


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
