"""The rules of the policy, one by one and together, and the features that they look at."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

from chat_kit import features_of
from conftest import ROOT

from codeqa.routing.intents import INTENTS, Intent
from codeqa.routing.policy import RULES, Features, PolicyDecision, decide

REPLIES = ("", "greeting", "profile", "privacy")
LATER = Features(conversation_length=4)
"""A message with earlier turns and nothing else about it."""


def resolve(
    intent: str, features: Features = LATER, retrieval: str = "explicit", **changed: Any
) -> PolicyDecision:
    seen = replace(features, **changed)
    return decide(seen, Intent(intent, 0.9, "heuristics"), auto=retrieval == "auto")


def test_general_gets_the_question_alone() -> None:
    """S3.03: the system prompt and the message, whatever the conversation holds."""
    for retrieval in ("explicit", "auto"):
        decision = resolve("general", retrieval=retrieval, has_context=True, code_signal=True)
        assert decision == PolicyDecision(
            "general", reply="greeting", rules=("general-without-a-model",)
        )


def test_whatever_the_features_are_the_promises_hold() -> None:
    """A part of all combinations of what the rules look at, every intent, both retrieval modes."""
    looked_at = (
        "tagged", "privacy_signal", "is_profile_statement", "is_profile_question", "asks",
        "code_signal", "has_context", "off_topic", "is_followup", "has_preferences", "about_answer",
    )  # fmt: skip
    broken, decided = [], set[str]()
    every = itertools.product((False, True), repeat=len(looked_at))
    for values in itertools.islice(every, 0, None, 7):
        for length in (0, 2):
            seen = Features(**dict(zip(looked_at, values, strict=True)), conversation_length=length,
                            asks_exactly=bool(length))  # fmt: skip
            for intent, retrieval in itertools.product(INTENTS, ("explicit", "auto")):
                made = resolve(intent, seen, retrieval)
                decided.update(made.rules)
                promises = {
                    "known": made.intent in INTENTS and made.reply in REPLIES,
                    "privacy is ours alone": made.intent != "privacy"
                    or (made.reply == "privacy" and made.privacy_mode and made.inject_profile),
                    "privacy mode only then": made.privacy_mode == (made.intent == "privacy"),
                    "only code questions get code": made.intent
                    in ("knowledge_base", "continuation")
                    or not (made.inject_rag or made.use_cached_context),
                    "the tag is suggested for code alone, or where the topic was left": made.intent
                    in ("knowledge_base", "continuation")
                    or made.suggest_codebase == (made.intent == "general" and seen.off_topic),
                    "and only they get the conversation": made.intent
                    in ("knowledge_base", "continuation")
                    or not (made.use_curated_history or made.inject_qa_history),
                    "new code or old": not (made.inject_rag and made.use_cached_context),
                    "no suggestion beside code": not (
                        made.suggest_codebase and (made.inject_rag or made.use_cached_context)
                    ),
                    "unasked only in auto": made.searched_automatically
                    == (made.inject_rag and not seen.tagged)
                    and (retrieval == "auto" or not made.searched_automatically),
                    "a tag always searches": made.inject_rag or not seen.tagged,
                    "no stale code": not (seen.off_topic and made.use_cached_context),
                    "wishes are always told": made.inject_profile or not seen.has_preferences,
                    "nothing private is kept": not (made.save_profile and seen.privacy_signal),
                }
                broken += [(name, intent, retrieval, seen) for name, kept in promises.items()
                           if not kept]  # fmt: skip
    assert not broken, broken[:3]
    assert decided == {rule.name for rule in RULES}


def test_what_is_decided_where_no_promise_tells_it() -> None:
    off = {"off_topic": True, "has_context": True}
    code = {"intent": "knowledge_base", "use_cached_context": False}
    nothing = {"use_cached_context": False, "inject_rag": False, "use_curated_history": False}
    so_far = {"use_curated_history": True, "inject_qa_history": True}
    cases: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
        ("continuation", {**off, "code_signal": True}, "explicit",
         {**code, "inject_rag": False, "suggest_codebase": True}),
        ("continuation", {**off, "code_signal": True}, "auto", {**code, "inject_rag": True}),
        ("continuation", off, "auto", {"intent": "general", **nothing}),
        ("continuation", {"conversation_length": 0}, "explicit", {"intent": "general", **nothing}),
        ("continuation", {"conversation_length": 0, "has_context": True}, "explicit",
         {"intent": "continuation", "use_cached_context": True}),
        *(("general", {"tagged": True, "is_greeting": True, "conversation_length": length},
           "explicit", {"intent": "knowledge_base", "reply": "", "inject_rag": True,
                        "use_curated_history": True}) for length in (0, 2)),
        ("continuation", {"has_context": True}, "auto", {"searched_automatically": True}),
        ("continuation", {"has_context": True, "about_answer": True}, "auto",
         {"use_cached_context": True, "inject_rag": False}),
        ("continuation", {}, "explicit", so_far),
        ("knowledge_base", {"tagged": True, "is_followup": True}, "explicit", so_far),
        ("knowledge_base", {}, "auto", {"use_curated_history": True, "inject_qa_history": False}),
        ("knowledge_base", {"references_profile": True, "has_profile_data": True}, "explicit",
         {"inject_profile": True}),
    ]  # fmt: skip
    for intent, changed, retrieval, expected in cases:
        decision = resolve(intent, retrieval=retrieval, **changed)
        found = {name: getattr(decision, name) for name in expected}
        assert found == expected, (intent, changed, retrieval)


def test_the_document_says_the_rules_in_the_order_in_which_they_decide() -> None:
    document = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| `([\w-]+)` \| .+ \| .+ \|$", document, re.MULTILINE)
    assert rows == [(rule.group, rule.name) for rule in RULES]
    groups = re.findall(r"^\| `(\w+)` \| \w", document, re.MULTILINE)
    assert groups == list(dict(rows))


# features


def test_a_greeting_is_nothing_but_a_greeting() -> None:
    for text, greets in (
        ("Hello there!", True),
        ("hey codeqa, thanks a lot :)", True),
        ("hi, where is the cache?", False),
        ("thanks, and how is it closed?", False),
        ("", False),
    ):
        assert features_of(text).is_greeting is greets


def test_code_signals_are_names_of_code_and_questions_for_a_place() -> None:
    for text, about_code in (
        ("what does parse_config return", True),
        ("explain `Session`", True),
        ("and @Router.add", True),
        ("where is the cache cleared", True),
        ("who calls that", True),
        ("thanks a lot", False),
        ("how are you", False),
        ("tabs or spaces?", False),
        ("what do you think about rain", False),
    ):
        assert features_of(text).code_signal is about_code


def test_a_follow_up_is_about_the_last_answer_or_asks_for_more_code() -> None:
    for text, about_answer in (
        ("explain the second one", True),
        ("shorter please", True),
        ("in German", True),
        ("what does that mean", True),
        ("give me an example", True),
        ("who registers them", False),
        ("what if the view raises?", False),
        ("and the tests of it?", False),
        ("where is that tested", False),
        ("shorter, and where is `Session.get` defined?", False),
    ):
        assert features_of(text, messages=2, intent="continuation").about_answer is about_answer
        assert not features_of(text).about_answer, "a first message"


def test_features_of_the_conversation_and_the_profile_are_passed_on() -> None:
    profile = {"name": "Ada", "language": "German"}
    seen = features_of(
        "what is my name?", messages=6, intent="profile", profile=profile, has_context=True
    )
    assert (seen.profile_name, seen.conversation_length) == ("Ada", 6)
    assert seen.has_profile_data and seen.has_preferences and seen.has_context
    assert seen.is_profile_question and not seen.is_profile_statement
    seen = features_of("Please always answer in German.", intent="profile")
    assert seen.is_profile_statement and seen.has_preferences and not seen.has_profile_data


def test_a_tagged_follow_up_is_still_seen_as_one() -> None:
    text = "and who calls it?"
    assert features_of(text, tagged=True, messages=2).is_followup
    assert not features_of(text, tagged=True, messages=0).is_followup
    assert not features_of("where is `Session.get` defined?", tagged=True, messages=2).is_followup


def test_a_fact_beside_a_code_question_is_kept_and_what_is_not_to_be_kept_is_privacy() -> None:
    text = "I prefer short answers. How does the worker pool work?"
    for intent in ("knowledge_base", "profile"):
        seen = features_of(text, intent=intent)
        decision = decide(seen, Intent(intent, 0.6, "model"), auto=True)
        assert decision.intent == "knowledge_base" and decision.inject_rag, intent
        assert decision.save_profile, intent
    seen = features_of("My name is Lee, but please do not save it.", intent="profile")
    decision = decide(seen, Intent("profile", 0.9, "model"))
    assert (decision.intent, decision.save_profile) == ("privacy", False)


def test_hostile_messages_are_read_in_bounded_time() -> None:
    for text in ("(" * 20_000, "hi " * 8_000, "my " * 8_000, "?\n" * 10_000):
        features_of(text, messages=2)
