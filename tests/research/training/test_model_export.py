"""What is shipped of a table is what was trained. Needs PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import research.training  # noqa: F401  # before PyTorch, whose threads it tells how to wait

torch = pytest.importorskip("torch")

from codeqa.embeddings.table import TableEncoder, load_weights  # noqa: E402
from codeqa.text.unit_text import encode  # noqa: E402
from research.training.batches import Mixing  # noqa: E402
from research.training.console import write_json  # noqa: E402
from research.training.evaluate import held_out  # noqa: E402
from research.training.export import (  # noqa: E402
    arrays_of,
    export,
    field_shares,
    load_export,
    version_of,
)
from research.training.features import Features  # noqa: E402
from research.training.held_out import TableSides  # noqa: E402
from research.training.train import Recipe, Trainer, load_model  # noqa: E402
from tests.research.training.training_samples import samples, write_features  # noqa: E402

RECIPE = Recipe(dimension=32, epochs=2, warm_up=2, mixing=Mixing(batch=64, group=16))


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A training folder with features and one finished run."""
    features = Features(write_features(tmp_path / "features"))
    Trainer(features, RECIPE, tmp_path / "runs" / "table", "cpu").run(quiet=True)
    return tmp_path


def test_the_encoder_gives_the_vectors_that_were_trained(trained: Path) -> None:
    features = Features(trained / "features")
    folder = export(trained, "table")
    encoder = TableEncoder(load_weights(folder))
    model = load_model(trained / "runs" / "table")
    with torch.no_grad():  # the body counts more in what is shipped than was learnt
        model.field_weights.copy_(torch.tensor([*field_shares(model).values()]).expm1().log())
    rows = np.arange(100)
    questions, texts = zip(*samples(600)[:100], strict=True)
    documents = encoder.compute_source_embeddings([encode(text) for text in texts])
    queries = np.stack([encoder.encode_query(question) for question in questions])
    for ours, shipped in (
        (TableSides(model, features).documents(rows), documents),
        (TableSides(model, features).queries(rows), queries),
    ):
        cosines = (ours.numpy() * shipped).sum(1) / np.linalg.norm(ours.numpy(), axis=1)
        assert cosines.min() > 0.999


def test_an_export_read_back_ranks_as_the_run_does(trained: Path) -> None:
    export(trained, "table")
    run, folder = trained / "runs" / "table", trained / "exports" / "table"
    report = held_out(trained, folder, run)
    assert report["versus"]["with the name"][0] == pytest.approx(0, abs=0.02)
    assert report["versus"]["without the name doc"] == report["versus"]["without the name"]
    assert (
        report["languages"]["python"]["questions"] == report["sources"]["doc"]["questions"] == 100
    )
    assert load_export(folder).table.shape == load_model(run).table.shape


def test_the_version_names_the_numbers_and_nothing_else(trained: Path) -> None:
    arrays = arrays_of(load_model(trained / "runs" / "table"))
    version = version_of(arrays, ["a", "b"])
    assert version == version_of(dict(reversed(arrays.items())), ["a", "b"])
    assert version != version_of(arrays, ["a", "c"])
    other = {**arrays, "query_weights": arrays["query_weights"] + 1e-3}
    assert version != version_of(other, ["a", "b"])


def test_the_card_says_what_the_table_was_trained_on_and_what_it_reached(trained: Path) -> None:
    figures = {"vectors": {"ndcg@10": 0.5, "versus": {}}, "files": {"hit@1": 0.25}}
    write_json(trained / "evaluation" / "table.questions.json", figures)
    card = (export(trained, "table") / "card.md").read_text("utf-8")
    assert "500 pairs of 5 public repositories" in card and "100 doc comments asked" in card
    assert "| doc | 500 |" in card and "| python | 500 |" in card
    assert "| by the vectors alone, tests and the like halved | ndcg@10 0.500 |" in card
    assert "| through the whole search, files | hit@1 0.250 |" in card
