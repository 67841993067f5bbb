"""ColBERT models and cross-encoders through fastembed's own code, without a network.

The models are made here: small BERTs in ONNX whose weights are random, yet so that a text which
holds the words of the question comes closest to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import hub_cache, hub_of, put_in_cache

from codeqa.search import rerank_models
from codeqa.search.query import parse_query
from codeqa.search.rerank_models import DEFAULT_MODEL, choose_reranker, document, reranker_status
from codeqa.search.rerank_models import MOST_RERANKED_HERE as CANDIDATES
from codeqa.settings import Settings, load_settings
from codeqa.types import Hit, Unit
from tests.kit.onnx_models import make_model

__all__ = ["hub_cache"]

QUESTION = parse_query("session cookie")
TEXTS = ["session cookie", "return " * 300, "", "def total(basket): return price"]
CROSS_ENCODER = "Xenova/ms-marco-MiniLM-L-6-v2"


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "colbert"
    return make_model(folder, "tokens", file="vespa_colbert.onnx")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "judge"
    return make_model(folder, "score", 1, file="onnx/model.onnx")


@pytest.fixture(autouse=True)
def forget_loaded_models(hub_cache: Path) -> None:
    rerank_models.load_onnx.cache_clear()
    rerank_models.load_pytorch.cache_clear()


def hit(number: int, code: str) -> Hit:
    unit = Unit("a.py", "python", "function", "f", "f", code, 1, 1, id=str(number))
    return Hit(unit, 1 - number / 1_000)


CODE = [f"return total price of the basket {number}" * (number % 3 + 1) for number in range(30)]
HITS = [hit(n, "self session cookie expire" if n == 13 else code) for n, code in enumerate(CODE)]


def order(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.id) for one in hits]


def test_a_colbert_score_is_the_mean_over_the_question_of_the_nearest_token(
    colbert: Path, hub_cache: Path
) -> None:
    from fastembed import LateInteractionTextEmbedding

    model = LateInteractionTextEmbedding(DEFAULT_MODEL, specific_model_path=str(colbert))
    (question,) = model.query_embed("session cookie")
    expected = []
    for text in TEXTS:
        (tokens,) = model.embed([" ".join(text.split()[:100])])
        expected.append(np.mean([max(word @ token for token in tokens) for word in question]))
    put_in_cache(hub_cache, colbert, DEFAULT_MODEL)
    score = rerank_models.load_onnx(DEFAULT_MODEL)
    assert list(score("session cookie", TEXTS)) == pytest.approx(expected, abs=0.01)
    assert [score("session cookie", [text])[0] for text in TEXTS] == pytest.approx(
        expected, abs=0.05
    )


def test_a_cross_encoder_orders_by_what_it_says_of_each_pair(
    judge: Path, hub_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    put_in_cache(hub_cache, judge, CROSS_ENCODER)
    settings = load_settings(reranker=CROSS_ENCODER)
    assert reranker_status(settings)[:2] == (True, CROSS_ENCODER)
    done = choose_reranker(settings)(HITS, QUESTION)
    assert (done.reranker, done.warnings) == (CROSS_ENCODER, ())
    documents = [document(one.unit) for one in HITS[:CANDIDATES]]
    model = TextCrossEncoder(CROSS_ENCODER, specific_model_path=str(judge))
    scores = list(model.rerank(QUESTION.text, documents))
    assert len({round(score, 3) for score in scores}) > 2
    best = max(range(CANDIDATES), key=scores.__getitem__)
    assert order(done.hits)[CANDIDATES:] == list(range(CANDIDATES, 30))
    told = {one.unit.id: one.why for one in done.hits}
    assert told[str(best)] == (f"reranked by {CROSS_ENCODER}: {scores[best]:.2f}",)
    assert capfd.readouterr() == ("", "")
    score = rerank_models.load_onnx(CROSS_ENCODER)
    long = "session " * 2_000
    assert score("cookie", [long]) == score("cookie", [f"{long} cookie"])
    assert len(score(long, [long, "\x00", "🎉" * 500, "{}" * 900])) == 4


def test_a_checkpoint_of_pytorch_is_read_by_the_package_rerankers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rerankers import models as rankers
    from rerankers.documents import Document
    from rerankers.models.ranker import BaseRanker
    from rerankers.results import RankedResults, Result

    class ByLength(BaseRanker):
        def __init__(self, name: str, verbose: int) -> None:
            assert name == "owner/colbert"

        def rank(self, query: str, docs: Any, doc_ids: Any = None) -> RankedResults:
            texts = zip(docs, doc_ids, strict=True)
            found = [(self.score(query, one), Document(text=one, doc_id=n)) for one, n in texts]
            found.sort(key=lambda pair: -pair[0])
            results = [Result(document=one, score=score) for score, one in found]
            return RankedResults(results=results, query=query, has_scores=True)

        def score(self, query: str, doc: str) -> float:
            return float(len(doc))

    choice = load_settings(reranker="rerankers/owner/colbert")
    monkeypatch.setattr(rankers, "AVAILABLE_RANKERS", {"ColBERTRanker": ByLength})
    done = choose_reranker(choice)(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("owner/colbert", ())
    scores = {one.unit.id: one.why for one in done.hits[:CANDIDATES]}
    assert scores["5"] == (f"reranked by owner/colbert: {len(document(HITS[5].unit)):.2f}",)


# What is wrong is said, and the built-in one answers


def test_what_pytorch_lacks_is_said_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rerankers import models as rankers

    def with_transformers_5(name: str, verbose: int) -> None:
        raise AttributeError("'ColBERTModel' object has no attribute 'all_tied_weights_keys'")

    choice = load_settings(reranker="rerankers/owner/colbert")
    for there, said in (
        ({}, "PyTorch and transformers are not installed. "),
        ({"ColBERTRanker": with_transformers_5}, "rerankers does not run with transformers 5. "),
    ):
        rerank_models.load_pytorch.cache_clear()
        monkeypatch.setattr(rankers, "AVAILABLE_RANKERS", there)
        done = choose_reranker(choice)(HITS, QUESTION)
        (warning,) = done.warnings
        assert done.reranker == "built-in" and warning.startswith("owner/colbert cannot be used: ")
        assert said in warning
        assert warning.endswith(f": {rerank_models.PYTORCH_COMMAND}")
    monkeypatch.setattr(rerank_models, "find_spec", lambda name: None)
    status = reranker_status(choice)
    assert not status.usable and status.hint.endswith(rerank_models.PYTORCH_COMMAND)


def test_what_cannot_be_loaded_is_said(tmp_path: Path, hub_cache: Path) -> None:
    damaged = make_model(tmp_path / "damaged", "tokens", file="vespa_colbert.onnx")
    (damaged / "vespa_colbert.onnx").write_bytes(b"\x00" * 100)
    put_in_cache(hub_cache, damaged, DEFAULT_MODEL)
    for name, said in (
        (DEFAULT_MODEL, f"{DEFAULT_MODEL} failed (InvalidProtobuf). "),
        ("owner/colbert", "fastembed lists no reranker called 'owner/colbert' (CODEQA_RERANKER). "),
        (CROSS_ENCODER, f"{CROSS_ENCODER} is not on this machine, and the model hub cannot be "),
    ):
        done = choose_reranker(load_settings(reranker=name))(HITS, QUESTION)
        assert done.reranker == "built-in"
        assert sorted(order(done.hits)) == list(range(30))
        (warning,) = done.warnings
        assert warning.startswith(said) and "The built-in reranker was used." in warning
    assert not reranker_status(load_settings(reranker="owner/colbert")).usable


# The hub and its cache


def test_automatically_the_model_is_used_when_it_is_in_the_cache(
    hub_cache: Path, colbert: Path, judge: Path
) -> None:
    reranker = choose_reranker(Settings())
    done = reranker(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("built-in", ())
    ok, message, *_ = reranker_status(Settings())
    assert ok and message.startswith("built-in; answerdotai/")

    put_in_cache(hub_cache, judge, DEFAULT_MODEL)  # files of it, but not the one that is read
    assert reranker(HITS, QUESTION).reranker == "built-in"
    shutil.rmtree(hub_cache)
    put_in_cache(hub_cache, colbert, DEFAULT_MODEL)
    done = reranker(HITS, QUESTION)
    assert (done.reranker, done.warnings) == (DEFAULT_MODEL, ())
    assert order(done.hits)[0] == 13
    assert reranker_status(Settings())[:2] == (True, DEFAULT_MODEL)


def test_a_name_is_fetched_once_and_only_the_files_that_are_needed(
    colbert: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(reranker=DEFAULT_MODEL)
    with hub_of(DEFAULT_MODEL, colbert, monkeypatch) as given:
        # Automatically nothing is fetched.
        assert choose_reranker(Settings())(HITS, QUESTION).reranker == "built-in"
        assert given == []
        assert reranker_status(settings).text.endswith(
            "downloaded from the model hub when first used"
        )
        done = choose_reranker(settings)(HITS, QUESTION)
        assert (done.reranker, done.warnings) == (DEFAULT_MODEL, ())
        assert order(done.hits)[0] == 13
        assert "vespa_colbert.onnx" in given and "tokenizer.json" in given
        assert not {"model.safetensors", "README.md", "onnx/model_q4.onnx"} & set(given)
        assert capfd.readouterr().out == ""
        fetched = len(given)
        rerank_models.load_onnx.cache_clear()  # as a new process
        assert reranker_status(settings)[:2] == (True, DEFAULT_MODEL)
        assert choose_reranker(settings)(HITS, QUESTION).reranker == DEFAULT_MODEL
        assert len(given) == fetched
