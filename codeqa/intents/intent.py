"""What a message is for as a value."""

from __future__ import annotations

from dataclasses import dataclass

INTENTS = ("general", "knowledge_base", "continuation", "profile", "privacy")

POLICY_VERSION = 3
"""Part of the key under which a model's word on an intent is cached: raise it when the rules for
intents or the policy change."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One of INTENTS, and how it was found."""

    name: str
    confidence: float
    """0 to 1: how often a message so classified is one."""
    source: str
    """`tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    """The rule that decided, in words."""
