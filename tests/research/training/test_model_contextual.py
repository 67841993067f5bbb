"""The small encoder's step runs on a tiny sample. Needs PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import research.training  # noqa: F401  # before PyTorch, whose threads it tells how to wait

torch = pytest.importorskip("torch")

from codeqa.text.unit_text import encode  # noqa: E402
from research.training.console import write_lines  # noqa: E402
from research.training.contextual import Encoder, Shape, Texts, main, write_onnx  # noqa: E402
from research.training.features import FIELDS, Features  # noqa: E402
from research.training.sequences import make_sequences  # noqa: E402
from tests.research.training.training_samples import pieces, samples, write_features  # noqa: E402

SHAPE = Shape(layers=2, width=32, heads=2, length=48)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A training folder with pairs of the small world, and its vocabulary."""
    write_features(tmp_path / "features", rows=60)
    rows = [
        {"repo": f"owner/r{number // 100}", "source": "doc", "language": "python",
         "query": query, "unit": encode(text)}
        for number, (query, text) in enumerate(samples(600))
    ]  # fmt: skip
    for at in range(6):
        part = "held_out" if at == 5 else "train"
        path = tmp_path / "pairs" / part / f"owner+r{at}.jsonl.gz"
        write_lines(path, rows[at * 100 : at * 100 + 100])
    return tmp_path


def test_the_step_trains_and_finds_more_than_chance(out: Path) -> None:
    status = main([
        *("--out", str(out), "--layers", "1", "--width", "32", "--heads", "2", "--length", "48"),
        *("--epochs", "12", "--batch", "100", "--group", "20", "--warm-up", "5"),
        *("--rate", "0.005", "--device", "cpu"),
    ])  # fmt: skip
    assert status == 0
    lines = (out / "runs" / "contextual" / "figures.jsonl").read_text().splitlines()
    figures = [json.loads(line) for line in lines]
    assert len(figures) == 12 and figures[-1]["questions"] == 100
    assert figures[-1]["loss"] < figures[0]["loss"]
    assert figures[-1]["mrr"] > 0.15  # by chance .05
    assert (out / "runs" / "contextual" / "encoder.pt").exists()


def test_the_exported_encoder_gives_nearly_the_same_vectors(out: Path, tmp_path: Path) -> None:
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    features = Features(make_sequences(out, pieces()).folder)
    texts = Texts(features, SHAPE)
    encoder = Encoder(texts.pieces, SHAPE).eval()
    ids = texts.padded(np.arange(20), FIELDS)
    with torch.inference_mode():
        wanted = encoder(ids).numpy()
    write_onnx(encoder, tmp_path / "encoder.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "encoder.onnx"))
    (found,) = session.run(None, {"ids": ids.numpy()})
    assert (wanted * found).sum(1).min() > 0.98
