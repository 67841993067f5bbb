"""What the policy decides, and its rules as a table: whatever answers wrongly in kind is corrected
here and not in a prompt. `codeqa policy` and docs/policy.md show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from codeqa.chat.features import Features

REPLIES = ("", "greeting", "profile", "privacy")


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


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table; `when` says in words what `fits` tests, `then` what `change` does."""

    group: str
    name: str
    when: str
    then: str
    fits: Callable[[Features, str, bool], bool]
    """Given the features, the intent as decided so far, and whether retrieval is `auto`."""
    change: Mapping[str, Any]


GROUPS = {
    "intent": "what the message is treated as",
    "code": "where the code comes from",
    "earlier": "what of earlier turns is told",
    "facts": "what is kept of the user",
    "profile": "what is told of the user",
    "reply": "what the app itself answers",
}

RULES = (
    # A tag decides before anything else.
    Rule(
        "intent", "tagged",
        "it carries `@codebase`, or points at code with `@name`",
        "treat it as knowledge_base",
        lambda features, intent, auto: features.tagged,
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "not-to-be-kept",
        "it is classified as profile and asks not to keep something",
        "treat it as privacy",
        lambda features, intent, auto: intent == "profile" and features.privacy_signal,
        {"intent": "privacy"},
    ),
    Rule(
        "intent", "question-beside-a-fact",
        "it is classified as profile, and asks something about code instead of a fact",
        "treat it as knowledge_base",
        lambda features, intent, auto: intent == "profile" and not features.is_profile_question
        and features.asks and features.code_signal,
        {"intent": "knowledge_base"},
    ),
    # The topic gate makes an off-topic follow-up general, unless it is about code.
    Rule(
        "intent", "new-topic-in-the-code",
        "it is a continuation, off topic, and has a code signal",
        "treat it as knowledge_base",
        lambda features, intent, auto: features.code_signal and _leaves_the_topic(features, intent),
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "new-topic",
        "it is a continuation and off topic",
        "treat it as general",
        lambda features, intent, auto: _leaves_the_topic(features, intent),
        {"intent": "general"},
    ),
    Rule(
        "intent", "nothing-to-continue-but-code",
        "it is a continuation of nothing and has a code signal",
        "treat it as knowledge_base",
        lambda features, intent, auto: features.code_signal
        and _continues_nothing(features, intent),
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "nothing-to-continue",
        "it is a continuation of nothing",
        "treat it as general",
        lambda features, intent, auto: _continues_nothing(features, intent),
        {"intent": "general"},
    ),
    Rule(
        "code", "search-as-tagged",
        "it carries `@codebase`, or points at code with `@name`",
        "search the code and past answers",
        lambda features, intent, auto: features.tagged,
        {"inject_rag": True},
    ),
    Rule(
        "code", "continue-from-the-code-at-hand",
        "it is a continuation, and the conversation has code",
        "go on from that code",
        lambda features, intent, auto: intent == "continuation" and features.has_context,
        {"use_cached_context": True},
    ),
    Rule(
        "code", "search-for-a-follow-up",
        "it is a continuation with a code signal, there is no code, and retrieval is auto",
        "search the code and past answers, and say so",
        lambda features, intent, auto: intent == "continuation" and features.code_signal and auto,
        {"inject_rag": True, "searched_automatically": True},
    ),
    Rule(
        "code", "follow-up-without-code",
        "it is a continuation with a code signal, and there is no code",
        "suggest `@codebase`",
        lambda features, intent, auto: intent == "continuation" and features.code_signal,
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "search-automatically",
        "it is knowledge_base, and retrieval is auto",
        "search the code and past answers, and say so",
        lambda features, intent, auto: intent == "knowledge_base" and auto,
        {"inject_rag": True, "searched_automatically": True},
    ),
    Rule(
        "code", "never-stale-code",
        "it is knowledge_base and off topic",
        "use no code, suggest `@codebase`",
        lambda features, intent, auto: intent == "knowledge_base" and features.off_topic,
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "the-code-at-hand",
        "it is knowledge_base, and the conversation has code",
        "go on from that code",
        lambda features, intent, auto: intent == "knowledge_base" and features.has_context,
        {"use_cached_context": True},
    ),
    Rule(
        "code", "no-code-at-hand",
        "it is knowledge_base",
        "suggest `@codebase`",
        lambda features, intent, auto: intent == "knowledge_base",
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "something-else",
        "it is general and off topic",
        "suggest `@codebase`",
        lambda features, intent, auto: intent == "general" and features.off_topic,
        {"suggest_codebase": True},
    ),
    Rule(
        "earlier", "conversation-so-far",
        "it is a continuation, or knowledge_base that takes up an earlier turn",
        "tell curated history and past answers of this conversation",
        lambda features, intent, auto: intent == "continuation"
        or (intent == "knowledge_base" and features.is_followup),
        {"use_curated_history": True, "inject_qa_history": True},
    ),
    Rule(
        "earlier", "history",
        "it is knowledge_base",
        "tell curated history",
        lambda features, intent, auto: intent == "knowledge_base",
        {"use_curated_history": True},
    ),
    Rule(
        "facts", "keep-a-fact",
        "it states a fact about its writer, and nothing in it is about privacy",
        "keep the fact",
        lambda features, intent, auto: features.is_profile_statement and intent != "privacy"
        and not features.privacy_signal,
        {"save_profile": True},
    ),
    Rule(
        "profile", "all-that-is-stored",
        "it is privacy",
        "privacy mode, with all that is known",
        lambda features, intent, auto: intent == "privacy",
        {"privacy_mode": True, "inject_profile": True},
    ),
    Rule(
        "profile", "question-about-oneself",
        "it is profile and asks for a fact, or states none",
        "tell what is known",
        lambda features, intent, auto: intent == "profile"
        and (features.is_profile_question or not features.is_profile_statement),
        {"inject_profile": True},
    ),
    Rule(
        "profile", "refers-to-oneself",
        "it refers to what is known, and something is",
        "tell what is known",
        lambda features, intent, auto: features.references_profile and features.has_profile_data,
        {"inject_profile": True},
    ),
    Rule(
        "profile", "lasting-wishes",
        "there are lasting wishes as to the answers",
        "tell what is known",
        lambda features, intent, auto: features.has_preferences,
        {"inject_profile": True},
    ),
    Rule(
        "reply", "privacy-is-ours",
        "it is privacy",
        "the app says exactly what is stored; no model is asked",
        lambda features, intent, auto: intent == "privacy",
        {"reply": "privacy"},
    ),
    Rule(
        "reply", "profile-without-a-model",
        "it is profile",
        "without a model, the app answers from the profile",
        lambda features, intent, auto: intent == "profile",
        {"reply": "profile"},
    ),
    Rule(
        "reply", "general-without-a-model",
        "it is general, and not off topic",
        "without a model, the app answers what it can",
        lambda features, intent, auto: intent == "general" and not features.off_topic,
        {"reply": "greeting"},
    ),
)  # fmt: skip
"""Group by group in the order of `GROUPS`; within a group the first that fits decides."""


def _leaves_the_topic(features: Features, intent: str) -> bool:
    return intent == "continuation" and features.off_topic


def _continues_nothing(features: Features, intent: str) -> bool:
    """There is neither an earlier turn nor code: a client without conversations has only code."""
    nothing = not features.conversation_length and not features.has_context
    return intent == "continuation" and nothing
