"""What is done for a message: a pure function of its features, by a table of rules (S3.15).

The groups of rules are gone through in order, and in each the first that fits decides; a group
of which none fits decides nothing. Rules see the decision so far, so later groups go by the
intent that the first one settled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeqa.chat.policy_rules import GROUPS, RULES, Case, Rule
from codeqa.errors import UsageError

if TYPE_CHECKING:
    from codeqa.chat.features import Features
    from codeqa.intents import Intent

__all__ = [
    "GROUPS",
    "REPLIES",
    "RETRIEVAL_MODES",
    "RULES",
    "BehaviorPolicy",
    "PolicyDecision",
    "Rule",
    "markdown_table",
    "parse_retrieval",
]

RETRIEVAL_MODES = ("explicit", "auto")
"""Whether only the tag searches, or every question about the code (C-02)."""

REPLIES = ("", "greeting", "profile", "privacy")


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What is done for a message; everything that no rule decides stays undone."""

    intent: str
    """What the message is treated as, which may differ from how it was classified."""
    use_curated_history: bool = False
    """Tell the last turns and those that resemble the question (S3.17)."""
    inject_rag: bool = False
    """Search the code for this question, and past answers of other conversations (S3.18)."""
    inject_qa_history: bool = False
    """Past answers of the same conversation (S3.19)."""
    inject_profile: bool = False
    """What is known of the user, as `key: value` lines (S3.20)."""
    privacy_mode: bool = False
    """The message is about what is stored (S3.21); goes with `inject_profile`."""
    use_cached_context: bool = False
    """Go on from the code that the conversation already has (S1.37)."""
    suggest_codebase: bool = False
    """Suggest asking again with `@codebase`."""
    searched_automatically: bool = False
    """`inject_rag` though nobody asked for a search: the reader is told."""
    save_profile: bool = False
    """The message states a fact about its writer, which is kept."""
    reply: str = ""
    """One of `REPLIES`: what the app itself answers; `privacy` always, the others only where
    no language model is used."""
    rules: tuple[str, ...] = ()
    """Names of the rules that decided, in order."""


class BehaviorPolicy:
    """Applies `RULES`; deterministic, without state."""

    def resolve(
        self, features: Features, intent: Intent, *, retrieval: str = "explicit"
    ) -> PolicyDecision:
        """The decision. Raises UsageError for an unknown `retrieval`."""
        decision = PolicyDecision(intent.name)
        for rule in self.deciding(features, intent, retrieval=retrieval):
            decision = _applied(rule, decision)
        return decision

    def deciding(
        self, features: Features, intent: Intent, *, retrieval: str = "explicit"
    ) -> Iterator[Rule]:
        """The rules that decide, in order. Raises as `resolve`."""
        auto = parse_retrieval(retrieval) == "auto"
        decision = PolicyDecision(intent.name)
        for group in GROUPS:
            case = Case(features, auto, decision)
            rule = next((one for one in RULES if one.group == group and one.fits(case)), None)
            if rule is not None:
                decision = _applied(rule, decision)
                yield rule

    def table(self) -> list[Rule]:
        """All rules, in the order in which they are tried."""
        return list(RULES)


def parse_retrieval(given: str, default: str = "explicit") -> str:
    """One of `RETRIEVAL_MODES`; `default` for ''. Raises UsageError."""
    wished = given.strip().lower() or default
    if wished not in RETRIEVAL_MODES:
        raise UsageError(
            f"There is no retrieval mode {given[:40]!r}.", f"Known: {', '.join(RETRIEVAL_MODES)}."
        )
    return wished


def markdown_table() -> str:
    """The rules as a table of Markdown, as docs/policy.md holds it."""
    rows = [f"| {r.group} | `{r.name}` | {r.when} | {r.then} |" for r in RULES]
    return "\n".join(("| group | rule | when | then |", "|---|---|---|---|", *rows))


def _applied(rule: Rule, decision: PolicyDecision) -> PolicyDecision:
    return replace(decision, rules=(*decision.rules, rule.name), **rule.change)
