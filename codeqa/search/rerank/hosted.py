"""Rerankers behind an API, Cohere's and Jina's: asked only once one is chosen.

A redirect is not followed with the code in hand, an answer is bounded before it is read, and no
text is asked for back. (The client in `rerankers` does none of this and waits without end.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from codeqa.errors import RerankerError, UsageError
from codeqa.hosts import leads_here, normal_address
from codeqa.repository.secrets import mask_secrets
from codeqa.search.query import Query
from codeqa.search.rerank.reranker import CANDIDATES, ModelReranker, document
from codeqa.settings import Settings
from codeqa.types import Hit

SECONDS = 5.0
"""For the whole request; both usually answer fifty texts within one."""
ANSWER_BYTES = 1_000_000
"""Longest answer that is read: fifty numbers take a few thousand."""


@dataclass(frozen=True, slots=True)
class RerankProvider:
    """A provider of rerankers. All speak one API."""

    url: str
    """Base address of its API."""
    example: str
    """One of its models."""


RERANK_PROVIDERS = {
    "cohere": RerankProvider("https://api.cohere.ai/v1", "rerank-v3.5"),
    "jina": RerankProvider("https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"),
}

_MODEL = re.compile(r"[\w.:-]+(?:/[\w.:-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HostedModel:
    """Scores hits by asking a model of a provider."""

    provider: str
    model: str
    url: str
    """The whole address."""
    key: str = field(repr=False)
    """'' for a server that wants none."""
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def is_here(self) -> bool:
        """Whether the address leads to this machine."""
        return leads_here(self.url)

    @property
    def place(self) -> str:
        """What is asked where, and what is sent there."""
        sent = f"; a reranked question sends itself and up to {CANDIDATES} pieces of code there"
        return f"{self.name} at {self.host}{', on this machine' if self.is_here else sent}"

    def reranker(self) -> ModelReranker:
        """As a reranker; every answer's warning says where code was sent."""
        host = "" if self.is_here else self.host
        return ModelReranker(self.name, self.scores, CANDIDATES, self.seconds, host)

    def scores(self, hits: Sequence[Hit], query: Query) -> list[float | None]:
        """Scores as the provider gives them, None for a hit that it leaves out.

        The question and the beginning of each hit are sent, secret-looking strings masked.
        Raises RerankerError that says what the host did instead.
        """
        answer = self._post(
            {
                "model": self.model,
                "query": mask_secrets(query.text),
                "documents": [mask_secrets(document(hit.unit)) for hit in hits],
                "top_n": len(hits),
                "return_documents": False,
            }
        )
        scores: list[float | None] = [None] * len(hits)
        try:
            for result in json.loads(answer)["results"]:
                place = range(len(hits)).index(result["index"])
                scores[place] = float(result["relevance_score"])
        except (KeyError, TypeError, ValueError):
            raise self._no_ranking() from None
        return scores

    def _post(self, payload: dict[str, Any]) -> bytes:
        """What the host answers. Raises RerankerError for a refusal, or none in time."""
        import httpx2

        headers = {"accept-encoding": "identity", "user-agent": "codeqa"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        # A proxy for the network has no way to a server on this machine.
        client = httpx2.Client(timeout=self.seconds, trust_env=not self.is_here)
        body = b""
        try:
            with (
                client,
                client.stream("POST", self.url, json=payload, headers=headers) as response,
            ):
                if response.status_code != 200:
                    raise self._refusal(response.status_code)
                for portion in response.iter_raw():  # packed by nobody's wish, it is no JSON
                    body += portion
                    if len(body) > ANSWER_BYTES:
                        raise self._no_ranking()
        except httpx2.TimeoutException:
            raise self._error(f"did not answer within {self.seconds:g} seconds.") from None
        except httpx2.HTTPError:
            raise self._error("cannot be reached.") from None
        return body

    def _refusal(self, status: int) -> RerankerError:
        key, url = variables(self.provider)
        if status in (401, 403):
            return self._error(f"does not accept {key}.", "Correct it.")
        if status == 429:
            return self._error("takes no more requests for now.", "Ask again in a minute.")
        if 300 <= status < 400:
            return self._error(
                "sends the request on to another address, which is not followed.",
                f"Set {url} to the address of the API itself.",
            )
        return self._error(f"did not rerank with {self.model} (status {status}).")

    def _no_ranking(self) -> RerankerError:
        return self._error("answered with something that is no ranking.")

    def _error(self, said: str, hint: str = "") -> RerankerError:
        again = f"Ask again, check CODEQA_RERANKER and {variables(self.provider)[1]}."
        return RerankerError(f"{self.host} {said}", hint or again)


def variables(provider: str) -> tuple[str, str]:
    """The settings of a provider's key and of its address."""
    return f"{provider.upper()}_API_KEY", f"{provider.upper()}_BASE_URL"


def hosted_model(settings: Settings, provider: str, model: str) -> HostedModel:
    """The model of a provider in RERANK_PROVIDERS, with key and address from the settings.

    Raises RerankerError that says what is missing; sends nothing.
    """
    known, (key_variable, url_variable) = RERANK_PROVIDERS[provider], variables(provider)
    given: str = getattr(settings, f"{provider}_base_url")
    key: str = getattr(settings, f"{provider}_api_key").get_secret_value().strip()
    if not _MODEL.fullmatch(model):
        raise RerankerError(
            f"CODEQA_RERANKER={f'{provider}/{model}'!r} names no model.",
            f"Write it as in `{provider}/{known.example}`.",
        )
    if not key and not given:
        raise RerankerError(
            f"{provider.capitalize()} was chosen as reranker, but {key_variable} is not set.",
            f"Set {key_variable}, or CODEQA_RERANKER=built-in.",
        )
    if not key.isascii() or not key.isprintable():
        raise RerankerError(
            f"{key_variable} holds characters that no key has.", "Copy the key again."
        )
    try:
        base = normal_address(given or known.url)
    except UsageError as error:
        raise RerankerError(f"{url_variable} is no address of an API.", error.hint) from None
    return HostedModel(provider, model, f"{base.removesuffix('/rerank')}/rerank", key)
