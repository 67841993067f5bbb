"""What the policy looks at: a message in its conversation, as plain facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codeqa.code.counted import exact_question
from codeqa.routing.intents import Intent
from codeqa.routing.personal import PersonalReading, matching
from codeqa.routing.topic import Destination
from codeqa.routing.words import Reading, goes_on, points_back, wants_something
from codeqa.search import Query
from codeqa.search.query import QUESTION_WORDS
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
    rf"\b(?:given|considering|with|for|at|to|about|on|in|as per) my (?:own )?(?:{_KNOWN})\b"
    rf"|\b(?:some(?:one|body)|people|a person) like me\b|\bwhat you know about me\b"
    rf"|\b(?:as|like) i (?:said|told you|mentioned|prefer|like)\b|\bmy (?:{_KNOWN})\b|\bwho am i\b",
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
    leaves_for: Destination,
    profile: Mapping[str, str],
    messages: int,
    has_context: bool,
) -> Features:
    """Features of `text`, which is without tag and mode; pure.

    `words`, `query` and `personal` are the same, taken apart. `intent` is what it was classified
    as, `by_words` what the words alone say: a tag hides that, and so may a model. `leaves_for` is
    the topic gate's word, `profile` are the facts known before, `messages` is the length of the
    conversation so far.
    """
    says = (intent.name, by_words.name)
    named = query.names or query.qualified or query.files or query.points_at_code or query.filtered
    about_code = bool(named) or _WHERE_OR_HOW.search(text) is not None
    return Features(
        is_greeting=is_greeting(text),
        references_profile=_REFERS.search(text) is not None,
        privacy_signal="privacy" in says or personal.keep_nothing,
        is_followup=messages > 0
        and not leaves_for
        and ("continuation" in says or points_back(words) or goes_on(words)),
        is_profile_statement=bool(personal.facts),
        is_profile_question=bool(personal.asked),
        has_profile_data=bool(profile),
        profile_name=profile.get("name", ""),
        conversation_length=messages,
        tagged=tagged or query.points_at_code,
        has_context=has_context,
        code_signal=leaves_for == "code" if leaves_for else about_code,
        off_topic=bool(leaves_for),
        has_preferences=bool(matching({**profile, **personal.facts}, "preferences")),
        asks=wants_something(words),
        about_answer=messages > 0 and not about_code and _about_answer(words, query),
        asks_exactly=exact_question(text) is not None,
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
