"""Rerank with a model on this machine or of a provider, and choose the reranker of the setting.

`CODEQA_RERANKER` is `auto`, `built-in` or names a model: docs/models.md has the table. Models that
fastembed lists run on ONNX Runtime, checkpoints of PyTorch through `rerankers`. Cohere and Jina
are asked only once chosen; redirects are not followed, since the request holds code, and the reply
holds no texts. Each model has bounded candidates, bounded time and half of the score; a failure
becomes a warning, and the built-in reranker takes over.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from codeqa.embeddings.local import (
    INSTALL,
    ModelFiles,
    listed,
    missing_extra,
    read_at_most,
)
from codeqa.errors import CodeQAError, RerankerError, UsageError
from codeqa.hosts import leads_here, normal_address
from codeqa.llm.loop import within
from codeqa.repository.secrets import mask_secrets
from codeqa.search.query import Query
from codeqa.search.ranking import role_penalties
from codeqa.search.rerank import (
    BUILT_IN,
    MOST_RERANKED,
    Reranked,
    Reranker,
    ordered,
    rerank_built_in,
)
from codeqa.settings import Settings
from codeqa.types import Hit, Unit

AUTO = "auto"
PASSAGE_CHARACTERS = 2_000
"""Characters of a unit that a model gets: models of this size read fewer tokens."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""

DEFAULT_MODEL = "answerdotai/answerai-colbert-small-v1"
"""33 million parameters, 96 dimensions a token, made for the CPU."""
DOWNLOAD_COMMAND = f"CODEQA_RERANKER={DEFAULT_MODEL} codeqa serve"
PYTORCH = "rerankers"
"""Prefix of a setting that names a checkpoint of PyTorch."""
PYTORCH_COMMAND = (
    f'{sys.executable} -m pip install "rerankers[transformers]==0.10.0" "transformers<5"'
)
"""With transformers 5 the class for ColBERT of rerankers 0.10.0 cannot be loaded."""
INSTALL_PYTORCH = f"Install what it needs: {PYTORCH_COMMAND}"
NO_PYTORCH = "cannot be used: PyTorch and transformers are not installed."
TRANSFORMERS_5 = "cannot be used: rerankers does not run with transformers 5."
COLBERT = "colbert"
"""A checkpoint with this in its name is loaded as a ColBERT model."""
MOST_RERANKED_HERE = 20
"""Hits that a local model reads: half a second on two cores for 384 dimensions and 12 layers."""
PASSAGES_AT_ONCE = 5
"""Texts scored together: each is padded to the longest, and all 20 are no faster on a CPU."""
PASSAGE_TOKENS = 128
"""Tokens read of each hit: path, name, signature, comment and first lines. 256 take three times as
long."""
LOCAL_SECONDS = 15.0
"""Seconds that one request waits for the model, loading included."""

RERANK_URLS = {"cohere": "https://api.cohere.ai/v1", "jina": "https://api.jina.ai/v1"}
"""Provider → the base address of its API; all have the same API."""
HOSTED_SECONDS = 5.0
"""Seconds for the whole request; both usually answer fifty texts within one."""

_log = logging.getLogger(__name__)


Score = Callable[[str, Sequence[str]], Sequence[float]]
"""Question and texts → the score of each text, in their order."""


@dataclass(frozen=True, slots=True)
class ModelReranker:
    """Orders the first `candidates` hits by half their own score and half the model's.

    `score` gets `seconds` to answer.
    """

    name: str
    score: Score
    candidates: int
    seconds: float
    host: str = ""
    """Host that the code is sent to, for a warning; '' if it stays on this machine."""

    @property
    def place(self) -> str:
        """Name and host, for messages that must say where code may have been sent."""
        return f"{self.name} at {self.host}" if self.host else self.name

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """Reorder `hits`, as a Reranker does.

        Raises RerankerError when the model fails, is too slow or gives no usable score.
        """
        if not hits or not query.text:
            return Reranked(list(hits), self.name if hits else "")
        head = hits[: self.candidates]
        texts = [document(hit.unit) for hit in head]
        try:
            scores = within(self.seconds, lambda: self.score(query.text, texts))
            if len(scores) < len(head) or not all(map(math.isfinite, scores)):
                raise ValueError
        except RerankerError:
            raise
        except Exception as error:  # third-party code; its text may hold the question or the code
            failure = f"failed ({type(error).__name__})"
            if isinstance(error, TimeoutError):
                failure = f"did not answer within {self.seconds:g} seconds"
            hint = "Ask again in a moment, or set CODEQA_RERANKER=built-in."
            raise RerankerError(f"{self.place} {failure}.", hint) from None
        # A model's scores lie close together or on a scale of its own: spread them over 0..1 and
        # penalise tests and the like as in the first stage.
        low, high, best = min(scores), max(scores), max(hit.score for hit in head)
        rescored = []
        for hit, score in zip(head, scores, strict=True):
            relevance = (score - low) / (high - low) if high > low else 1.0
            for factor, _ in role_penalties(hit.unit, query):
                relevance *= factor
            mean = MODEL_SHARE * relevance * best + (1 - MODEL_SHARE) * hit.score
            why = hit.why + (f"reranked by {self.name}: {score:.2f}",)
            rescored.append(replace(hit, score=mean, why=why))
        warnings: tuple[str, ...] = ()
        if self.host:
            count = f"{len(head)} piece{'s' if len(head) > 1 else ''} of code"
            warnings = (f"The question and {count} were sent to {self.host} to be ordered.",)
        return Reranked(ordered(rescored, hits[len(head) :]), self.name, warnings)


def document(unit: Unit) -> str:
    """Return the text of a unit for a model: path, name and the beginning of its code."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:PASSAGE_CHARACTERS]


# On this machine


_loading = threading.Lock()


def local_reranker(model: str, load: Callable[[str], Score]) -> ModelReranker:
    """Return a reranker by `model`, which `load` loads with the first question and caches."""

    def score(question: str, texts: Sequence[str]) -> Sequence[float]:
        with _loading:  # once for all requests that come meanwhile
            score_texts = load(model)
        return score_texts(question, texts)

    return ModelReranker(model, score, MOST_RERANKED_HERE, LOCAL_SECONDS)


def _listed(model: str) -> tuple[Any, dict[str, Any]]:
    """Return fastembed's class for a model, and its description there.

    Raises RerankerError for a model that fastembed does not list.
    """
    from fastembed import LateInteractionTextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    for kind in (LateInteractionTextEmbedding, TextCrossEncoder):
        if description := listed(kind, model):
            return kind, description
    raise RerankerError(
        f"fastembed lists no reranker called {model!r} (CODEQA_RERANKER).",
        f"Choose one in docs/models.md, or write a checkpoint of PyTorch as `{PYTORCH}/…`.",
    )


def _files(model: str) -> ModelFiles:
    return ModelFiles(model, "CODEQA_RERANKER", RerankerError)


@cache
def load_onnx(model: str) -> Score:
    """Load a ColBERT model or a cross-encoder of fastembed's list, downloaded if it is missing.

    Raises RerankerError where that fails.
    """
    if problem := missing_extra():
        raise RerankerError(f"{model} cannot be used: {problem}.", INSTALL)
    kind, description = _listed(model)
    folder = _files(model).here(description) or _files(model).fetch(description)
    encoder = kind(description["model"], specific_model_path=str(folder))
    read_at_most(PASSAGE_TOKENS, encoder)
    if hasattr(kind, "rerank"):
        return lambda question, texts: list(
            encoder.rerank(question, texts, batch_size=PASSAGES_AT_ONCE)
        )
    return partial(_late_interaction, encoder)


def _late_interaction(model: Any, question: str, texts: Sequence[str]) -> list[float]:
    """Return the mean, over the question's tokens, of the cosine of the text's nearest token.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, sum it: the same order, on a scale of its own.
    """
    import numpy as np

    (question_tokens,) = model.query_embed(question)
    question_tokens /= np.linalg.norm(question_tokens, axis=1, keepdims=True)
    token_lists = model.embed(texts, batch_size=PASSAGES_AT_ONCE)
    return [float((question_tokens @ tokens.T).max(axis=1).mean()) for tokens in token_lists]


@cache
def load_pytorch(model: str) -> Score:
    """Load a checkpoint with the classes of `rerankers`.

    Not with its factory, which prints and returns nothing when something is missing, and takes
    some names for hosted models.
    """
    from rerankers.models import AVAILABLE_RANKERS

    kind = "ColBERTRanker" if COLBERT in model.lower() else "TransformerRanker"
    if kind not in AVAILABLE_RANKERS:
        raise RerankerError(f"{model} {NO_PYTORCH}", INSTALL_PYTORCH)
    try:
        ranker = AVAILABLE_RANKERS[kind](model, verbose=0)
    except AttributeError as error:
        if "all_tied_weights_keys" not in str(error):
            raise
        raise RerankerError(f"{model} {TRANSFORMERS_5}", INSTALL_PYTORCH) from None

    def score(question: str, texts: Sequence[str]) -> list[float]:
        ranked = ranker.rank(question, list(texts), doc_ids=list(range(len(texts))))
        by_index = {result.document.doc_id: float(result.score) for result in ranked.results}
        return [by_index[index] for index in range(len(texts))]

    return score


# By a provider


def hosted_reranker(settings: Settings, provider: str, model: str) -> ModelReranker:
    """Return a reranker by a provider in RERANK_URLS, with key and address from the settings.

    It sends the question and the beginning of each hit, secret-looking strings masked. Raises
    CodeQAError for a missing setting; sends nothing yet.
    """
    base_url: str = getattr(settings, f"{provider}_base_url")
    key: str = getattr(settings, f"{provider}_api_key").get_secret_value().strip()
    alias = provider.upper()
    if not key and not base_url:
        raise RerankerError(
            f"{provider.capitalize()} was chosen as reranker, but {alias}_API_KEY is not set.",
            f"Set {alias}_API_KEY, or CODEQA_RERANKER=built-in.",
        )
    try:
        url = normal_address(base_url or RERANK_URLS[provider]).removesuffix("/rerank") + "/rerank"
    except UsageError as error:
        raise RerankerError(f"{alias}_BASE_URL is not a valid address.", error.hint) from None

    def score(question: str, texts: Sequence[str]) -> list[float]:
        import httpx2

        body = {
            "model": model,
            "query": mask_secrets(question),
            "documents": list(map(mask_secrets, texts)),
            "top_n": len(texts),
            "return_documents": False,
        }
        headers = {"user-agent": "codeqa"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        # The network's proxy cannot reach a server on this machine. The caller stops waiting after
        # HOSTED_SECONDS; the request itself ends soon after.
        client = httpx2.Client(timeout=HOSTED_SECONDS + 1, trust_env=not leads_here(url))
        with client:
            response = client.post(url, json=body, headers=headers)
        if response.status_code != 200:
            raise RerankerError(
                f"{urlsplit(url).netloc} did not rerank (status {response.status_code}).",
                f"Check CODEQA_RERANKER, {alias}_API_KEY and {alias}_BASE_URL.",
            )
        results = response.json()["results"]
        by_index = {result["index"]: float(result["relevance_score"]) for result in results}
        return [by_index[index] for index in range(len(texts))]

    host = "" if leads_here(url) else urlsplit(url).netloc
    return ModelReranker(f"{provider}/{model}", score, MOST_RERANKED, HOSTED_SECONDS, host)


# The choice


class RerankerStatus(NamedTuple):
    """State of the reranker: is that of the setting usable, which one is used, what helps."""

    usable: bool
    text: str
    hint: str = ""


def _chosen(settings: Settings) -> ModelReranker | None:
    """Return the reranker of the setting; None for the built-in one.

    Raises CodeQAError where a provider's key or address is missing.
    """
    setting = settings.reranker.strip() or AUTO
    provider, _, model = setting.partition("/")
    if provider in RERANK_URLS:
        return hosted_reranker(settings, provider, model)
    if provider == PYTORCH:
        return local_reranker(model, load_pytorch)
    if setting == AUTO and _default_is_here():
        return local_reranker(DEFAULT_MODEL, load_onnx)
    return None if setting in (AUTO, BUILT_IN) else local_reranker(setting, load_onnx)


def choose_reranker(settings: Settings) -> Reranker:
    """Return the reranker of the setting, which falls back to the built-in one where it fails.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """

    def rerank(hits: Sequence[Hit], query: Query) -> Reranked:
        try:
            reranker = _chosen(settings)
            return reranker.rerank(hits, query) if reranker else rerank_built_in(hits, query)
        except CodeQAError as error:
            _log.info("The built-in reranker is used: %s", error)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(rerank_built_in(hits, query), warnings=(warning,))

    return rerank


def reranker_status(settings: Settings) -> RerankerStatus:
    """Return the status without loading a model or using the network."""
    try:
        return _status_of(settings.reranker.strip() or AUTO, _chosen(settings))
    except CodeQAError as error:
        return RerankerStatus(False, error.message, error.hint)


def _status_of(setting: str, reranker: ModelReranker | None) -> RerankerStatus:
    """Return the status of the `reranker` of a setting, None for the built-in one.

    Raises RerankerError as `_listed` does.
    """
    problem = missing_extra()
    if reranker is None and setting != AUTO:
        return RerankerStatus(True, BUILT_IN)
    if reranker is None:
        rest = f"is not used: {problem}. {INSTALL}"
        if not problem:
            rest = f"is used as soon as it is on this machine: {DOWNLOAD_COMMAND}"
        return RerankerStatus(True, f"{BUILT_IN}; {DEFAULT_MODEL} {rest}")
    kind = setting.partition("/")[0]
    if kind == PYTORCH and (pytorch_problem := _pytorch_problem(reranker.name)):
        return RerankerStatus(False, f"{reranker.name} {pytorch_problem}", INSTALL_PYTORCH)
    if reranker.host:
        rest = f"; a reranked question sends itself and up to {MOST_RERANKED} pieces of code there"
        return RerankerStatus(True, reranker.place + rest)
    if kind == PYTORCH or kind in RERANK_URLS:
        return RerankerStatus(True, reranker.place)
    if problem:
        return RerankerStatus(False, f"{setting} cannot be used: {problem}.", INSTALL)
    here = setting == AUTO or _files(setting).here(_listed(setting)[1])
    rest = "" if here else ", downloaded from the model hub when first used"
    return RerankerStatus(True, f"{reranker.name}{rest}")


def _pytorch_problem(model: str) -> str:
    if not (find_spec("torch") and find_spec("transformers")):
        return NO_PYTORCH
    major = int(version("transformers").partition(".")[0])
    return TRANSFORMERS_5 if major >= 5 and COLBERT in model.lower() else ""


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else _files(DEFAULT_MODEL).here({})
    return folder is not None and (folder / "vespa_colbert.onnx").is_file()
