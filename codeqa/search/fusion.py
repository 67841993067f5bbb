"""Scores of several channels into one number per unit.

Each channel is normalised to z-scores over the units it returned and the channels are
added with their weights; a unit that a channel did not return counts as a little worse
than its worst. The sum is scaled to 0..1. Scores rather than ranks, because the gap between
the first and the second hit is evidence that reciprocal ranks throw away (measured on the
development questions: line ndcg@10 .417 against .380 for the same channels).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

WEIGHTS = {"text": 0.5, "vector": 1.0, "vector_refined": 1.0}
"""Weight of each scored channel. A vector sees the meaning of a question in plain words,
full text only its letters, so it counts double where there is one (measured)."""
HYPOTHESIS_WEIGHT = 1.0
"""Weight of each channel that a draft of the answer searched in (their names begin with `hyde`).
Measured with first drafts written from the question alone (evals/drafts), hit@1 of files without
drafts, then by a model that knows much and by a hurried small one: development .76, .90, .76;
tuning .51, .85, .67; code that no model has read .26, .51, .48. At 2 the first gains .01 to .05
more, and the other loses .01 on development; at .3 both give less."""
MISSING = 0.5
"""Standard deviations below a channel's worst score at which a unit stands that the channel
did not return: being found by it at all is worth something."""


def fuse(channels: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Channel name → unit id → score, into unit id → 0..1 (1 is the best of this search).

    A single channel keeps its proportions (its score over its best), so that a weak tail
    stays weak; several are added as z-scores.
    """
    filled = {name: scores for name, scores in channels.items() if scores}
    if not filled:
        return {}
    if len(filled) == 1:
        (scores,) = filled.values()
        best = max(scores.values())
        return {key: score / best if best > 0 else 0.0 for key, score in scores.items()}
    keys = list(dict.fromkeys(key for scores in filled.values() for key in scores))
    total = dict.fromkeys(keys, 0.0)
    for name, scores in filled.items():
        z = z_scores(scores)
        missing = min(z.values()) - MISSING
        weight = HYPOTHESIS_WEIGHT if name.startswith("hyde") else WEIGHTS.get(name, 1.0)
        for key in keys:
            total[key] += weight * (z.get(key, missing) - missing)
    best = max(total.values())
    return {key: score / best if best > 0 else 0.0 for key, score in total.items()}


def z_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores as standard deviations from their mean; all 0 when they are equal."""
    if min(scores.values()) == max(scores.values()):
        return dict.fromkeys(scores, 0.0)
    mean = statistics.fmean(scores.values())
    # `statistics.pstdev` counts in exact fractions: half a millisecond of every search.
    deviation = math.sqrt(statistics.fmean((score - mean) ** 2 for score in scores.values()))
    return {key: (score - mean) / deviation for key, score in scores.items()}


def ranks(scores: Mapping[str, float]) -> dict[str, int]:
    """1-based rank of every key, best first; equal scores keep their order."""
    ordered: Sequence[str] = sorted(scores, key=lambda key: -scores[key])
    return {key: rank for rank, key in enumerate(ordered, 1)}
