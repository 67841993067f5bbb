"""Rerankers behind an API, Cohere's and Jina's: asked only once one is chosen.

A redirect is not followed with the code in hand, and no text is asked for back. (The client in
`rerankers` does neither and waits without end.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class RerankProvider:
    """A provider of rerankers: its API's base address, and one of its models. All speak one API."""

    url: str
    example: str


RERANK_PROVIDERS = {
    "cohere": RerankProvider("https://api.cohere.ai/v1", "rerank-v3.5"),
    "jina": RerankProvider("https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"),
}

_MODEL = re.compile(r"[\w.:-]+(?:/[\w.:-]+)*", re.ASCII)


def hosted_reranker(settings: Settings, provider: str, model: str) -> ModelReranker:
    """The model of a provider in RERANK_PROVIDERS, with key and address from the settings.

    The question and the beginning of each hit are sent, secret-looking strings masked. Raises
    RerankerError that says what is missing; sends nothing yet.
    """
    known = RERANK_PROVIDERS[provider]
    key_variable, url_variable = f"{provider.upper()}_API_KEY", f"{provider.upper()}_BASE_URL"
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
        url = normal_address(given or known.url).removesuffix("/rerank") + "/rerank"
    except UsageError as error:
        raise RerankerError(f"{url_variable} is no address of an API.", error.hint) from None
    host = urlsplit(url).netloc

    def failed(said: str) -> RerankerError:
        checks = f"CODEQA_RERANKER, {key_variable} and {url_variable}"
        return RerankerError(f"{host} {said}", f"Ask again, or check {checks}.")

    def scores(hits: Sequence[Hit], query: Query) -> list[float | None]:
        import httpx2

        body = {
            "model": model,
            "query": mask_secrets(query.text),
            "documents": [mask_secrets(document(hit.unit)) for hit in hits],
            "top_n": len(hits),
            "return_documents": False,
        }
        headers = {"user-agent": "codeqa"} | ({"authorization": f"Bearer {key}"} if key else {})
        # A proxy for the network has no way to a server on this machine. Whoever waits gives up
        # after SECONDS; the request itself ends soon after.
        client = httpx2.Client(timeout=SECONDS + 1, trust_env=not leads_here(url))
        try:
            with client:
                response = client.post(url, json=body, headers=headers)
        except httpx2.HTTPError:
            raise failed("cannot be reached.") from None
        if response.status_code != 200:
            raise failed(f"did not rerank with {model} (status {response.status_code}).")
        found: list[float | None] = [None] * len(hits)
        try:
            for result in response.json()["results"]:
                place = range(len(hits)).index(result["index"])
                found[place] = float(result["relevance_score"])
        except (KeyError, TypeError, ValueError):
            raise failed("answered with something that is no ranking.") from None
        return found

    # Every answer's warning says where code was sent.
    shown = "" if leads_here(url) else host
    return ModelReranker(f"{provider}/{model}", scores, CANDIDATES, SECONDS, shown)
