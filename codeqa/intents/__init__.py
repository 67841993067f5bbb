"""What a message is for: by tag, cache, rules, or a language model."""

from codeqa.intents.alone import goes_on, points_back, stands_alone
from codeqa.intents.classifier import (
    INTENTS,
    MODEL_BELOW,
    Classifier,
    Intent,
    by_heuristics,
    cache_key,
    cache_prefix,
)
from codeqa.intents.mode import DEFAULT_MODE, ISSUE, read_mode, read_whole

__all__ = [
    "DEFAULT_MODE",
    "INTENTS",
    "ISSUE",
    "MODEL_BELOW",
    "Classifier",
    "Intent",
    "by_heuristics",
    "cache_key",
    "cache_prefix",
    "goes_on",
    "points_back",
    "read_mode",
    "read_whole",
    "stands_alone",
]
