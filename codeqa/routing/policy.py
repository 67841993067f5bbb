"""What is done for a message: its features, which are plain facts, and a table of rules over them.

Whatever answers wrongly in kind is corrected here and not in a prompt. The groups of rules are
gone through in order, and in each the first that fits decides; a group of which none fits decides
nothing. Rules see the intent as the first group settled it. docs/policy.md says them in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from codeqa.routing.intents import NEED_CODE, Intent, Reading, goes_on, points_back, wants_something
from codeqa.routing.personal import PersonalReading, preferences
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.text.tokens import word_set


@dataclass(frozen=True, slots=True)
class Features:
    """The nine features of the requirements, and ours after them."""

    is_greeting: bool = False
    """It greets, thanks or takes its leave, and nothing else."""
    references_profile: bool = False
    """It refers to the person: "given my experience"."""
    privacy_signal: bool = False
    """Something in it is about what is stored, or is not to be."""
    is_followup: bool = False
    """It cannot be understood without an earlier turn, there is one, and it stays with that."""
    is_profile_statement: bool = False
    """It clearly states a fact about its writer."""
    is_profile_question: bool = False
    """It asks for such a fact."""
    has_profile_data: bool = False
    profile_name: str = ""
    conversation_length: int = 0
    """Messages before this one, questions and answers."""

    tagged: bool = False
    """It asks for code: `@codebase`, `@name`, `/files` or `/all`."""
    has_context: bool = False
    """The conversation has code from an earlier search."""
    code_signal: bool = False
    """It names code, or asks where or how."""
    off_topic: bool = False
    """It leaves what the conversation was about, says the topic gate."""
    has_preferences: bool = False
    """There are lasting wishes as to the answers, or it states one."""
    asks: bool = False
    """It asks something, or asks for something."""
    about_answer: bool = False
    """It is about the last answer, its form or a part of it, and takes no other code."""
    asks_exactly: bool = False
    """It asks, as a whole, for what the index or git holds exactly: callers, routes, tests, …"""

    def leaving(self, to: str) -> Features:
        """Of a message that leaves the topic, for other `code` or elsewhere."""
        return replace(self, is_followup=False, off_topic=True, code_signal=to == "code")


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


class PolicyRule(NamedTuple):
    group: str
    name: str
    fits: Callable[[Features, str, bool], bool]
    """Given the features, the intent as decided so far, and whether retrieval is `auto`."""
    change: Mapping[str, Any]


RULES = (
    # A tag decides before anything else.
    PolicyRule("intent", "tagged",
        lambda seen, intent, auto: seen.tagged, {"intent": "knowledge_base"}),
    PolicyRule("intent", "not-to-be-kept",
        lambda seen, intent, auto: intent == "profile" and seen.privacy_signal,
        {"intent": "privacy"}),
    PolicyRule("intent", "question-beside-a-fact",
        lambda seen, intent, auto: intent == "profile" and not seen.is_profile_question
        and seen.asks and seen.code_signal, {"intent": "knowledge_base"}),
    # What is off topic is general, unless it is about other code.
    PolicyRule("intent", "new-topic-in-the-code",
        lambda seen, intent, auto: seen.code_signal and _starts_anew(seen, intent),
        {"intent": "knowledge_base"}),
    PolicyRule("intent", "new-topic",
        lambda seen, intent, auto: _starts_anew(seen, intent), {"intent": "general"}),
    PolicyRule("code", "search-as-tagged",
        lambda seen, intent, auto: seen.tagged, {"inject_rag": True}),
    PolicyRule("code", "search-automatically",
        lambda seen, intent, auto: auto and (_about_code(seen, intent) or _asks_more(seen, intent)),
        {"inject_rag": True, "searched_automatically": True}),
    # Never the code of an earlier topic.
    PolicyRule("code", "the-code-at-hand",
        lambda seen, intent, auto: intent in NEED_CODE and seen.has_context and not seen.off_topic,
        {"use_cached_context": True}),
    PolicyRule("code", "no-code-at-hand",
        lambda seen, intent, auto: _about_code(seen, intent)
        or (intent == "general" and seen.off_topic), {"suggest_codebase": True}),
    PolicyRule("answer", "counted-in-the-index",
        lambda seen, intent, auto: seen.asks_exactly and intent in NEED_CODE,
        {"answer_exactly": True}),
    PolicyRule("earlier", "conversation-so-far",
        lambda seen, intent, auto: intent == "continuation"
        or (intent == "knowledge_base" and seen.is_followup),
        {"use_curated_history": True, "inject_qa_history": True}),
    PolicyRule("earlier", "history",
        lambda seen, intent, auto: intent == "knowledge_base", {"use_curated_history": True}),
    PolicyRule("facts", "keep-a-fact",
        lambda seen, intent, auto: seen.is_profile_statement and intent != "privacy"
        and not seen.privacy_signal, {"save_profile": True}),
    PolicyRule("profile", "all-that-is-stored",
        lambda seen, intent, auto: intent == "privacy",
        {"privacy_mode": True, "inject_profile": True}),
    PolicyRule("profile", "question-about-oneself",
        lambda seen, intent, auto: intent == "profile"
        and (seen.is_profile_question or not seen.is_profile_statement), {"inject_profile": True}),
    PolicyRule("profile", "refers-to-oneself",
        lambda seen, intent, auto: seen.has_preferences
        or (seen.references_profile and seen.has_profile_data)
        or (intent == "general" and bool(seen.profile_name)), {"inject_profile": True}),
    PolicyRule("reply", "privacy-is-ours",
        lambda seen, intent, auto: intent == "privacy", {"reply": "privacy"}),
    PolicyRule("reply", "profile-without-a-model",
        lambda seen, intent, auto: intent == "profile", {"reply": "profile"}),
    PolicyRule("reply", "general-without-a-model",
        lambda seen, intent, auto: intent == "general" and not seen.off_topic,
        {"reply": "greeting"}),
)  # fmt: skip


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


# What the features are read by.

HELLO = (
    r"hi+|hello|hey|howdy|greetings|welcome|good (?:morning|afternoon|evening|day)"
    r"|nice to meet you"
)
THANKS = r"thanks?(?: you)?|thx|ty|cheers|much appreciated"
GOODBYE = r"bye|goodbye|see (?:you|ya)|cya|good night|farewell"
"""How people greet, thank and take their leave; blanks are single."""

_BESIDE = (
    r"there|all|everyone|again|so much|very much|a lot|codeqa|bot|team|and"
    r"|for (?:your|the) help|that helped|that helps|how are you(?: doing)?"
)
_GREETING = re.compile(
    rf"\W*(?:(?:{HELLO}|{THANKS}|{GOODBYE})\b\W*(?:(?:{_BESIDE})\b\W*)*)+", re.IGNORECASE
)

_KNOWN = (
    "name|role|job|level|experience|background|team|company|editor|preferences?|preferred|"
    "favou?rite|usual|profile|time ?zone|language|operating system|skills?"
)
_REFERS = re.compile(
    rf"\bmy (?:own )?(?:{_KNOWN})\b|\b(?:people|some(?:one|body)) like me\b|\bwho am i\b"
    r"|\bwhat you know about me\b|\b(?:as|like) i (?:said|told you|mentioned|prefer|like)\b",
    re.IGNORECASE,
)

_WHERE_OR_HOW = re.compile(
    r"\b(?:where|how)\b(?!\s+(?:are you|come|so\b|about|do you do))"
    r"|\b(?:which|what|who|whose) (?:\w+ ){0,2}(?:calls?|raises?|returns?|uses?|sets?|throws?"
    r"|functions?|methods?|class(?:es)?|modules?|files?|tests?|lines?|packages?|handlers?|types?)\b"
    r"|\b(?:functions?|methods?|class(?:es)?|modules?|source|code ?base|repository|repo|endpoints?"
    r"|implement(?:s|ed|ation)?|defined|called|calls|imported|raised|returned)\b",
    re.IGNORECASE,
)

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
    """Features of `text`, which is without tag and mode; pure.

    `words`, `query` and `personal` are the same, taken apart. `intent` is what it was classified
    as, `by_words` what the words alone say: a tag hides that, and so may a model. `profile`
    are the facts known before, `messages` is the length of the conversation so far.
    """
    says = (intent.name, by_words.name)
    named = query.names or query.qualified or query.files or query.points_at_code or query.filtered
    about_code = bool(named) or _WHERE_OR_HOW.search(text) is not None
    return Features(
        is_greeting=is_greeting(text),
        references_profile=_REFERS.search(text) is not None,
        privacy_signal="privacy" in says or personal.keep_nothing,
        is_followup=messages > 0
        and ("continuation" in says or points_back(words) or goes_on(words)),
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
    """Whether a message, without a sign of code, wishes the last answer in another form, doubts
    it, or has no word that more code could be found by."""
    if words.has("FORM", "DOUBT") and not words.has("if", "when"):
        return words.names <= 1
    telling = set(query.words) - QUESTION_WORDS - _OF_THE_ANSWER
    return all(word.isdigit() for word in telling)


def is_greeting(text: str) -> bool:
    """Whether `text` greets, thanks or takes its leave, and nothing else."""
    return _GREETING.fullmatch(text) is not None
