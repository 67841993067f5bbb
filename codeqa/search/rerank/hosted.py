"""Rerankers behind an API, Cohere's and Jina's: asked only once one is chosen.

A redirect is not followed with the code in hand, an answer is bounded before it is read, and no
text is asked for back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from codeqa.errors import RerankerError, UsageError
from codeqa.llm.choice import leads_here, normal_address
from codeqa.repository.secrets import mask_secrets
from codeqa.search.query import Query
from codeqa.search.rerank.model import ModelReranker
from codeqa.search.rerank.reranker import CANDIDATES, document
from codeqa.settings import Settings
from codeqa.types import Hit

SECONDS = 5.0
"""For the whole request; both usually answer fifty texts within one."""
ANSWER_BYTES = 1_000_000
"""Longest answer that is read: fifty numbers take a few thousand."""


@dataclass(frozen=True, slots=True)
class RerankProvider:
    """A provider of rerankers, by its name in the setting."""

    name: str
    url: str
    """Base address of its API."""
    example: str

    @property
    def title(self) -> str:
        return self.name.capitalize()

    @property
    def key_variable(self) -> str:
        return f"{self.name.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        return f"{self.name.upper()}_BASE_URL"

    @property
    def another_try(self) -> str:
        return f"Ask again, check {self.url_variable}, or set CODEQA_RERANKER=built-in."


RERANK_PROVIDERS = {
    one.name: one
    for one in (
        RerankProvider("cohere", "https://api.cohere.ai/v1", "rerank-v3.5"),
        RerankProvider("jina", "https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"),
    )
}
"""Both speak the same API."""

_REFUSALS = (
    ((401, 403), "does not accept the key for {0.title}.", "Correct {0.key_variable}."),
    ((402,), "wants to be paid first.", "{0.another_try}"),
    ((429,), "takes no more requests for now.", "Ask again in a minute."),
    (
        range(300, 400),
        "sends the request on to another address, which is not followed.",
        "Set {0.url_variable} to the address of the API itself.",
    ),
    (
        range(400, 500),
        "refused to rerank with {model} (status {status}).",
        "Correct the model in CODEQA_RERANKER, as in `{0.name}/{0.example}`.",
    ),
    (range(1_000), "failed (status {status}).", "{0.another_try}"),
)
"""Statuses, what the host does, and what to do next; {0} is the provider. The first counts."""

_MODEL = re.compile(r"[\w.:-]+(?:/[\w.:-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HostedModel:
    """Scores hits by asking `model` of a provider; `url` is the whole address."""

    provider: RerankProvider
    model: str
    url: str
    key: str = field(repr=False)
    """'' for a server that wants none."""
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        return f"{self.provider.name}/{self.model}"

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
        sent = f"a reranked question sends itself and up to {CANDIDATES} pieces of code there"
        return f"{self.name} at {self.host}" + (
            ", on this machine" if self.is_here else f"; {sent}"
        )

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
            for result in answer["results"]:
                place = result["index"]
                if not 0 <= place < len(hits):
                    raise IndexError
                scores[place] = float(result["relevance_score"])
        except (KeyError, TypeError, IndexError, ValueError):
            raise self._no_ranking() from None
        return scores

    def _post(self, payload: dict[str, Any]) -> Any:
        """The JSON that the host answers. Raises RerankerError for anything else."""
        import httpx2

        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "codeqa",
        }
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
            return json.loads(body)
        except httpx2.TimeoutException:
            raise self._error(f"did not answer within {self.seconds:g} seconds.") from None
        except httpx2.HTTPError:
            raise self._error("cannot be reached.") from None
        except ValueError:
            raise self._no_ranking() from None

    def _no_ranking(self) -> RerankerError:
        return self._error("answered with something that is no ranking.")

    def _refusal(self, status: int) -> RerankerError:
        message, hint = next((said, hint) for of, said, hint in _REFUSALS if status in of)
        return self._error(message, hint, status)

    def _error(self, message: str, hint: str = "{0.another_try}", status: int = 0) -> RerankerError:
        return RerankerError(
            f"{self.host} {message.format(self.provider, model=self.model, status=status)}",
            hint.format(self.provider),
        )


def hosted_model(settings: Settings, provider: str, model: str) -> HostedModel:
    """The model of a provider in RERANK_PROVIDERS, with key and address from the settings.

    Raises RerankerError that says what is missing; sends nothing.
    """
    known = RERANK_PROVIDERS[provider]
    given: str = getattr(settings, f"{provider}_base_url")
    key: str = getattr(settings, f"{provider}_api_key").get_secret_value().strip()
    if not _MODEL.fullmatch(model):
        raise RerankerError(
            f"CODEQA_RERANKER={f'{provider}/{model}'!r} names no model.",
            f"Write it as in `{provider}/{known.example}`.",
        )
    if not key and not given:
        raise RerankerError(
            f"{known.title} was chosen as reranker, but {known.key_variable} is not set.",
            f"Set {known.key_variable}, or CODEQA_RERANKER=built-in.",
        )
    if not key.isascii() or not key.isprintable():
        raise RerankerError(
            f"{known.key_variable} holds characters that no key has.", "Copy the key again."
        )
    try:
        base = normal_address(given or known.url)
    except UsageError as error:
        raise RerankerError(f"{known.url_variable} is no address of an API.", error.hint) from None
    return HostedModel(known, model, f"{base.removesuffix('/rerank')}/rerank", key)


@cache
def hosted_reranker(model: HostedModel) -> ModelReranker:
    """`model` as a reranker; every answer's warning says where code was sent."""
    host = "" if model.is_here else model.host
    return ModelReranker(model.name, model.scores, seconds=model.seconds, host=host)
