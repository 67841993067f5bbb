"""Why a message is answered as it is: its intent, its features, and the rules that decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from codeqa.chat.features import Features, extract_features
from codeqa.chat.policy import RULES, BehaviorPolicy, PolicyDecision, Rule
from codeqa.errors import UsageError
from codeqa.intents import Intent, by_heuristics, read_mode
from codeqa.search import parse_query
from codeqa.text.tag import has_tag, strip_tag
from codeqa.text.tokens import well_formed


@dataclass(frozen=True, slots=True)
class Explained:
    """A message, what is seen in it, and what follows from that."""

    text: str
    """Without tag and mode."""
    intent: Intent
    features: Features
    decision: PolicyDecision
    rules: tuple[Rule, ...]
    """Those that decided, in order."""

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "text": self.text,
            "intent": asdict(self.intent),
            "features": asdict(self.features),
            "rules": [rule_data(rule) for rule in self.rules],
            "decision": asdict(self.decision),
        }


def explain_message(
    message: str,
    *,
    history: bool = False,
    context: bool = False,
    off_topic: bool = False,
    retrieval: str = "explicit",
    profile: Mapping[str, str] | None = None,
) -> Explained:
    """What would be decided for `message`, without a model, a cache or an index.

    `history` is whether there are earlier turns, `context` whether they have code, `off_topic`
    what the topic gate would say. Raises UsageError for an empty message or a retrieval mode
    that there is not.
    """
    _, text = read_mode(strip_tag(well_formed(message)))
    if not text:
        raise UsageError("The message is empty.", "Write one, in quotes.")
    if has_tag(message):
        intent = Intent("knowledge_base", 1.0, "tag", "it carries @codebase")
    else:
        intent = by_heuristics(text, has_history=history)
    features = extract_features(
        text,
        tagged=has_tag(message) or bool(parse_query(text).pointed),
        intent=intent,
        off_topic=off_topic and intent.name == "continuation",
        profile=profile or {},
        messages=2 if history else 0,
        has_context=context,
    )
    policy = BehaviorPolicy()
    decision = policy.resolve(features, intent, retrieval=retrieval)
    deciding = tuple(policy.deciding(features, intent, retrieval=retrieval))
    return Explained(text, intent, features, decision, deciding)


def policy_rules() -> list[dict[str, str]]:
    """Every rule in words, in the order in which they are tried."""
    return [rule_data(rule) for rule in RULES]


def rule_data(rule: Rule) -> dict[str, str]:
    """A rule in words."""
    return {"group": rule.group, "name": rule.name, "when": rule.when, "then": rule.then}
