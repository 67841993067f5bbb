"""The intent of a message by rules alone: no model, no network, under a millisecond."""

from __future__ import annotations

from collections.abc import Mapping

from codeqa.intents.common import Rule
from codeqa.intents.intent import INTENTS, Intent
from codeqa.intents.reading import read
from codeqa.intents.rules import RULES

UNSURE = "nothing else fits"


def by_heuristics(text: str, *, has_history: bool) -> Intent:
    """The intent of `text`, which comes without tag and mode.

    The sums of the rules that hold are compared; the highest wins, in a draw the one that
    stands first in `_BEFORE`.
    """
    sums, held = weigh(text, has_history=has_history)
    if not held:  # nothing is known of it: a question, or more of the same
        return Intent(
            "continuation" if has_history else "knowledge_base", 0.5, "heuristics", UNSURE
        )
    ranked = sorted(_BEFORE, key=lambda name: -sums[name])
    best, margin = ranked[0], sums[ranked[0]] - sums[ranked[1]]
    reasons = [rule for rule in held if rule.intent == best]
    reason = max(reasons, key=lambda rule: rule.weight).name
    return Intent(best, confidence(margin), "heuristics", reason)


def weigh(text: str, *, has_history: bool) -> tuple[Mapping[str, int], list[Rule]]:
    """The sum of each intent, and the rules that hold."""
    message = read(text, has_history=has_history)
    held = [rule for rule in RULES if rule.holds(message)]
    sums = dict.fromkeys(INTENTS, 0)
    for rule in held:
        sums[rule.intent] += rule.weight
    return sums, held


def confidence(margin: int) -> float:
    """From 0.5 in a draw towards 1: every two points of lead halve the doubt."""
    return round(1 - 0.5 * 2 ** (-margin / 2), 2)


_BEFORE = ("privacy", "profile", "continuation", "knowledge_base", "general")
"""Which intent wins a draw."""
