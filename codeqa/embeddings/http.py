"""An embedding function for servers that speak OpenAI's embeddings API.

It is registered in LanceDB's registry under ALIAS, beside LanceDB's own `openai` and
`jina`. It takes their place for these two providers because it bounds the time of a
request, leaves waiting to us, tells queries from passages where the model does, and logs
no texts; LanceDB's `jina` besides reports 768 dimensions for a model that has 1,024.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from lancedb.embeddings import EmbeddingFunction

ALIAS = "codeqa-http"

REQUEST_SECONDS = 60.0
REQUEST_TOKENS = 200_000
"""Tokens (≈) per request; OpenAI refuses more than 300,000."""


def http_function() -> type[EmbeddingFunction]:
    """The class, registered on first use (LanceDB is imported then)."""
    from lancedb.embeddings import TextEmbeddingFunction, get_registry

    try:
        return get_registry().get(ALIAS)
    except KeyError:
        pass

    class OpenAICompatibleEmbeddings(TextEmbeddingFunction):
        """`task_query` and `task_passage` are sent where the model tells the two apart."""

        name: str
        dim: int
        send_dimension: bool = False
        base_url: str | None = None
        api_key: str | None = None
        task_query: str = ""
        task_passage: str = ""
        max_retries: int = 0

        @staticmethod
        def sensitive_keys() -> list[str]:
            return ["api_key"]

        def ndims(self) -> int:
            return self.dim

        def compute_query_embeddings(self, query: str, *args: Any, **kwargs: Any) -> list[Any]:
            return self._request([query], self.task_query)

        def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
            found = []
            for part in requests_of(texts):
                found.extend(self._request(part, self.task_passage))
            return found

        def _request(self, texts: Sequence[str], task: str) -> list[Any]:
            options: dict[str, Any] = {}
            if self.send_dimension:
                options["dimensions"] = self.dim
            if task:
                options["extra_body"] = {"task": task}
            if self.base_url:
                # Not every compatible server knows the packed form that is the default.
                options["encoding_format"] = "float"
            with self._client() as client:
                answer = client.embeddings.create(model=self.name, input=list(texts), **options)
            rows = sorted(answer.data, key=lambda row: row.index)
            return [row.embedding for row in rows]

        def _client(self) -> Any:
            import openai

            return openai.OpenAI(
                api_key=self.api_key,
                base_url=self.base_url,
                timeout=REQUEST_SECONDS,
                max_retries=0,
            )

    register = get_registry().register(ALIAS)
    return register(OpenAICompatibleEmbeddings)  # type: ignore[no-any-return]


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
