"""What is done for a message: a pure function of its features, by a table of rules.

The groups of rules are gone through in order, and in each the first that fits decides; a group
of which none fits decides nothing. Rules see the decision so far, so later groups go by the
intent that the first one settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codeqa.account import read_personal
from codeqa.chat.features import Features, extract_features
from codeqa.chat.policy_rules import GROUPS, RULES, PolicyDecision
from codeqa.errors import UsageError
from codeqa.intents import Intent, by_heuristics, read_mode
from codeqa.search import parse_query
from codeqa.text.tag import has_tag, strip_tag
from codeqa.text.tokens import well_formed


def decide(features: Features, intent: Intent, *, auto: bool = False) -> PolicyDecision:
    """What is done, with the names of the rules that made it so; deterministic, without state.

    `auto` is whether every question about the code is searched for, or only one with a tag.
    """
    decision = PolicyDecision(intent.name)
    for group in GROUPS:
        for rule in RULES:
            if rule.group == group and rule.fits(features, decision.intent, auto):
                rules = (*decision.rules, rule.name)
                decision = replace(decision, rules=rules, **rule.change)
                break
    return decision


@dataclass(frozen=True, slots=True)
class Explained:
    """A message, what is seen in it, and what follows from that."""

    text: str
    """Without tag and mode."""
    intent: Intent
    features: Features
    rules: Sequence[Mapping[str, str]]
    """Those that decided, in words and in order."""
    decision: PolicyDecision


def explain_message(
    message: str,
    *,
    history: bool = False,
    context: bool = False,
    off_topic: bool = False,
    auto: bool = False,
) -> Explained:
    """What would be decided for `message`, without a model, a cache or an index.

    `history` is whether there are earlier turns, `context` whether they have code, `off_topic`
    what the topic gate would say, `auto` as for `decide`. Raises UsageError for an empty message.
    """
    _, text = read_mode(strip_tag(well_formed(message)))
    if not text:
        raise UsageError("The message is empty.", "Write one, in quotes.")
    intent = by_rules = by_heuristics(text, has_history=history)
    if has_tag(message):
        intent = Intent("knowledge_base", 1.0, "tag", "it carries @codebase")
    features = extract_features(
        text,
        parse_query(text),
        read_personal(text),
        tagged=has_tag(message),
        intent=intent,
        by_rules=by_rules,
        off_topic=off_topic and intent.name == "continuation",
        profile={},
        messages=2 if history else 0,
        has_context=context,
    )
    decision = decide(features, intent, auto=auto)
    deciding = [rule for rule in policy_rules() if rule["name"] in decision.rules]
    return Explained(text, intent, features, deciding, decision)


def policy_rules() -> list[dict[str, str]]:
    """Every rule in words, in the order in which they are tried."""
    names = ("group", "name", "when", "then")
    return [{name: getattr(rule, name) for name in names} for rule in RULES]


def markdown_table() -> str:
    """The rules as a table of Markdown, as docs/policy.md holds it."""
    rows = [f"| {r.group} | `{r.name}` | {r.when} | {r.then} |" for r in RULES]
    return "\n".join(("| group | rule | when | then |", "|---|---|---|---|", *rows))
