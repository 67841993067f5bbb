"""The rules of the policy, as a table: whatever answers wrongly in kind is corrected here and not
in a prompt (S3.26). `codeqa policy` and docs/policy.md show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codeqa.chat.features import Features
    from codeqa.chat.policy import PolicyDecision


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at."""

    features: Features
    auto: bool
    decision: PolicyDecision

    @property
    def intent(self) -> str:
        return self.decision.intent


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table; `when` says in words what `fits` tests, `then` what `change` does."""

    group: str
    name: str
    when: str
    then: str
    fits: Callable[[Case], bool]
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
    # A tag decides before anything else (C-02).
    Rule(
        "intent", "tagged",
        "it carries `@codebase`, or points at code with `@name`",
        "treat it as knowledge_base",
        lambda case: case.features.tagged,
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "not-to-be-kept",
        "it is classified as profile and asks not to keep something",
        "treat it as privacy",
        lambda case: case.intent == "profile" and case.features.privacy_signal,
        {"intent": "privacy"},
    ),
    Rule(
        "intent", "question-beside-a-fact",
        "it is classified as profile, and asks something about code instead of a fact",
        "treat it as knowledge_base",
        lambda case: case.intent == "profile" and not case.features.is_profile_question
        and case.features.asks and case.features.code_signal,
        {"intent": "knowledge_base"},
    ),
    # C-03: the topic gate makes an off-topic follow-up general, unless it is about code.
    Rule(
        "intent", "new-topic-in-the-code",
        "it is a continuation, off topic, and has a code signal",
        "treat it as knowledge_base",
        lambda case: _leaves_the_topic(case) and case.features.code_signal,
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "new-topic",
        "it is a continuation and off topic",
        "treat it as general",
        lambda case: _leaves_the_topic(case),
        {"intent": "general"},
    ),
    Rule(
        "intent", "nothing-to-continue-but-code",
        "it is a continuation of nothing and has a code signal",
        "treat it as knowledge_base",
        lambda case: _continues_nothing(case) and case.features.code_signal,
        {"intent": "knowledge_base"},
    ),
    Rule(
        "intent", "nothing-to-continue",
        "it is a continuation of nothing",
        "treat it as general",
        lambda case: _continues_nothing(case),
        {"intent": "general"},
    ),
    Rule(
        "code", "search-as-tagged",
        "it carries `@codebase`, or points at code with `@name`",
        "search the code and past answers",
        lambda case: case.features.tagged,
        {"inject_rag": True},
    ),
    Rule(
        "code", "continue-from-the-code-at-hand",
        "it is a continuation, and the conversation has code",
        "go on from that code",
        lambda case: case.intent == "continuation" and case.features.has_context,
        {"use_cached_context": True},
    ),
    Rule(
        "code", "search-for-a-follow-up",
        "it is a continuation with a code signal, there is no code, and retrieval is auto",
        "search the code and past answers, and say so",
        lambda case: case.intent == "continuation" and case.features.code_signal and case.auto,
        {"inject_rag": True, "searched_automatically": True},
    ),
    Rule(
        "code", "follow-up-without-code",
        "it is a continuation with a code signal, and there is no code",
        "suggest `@codebase`",
        lambda case: case.intent == "continuation" and case.features.code_signal,
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "search-automatically",
        "it is knowledge_base, and retrieval is auto",
        "search the code and past answers, and say so",
        lambda case: case.intent == "knowledge_base" and case.auto,
        {"inject_rag": True, "searched_automatically": True},
    ),
    Rule(
        "code", "never-stale-code",
        "it is knowledge_base and off topic",
        "use no code, suggest `@codebase`",
        lambda case: case.intent == "knowledge_base" and case.features.off_topic,
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "the-code-at-hand",
        "it is knowledge_base, and the conversation has code",
        "go on from that code",
        lambda case: case.intent == "knowledge_base" and case.features.has_context,
        {"use_cached_context": True},
    ),
    Rule(
        "code", "no-code-at-hand",
        "it is knowledge_base",
        "suggest `@codebase`",
        lambda case: case.intent == "knowledge_base",
        {"suggest_codebase": True},
    ),
    Rule(
        "code", "something-else",
        "it is general and off topic",
        "suggest `@codebase`",
        lambda case: case.intent == "general" and case.features.off_topic,
        {"suggest_codebase": True},
    ),
    Rule(
        "earlier", "conversation-so-far",
        "it is a continuation, or knowledge_base that takes up an earlier turn",
        "tell curated history and past answers of this conversation",
        lambda case: case.intent == "continuation"
        or (case.intent == "knowledge_base" and case.features.is_followup),
        {"use_curated_history": True, "inject_qa_history": True},
    ),
    Rule(
        "earlier", "history",
        "it is knowledge_base",
        "tell curated history",
        lambda case: case.intent == "knowledge_base",
        {"use_curated_history": True},
    ),
    Rule(
        "facts", "keep-a-fact",
        "it states a fact about its writer, and nothing in it is about privacy",
        "keep the fact",
        lambda case: case.features.is_profile_statement and case.intent != "privacy"
        and not case.features.privacy_signal,
        {"save_profile": True},
    ),
    Rule(
        "profile", "all-that-is-stored",
        "it is privacy",
        "privacy mode, with all that is known",
        lambda case: case.intent == "privacy",
        {"privacy_mode": True, "inject_profile": True},
    ),
    Rule(
        "profile", "question-about-oneself",
        "it is profile and asks for a fact, or states none",
        "tell what is known",
        lambda case: case.intent == "profile"
        and (case.features.is_profile_question or not case.features.is_profile_statement),
        {"inject_profile": True},
    ),
    Rule(
        "profile", "refers-to-oneself",
        "it refers to what is known, and something is",
        "tell what is known",
        lambda case: case.features.references_profile and case.features.has_profile_data,
        {"inject_profile": True},
    ),
    Rule(
        "profile", "lasting-wishes",
        "there are lasting wishes as to the answers",
        "tell what is known",
        lambda case: case.features.has_preferences,
        {"inject_profile": True},
    ),
    Rule(
        "reply", "privacy-is-ours",
        "it is privacy",
        "the app says exactly what is stored; no model is asked",
        lambda case: case.intent == "privacy",
        {"reply": "privacy"},
    ),
    Rule(
        "reply", "profile-without-a-model",
        "it is profile",
        "without a model, the app answers from the profile",
        lambda case: case.intent == "profile",
        {"reply": "profile"},
    ),
    Rule(
        "reply", "general-without-a-model",
        "it is general, and not off topic",
        "without a model, the app answers what it can",
        lambda case: case.intent == "general" and not case.features.off_topic,
        {"reply": "greeting"},
    ),
)  # fmt: skip
"""Group by group in the order of `GROUPS`; within a group the first that fits decides."""


def _leaves_the_topic(case: Case) -> bool:
    return case.intent == "continuation" and case.features.off_topic


def _continues_nothing(case: Case) -> bool:
    """There is neither an earlier turn nor code: a client without conversations has only code."""
    nothing = not case.features.conversation_length and not case.features.has_context
    return case.intent == "continuation" and nothing
