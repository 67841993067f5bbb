"""The intent of a message by its words: a linear model over the words and what they may mean.

It was fitted to `evals/intents/development.txt` by `python -m training.intents`; to correct it, add
messages there and fit it anew. What it is right about: benchmarks/results/intents.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from codeqa.routing.words import NUMBER, Reading

IntentName = Literal["general", "knowledge_base", "continuation", "profile", "privacy"]
INTENTS: tuple[str, ...] = get_args(IntentName)
NEED_CODE = ("knowledge_base", "continuation")
"""Intents that are answered from the code."""
MODEL_BELOW = 0.7
"""Confidence under which a model is asked (benchmarks/results/intents.md says how many messages lie
below, and how many of them are wrong)."""
SCALE = 100
"""A weight is kept as a whole number of hundredths."""
NEAR = 4
"""Words of one clause that lie no further apart make a pair."""
_MOST_NAMES, _MOST_WORDS = 4, 12


@dataclass(frozen=True, slots=True)
class Intent:
    """One of INTENTS, and how it was found."""

    name: str
    confidence: float
    """0 to 1: how often a message so classified is one."""
    source: str
    """`tag`, `user`, `cache`, `heuristics` (words) or `model`."""
    reason: str = ""
    """What decided, in words."""


Weights = Mapping[str, npt.NDArray[np.float64]]
"""Feature → its weight for each of INTENTS."""


def by_words(message: Reading, *, has_history: bool, weights: Weights | None = None) -> Intent:
    """The intent of a message, which comes without tag and mode, by its words alone: no language
    model, no network, well under a millisecond. `weights` are the shipped ones unless given."""
    if 3 * sum(map(bool, message.kinds)) < message.length:  # another language, or bare names
        name = "continuation" if has_history else "knowledge_base"
        return Intent(name, 0.5, "heuristics", "few of its words are known")
    weights = _shipped() if weights is None else weights
    telling: dict[str, npt.NDArray[np.float64]] = {}
    total = np.zeros(len(INTENTS))
    for feature, words in features(message, has_history):
        if (weight := weights.get(feature)) is not None:
            total += weight
            if words:
                telling[words] = telling.get(words, 0) + weight
    if not has_history:
        total[INTENTS.index("continuation")] = -np.inf
    chances = np.exp(total - total.max())
    chances /= chances.sum()
    # A needless search costs less than leaving out one that was wanted.
    if chances[INTENTS.index("general")] < MODEL_BELOW:
        chances[INTENTS.index("general")] = 0
    best, second = np.argsort(-chances)[:2]
    most = sorted(telling, key=lambda words: telling[words][second] - telling[words][best])[:3]
    reason = (
        "its words: " + ", ".join(f"“{words}”" for words in most) if most else "it has no words"
    )
    return Intent(INTENTS[best], round(float(chances[best]), 2), "heuristics", reason)


def features(message: Reading, has_history: bool) -> Iterator[tuple[str, str]]:
    """What the linear model sees of a message, each once, with the words that it is of."""
    seen = set[str]()
    history = "later" if has_history else "first"
    for feature, words in _features(message):
        if feature not in seen:
            seen.add(feature)
            yield feature, words
            if ".." not in feature and not feature.endswith("$"):
                yield f"{history} {feature}", words


def _features(message: Reading) -> Iterator[tuple[str, str]]:
    yield "any", ""
    yield f"names {min(message.names, _MOST_NAMES)}", ""
    yield f"length {min(message.length, _MOST_WORDS) // 2}", ""
    yield f"asks {message.asks}", ""
    senses = [
        {*kinds, "NAMES"} if message.specific(place) else kinds
        for place, kinds in enumerate(message.kinds)
    ]
    for place, kinds in enumerate(senses):
        word = message.words[place]
        named = [] if NUMBER in kinds else [word]
        for sense in (*named, *sorted(kinds)):
            yield sense, word
            if not message.lead[place]:
                yield f"^{sense}", word
        for kind in sorted(kinds):
            if not place:
                yield f"^^{kind}", word
            if place == message.length - 1:
                yield f"{kind}$", word
            for later in range(place + 1, min(place + 1 + NEAR, message.length)):
                if message.clause[later] == message.clause[place]:
                    for other in sorted(senses[later]):
                        yield f"{kind}..{other}", f"{word} … {message.words[later]}"


@cache
def _shipped() -> Weights:
    return as_arrays(json.loads(files(__package__).joinpath("intents.json").read_text("utf-8")))


def as_arrays(kept: Mapping[str, list[int]]) -> Weights:
    """Weights as they are kept, as numbers to sum up."""
    return {name: np.array(row) / SCALE for name, row in kept.items()}
