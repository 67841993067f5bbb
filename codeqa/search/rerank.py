"""Reading the best hits again, more closely: built in, by a model here, or by one behind an API.

`CODEQA_RERANKER` is `auto`, `built-in` or names a model: docs/models.md has the table. What
fastembed lists runs on ONNX Runtime, checkpoints of PyTorch through `rerankers`. Cohere and Jina
are asked only once chosen; a redirect is not followed with the code in hand, and no text is asked
for back. Each has bounded candidates, bounded time and half of the say, every failure is named, and
where one cannot work the built-in one does.
"""

from __future__ import annotations

import logging
import math
import re
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
    INSTALL_COMMAND,
    ModelFiles,
    listed,
    missing_extra,
    read_at_most,
)
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import CodeQAError, EmbeddingError, RerankerError, UsageError
from codeqa.hosts import leads_here, normal_address
from codeqa.llm.loop import within
from codeqa.repository.secrets import mask_secrets
from codeqa.search.query import Query
from codeqa.search.ranking import role_penalties
from codeqa.settings import Settings
from codeqa.text.unit_text import fields_of
from codeqa.types import TEXT_KINDS, Hit, Unit, encloses

AUTO, BUILT_IN = "auto", "built-in"
CANDIDATES = 50
"""Hits that any reranker reads at most; deeper ones are rarely the answer, and each costs its
length."""

PASSAGE_WEIGHT = 0.3
"""The nearest twelve lines: what answers may be a part of a long unit, whose one vector is a
mixture of all its parts."""
LATE_WEIGHT = 0.3
"""Late interaction: every word of the question has something in the body that means it."""
USED_WEIGHT = 0.15
"""Called or named in the code of better hits: what they stand on is often what is asked for."""

READ_CHARACTERS = 20_000
"""Longest part of a unit in which names are looked for, and a little more than the table reads:
that bounds the time of one unit to about a millisecond."""

CHARACTERS = 2_000
"""Of a unit that a model is given: the tokens that models of this size read are fewer."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""

DEFAULT_MODEL = "answerdotai/answerai-colbert-small-v1"
"""33 million parameters, 96 dimensions a token, made for the CPU."""
DOWNLOAD_COMMAND = f"CODEQA_RERANKER={DEFAULT_MODEL} codeqa serve"
PYTORCH = "rerankers"
"""What the setting of a checkpoint of PyTorch begins with."""
PYTORCH_COMMAND = (
    f'{sys.executable} -m pip install "rerankers[transformers]==0.10.0" "transformers<5"'
)
"""With transformers 5 the class for ColBERT of rerankers 0.10.0 cannot be loaded."""
INSTALL_PYTORCH = f"Install what it needs: {PYTORCH_COMMAND}"
NO_PYTORCH = "cannot be used: PyTorch and transformers are not installed."
TRANSFORMERS_5 = "cannot be used: rerankers does not run with transformers 5."
COLBERT = "colbert"
"""What the name of a checkpoint holds that is read as one of ColBERT."""
LOCAL_CANDIDATES = 20
"""Hits that are read: half a second on two cores for a model of 384 dimensions and 12 layers."""
BATCH = 5
"""Texts at once: each is filled up to the longest, and all 20 are no faster on a CPU."""
TOKENS = 128
"""Read of each hit: its place, name, signature, comment and first lines. 256 take three times as
long."""
LOCAL_SECONDS = 15.0
"""That one request waits for the model, loading included."""

RERANK_URLS = {"cohere": "https://api.cohere.ai/v1", "jina": "https://api.jina.ai/v1"}
"""Providers of rerankers, and the base addresses of their APIs, which are one and the same API."""
HOSTED_SECONDS = 5.0
"""For the whole request; both usually answer fifty texts within one."""

_NAME = re.compile(r"[^\W\d]\w{2,}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """What the user should know: why another reranker was used than the one asked for, or where
    code was sent."""


Reranker = Callable[[Sequence[Hit], Query], Reranked]
"""Orders the best of the hits anew; what it does not read stays behind, in its order."""


def _ordered(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """`rescored` by score and `rest` behind it in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


# Built in


def rerank_built_in(hits: Sequence[Hit], query: Query) -> Reranked:
    """The best CANDIDATES ordered anew by what the shipped table says of their code: the nearest
    passage, late interaction with the body; and by whether better hits use them.

    The order stays for one word alone, which is met by what is named so, and where the table
    knows nothing of the question or is damaged. Measured over the order it is given: line
    ndcg@10 +.015 on the tuning questions (better in ten repositories, worse in one), +.011 on
    those looked at once; cover@500 +.007 and −.014.
    """
    if not hits or len(query.words) < 2:
        return Reranked(list(hits), BUILT_IN if hits else "")
    try:
        near = question_matcher(query.text)
    except EmbeddingError:  # damaged: the index says so
        near = None
    if near is None or near.empty:
        return Reranked(list(hits), BUILT_IN)
    head, done = hits[:CANDIDATES], []
    for hit, use in zip(head, used_by_better(head), strict=True):
        unit, found = hit.unit, near.nearness(fields_of(hit.unit))
        close = PASSAGE_WEIGHT * found.passage + LATE_WEIGHT * found.late + USED_WEIGHT * use
        first = unit.start_line + found.first_line
        last = min(unit.start_line + found.last_line, unit.end_line)
        why = f"reranked: lines {first}-{last} come closest"
        why += ", and better hits use it" if use else ""
        # A factor, not a sum: penalties and the order of the channels keep their meaning.
        done.append(replace(hit, score=hit.score * (1 + close), why=(*hit.why, why)))
    return Reranked(_ordered(done, hits[len(head) :]), BUILT_IN)


def used_by_better(hits: Sequence[Hit]) -> list[float]:
    """How much the code of other hits names each of `hits`, 0..1.

    A hit at place p gives 1/p to each unit whose name stands in its code, divided among
    units of one name; a unit that only encloses another does not use it.
    """
    named: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        if hit.unit.kind not in TEXT_KINDS and hit.unit.kind != "module":
            named.setdefault(hit.unit.name, []).append(place)
    values = [0.0] * len(hits)
    for place, hit in enumerate(hits):
        unit = hit.unit
        if unit.kind in TEXT_KINDS:
            continue
        for name in named.keys() & set(_NAME.findall(unit.source_code[:READ_CHARACTERS])):
            for other in named[name]:
                if name != unit.name and not encloses(unit, hits[other].unit):
                    values[other] += 1 / (place + 1) / len(named[name])
    return [min(1.0, value) for value in values]


# Models


Score = Callable[[str, Sequence[str]], Sequence[float]]
"""Question and texts → the score of each text, in their order."""


@dataclass(frozen=True, slots=True)
class ModelReranker:
    """Orders the first `candidates` of the hits by half their own score and half what `score` says
    of them within `seconds`."""

    name: str
    score: Score
    candidates: int
    seconds: float
    host: str = ""
    """Where they are sent, which a warning then says; '' when they stay on this machine."""

    @property
    def place(self) -> str:
        """A failure, too, says where code may have been sent."""
        return f"{self.name} at {self.host}" if self.host else self.name

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """As a Reranker. Raises RerankerError when the model fails, is too slow or gives no usable
        score."""
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
        except Exception as error:  # anybody's code; its text may hold the question or the code
            said = f"failed ({type(error).__name__})"
            if isinstance(error, TimeoutError):
                said = f"did not answer within {self.seconds:g} seconds"
            hint = "Ask again in a moment, or set CODEQA_RERANKER=built-in."
            raise RerankerError(f"{self.place} {said}.", hint) from None
        # A model's scores lie close together or on a scale of its own: they are spread over 0..1,
        # and tests and the like are pushed back as in the first stage.
        low, high, best = min(scores), max(scores), max(hit.score for hit in head)
        read = []
        for hit, score in zip(head, scores, strict=True):
            relevant = (score - low) / (high - low) if high > low else 1.0
            for factor, _ in role_penalties(hit.unit, query):
                relevant *= factor
            mixed = MODEL_SHARE * relevant * best + (1 - MODEL_SHARE) * hit.score
            why = (*hit.why, f"reranked by {self.name}: {score:.2f}")
            read.append(replace(hit, score=mixed, why=why))
        count = f"{len(head)} piece{'s' if len(head) > 1 else ''} of code"
        sent = f"The question and {count} were sent to {self.host} to be ordered."
        done = _ordered(read, hits[len(head) :])
        return Reranked(done, self.name, (sent,) if self.host else ())


def document(unit: Unit) -> str:
    """What a model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


# On this machine


_loading = threading.Lock()


def local_reranker(model: str, load: Callable[[str], Score]) -> ModelReranker:
    """What `load`, which remembers it, gives for `model` with the first question, as a reranker."""

    def score(question: str, texts: Sequence[str]) -> Sequence[float]:
        with _loading:  # once for all that ask at the same time
            loaded = load(model)
        return loaded(question, texts)

    return ModelReranker(model, score, LOCAL_CANDIDATES, LOCAL_SECONDS)


def _listed(model: str) -> tuple[Any, dict[str, Any]]:
    """fastembed's class for a model, and what it says of it. Raises RerankerError for one that it
    does not list."""
    from fastembed import LateInteractionTextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    for kind in (LateInteractionTextEmbedding, TextCrossEncoder):
        if known := listed(kind, model):
            return kind, known
    raise RerankerError(
        f"CODEQA_RERANKER={model!r} is no reranker that fastembed lists.",
        f"Choose one in docs/models.md, or write a checkpoint of PyTorch as `{PYTORCH}/…`.",
    )


def _files(model: str) -> ModelFiles:
    return ModelFiles(model, "CODEQA_RERANKER", RerankerError)


@cache
def load_onnx(model: str) -> Score:
    """A ColBERT model or a cross-encoder of fastembed's list, fetched from the hub where it is not
    here. Raises RerankerError for what is amiss."""
    if problem := missing_extra():
        raise RerankerError(f"{model} cannot be used: {problem}.", INSTALL)
    kind, known = _listed(model)
    folder = _files(model).here(known) or _files(model).fetch(known)
    opened = kind(known["model"], specific_model_path=str(folder))
    read_at_most(TOKENS, opened)
    if hasattr(kind, "rerank"):
        return lambda question, texts: [*opened.rerank(question, texts, batch_size=BATCH)]
    return partial(_late_interaction, opened)


def _late_interaction(model: Any, question: str, texts: Sequence[str]) -> list[float]:
    """The mean, over the question's tokens, of the cosine of the text's nearest token.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, sum it: the same order, on a scale of its own.
    """
    import numpy as np

    (asked,) = model.query_embed(question)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    found = model.embed(texts, batch_size=BATCH)
    return [float((asked @ tokens.T).max(axis=1).mean()) for tokens in found]


@cache
def load_pytorch(model: str) -> Score:
    """A checkpoint by the classes of `rerankers`; its factory prints and returns nothing when
    something is missing, and takes some names for hosted models."""
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
        by_place = {result.document.doc_id: float(result.score) for result in ranked.results}
        return [by_place[place] for place in range(len(texts))]

    return score


# Behind an API


def hosted_reranker(settings: Settings, provider: str, model: str) -> ModelReranker:
    """The model of a provider in RERANK_URLS, with key and address from the settings.

    The question and the beginning of each hit are sent, secret-looking strings masked. Raises
    CodeQAError that says what is missing; sends nothing yet.
    """
    given: str = getattr(settings, f"{provider}_base_url")
    key: str = getattr(settings, f"{provider}_api_key").get_secret_value().strip()
    if not key and not given:
        variable = f"{provider.upper()}_API_KEY"
        raise RerankerError(
            f"{provider.capitalize()} was chosen as reranker, but {variable} is not set.",
            f"Set {variable}, or CODEQA_RERANKER=built-in.",
        )
    try:
        url = normal_address(given or RERANK_URLS[provider]).removesuffix("/rerank") + "/rerank"
    except UsageError as error:
        raise RerankerError(f"{provider.upper()}_BASE_URL is no address.", error.hint) from None

    def score(question: str, texts: Sequence[str]) -> list[float]:
        import httpx2

        body = {
            "model": model,
            "query": mask_secrets(question),
            "documents": [*map(mask_secrets, texts)],
            "top_n": len(texts),
            "return_documents": False,
        }
        headers = {"user-agent": "codeqa"} | ({"authorization": f"Bearer {key}"} if key else {})
        # A proxy for the network has no way to a server on this machine. Whoever waits gives up
        # after HOSTED_SECONDS; the request itself ends soon after.
        client = httpx2.Client(timeout=HOSTED_SECONDS + 1, trust_env=not leads_here(url))
        with client:
            response = client.post(url, json=body, headers=headers)
        if response.status_code != 200:
            alias = provider.upper()
            raise RerankerError(
                f"{urlsplit(url).netloc} did not rerank (status {response.status_code}).",
                f"Check CODEQA_RERANKER, {alias}_API_KEY and {alias}_BASE_URL.",
            )
        found = {one["index"]: float(one["relevance_score"]) for one in response.json()["results"]}
        return [found[place] for place in range(len(texts))]

    host = "" if leads_here(url) else urlsplit(url).netloc
    return ModelReranker(f"{provider}/{model}", score, CANDIDATES, HOSTED_SECONDS, host)


# The choice


class RerankerStatus(NamedTuple):
    """Whether the reranker of the setting can be used, which one is, and what to do if not."""

    usable: bool
    text: str
    hint: str = ""
    command: str = ""
    """What brings what the setting asks for, or what `auto` would rather use; '' where nothing is
    missing."""


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', '1' and so for 1."""
    return value in (True, "true", "True", "1")


def _chosen(settings: Settings) -> ModelReranker | None:
    """What the setting asks for; None for the built-in one. Raises CodeQAError for what is missing
    to ask a provider."""
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
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """

    def rerank(hits: Sequence[Hit], query: Query) -> Reranked:
        try:
            chosen = _chosen(settings)
            return chosen.rerank(hits, query) if chosen else rerank_built_in(hits, query)
        except CodeQAError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = rerank_built_in(hits, query)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, warnings=(warning,))

    return rerank


def reranker_status(settings: Settings) -> RerankerStatus:
    """Loads nothing and touches no network."""
    setting, problem = settings.reranker.strip() or AUTO, missing_extra()
    try:
        chosen = _chosen(settings)
        if setting == AUTO and not chosen:
            said = f"is not used: {problem}. {INSTALL}"
            if not problem:
                said = f"is used as soon as it is on this machine: {DOWNLOAD_COMMAND}"
            command = INSTALL_COMMAND if problem else DOWNLOAD_COMMAND
            return RerankerStatus(True, f"{BUILT_IN}; {DEFAULT_MODEL} {said}", command=command)
        if chosen is None:
            return RerankerStatus(True, BUILT_IN)
        kind = setting.partition("/")[0]
        if kind == PYTORCH and (amiss := _pytorch_problem(chosen.name)):
            text = f"{chosen.name} {amiss}"
            return RerankerStatus(False, text, INSTALL_PYTORCH, PYTORCH_COMMAND)
        if kind in (*RERANK_URLS, PYTORCH):
            sent = f"; a reranked question sends itself and up to {CANDIDATES} pieces of code there"
            return RerankerStatus(True, chosen.place + (sent if chosen.host else ""))
        if problem:
            text = f"{setting} cannot be used: {problem}."
            return RerankerStatus(False, text, INSTALL, INSTALL_COMMAND)
        here = setting == AUTO or _files(setting).here(_listed(setting)[1])
        fetched = "" if here else ", downloaded from the model hub when first used"
        return RerankerStatus(True, f"{chosen.name}{fetched}")
    except CodeQAError as error:
        return RerankerStatus(False, error.message, error.hint)


def _pytorch_problem(model: str) -> str:
    if not (find_spec("torch") and find_spec("transformers")):
        return NO_PYTORCH
    major = int(version("transformers").partition(".")[0])
    return TRANSFORMERS_5 if major >= 5 and COLBERT in model.lower() else ""


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else _files(DEFAULT_MODEL).here({})
    return folder is not None and (folder / "vespa_colbert.onnx").is_file()
