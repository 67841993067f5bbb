"""Decides what is done for a message: its features, and a table of rules over them.

In each group of rules the first that fits decides. Later groups see the intent as the first group
settled it. If a message is treated wrongly, correct a rule and not a prompt (docs/policy.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from codeqa.asked import asks, question_pattern
from codeqa.routing.intents import NEED_CODE, Intent, Reading, goes_on, points_back, wants_something
from codeqa.routing.personal import PersonalReading, preferences
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.text.tokens import word_set


@dataclass(frozen=True, slots=True)
class Features:
    """Facts about a message that the rules look at."""

    is_greeting: bool = False
    """It greets, thanks or says goodbye, and nothing else."""
    references_profile: bool = False
    """It refers to the user: "given my experience"."""
    privacy_signal: bool = False
    """It is about what is stored, or about something not to be stored."""
    is_followup: bool = False
    """It cannot be understood without an earlier turn, and stays with the topic of that."""
    is_profile_statement: bool = False
    is_profile_question: bool = False
    has_profile_data: bool = False
    profile_name: str = ""
    conversation_length: int = 0
    """Earlier messages, questions and answers."""
    tagged: bool = False
    """It asks for code: `@codebase`, `@name`, `/files` or `/all`."""
    has_context: bool = False
    """The conversation has code from an earlier search."""
    code_signal: bool = False
    """It names code, or asks where or how."""
    off_topic: bool = False
    has_preferences: bool = False
    """There are wishes as to all answers, or it states one."""
    asks: bool = False
    """It is a question or an order."""
    about_answer: bool = False
    """It is about the last answer, its form or a part of it, and needs no other code."""
    asks_exactly: bool = False
    """It asks for what the index or git can count: callers, routes, tests, …"""

    def leaving(self, to: str) -> Features:
        """Return the features of a message that leaves for other `code`, or for `elsewhere`."""
        return replace(self, is_followup=False, off_topic=True, code_signal=to == "code")


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The work for a message; what no rule switches on stays off."""

    intent: str
    """What the message is treated as, which may differ from how it was classified."""
    use_curated_history: bool = False
    """Send the last turns and those that resemble the question."""
    inject_rag: bool = False
    """Search the code, and past answers of other conversations."""
    inject_qa_history: bool = False
    """Search past answers of the same conversation."""
    inject_profile: bool = False
    """Send the profile, as `key: value` lines."""
    privacy_mode: bool = False
    use_cached_context: bool = False
    """Go on from the code that the conversation already has."""
    answer_exactly: bool = False
    """Count in the tables and git; a model is asked only at *deep* and for wider questions."""
    suggest_codebase: bool = False
    searched_automatically: bool = False
    """Say that `inject_rag` was not asked for."""
    save_profile: bool = False
    """Store the fact that the message states about the user."""
    reply: str = ""
    """What the app itself answers: `privacy` always, `greeting` and `profile` without a model."""
    rules: tuple[str, ...] = ()
    """Names of the rules that decided, in order."""


class Rule(NamedTuple):
    """A condition on a message, and the decisions that it changes."""

    group: str
    name: str
    fits: Callable[[Features, str, bool], bool]
    """Takes the features, the intent as decided so far, and whether retrieval is `auto`."""
    change: Mapping[str, Any]


RULES = (
    # A tag decides before anything else.
    Rule("intent", "tagged", lambda f, intent, auto: f.tagged, {"intent": "knowledge_base"}),
    Rule("intent", "not-to-be-kept",
        lambda f, intent, auto: intent == "profile" and f.privacy_signal, {"intent": "privacy"}),
    Rule("intent", "question-beside-a-fact",
        lambda f, intent, auto: intent == "profile" and not f.is_profile_question and f.asks
        and f.code_signal, {"intent": "knowledge_base"}),
    # What is off topic is general, unless it is about other code.
    Rule("intent", "new-topic-in-the-code",
        lambda f, intent, auto: f.code_signal and _starts_anew(f, intent),
        {"intent": "knowledge_base"}),
    Rule("intent", "new-topic",
        lambda f, intent, auto: _starts_anew(f, intent), {"intent": "general"}),
    Rule("code", "search-as-tagged", lambda f, intent, auto: f.tagged, {"inject_rag": True}),
    Rule("code", "search-automatically",
        lambda f, intent, auto: auto and (_about_code(f, intent) or _asks_more(f, intent)),
        {"inject_rag": True, "searched_automatically": True}),
    # Never the code of an earlier topic.
    Rule("code", "the-code-at-hand",
        lambda f, intent, auto: intent in NEED_CODE and f.has_context and not f.off_topic,
        {"use_cached_context": True}),
    Rule("code", "no-code-at-hand",
        lambda f, intent, auto: _about_code(f, intent) or (intent == "general" and f.off_topic),
        {"suggest_codebase": True}),
    Rule("answer", "counted-in-the-index",
        lambda f, intent, auto: f.asks_exactly and intent in NEED_CODE, {"answer_exactly": True}),
    Rule("earlier", "conversation-so-far",
        lambda f, intent, auto: intent == "continuation"
        or (intent == "knowledge_base" and f.is_followup),
        {"use_curated_history": True, "inject_qa_history": True}),
    Rule("earlier", "history",
        lambda f, intent, auto: intent == "knowledge_base", {"use_curated_history": True}),
    Rule("facts", "keep-a-fact",
        lambda f, intent, auto: f.is_profile_statement and intent != "privacy"
        and not f.privacy_signal, {"save_profile": True}),
    Rule("profile", "all-that-is-stored",
        lambda f, intent, auto: intent == "privacy",
        {"privacy_mode": True, "inject_profile": True}),
    Rule("profile", "question-about-oneself",
        lambda f, intent, auto: intent == "profile"
        and (f.is_profile_question or not f.is_profile_statement), {"inject_profile": True}),
    Rule("profile", "refers-to-oneself",
        lambda f, intent, auto: f.has_preferences or (f.references_profile and f.has_profile_data)
        or (intent == "general" and bool(f.profile_name)), {"inject_profile": True}),
    Rule("reply", "privacy-is-ours",
        lambda f, intent, auto: intent == "privacy", {"reply": "privacy"}),
    Rule("reply", "profile-without-a-model",
        lambda f, intent, auto: intent == "profile", {"reply": "profile"}),
    Rule("reply", "general-without-a-model",
        lambda f, intent, auto: intent == "general" and not f.off_topic, {"reply": "greeting"}),
)  # fmt: skip


def _starts_anew(features: Features, intent: str) -> bool:
    """Return whether a message for the code has no earlier turn or code to go on from."""
    if intent not in NEED_CODE:
        return False
    has_earlier = features.conversation_length or features.has_context
    return features.off_topic or (intent == "continuation" and not has_earlier)


def _about_code(features: Features, intent: str) -> bool:
    return intent == "knowledge_base" or (intent == "continuation" and features.code_signal)


def _asks_more(features: Features, intent: str) -> bool:
    """Return true when in doubt: earlier hits stay among what may be sent."""
    return intent == "continuation" and features.has_context and not features.about_answer


def decide(features: Features, intent: Intent, *, auto: bool = False) -> PolicyDecision:
    """Apply the rules; `auto`: every question about the code searches, not only a tagged one."""
    decision, decided = PolicyDecision(intent.name), set[str]()
    for rule in RULES:
        if rule.group not in decided and rule.fits(features, decision.intent, auto):
            decided.add(rule.group)
            decision = replace(decision, rules=decision.rules + (rule.name,), **rule.change)
    return decision


# What the features are read by.

_OF_THE_ANSWER = word_set(
    "first second third fourth last latter former above below line lines two three mean means s"
)
"""Words that point into an answer, beside those that only ask."""


def extract_features(
    text: str,
    words: Reading,
    query: Query,
    personal: PersonalReading,
    *,
    tagged: bool,
    intent: Intent,
    by_words: Intent,
    profile: Mapping[str, str],
    messages: int,
    has_context: bool,
    asks_exactly: bool = False,
) -> Features:
    """Return the features of `text`, a message without tag and mode.

    `words`, `query` and `personal` are its readings. `intent` is its class, `by_words` the
    intent by words alone, which a tag or a model may override. `profile` has the facts from before,
    `messages` counts the earlier ones.
    """
    intents = (intent.name, by_words.name)
    names_code = query.names or query.qualified or query.files
    about_code = bool(names_code or query.points_at_code or query.filtered)
    about_code = about_code or asks("where_or_how", text) is not None
    needs_earlier = "continuation" in intents or points_back(words) or goes_on(words)
    return Features(
        is_greeting=is_greeting(text),
        references_profile=asks("about_user", text) is not None,
        privacy_signal="privacy" in intents or personal.keep_nothing,
        is_followup=messages > 0 and needs_earlier,
        is_profile_statement=bool(personal.facts),
        is_profile_question=personal.asks,
        has_profile_data=bool(profile),
        profile_name=profile.get("name", ""),
        conversation_length=messages,
        tagged=tagged or query.points_at_code,
        has_context=has_context,
        code_signal=about_code,
        has_preferences=bool(preferences({**profile, **personal.facts})),
        asks=wants_something(words),
        about_answer=messages > 0 and not about_code and _about_answer(words, query),
        asks_exactly=asks_exactly,
    )


def _about_answer(words: Reading, query: Query) -> bool:
    """Return whether a message without a code signal is about the last answer alone.

    It wants it in another form, doubts it, or has no word to find more code by.
    """
    if words.has("FORM", "DOUBT") and not words.has("if", "when"):
        return words.names <= 1
    telling = set(query.words) - QUESTION_WORDS - _OF_THE_ANSWER
    return all(word.isdigit() for word in telling)


def is_greeting(text: str) -> bool:
    """Return whether `text` greets, thanks or says goodbye, and nothing else."""
    return question_pattern("greeting").fullmatch(text) is not None
