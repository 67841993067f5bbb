"""What a message is for (S3.03 to S3.07): by tag, cache, rules, or a language model."""

from codeqa.intents.classifier import MODEL_BELOW, Classifier, cache_key
from codeqa.intents.heuristics import by_heuristics
from codeqa.intents.intent import INTENTS, Intent
from codeqa.intents.mode import DEFAULT_MODE, MODES, read_mode

__all__ = [
    "DEFAULT_MODE",
    "INTENTS",
    "MODEL_BELOW",
    "MODES",
    "Classifier",
    "Intent",
    "by_heuristics",
    "cache_key",
    "read_mode",
]
