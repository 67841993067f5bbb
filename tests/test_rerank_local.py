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

from codeqa.search import rerank
from codeqa.search.query import parse_query
from codeqa.search.rerank import (
    COLBERT,
    CROSS_ENCODER,
    DEFAULT_MODEL,
    choose_reranker,
    document,
    load_score,
    reranker_status,
)
from codeqa.search.rerank import LOCAL_CANDIDATES as CANDIDATES
from codeqa.settings import Settings, load_settings
from codeqa.types import Hit, Unit
from tests.onnx_models import make_model

__all__ = ["hub_cache"]

QUESTION = parse_query("session cookie")
TEXTS = ["session cookie", "return " * 300, "", "def total(basket): return price"]
LISTED = "Xenova/ms-marco-MiniLM-L-6-v2"


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
    rerank.shared.cache_clear()


def hit(number: int, code: str) -> Hit:
    unit = Unit("a.py", "python", "function", "f", "f", code, 1, 1, id=str(number))
    return Hit(unit, 1 - number / 1_000)


CODE = [f"return total price of the basket {number}" * (number % 3 + 1) for number in range(30)]
HITS = [hit(n, "self session cookie expire" if n == 13 else code) for n, code in enumerate(CODE)]


def order(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.id) for one in hits]


def settings_for(folder: Path, family: str = "") -> Settings:
    return load_settings(reranker=f"{family}{folder}")


def fastembeds(kind: Any, name: str, folder: Path) -> Any:
    """The model as fastembed itself gives it, of full precision."""
    return kind(name, specific_model_path=str(folder))


def test_a_colbert_model_in_a_folder_reranks_and_puts_the_words_asked_for_first(
    colbert: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for(colbert)
    assert reranker_status(settings)[:2] == (True, "colbert")
    done = choose_reranker(settings)(HITS, QUESTION)
    assert (done.reranker, done.warnings, order(done.hits)[0]) == ("colbert", (), 13)
    assert order(done.hits)[CANDIDATES:] == list(range(CANDIDATES, 30))
    assert done.hits[0].why[-1].startswith("reranked by colbert: ")
    assert capfd.readouterr() == ("", "")


def test_a_colbert_score_is_the_mean_over_the_question_of_the_nearest_token(colbert: Path) -> None:
    from fastembed import LateInteractionTextEmbedding

    model = fastembeds(LateInteractionTextEmbedding, DEFAULT_MODEL, colbert)
    (question,) = model.query_embed("session cookie")
    expected = []
    for text in TEXTS:
        (tokens,) = model.embed([" ".join(text.split()[:100])])
        expected.append(np.mean([max(word @ token for token in tokens) for word in question]))
    score = load_score(str(colbert), COLBERT)
    # Weights of 8 bits: the same to the second place.
    assert list(score("session cookie", TEXTS)) == pytest.approx(expected, abs=0.01)


def test_a_cross_encoder_in_a_folder_orders_by_what_it_says_of_each_pair(
    judge: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    monkeypatch.setattr(rerank, "QUANTISED_BYTES", 0)
    settings = settings_for(judge, "cross-encoder/")
    assert reranker_status(settings)[:2] == (True, "judge")
    done = choose_reranker(settings)(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("judge", ())
    documents = [document(one.unit) for one in HITS[:CANDIDATES]]
    model = fastembeds(TextCrossEncoder, LISTED, judge)
    scores = list(model.rerank(QUESTION.text, documents))
    assert len({round(score, 3) for score in scores}) > 2
    best = max(range(CANDIDATES), key=scores.__getitem__)
    assert order(done.hits)[CANDIDATES:] == list(range(CANDIDATES, 30))
    told = {one.unit.id: one.why for one in done.hits}
    assert told[str(best)] == (f"reranked by judge: {scores[best]:.2f}",)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("kind", "family"), [("colbert", COLBERT), ("judge", CROSS_ENCODER)])
def test_a_score_depends_on_question_and_code_alone_and_long_ones_are_cut(
    kind: str, family: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    score = load_score(str(folder), family)
    together = list(score("session cookie", TEXTS))
    alone = [next(iter(score("session cookie", [text]))) for text in TEXTS]
    assert together == pytest.approx(alone, abs=0.05)
    long = "session " * 2_000
    assert list(score("cookie", [long])) == list(score("cookie", [f"{long} cookie"]))
    assert len(list(score(long, [long, "\x00", "🎉" * 500, "{}" * 900]))) == 4


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
            assert len(docs) <= rerank.BATCH  # the clock is looked at in between
            texts = zip(docs, doc_ids, strict=True)
            found = [(self.score(query, one), Document(text=one, doc_id=n)) for one, n in texts]
            found.sort(key=lambda pair: -pair[0])
            results = [Result(document=one, score=score) for score, one in found]
            return RankedResults(results=results, query=query, has_scores=True)

        def score(self, query: str, doc: str) -> float:
            return float(len(doc))

    choice = load_settings(reranker="rerankers/owner/colbert")
    monkeypatch.setattr(rankers, "AVAILABLE_RANKERS", {})
    (warning,) = choose_reranker(choice)(HITS, QUESTION).warnings
    assert "PyTorch" in warning and warning.endswith('pip install "rerankers[transformers]"')
    monkeypatch.setattr(rankers, "AVAILABLE_RANKERS", {"ColBERTRanker": ByLength})
    rerank.shared.cache_clear()
    assert reranker_status(choice)[:2] == (True, "owner/colbert, by PyTorch")
    done = choose_reranker(choice)(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("owner/colbert", ())
    scores = {one.unit.id: one.why for one in done.hits[:CANDIDATES]}
    assert scores["5"] == (f"reranked by owner/colbert: {len(document(HITS[5].unit)):.2f}",)


# What is wrong is said, and the built-in one answers


def replaced(settings: Settings) -> str:
    """The warning of a search whose reranker cannot work; the built-in one has worked."""
    done = choose_reranker(settings)(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert sorted(order(done.hits)) == list(range(30))
    (warning,) = done.warnings
    assert "The built-in reranker was used." in warning
    return warning


@pytest.mark.parametrize(
    ("head", "outputs", "family", "said"),
    [
        ("score", 2, "cross-encoder/", "is no cross-encoder: for a text it gives 2."),
        ("hidden", 0, "", "is no ColBERT: for a text it gives "),
        ("tokens", 64, "", "is no ColBERT: for a text it gives 32 × 64."),
    ],
)
def test_what_is_no_model_of_its_kind_does_not_rerank_by_chance(
    tmp_path: Path, head: Any, outputs: int, family: str, said: str
) -> None:
    folder = make_model(tmp_path / "wrong", head, outputs)
    warning = replaced(settings_for(folder, family))
    assert warning.startswith(f"wrong {said}") and "`cross-encoder/…`" in warning


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path, colbert: Path) -> None:
    folder = make_model(tmp_path / "damaged", "tokens", file="vespa_colbert.onnx")
    (folder / "vespa_colbert.onnx").write_bytes(b"\x00" * 100)
    assert replaced(settings_for(folder)).startswith("damaged cannot be loaded (")


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


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (LISTED, LISTED),
        ("cross-encoder/ms-marco-tiny", "cross-encoder/ms-marco-tiny"),
        ("cross-encoder/owner/judge", "owner/judge"),
    ],
)
def test_a_name_is_looked_for_on_the_hub_under_the_owner_that_it_has(
    setting: str, name: str, hub_cache: Path, judge: Path
) -> None:
    settings = load_settings(reranker=setting)
    assert reranker_status(settings)[1] == f"{name}, downloaded from the model hub when first used"
    put_in_cache(hub_cache, judge, name)
    assert reranker_status(settings)[:2] == (True, name)
    done = choose_reranker(settings)(HITS, QUESTION)
    assert (done.reranker, done.warnings) == (name, ())


def test_a_name_that_is_not_here_without_a_network_says_so() -> None:
    settings = load_settings(reranker="owner/colbert-small")
    done = choose_reranker(settings)(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert done.warnings == (
        "owner/colbert-small is not on this machine, and the model hub cannot be reached. "
        "The built-in reranker was used. "
        "Check the network, or set CODEQA_RERANKER to the folder of a copy.",
    )


def test_a_name_is_fetched_once_and_only_the_files_that_are_needed(
    colbert: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(reranker=DEFAULT_MODEL)
    with hub_of(DEFAULT_MODEL, colbert, monkeypatch) as given:
        # Automatically nothing is fetched.
        assert choose_reranker(Settings())(HITS, QUESTION).reranker == "built-in"
        assert given == []
        done = choose_reranker(settings)(HITS, QUESTION)
        assert (done.reranker, done.warnings) == (DEFAULT_MODEL, ())
        assert order(done.hits)[0] == 13
        assert "vespa_colbert.onnx" in given and "tokenizer.json" in given
        assert not {"model.safetensors", "README.md", "onnx/model_q4.onnx"} & set(given)
        assert capfd.readouterr().out == ""
        fetched = len(given)
        rerank.shared.cache_clear()  # as a new process
        assert reranker_status(settings)[:2] == (True, DEFAULT_MODEL)
        assert choose_reranker(settings)(HITS, QUESTION).reranker == DEFAULT_MODEL
        assert len(given) == fetched
        unknown = load_settings(reranker="owner/nothing")
        done = choose_reranker(unknown)(HITS, QUESTION)
        assert done.warnings[0].startswith("The model hub has no model owner/nothing")
