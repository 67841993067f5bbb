"""A real cross-encoder checkpoint through `rerankers`, torch and transformers, without a network.

The checkpoint is made here: a small BERT with a head of one number and a tokenizer. Runs where
the extra `rerank` is installed (`make test-rerank`).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra `rerank` is not installed")
pytest.importorskip("transformers", reason="the extra `rerank` is not installed")

from colbert_checkpoint import LETTERS, SPECIAL, WORDS, make_checkpoint

from codeqa.search import choose_reranker, parse_query, reranker_status
from codeqa.search.rerank import local
from codeqa.search.rerank.checkpoint import Family
from codeqa.search.rerank.local import CANDIDATES, TOKENS, load_ranker, score_batch
from codeqa.search.rerank.reranker import document
from codeqa.settings import Settings, load_settings
from codeqa.types import Hit, Unit

QUESTION = parse_query("session cookie")


def make_cross_encoder(folder: Path, *, labels: int = 1, positions: int = 128) -> Path:
    """Write a checkpoint to `folder`, as `save_pretrained` does; the weights are random."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    vocabulary = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n")
    torch.manual_seed(11)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
        num_labels=labels,
    )
    model = BertForSequenceClassification(config)
    with torch.no_grad():  # far enough apart for an order that does not hang on rounding
        for name, weight in model.named_parameters():
            if name.endswith("weight") and "LayerNorm" not in name:
                weight.normal_(std=0.3)
    model.save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(
        folder
    )
    return folder


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of this test alone, and no way to the hub."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub cache"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    local.shared.cache_clear()
    return tmp_path / "hub cache"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross_encoder(tmp_path_factory.mktemp("made") / "judge")


def settings_for(folder: Path) -> Settings:
    return load_settings(reranker=f"cross-encoder/{folder}")


def hit(number: int, code: str) -> Hit:
    unit = Unit("a.py", "python", "function", "f", "f", code, 1, 1, id=str(number))
    return Hit(unit, 1 - number / 1_000)


HITS = [hit(number, f"return total price of the basket {number}" * 3) for number in range(30)]


def order(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.id) for one in hits]


def judged(folder: Path, question: str, texts: Sequence[str]) -> list[float]:
    """What the model says of each pair, asked directly."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    found = []
    for text in texts:
        pair = tokenizer([(question, text)], return_tensors="pt", truncation=True, max_length=126)
        with torch.inference_mode():
            found.append(float(model(**pair).logits))
    return found


def test_a_cross_encoder_in_a_folder_orders_by_what_it_says_of_each_pair(
    checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for(checkpoint)
    assert reranker_status(settings) == (True, "judge", "")
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("judge", ())
    scores = judged(checkpoint, QUESTION.text, [document(one.unit) for one in HITS[:CANDIDATES]])
    assert len({round(score, 2) for score in scores}) > 5
    best = max(range(CANDIDATES), key=scores.__getitem__)
    assert order(done.hits)[0] == best
    assert done.hits[0].why == (f"reranked by judge: {scores[best]:.2f}",)
    assert order(done.hits)[CANDIDATES:] == list(range(CANDIDATES, 30))
    printed = capfd.readouterr()
    assert printed.out == "" and "sharded" not in printed.err and "dtype" not in printed.err


def test_a_score_does_not_depend_on_what_else_is_in_the_batch(checkpoint: Path) -> None:
    ranker = load_ranker(str(checkpoint), Family.CROSS_ENCODER, may_download=False)
    texts = ["session cookie", "return " * 300, "", "def total(basket): return price"]
    together = score_batch(ranker, "session cookie expire", texts)
    alone = [score_batch(ranker, "session cookie expire", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)
    assert together == pytest.approx(judged(checkpoint, "session cookie expire", texts), abs=1e-4)


def test_question_and_code_are_cut_to_what_the_model_takes(
    checkpoint: Path, tmp_path: Path
) -> None:
    ranker = load_ranker(str(checkpoint), Family.CROSS_ENCODER, may_download=False)
    assert ranker.tokenizer.model_max_length == 126
    long = "session " * 2_000
    assert len(score_batch(ranker, long, [long, "\x00", "🎉" * 500, "{}" * 900])) == 4
    wide = make_cross_encoder(tmp_path / "wide", positions=512)
    ranker = load_ranker(str(wide), Family.CROSS_ENCODER, may_download=False)
    assert ranker.tokenizer.model_max_length == TOKENS


# What is wrong is said, and the built-in one answers


def replaced(settings: Settings) -> str:
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert sorted(order(done.hits)) == list(range(30))
    (warning,) = done.warnings
    assert "The built-in reranker was used." in warning
    return warning


@pytest.mark.parametrize("labels", [2, 3])
def test_a_model_that_gives_several_numbers_is_refused(tmp_path: Path, labels: int) -> None:
    folder = make_cross_encoder(tmp_path / "classes", labels=labels)
    assert replaced(settings_for(folder)).startswith(
        f"classes is no cross-encoder checkpoint: it gives {labels} numbers for a text, not one."
    )


def test_a_model_without_a_head_does_not_rerank_by_chance(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "small", projection=False)
    warning = replaced(settings_for(folder))
    assert warning.startswith("small is no cross-encoder checkpoint: it lacks classifier.")


def test_a_cross_encoder_that_is_taken_for_a_colbert_model_is_refused_with_the_way_to_write_it(
    checkpoint: Path,
) -> None:
    warning = replaced(load_settings(reranker=str(checkpoint)))
    assert "judge is no ColBERT checkpoint: it lacks linear.weight" in warning
    assert "`cross-encoder/…`" in warning


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("cross-encoder/ms-marco-tiny", "cross-encoder/ms-marco-tiny"),
        ("cross-encoder/owner/judge", "owner/judge"),
    ],
)
def test_a_name_is_looked_for_on_the_hub_under_the_owner_that_it_has(
    setting: str, name: str, hub_cache: Path, checkpoint: Path
) -> None:
    settings = load_settings(reranker=setting)
    assert reranker_status(settings)[1] == f"{name}, downloaded from the model hub when first used"
    sha = "0123456789abcdef0123456789abcdef01234567"
    repository = hub_cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(checkpoint, repository / "snapshots" / sha)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(sha)
    assert reranker_status(settings) == (True, name, "")
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == (name, ())
