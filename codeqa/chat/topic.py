"""What a conversation is about, as a vector, and whether a follow-up still belongs to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]
"""A question's or a topic's, of shape (d,)."""

TOPIC_DECAY_ALPHA = 0.2
"""How much of the topic each message takes over (S3.33)."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines of one embedding: below `continuation` a follow-up has left the topic (S3.13),
    above `similar` an earlier question is like this one (S3.17, S3.18)."""

    continuation: float
    similar: float


OF_S3 = Thresholds(0.35, 0.65)
"""Those of the requirements, which belong to `BAAI/bge-base-en-v1.5`."""
CALIBRATED: Mapping[str, Thresholds] = {
    "BAAI/bge-base-en-v1.5": OF_S3,
    "codeqa/code-table-1": Thresholds(0.0, 0.5),
}
"""Of the shipped table, by `python -m benchmarks.intents` on the `tune` half of the pairs in
evals/intents: `continuation` is the highest step of .05 that keeps 95 of 100 follow-ups, since a
follow-up that loses its code is worse than one that is shown old code; `similar` is the lowest
that no pair of different topics exceeds. The table adds up words, so a follow-up in other words
lies near 0 and the gate catches few changes of topic: a new question that is complete in itself
is told by its words instead, before the gate (benchmarks/results/intents.md).
"""


def thresholds_of(embedding: str) -> Thresholds:
    """The pair that was calibrated for `embedding`; that of S3 for one that was not."""
    return CALIBRATED.get(embedding, OF_S3)


def cosine(first: Vector, second: Vector) -> float:
    """Cosine of two vectors (d,); 0 when one is zero or they are of different lengths."""
    if first.shape != second.shape:
        return 0.0
    lengths = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / lengths if lengths else 0.0


def next_topic(topic: Vector | None, question: Vector | None) -> Vector | None:
    """The topic after `question`: (1 - α) · topic + α · question; the question itself when
    nothing came before it, the topic as it was when the question has no vector."""
    if question is None or not question.any():
        return topic
    if topic is None or topic.shape != question.shape:
        return question
    moved: Vector = (1 - TOPIC_DECAY_ALPHA) * topic + TOPIC_DECAY_ALPHA * question
    return moved.astype(question.dtype, copy=False)


def off_topic(
    intent: str, question: Vector | None, topic: Vector | None, thresholds: Thresholds
) -> bool:
    """Whether a `continuation` lies strictly below the threshold (C-23).

    Nothing is off topic without both vectors: of a message that the embedding knows no word
    of, such as "and?", the vector is zero and says nothing.
    """
    if intent != "continuation" or question is None or topic is None:
        return False
    if not question.any() or not topic.any() or question.shape != topic.shape:
        return False
    return cosine(question, topic) < thresholds.continuation
