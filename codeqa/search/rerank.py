"""Reading the best hits again, more closely: built in, by a model here, or by one behind an API.

`CODEQA_RERANKER` is `auto`, `built-in`, `model` (the language model puts the files in order, which
the search does; the built-in one where there is none), or names a model: docs/models.md has the
table. ColBERT and cross-encoders run on ONNX Runtime through fastembed, checkpoints of PyTorch
through `rerankers`. Cohere and Jina are asked only once chosen; a redirect is not followed with the
code in hand, and no text is asked for back. Each has bounded candidates, bounded time and half of
the say, every failure is named, and where one cannot work the built-in one does.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from codeqa.embeddings.local import (
    INSTALL,
    INSTALL_COMMAND,
    ModelFiles,
    listed,
    missing_extra,
    onnx_file,
    read_at_most,
)
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import EmbeddingError, RerankerError, UsageError
from codeqa.hosts import leads_here, normal_address
from codeqa.llm.bounded import within
from codeqa.repository.secrets import mask_secrets
from codeqa.search.query import Query
from codeqa.search.ranking import role_penalties
from codeqa.settings import Settings
from codeqa.text.unit_text import fields_of
from codeqa.types import TEXT_KINDS, Hit, Unit, encloses

BUILT_IN = "built-in"
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

BUILT_IN_SECONDS = 0.3
"""That it may take; what is not read by then keeps its order. It is asked for with every
question, so that it must not be felt."""
READ_CHARACTERS = 20_000
"""Longest part of a unit that is read: bounds the time of one unit to about a millisecond."""

CHARACTERS = 2_000
"""Of a unit that a model is given: the tokens that models of this size read are fewer."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""

COLBERT, CROSS_ENCODER, PYTORCH = "ColBERT", "cross-encoder", "rerankers"
"""What a model here is, as messages call it and as the setting begins."""
DEFAULT_MODEL = "answerdotai/answerai-colbert-small-v1"
"""33 million parameters, 96 dimensions a token, made for the CPU."""
COLBERT_FILES = {"vespa_colbert.onnx": DEFAULT_MODEL, "model.onnx": "colbert-ir/colbertv2.0"}
"""A file in a folder, and the model of fastembed's list that is read in the same way."""
LOCAL_CANDIDATES = 20
"""Hits that are read: about .3 s on two cores for a model of 384 dimensions and 12 layers."""
BATCH = 5
"""Hits between two looks at the clock. All 20 at once are no faster on a CPU."""
TOKENS = 128
"""Read of each hit: its place, name, signature, comment and first lines. 256 take three times as
long."""
QUANTISED_BYTES = 300_000_000
"""Largest file whose weights become 8-bit numbers when it is loaded: twice as fast, with vectors
of the same direction (cosine .9996). That takes 3 s for 133 MB; for larger models too long."""
LOCAL_SECONDS = 15.0
"""That one request waits for the model, loading included; what is not read by then keeps
its order."""
LAST_BATCH = 1.0
"""Seconds on top, for a batch that was begun in time."""

_NAME = re.compile(r"[^\W\d]\w{2,}")
_MODEL = re.compile(r"[\w.:-]+(?:/[\w.:-]+)*", re.ASCII)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """What the user should know: why another reranker was used than the one asked for, that not
    all hits were read, or where code was sent."""


Reranker = Callable[[Sequence[Hit], Query], Reranked]
"""Orders the best of the hits anew; what it does not read stays behind, in its order. Raises
RerankerError when it cannot work."""


def _ordered(
    name: str, rescored: Sequence[Hit], rest: Sequence[Hit], candidates: int, seconds: float
) -> Reranked:
    """`rescored` by score and `rest` behind it in its order, no score above one before it; and
    what to say where not all `candidates` were read in that time."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    hits = head + [replace(hit, score=min(hit.score, floor)) for hit in rest]
    unread = (
        f"{name} read {len(head)} of {candidates} hits in {seconds:.1f} seconds; "
        "the others stand behind them."
    )
    return Reranked(hits, name, () if len(head) == candidates else (unread,))


# Built in


def rerank_built_in(
    hits: Sequence[Hit], query: Query, seconds: float = BUILT_IN_SECONDS
) -> Reranked:
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
    except EmbeddingError:  # damaged: the index and `codeqa doctor` say so
        near = None
    if near is None or near.empty:
        return Reranked(list(hits), BUILT_IN)
    head = hits[:CANDIDATES]
    used = used_by_better(head)
    deadline = time.monotonic() + seconds  # the first in a process loaded the table
    done: list[Hit] = []
    for hit, use in zip(head, used, strict=True):
        if time.monotonic() > deadline:
            break
        unit, found = hit.unit, near.nearness(fields_of(hit.unit))
        close = PASSAGE_WEIGHT * found.passage + LATE_WEIGHT * found.late + USED_WEIGHT * use
        first = unit.start_line + found.first_line
        last = min(unit.start_line + found.last_line, unit.end_line)
        why = f"reranked: lines {first}-{last} come closest"
        why += ", and better hits use it" if use else ""
        # A factor, not a sum: penalties and the order of the channels keep their meaning.
        done.append(replace(hit, score=hit.score * (1 + close), why=(*hit.why, why)))
    return _ordered(BUILT_IN, done, hits[len(done) :], len(head), seconds)


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


class RerankProvider(NamedTuple):
    """A provider of rerankers: its API's base address, and one of its models. All speak one API."""

    url: str
    example: str


RERANK_PROVIDERS = {
    "cohere": RerankProvider("https://api.cohere.ai/v1", "rerank-v3.5"),
    "jina": RerankProvider("https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"),
}
HOSTED_SECONDS = 5.0
"""For the whole request; both usually answer fifty texts within one."""


ScoreHits = Callable[[Sequence[Hit], Query], Sequence[float | None]]
"""Relevance of each hit, in their order; None for one that was not read."""
Score = Callable[[str, Sequence[str]], Iterable[float]]
"""Question and texts → the score of each text, in their order, a batch at a time."""


@dataclass(frozen=True, slots=True)
class ModelReranker:
    """Orders the best hits by half their own score and half what `score` says of them.

    The first `candidates` are read, and after `seconds` they are not waited for any longer.
    `host` is where they are sent, which a warning then says; '' when they stay on this machine.
    """

    name: str
    score: ScoreHits
    candidates: int
    seconds: float
    host: str = ""

    @property
    def place(self) -> str:
        """A failure, too, says where code may have been sent."""
        return f"{self.name} at {self.host}" if self.host else self.name

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """What is not read stays behind, in its order.

        Raises RerankerError when the model fails, is too slow or gives no usable score.
        """
        if not hits or not query.text:
            return Reranked(list(hits), self.name if hits else "")
        head = hits[: self.candidates]
        started = time.monotonic()
        scored = list(zip(head, self._scores(head, query), strict=True))
        seconds = time.monotonic() - started
        read = [(hit, score) for hit, score in scored if score is not None]
        if not read:
            raise RerankerError(
                f"{self.place} read nothing within {seconds:.1f} seconds.",
                "Ask again when the machine is less busy.",
            )
        rest = [*(hit for hit, score in scored if score is None), *hits[len(head) :]]
        done = _ordered(self.name, self._combined(read, query), rest, len(head), seconds)
        if not self.host:
            return done
        count = f"{len(head)} piece{'s' if len(head) > 1 else ''} of code"
        sent = f"The question and {count} were sent to {self.host} to be ordered."
        return replace(done, warnings=(*done.warnings, sent))

    def _scores(self, head: Sequence[Hit], query: Query) -> Sequence[float | None]:
        try:
            scores = within(self.seconds, lambda: self.score(head, query))
        except RerankerError:
            raise
        except TimeoutError:
            said = f"did not answer within {self.seconds:g} seconds"
        except Exception as error:  # anybody's code; its text may hold the question or the code
            said = f"failed while reading ({type(error).__name__})"
        else:
            if all(score is None or math.isfinite(score) for score in scores):
                return scores
            said = "gives scores that are no numbers"
        hint = "Ask again in a moment, or set CODEQA_RERANKER=built-in."
        raise RerankerError(f"{self.place} {said}.", hint)

    def _combined(self, read: Sequence[tuple[Hit, float]], query: Query) -> list[Hit]:
        """Hits with scores of which MODEL_SHARE is the model's, on the scale of the old ones.

        A model's scores lie close together or on a scale of its own, so that they are spread
        over 0..1 first; tests and the like are pushed back as in the first stage.
        """
        low, high = min(score for _, score in read), max(score for _, score in read)
        best = max(hit.score for hit, _ in read)
        found = []
        for hit, score in read:
            relevant = (score - low) / (high - low) if high > low else 1.0
            for factor, _ in role_penalties(hit.unit, query):
                relevant *= factor
            mixed = MODEL_SHARE * relevant * best + (1 - MODEL_SHARE) * hit.score
            why = f"reranked by {self.name}: {score:.2f}"
            found.append(replace(hit, score=mixed, why=(*hit.why, why)))
        return found


def document(unit: Unit) -> str:
    """What a model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


# On this machine


def local_reranker(
    name: str, load: Callable[[], Score], seconds: float = LOCAL_SECONDS
) -> ModelReranker:
    """What `load` gives, called once, with the first question, as a reranker.

    It scores as many of the first hits as can be read in `seconds`, loading included, and is
    given up when that takes longer. Whatever `load` raises is a RerankerError.
    """
    loading = threading.Lock()
    loaded: list[Score] = []

    def scores(hits: Sequence[Hit], query: Query) -> list[float | None]:
        deadline = time.monotonic() + seconds
        with loading:
            if not loaded:
                try:
                    loaded.append(load())
                except RerankerError:
                    raise
                except Exception as error:
                    first = str(error).strip().split("\n", 1)[0][:200]
                    raise RerankerError(
                        f"{name} cannot be loaded ({type(error).__name__}: {first}).",
                        "Fetch the model again, or set CODEQA_RERANKER=built-in.",
                    ) from None
        found: list[float | None] = []
        for one in loaded[0](query.text, [document(hit.unit) for hit in hits]):
            found.append(one)
            if time.monotonic() > deadline and len(found) % BATCH == 0:
                break
        return found + [None] * (len(hits) - len(found))

    return ModelReranker(name, scores, LOCAL_CANDIDATES, seconds + LAST_BATCH)


@cache
def shared(model: str, kind: str) -> ModelReranker:
    """The one reranker of this process for `model`: all repositories share its memory."""
    return local_reranker(files_of(model).title, partial(load_score, model, kind))


def files_of(model: str) -> ModelFiles:
    return ModelFiles(model, "CODEQA_RERANKER", RerankerError)


def _class_of(model: str, kind: str) -> tuple[Any, dict[str, Any]]:
    """fastembed's class for a model, and what it says of it."""
    from fastembed import LateInteractionTextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    known = listed(TextCrossEncoder, model)
    if known or kind == CROSS_ENCODER:
        return TextCrossEncoder, known
    return LateInteractionTextEmbedding, listed(LateInteractionTextEmbedding, model)


def load_score(model: str, kind: str) -> Score:
    """Load a model, from the hub where it is not here. Raises RerankerError for what is amiss."""
    if kind == PYTORCH:
        return _load_pytorch(model)
    files = files_of(model)
    if problem := missing_extra():
        raise RerankerError(f"{files.title} cannot be used: {problem}.", INSTALL)
    from fastembed.common.model_description import ModelSource

    hint = "Choose one that is; a cross-encoder is written `cross-encoder/…`."
    opener, known = _class_of(model, kind)
    folder = files.here(known) or files.fetch(known)
    is_colbert = not hasattr(opener, "rerank")
    file = known["model_file"] if known else onnx_file(folder)
    if is_colbert and not known:
        known = listed(opener, COLBERT_FILES.get(file, ""))
        if not known:
            raise RerankerError(
                f"{files.title} holds no {' or '.join(COLBERT_FILES)}, as a ColBERT model does.",
                hint,
            )
    name = known["model"] if known else f"folder {folder}"
    if not listed(opener, name):
        opener.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)
    with tempfile.TemporaryDirectory() as spare:
        opened = opener(name, specific_model_path=str(_quantised(folder, file, Path(spare))))
    if is_colbert:
        (given,) = (one.shape for one in opened.query_embed("a"))  # exporters may leave sizes open
        fits = len(given) == 2 and given[1] == known["dim"]
    else:
        given = opened.model.model.get_outputs()[0].shape[1:]
        fits = len(given) == 1 and (given[0] == 1 or not isinstance(given[0], int))
    if not fits:
        called, sizes = COLBERT if is_colbert else CROSS_ENCODER, " × ".join(map(str, given))
        raise RerankerError(f"{files.title} is no {called}: for a text it gives {sizes}.", hint)
    read_at_most(TOKENS, opened)
    if is_colbert:
        return partial(_late_interaction, opened)
    return partial(opened.rerank, batch_size=BATCH)


def _late_interaction(model: Any, question: str, texts: Sequence[str]) -> Iterable[float]:
    """The mean, over the question's tokens, of the cosine of the text's nearest token.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, sum it: the same order, on a scale of its own.
    """
    import numpy as np

    (asked,) = model.query_embed(question)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    for tokens in model.embed(texts, batch_size=BATCH):
        yield float((asked @ tokens.T).max(axis=1).mean())


def _quantised(folder: Path, file: str, spare: Path) -> Path:
    """A folder with the model's weights as 8-bit numbers, in `spare`; else `folder` itself."""
    if not find_spec("onnx") or (folder / file).stat().st_size > QUANTISED_BYTES:
        return folder
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    for path in folder.glob("*.json"):
        shutil.copy(path, spare)
    (spare / file).parent.mkdir(exist_ok=True)
    try:
        model = onnx.load(folder / file)
        add_pre_process_metadata(model)  # else the root logger is told that it would be better
        # Of 7 bits and per channel: processors without VNNI add products of 8 in 16, and overflow.
        quantize_dynamic(model, spare / file, reduce_range=True, per_channel=True)
    except Exception:  # damaged, which loading will tell, or of a kind that is not known there
        _log.info("%s stays of full precision", folder, exc_info=True)
        return folder
    return spare


def _load_pytorch(model: str) -> Score:
    """A checkpoint by the classes of `rerankers`; its factory prints and returns nothing when
    something is missing, and takes some names for hosted models."""
    from rerankers.models import AVAILABLE_RANKERS

    kind = "ColBERTRanker" if "colbert" in model.lower() else "TransformerRanker"
    if kind not in AVAILABLE_RANKERS:
        raise RerankerError(
            f"rerankers/{model} cannot be used: PyTorch and transformers are not installed.",
            'Install them: pip install "rerankers[transformers]"',
        )
    ranker = AVAILABLE_RANKERS[kind](model, verbose=0)

    def score(question: str, texts: Sequence[str]) -> Iterable[float]:
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            ranked = ranker.rank(question, batch, doc_ids=list(range(len(batch))))
            by_place = {result.document.doc_id: float(result.score) for result in ranked.results}
            yield from (by_place[place] for place in range(len(batch)))

    return score


# Behind an API


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
        # after HOSTED_SECONDS; the request itself ends soon after.
        client = httpx2.Client(timeout=HOSTED_SECONDS + 1, trust_env=not leads_here(url))
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
    return ModelReranker(f"{provider}/{model}", scores, CANDIDATES, HOSTED_SECONDS, shown)


# The choice


BY_MODEL = "model"
DOWNLOAD_COMMAND = f"CODEQA_RERANKER={DEFAULT_MODEL} codeqa serve"


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """A model, '' for what `auto` takes."""

    model: str = ""
    kind: str = COLBERT
    """COLBERT, CROSS_ENCODER, PYTORCH, or a name in RERANK_PROVIDERS."""

    @property
    def name(self) -> str:
        """As the user reads it."""
        return f"{self.kind}/{self.model}" if self.hosted else files_of(self.model).title

    @property
    def hosted(self) -> bool:
        return self.kind in RERANK_PROVIDERS


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


def parse_reranker(setting: str) -> RerankerChoice | None:
    """What CODEQA_RERANKER asks for; None for the built-in one.

    Any text is some choice; whether it can be met shows when it is looked at.
    """
    text = setting.strip()
    if text in (BUILT_IN, BY_MODEL):
        return None
    if text in ("", "auto"):
        return RerankerChoice()
    first, slash, rest = text.partition("/")
    if slash and first in RERANK_PROVIDERS:
        return RerankerChoice(rest, first)
    if slash and first == PYTORCH:
        return RerankerChoice(rest, PYTORCH)
    if slash and first == CROSS_ENCODER:
        plain = "/" not in rest and not files_of(rest).is_folder
        return RerankerChoice(text if plain else rest, CROSS_ENCODER)
    return RerankerChoice(text)


def choose_reranker(settings: Settings) -> Reranker:
    """The reranker of the setting; never fails, for where it cannot work the built-in one does.

    Nothing is looked up, loaded, downloaded or sent before its first use.
    """
    choice = parse_reranker(settings.reranker)

    def rerank(hits: Sequence[Hit], query: Query) -> Reranked:
        if choice is None or (not choice.model and not choice.hosted and not _default_is_here()):
            return rerank_built_in(hits, query)
        try:
            if choice.hosted:
                chosen = hosted_reranker(settings, choice.kind, choice.model)
            else:
                chosen = shared(choice.model or DEFAULT_MODEL, choice.kind)
            return chosen.rerank(hits, query)
        except RerankerError as error:
            _log.info("The built-in reranker is used: %s", error)
            instead = rerank_built_in(hits, query)
            warning = f"{error.message} The built-in reranker was used. {error.hint}"
            return replace(instead, warnings=(warning, *instead.warnings))

    return rerank


def reranker_status(settings: Settings) -> RerankerStatus:
    """Loads nothing and touches no network."""
    choice = parse_reranker(settings.reranker)
    if choice is None:
        by_model = settings.reranker.strip() == BY_MODEL
        text = "the language model in use, else built-in" if by_model else BUILT_IN
        return RerankerStatus(True, text)
    try:
        if choice.hosted:
            hosted = hosted_reranker(settings, choice.kind, choice.model)
            sent = f"; a reranked question sends itself and up to {CANDIDATES} pieces of code there"
            sent = sent if hosted.host else ", on this machine"
            return RerankerStatus(True, hosted.place + sent)
        if choice.kind == PYTORCH:
            return RerankerStatus(True, f"{choice.name}, by PyTorch")
        problem = missing_extra()
        if choice.model and problem:
            text = f"{choice.name} cannot be used: {problem}."
            return RerankerStatus(False, text, INSTALL, INSTALL_COMMAND)
        if problem:
            text = f"{BUILT_IN}; {DEFAULT_MODEL} is not used: {problem}. {INSTALL}"
            return RerankerStatus(True, text, command=INSTALL_COMMAND)
        if not choice.model and not _default_is_here():
            text = f"{BUILT_IN}; {DEFAULT_MODEL} is used once it is here: {DOWNLOAD_COMMAND}"
            return RerankerStatus(True, text, command=DOWNLOAD_COMMAND)
        here = not choice.model or files_of(choice.model).here(
            _class_of(choice.model, choice.kind)[1]
        )
        fetched = "" if here else ", downloaded from the model hub when first used"
        name = choice.name if choice.model else DEFAULT_MODEL
        return RerankerStatus(True, f"{name}{fetched}")
    except RerankerError as error:
        return RerankerStatus(False, error.message, error.hint)


def _default_is_here() -> bool:
    # Without asking fastembed, which takes a second to import, what file it reads.
    folder = None if missing_extra() else files_of(DEFAULT_MODEL).here({})
    return folder is not None and (folder / next(iter(COLBERT_FILES))).is_file()
