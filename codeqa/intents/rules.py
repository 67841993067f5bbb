"""The rules: what speaks for an intent, how strongly, and in which words that is told.

Every rule that holds adds its weight to its intent; `by_heuristics` compares the sums. 1 is a
hint, 2 an indication, 4 decides where nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeqa.intents import signs
from codeqa.intents.reading import CODE, Reading


@dataclass(frozen=True, slots=True)
class Rule:
    """`weight` for `intent` when the message `holds`. `name` tells it in words."""

    name: str
    intent: str
    weight: int
    holds: Callable[[Reading], bool]


RULES = (
    Rule("asks the app to delete what it holds", "privacy", 4, signs.deletes),
    Rule("orders to delete something of theirs", "privacy", 7, signs.orders_deletion),
    Rule("asks what is kept of theirs", "privacy", 4, signs.kept_of_theirs),
    Rule(
        "asks what the app keeps", "privacy", 11,
        lambda m: (m.near("YOU", "STORE", 4) or m.near("STORE", "YOU", 2))
        and not m.has(CODE, "CODEBASE", "FACT", "FORM", "LASTING"),
    ),
    Rule("asks what is kept at all", "privacy", 8, signs.keeps_at_all),
    Rule("asks about their own words or data", "privacy", 7, signs.own_words),
    Rule(
        "asks for all that is known of the speaker", "privacy", 6,
        lambda m: m.has("ABOUT_ME")
        and m.has("REMEMBER", "STORE", "YOU", "DATA", "WHAT", "have"),
    ),
    Rule(
        "asks what is remembered of what was said", "privacy", 7,
        lambda m: m.asks and (
            (m.near("YOU", "REMEMBER", 3) and m.near("REMEMBER", ("TALK", "SUCH"), 4))
            or m.near("it", "REMEMBER", 1)
        ),
    ),
    Rule("asks not to keep something", "privacy", 10, signs.not_kept),
    Rule("asks who else gets to see it", "privacy", 8, signs.seen_by_others),
    Rule("asks where their own goes", "privacy", 7, signs.sent),
    Rule(
        "worries about being watched", "privacy", 3,
        lambda m: m.has("WATCH") and m.has("YOU", "ME", "I", "MY", "here") and not signs.of_code(m),
    ),
    Rule(
        "speaks of privacy", "privacy", 8,
        lambda m: m.has("PRIVATE") and not signs.of_code(m)
        and (m.has("MY", "I", "TALK") or not signs.software(m)),
    ),
    Rule(
        "asks for a copy of their data", "privacy", 5,
        lambda m: m.has("copy", "export", "download") and m.near("MY", ("DATA", "TALK"), 3)
        and not m.has(CODE),
    ),
    Rule("has pasted a secret", "privacy", 12, signs.pasted_secret),
    Rule(
        "asks how the app knows that", "privacy", 10,
        lambda m: m.near(("how", "why"), "know", 4) and m.near("YOU", "know", 2)
        and m.has("I", "MY", "ABOUT_ME"),
    ),
    Rule(
        "tells a name", "profile", 6,
        lambda m: m.has("NAME_IS") and not m.opens(*signs.QUESTION),
    ),
    Rule(
        "a fact of the speaker's own", "profile", 4,
        lambda m: m.near("MY", "FACT", 3) and not m.opens("AUX") and not m.has("NAME_IS"),
    ),
    Rule("tells who they are", "profile", 4, signs.who_they_are),
    Rule("tells what they do or like", "profile", 4, signs.habit),
    Rule("tells of themselves", "profile", 3, signs.of_themselves),
    Rule("has a wish for all answers", "profile", 6, signs.lasting_wish),
    Rule("gives an order that always holds", "profile", 7, signs.always),
    Rule("orders how to answer", "profile", 4, signs.how_to_answer),
    Rule("asks for a fact about themselves", "profile", 5, signs.asks_own_fact),
    Rule(
        "asks whether a fact is still known", "profile", 5,
        lambda m: m.near("YOU", "REMEMBER", 3) and m.near("REMEMBER", ("I", "MY", "ME"), 5)
        and not m.has("TALK", "ABOUT_ME", "SECRET", "how"),
    ),
    Rule("small talk and nothing else", "general", 10, signs.small_talk),
    Rule("thanks that ask nothing", "general", 10, signs.thanks),
    Rule("a remark that asks for nothing", "general", 8, signs.remark),
    Rule("praise or blame", "general", 9, signs.praise),
    Rule("no words at all", "general", 3, lambda m: not m.words),
    Rule("a question about the app", "general", 5, signs.about_the_app),
    Rule("asks for an opinion", "general", 5, signs.opinion),
    Rule("a concept that is the same everywhere", "general", 7, signs.concept),
    Rule("about a technology as such", "general", 4, signs.technology),
    Rule("everyday things", "general", 8, signs.everyday),
    Rule("about the conversation itself", "general", 6, signs.about_the_talk),
    Rule(
        "a first message", "knowledge_base", 1,
        lambda m: bool(m.words) and not m.has_history,
    ),
    Rule("names code or the code base", "knowledge_base", 5, signs.of_code),
    Rule("software is the subject", "knowledge_base", 2, signs.software),
    Rule("a question about code beside a remark", "knowledge_base", 6, signs.beside_a_remark),
    Rule("asks where, which or who in the code", "knowledge_base", 2, signs.software_location),
    Rule("a question complete in itself", "knowledge_base", 1, signs.complete_question),
    Rule(
        "begins as a follow-up", "continuation", 2,
        lambda m: m.has_history and m.begins("OPENING"),
    ),
    Rule("a pronoun without a referent", "continuation", 4, signs.pronoun),
    Rule("says nothing by itself", "continuation", 3, signs.says_nothing),
    Rule(
        "says little by itself", "continuation", 3,
        lambda m: m.has_history and m.names == 1 and m.length <= 8
        and not (signs.of_code(m) or signs.tells(m)),
    ),
    Rule(
        "a wish as to the last answer", "continuation", 4,
        lambda m: m.has_history and m.has("FORM") and m.names <= 2
        and not (signs.tells(m) or m.has("LASTING", "always", "never")),
    ),
    Rule(
        "doubts the last answer", "continuation", 4,
        lambda m: m.has_history and m.has("DOUBT"),
    ),
)  # fmt: skip
