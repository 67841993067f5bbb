"""Fits the words' part of routing: `python -m research.training.intents`, half a minute.

Softmax regression with an L2 penalty (Hastie, Tibshirani, Friedman: The Elements of Statistical
Learning, 2009, 4.4), over the features of `codeqa.routing.intents`, on the messages of
`research/evals/intents/development.txt`. Features of a single message are left out, weights
are rounded. `--folds N` also prints the accuracy on messages left out of the fit, N-fold.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codeqa.routing import intents
from codeqa.routing.intents import INTENTS, WEIGHT_SCALE, as_arrays, by_words, read

MESSAGES = Path(__file__).resolve().parent.parent / "evals" / "intents" / "development.txt"
WEIGHTS = Path(intents.__file__).with_name("intents.json")
PENALTY = 2.5
"""Of the squared weights, against the sum of all losses; the best of 1 to 10 in ten folds."""
STEPS = 400

Message = tuple[str, bool, str]
"""Text, whether it has a history, intent."""


def messages() -> Iterator[Message]:
    """The messages of the development set."""
    intent, history = "", False
    for line in MESSAGES.read_text("utf-8").splitlines():
        if line.startswith("== "):
            intent, place = line[3:].split()
            history = place == "later"
        elif line and not line.startswith("#"):
            yield line, history, intent


def fit(rows: Sequence[Message]) -> dict[str, list[int]]:
    """Feature → its weights for INTENTS in hundredths."""
    seen = [[name for name, _ in intents.features(read(t), h)] for t, h, _ in rows]
    often = Counter(name for names in seen for name in names)
    columns = {name: i for i, name in enumerate(sorted(n for n, c in often.items() if c > 2))}
    x = np.zeros((len(rows), len(columns)), np.float32)
    for row, names in enumerate(seen):
        x[row, [columns[name] for name in names if name in columns]] = 1
    y = np.array([[intent == name for name in INTENTS] for *_, intent in rows], np.float32)
    allowed = np.array([[h or name != "continuation" for name in INTENTS] for _, h, _ in rows])
    weights = _descend(x, y, allowed)
    whole = np.rint(weights * WEIGHT_SCALE).astype(int)
    return {name: whole[i].tolist() for name, i in columns.items() if whole[i].any()}


def _descend(
    x: npt.NDArray[np.float32], y: npt.NDArray[np.float32], allowed: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """Nesterov's accelerated descent; the step is one over a bound of the curvature."""
    top = np.ones(x.shape[1], np.float32)
    for _ in range(20):  # power iteration: the largest eigenvalue of x.T @ x
        top = x.T @ (x @ (top / np.linalg.norm(top)))
    rate = 1 / (PENALTY + 0.5 * float(np.linalg.norm(top)))
    weights = ahead = np.zeros((x.shape[1], y.shape[1]), np.float32)
    for step in range(STEPS):
        sums = np.where(allowed, x @ ahead, -np.inf)
        chances = np.exp(sums - sums.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        new = ahead - rate * (x.T @ (chances - y) + PENALTY * ahead)
        weights, ahead = new, new + step / (step + 3) * (new - weights)
    return weights


def left_out(rows: Sequence[Message], folds: int) -> float:
    """Share of messages that are told right by a fit to the others."""
    right = 0
    for fold in range(folds):
        weights = as_arrays(fit([row for at, row in enumerate(rows) if at % folds != fold]))
        for text, history, intent in rows[fold::folds]:
            right += by_words(read(text), has_history=history, weights=weights).name == intent
    return right / len(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else "")
    parser.add_argument("--folds", type=int, default=0, help="also measure, so many-fold")
    given = parser.parse_args()
    rows = list(messages())
    if given.folds:
        print(f"{left_out(rows, given.folds):.3f} of {len(rows):,} messages, left out of the fit")
    weights = fit(rows)
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in weights.items())
    WEIGHTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(weights):,} features in {WEIGHTS.name}")


if __name__ == "__main__":
    main()
