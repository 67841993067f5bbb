"""What is done for a message: a pure function of its features, by a table of rules.

Whatever answers wrongly in kind is corrected here and not in a prompt. The groups of rules are
gone through in order, and in each the first that fits decides; a group of which none fits decides
nothing. Rules see the decision so far, so later groups go by the intent that the first one
settled. docs/policy.md shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codeqa.routing.features import Features
from codeqa.routing.intents import NEED_CODE, Intent


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What is done for a message; everything that no rule decides stays undone."""

    intent: str
    """What the message is treated as, which may differ from how it was classified."""
    use_curated_history: bool = False
    """Tell the last turns and those that resemble the question."""
    inject_rag: bool = False
    """Search the code for this question, and past answers of other conversations."""
    inject_qa_history: bool = False
    """Past answers of the same conversation."""
    inject_profile: bool = False
    """What is known of the user, as `key: value` lines."""
    privacy_mode: bool = False
    """The message is about what is stored; goes with `inject_profile`."""
    use_cached_context: bool = False
    """Go on from the code that the conversation already has."""
    answer_exactly: bool = False
    """Answer from the tables and git, counted; no model is asked, but at *deep* and where the
    message asks more than that: then it is told what was counted."""
    suggest_codebase: bool = False
    """Suggest asking again with `@codebase`."""
    searched_automatically: bool = False
    """`inject_rag` though nobody asked for a search: the reader is told."""
    save_profile: bool = False
    """The message states a fact about its writer, which is kept."""
    reply: str = ""
    """What the app itself answers: `privacy` always, `greeting` and `profile` only where no
    language model is used."""
    rules: tuple[str, ...] = ()
    """Names of the rules that decided, in order."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A row of the table; `when` says in words what `fits` tests, `then` what `change` does."""

    group: str
    name: str
    when: str
    fits: Callable[[Features, str, bool], bool]
    """Given the features, the intent as decided so far, and whether retrieval is `auto`."""
    then: str
    change: Mapping[str, Any]


RULES = (
    # A tag decides before anything else.
    PolicyRule("intent", "tagged",
        "it carries `@codebase`, `@name`, `/files`, `/all` or a traceback",
        lambda seen, intent, auto: seen.tagged,
        "treat it as knowledge_base", {"intent": "knowledge_base"}),
    PolicyRule("intent", "not-to-be-kept",
        "it is classified as profile and asks not to keep something",
        lambda seen, intent, auto: intent == "profile" and seen.privacy_signal,
        "treat it as privacy", {"intent": "privacy"}),
    PolicyRule("intent", "question-beside-a-fact",
        "it is classified as profile, and asks something about code instead of a fact",
        lambda seen, intent, auto: intent == "profile" and not seen.is_profile_question
        and seen.asks and seen.code_signal,
        "treat it as knowledge_base", {"intent": "knowledge_base"}),
    # What is off topic is general, unless it is about other code.
    PolicyRule("intent", "new-topic-in-the-code",
        "it is off topic or a continuation of nothing, and has a code signal",
        lambda seen, intent, auto: seen.code_signal and _starts_anew(seen, intent),
        "treat it as knowledge_base", {"intent": "knowledge_base"}),
    PolicyRule("intent", "new-topic", "it is off topic or a continuation of nothing",
        lambda seen, intent, auto: _starts_anew(seen, intent),
        "treat it as general", {"intent": "general"}),
    PolicyRule("code", "search-as-tagged",
        "it carries `@codebase`, `@name`, `/files`, `/all` or a traceback",
        lambda seen, intent, auto: seen.tagged,
        "search the code and past answers", {"inject_rag": True}),
    PolicyRule("code", "search-automatically",
        "it is knowledge_base, or a continuation with a code signal or of code that asks for more "
        "than the last answer, and retrieval is auto",
        lambda seen, intent, auto: auto and (_about_code(seen, intent) or _asks_more(seen, intent)),
        "search the code and past answers, and say so",
        {"inject_rag": True, "searched_automatically": True}),
    # Never the code of an earlier topic.
    PolicyRule("code", "the-code-at-hand",
        "it is a continuation or knowledge_base, not off topic, and the conversation has code",
        lambda seen, intent, auto: intent in NEED_CODE and seen.has_context and not seen.off_topic,
        "go on from that code", {"use_cached_context": True}),
    PolicyRule("code", "no-code-at-hand",
        "it is knowledge_base, a continuation with a code signal, or general and off topic",
        lambda seen, intent, auto: _about_code(seen, intent)
        or (intent == "general" and seen.off_topic),
        "suggest `@codebase`", {"suggest_codebase": True}),
    PolicyRule("answer", "counted-in-the-index",
        "it asks for what the index or git holds exactly (callers, subclasses, routes, tests, what "
        "breaks, what changed), and is about the code",
        lambda seen, intent, auto: seen.asks_exactly and intent in NEED_CODE,
        "answer with all of it, counted; ask a model only at deep or where more is asked",
        {"answer_exactly": True}),
    PolicyRule("earlier", "conversation-so-far",
        "it is a continuation, or knowledge_base that takes up an earlier turn",
        lambda seen, intent, auto: intent == "continuation"
        or (intent == "knowledge_base" and seen.is_followup),
        "tell curated history and past answers of this conversation",
        {"use_curated_history": True, "inject_qa_history": True}),
    PolicyRule("earlier", "history", "it is knowledge_base",
        lambda seen, intent, auto: intent == "knowledge_base",
        "tell curated history", {"use_curated_history": True}),
    PolicyRule("facts", "keep-a-fact",
        "it states a fact about its writer, and nothing in it is about privacy",
        lambda seen, intent, auto: seen.is_profile_statement and intent != "privacy"
        and not seen.privacy_signal,
        "keep the fact", {"save_profile": True}),
    PolicyRule("profile", "all-that-is-stored", "it is privacy",
        lambda seen, intent, auto: intent == "privacy",
        "privacy mode, with all that is known", {"privacy_mode": True, "inject_profile": True}),
    PolicyRule("profile", "question-about-oneself",
        "it is profile and asks for a fact, or states none",
        lambda seen, intent, auto: intent == "profile"
        and (seen.is_profile_question or not seen.is_profile_statement),
        "tell what is known", {"inject_profile": True}),
    PolicyRule("profile", "refers-to-oneself",
        "it refers to what is known, and something is, or there are lasting wishes",
        lambda seen, intent, auto: seen.has_preferences
        or (seen.references_profile and seen.has_profile_data),
        "tell what is known", {"inject_profile": True}),
    PolicyRule("reply", "privacy-is-ours", "it is privacy",
        lambda seen, intent, auto: intent == "privacy",
        "the app says exactly what is stored; no model is asked", {"reply": "privacy"}),
    PolicyRule("reply", "profile-without-a-model", "it is profile",
        lambda seen, intent, auto: intent == "profile",
        "without a model, the app answers from the profile", {"reply": "profile"}),
    PolicyRule("reply", "general-without-a-model", "it is general, and not off topic",
        lambda seen, intent, auto: intent == "general" and not seen.off_topic,
        "without a model, the app answers what it can", {"reply": "greeting"}),
)  # fmt: skip
"""Group by group; within a group the first that fits decides."""


def _starts_anew(seen: Features, intent: str) -> bool:
    """It is off topic, or there is neither an earlier turn nor code to continue: a client without
    conversations has only code."""
    nothing = not seen.conversation_length and not seen.has_context
    anew = seen.off_topic or (nothing and intent == "continuation")
    return anew and intent in NEED_CODE


def _about_code(seen: Features, intent: str) -> bool:
    return intent == "knowledge_base" or (intent == "continuation" and seen.code_signal)


def _asks_more(seen: Features, intent: str) -> bool:
    """When in doubt it does: what was found before stays among what may be shown."""
    return intent == "continuation" and seen.has_context and not seen.about_answer


def decide(features: Features, intent: Intent, *, auto: bool = False) -> PolicyDecision:
    """What is done, with the names of the rules that made it so; deterministic, without state.

    `auto` is whether every question about the code is searched for, or only one with a tag.
    """
    decision, decided = PolicyDecision(intent.name), set[str]()
    for rule in RULES:
        if rule.group not in decided and rule.fits(features, decision.intent, auto):
            decided.add(rule.group)
            decision = replace(decision, rules=(*decision.rules, rule.name), **rule.change)
    return decision
