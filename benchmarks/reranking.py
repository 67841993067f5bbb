"""How long a model on this machine takes to rerank, through the code that searches use.

    python -m benchmarks.reranking [--json FILE]

Models of the shapes of known ones are made with random weights, which decide what a model says and
not how long it takes. Each reads the candidates of one question, all of them longer than what is
read of one; the times are those of the whole, question included. Needs the extra `models`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions
from benchmarks.onnx_models import WORDS, Head, Shape, make_model
from codeqa.search.rerank.local import CANDIDATES, TOKENS, Family, Score, load_score

QUESTION = "when does a session cookie expire"
REPEATS = 15
SHAPES: dict[str, tuple[Family, Head, Shape]] = {
    "answerai-colbert-small-v1": (
        Family.COLBERT,
        "tokens",
        Shape(layers=12, hidden=384, heads=12, vocabulary=30_522, outputs=96),
    ),
    "ms-marco-MiniLM-L-6-v2": (
        Family.CROSS_ENCODER,
        "score",
        Shape(layers=6, hidden=384, heads=12, vocabulary=30_522, outputs=1),
    ),
    "ms-marco-MiniLM-L-12-v2": (
        Family.CROSS_ENCODER,
        "score",
        Shape(layers=12, hidden=384, heads=12, vocabulary=30_522, outputs=1),
    ),
}
"""Layers and width of models by their published configurations."""


def model_like(name: str) -> Score:
    """A model of the shape of `name`, loaded as a search loads it."""
    family, head, shape = SHAPES[name]
    file = "vespa_colbert.onnx" if head == "tokens" else "model.onnx"
    with tempfile.TemporaryDirectory() as folder:
        made = make_model(Path(folder) / name, head, shape, file=file)
        return load_score(str(made), family, may_download=False)


def candidates(count: int) -> list[str]:
    """Texts that are each longer than what is read of one."""
    return [" ".join(WORDS[(n + i) % len(WORDS)] for i in range(2 * TOKENS)) for n in range(count)]


def times(name: str) -> dict[str, Any]:
    """Milliseconds that loading `name` and reading the candidates take."""
    started = time.perf_counter()
    score = model_like(name)
    made = time.perf_counter() - started
    texts, taken = candidates(CANDIDATES), []
    list(score(QUESTION, texts))
    for _ in range(REPEATS):
        started = time.perf_counter()
        list(score(QUESTION, texts))
        taken.append((time.perf_counter() - started) * 1000)
    return {
        "model": name,
        "made and loaded": round(made * 1000),
        "median": round(statistics.median(taken)),
        "least": round(min(taken)),
        "load": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reranking",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    found = {
        **conditions(["python", "-m", "benchmarks.reranking"]),
        "candidates": CANDIDATES,
        "tokens": TOKENS,
        "milliseconds": [times(name) for name in SHAPES],
    }
    text = json.dumps(found, indent=2) + "\n"
    if given.json:
        given.json.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
