"""Rerankers behind an API, Cohere's and Jina's, through `rerankers`: asked only once chosen.

The library knows what the two are sent and how they answer. Sending is done here, for it
would wait without end, follow a redirect with the code in hand, read any answer as a
ranking, and ask for every text back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codeqa.errors import RerankerError, UsageError
from codeqa.llm.address import leads_here, normal_address
from codeqa.repository.secrets import mask_secrets
from codeqa.search.blend import LanceReranker
from codeqa.search.lance import document, lance_reranker
from codeqa.search.query import Query
from codeqa.settings import Settings
from codeqa.types import Hit

if TYPE_CHECKING:
    import requests

SECONDS = 5.0
"""For the whole request; both usually answer fifty texts within one."""
ANSWER_BYTES = 1_000_000
"""Longest answer that is read: fifty numbers take a few thousand."""
PORTION = 16_384


@dataclass(frozen=True, slots=True)
class RerankProvider:
    """A provider of rerankers, by its name in the setting and in `rerankers`."""

    title: str
    url: str
    """Base address of its API."""
    example: str

    @property
    def key_variable(self) -> str:
        return f"{self.title.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        return f"{self.title.upper()}_BASE_URL"


PROVIDERS = {
    "cohere": RerankProvider("Cohere", "https://api.cohere.ai/v1", "rerank-v3.5"),
    "jina": RerankProvider("Jina", "https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"),
}


@dataclass(frozen=True, slots=True)
class HostedModel:
    """Scores hits by asking `model` of a provider; `url` is the whole address."""

    provider: str
    model: str
    url: str
    key: str = field(repr=False)
    """'' for a server that wants none."""
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def scores(self, hits: Sequence[Hit], query: Query) -> list[float | None]:
        """Scores as the provider gives them, None for a hit that it leaves out.

        The question and the beginning of each hit are sent, secret-looking strings masked.
        Raises RerankerError that says what the host did instead.
        """
        texts = [mask_secrets(document(hit.unit)) for hit in hits]
        ranked = _ranker_class()(self).rank(mask_secrets(query.text), texts)
        scores: list[float | None] = [None] * len(texts)
        for result in ranked.results:
            scores[result.document.doc_id] = result.score
        return scores


def hosted_model(settings: Settings, provider: str, model: str) -> HostedModel:
    """The model of a provider in PROVIDERS, with key and address from the settings.

    Sends nothing. Raises RerankerError when the key is missing or the address is none.
    """
    known = PROVIDERS[provider]
    cohere = provider == "cohere"
    given = settings.cohere_base_url if cohere else settings.jina_base_url
    secret = settings.cohere_api_key if cohere else settings.jina_api_key
    key = secret.get_secret_value().strip()
    if not model:
        raise RerankerError(
            f"CODEQA_RERANKER={provider}/ names no model.",
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
    return HostedModel(provider, model, f"{base.removesuffix('/rerank')}/rerank", key)


@cache
def hosted_reranker(model: HostedModel) -> LanceReranker:
    """`model` through LanceDB's interface; every answer's notice says where code was sent."""
    _ranker_class()  # the first import takes its time, which is not the host's
    host = "" if leads_here(model.url) else model.host
    ranker = lance_reranker(model.name, model.scores)
    return LanceReranker(ranker, seconds=model.seconds, host=host)


@cache
def _ranker_class() -> Any:
    """The class, made on first use: `rerankers` and `requests` are imported then."""
    from rerankers.models.api_rankers import APIRanker
    from rerankers.results import RankedResults
    from rerankers.utils import prep_docs

    class BoundedRanker(APIRanker):  # type: ignore[misc]
        """The library's ranker, but for how it is sent and what counts as an answer."""

        def __init__(self, asked: HostedModel) -> None:
            super().__init__(asked.model, asked.key, asked.provider, verbose=0, url=asked.url)
            self._asked = asked

        def rank(self, query: str, docs: Sequence[str], **_: Any) -> RankedResults:
            documents = prep_docs(list(docs))
            answer = _post(self._asked, self._format_payload(query, documents))
            try:
                places = [result["index"] for result in answer["results"]]
                if not set(places) <= set(range(len(documents))):
                    raise IndexError
                results = self._parse_response(answer, documents)
                for result in results:
                    result.score = float(result.score)
                return RankedResults(results=results, query=query, has_scores=True)
            except (KeyError, TypeError, IndexError, ValueError):
                raise RerankerError(
                    f"{self._asked.host} answered with something that is no ranking.",
                    _other_hint(self._asked),
                ) from None

        def _format_payload(self, query: str, docs: list[Any]) -> str:
            payload = json.loads(super()._format_payload(query, docs))
            return json.dumps({**payload, "return_documents": False})

    return BoundedRanker


def _post(asked: HostedModel, payload: str) -> Any:
    """The JSON that the host answers. Raises RerankerError for anything else."""
    import requests

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        # By hand, for `requests` would put a key from the user's .netrc in its place.
        if asked.key:
            request.headers["Authorization"] = f"Bearer {asked.key}"
        return request

    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "codeqa",
    }
    try:
        with requests.Session() as session:
            # A proxy for the network has no way to a server on this machine.
            session.trust_env = not leads_here(asked.url)
            response = session.post(
                asked.url,
                data=payload.encode(),
                headers=headers,
                auth=sign,
                timeout=asked.seconds,
                allow_redirects=False,  # another host would get code meant for this one
                stream=True,
            )
            with response:
                if response.status_code != 200:
                    raise _refused(asked, response.status_code)
                body = b""
                for portion in response.iter_content(PORTION):
                    body += portion
                    if len(body) > ANSWER_BYTES:
                        raise ValueError
        return json.loads(body)
    except requests.Timeout:
        raise RerankerError(
            f"{asked.host} did not answer within {asked.seconds:g} seconds.", _other_hint(asked)
        ) from None
    except requests.RequestException:
        raise RerankerError(f"{asked.host} cannot be reached.", _other_hint(asked)) from None
    except ValueError:
        raise RerankerError(
            f"{asked.host} answered with something that is no ranking.", _other_hint(asked)
        ) from None


def _refused(asked: HostedModel, status: int) -> RerankerError:
    provider = PROVIDERS[asked.provider]
    if status in (401, 403):
        return RerankerError(
            f"{asked.host} does not accept the key for {provider.title}.",
            f"Correct {provider.key_variable}.",
        )
    if status == 402:
        return RerankerError(f"{asked.host} wants to be paid first.", _other_hint(asked))
    if status == 429:
        return RerankerError(
            f"{asked.host} takes no more requests for now.", "Ask again in a minute."
        )
    if 300 <= status < 400:
        return RerankerError(
            f"{asked.host} sends the request on to another address, which is not followed.",
            f"Set {provider.url_variable} to the address of the API itself.",
        )
    if 400 <= status < 500:
        return RerankerError(
            f"{asked.host} refused to rerank with {asked.model} (status {status}).",
            f"Correct the model in CODEQA_RERANKER, as in `{asked.provider}/{provider.example}`.",
        )
    return RerankerError(f"{asked.host} failed (status {status}).", _other_hint(asked))


def _other_hint(asked: HostedModel) -> str:
    variable = PROVIDERS[asked.provider].url_variable
    return f"Ask again, check {variable}, or set CODEQA_RERANKER=built-in."
