"""What speaks for `profile` (S3.06): facts of the speaker, and wishes that last."""

from __future__ import annotations

from codeqa.intents.common import ASKING, Rule, always, habit, i_am, tells
from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import specific, strong_software


def _named(m: Reading) -> bool:
    return m.has("NAME_IS") and (m.language != "en" or not m.opens("WHAT", "HOW", "WHERE"))


def _my_fact(m: Reading) -> bool:
    return m.any_near(["MY"], ["FACT"], 3) and not _named(m)


def _introduces(m: Reading) -> bool:
    """ "Hey, this is Marco"."""
    return (
        not m.has_history
        and m.length <= 5
        and any(
            place + 2 in m.proper and m.words[place + 1] == "is" and place + 3 == m.length
            for place in m.at.get("this", ())
        )
    )


def _has_or_can(m: Reading) -> bool:
    """ "I have a degree in …", "I can read French"."""
    return (
        m.opens("I")
        and not m.asks
        and (
            (
                m.any_near(["have", "had"], ["FACT", "ROLE", "years", "NUMBER"], 5)
                and m.near("I", "have", 2)
            )
            or (m.near("I", "TONGUE", 6) and not m.has("DOUBT"))
        )
    )


def _wish_for_good(m: Reading) -> bool:
    return (
        m.has("LASTING")
        and m.has("ANSWER", "I", "ME", "MY", "HABIT")
        and not m.opens(*ASKING)
        and not m.asks
        and not m.near("NOT", "REMEMBER", 2)
    )


def _do_not(m: Reading) -> bool:
    """An order how to speak to the speaker: "don't call me buddy"."""
    if m.asks or m.has("STORE", "WATCH", "REMEMBER", "RECORDING", CODE, "CODEBASE"):
        return False
    to_me = (
        m.has("ME", "I")
        and m.has("ANSWER", "need")
        and m.opens("do", "no", "you", "skip")
        and (m.has("NOT", "skip"))
    )
    stops = any(
        m.lead[place] == 0 and m.words[place + 1 :] and m.words[place + 1].endswith("ing")
        for place in m.at.get("stop", ())
    )
    return stops or (to_me and not m.has("DOUBT"))


def _answers_so(m: Reading) -> bool:
    """A wish as to the answers in a first message, which can only be meant for good."""
    if m.has_history or m.asks or m.has("CODEBASE", CODE, "SOFTWARE"):
        return False
    return m.opens("ANSWER_ME") and specific(m) <= 3


def _asks_own_fact(m: Reading) -> bool:
    if m.near("who", "am", 1) and m.near("am", "i", 1) and m.length <= 4:
        return True
    if m.near("am", "I", 1) and m.any_near(["I"], ["ROLE"], 4):
        return True
    if m.language != "en":
        return False
    if m.near("tell", "my", 2) and m.any_near(["MY"], ["FACT"], 3):
        return True
    asks = m.opens("WHAT", "WHICH", "WHERE", "HOW", within=2) or m.near("YOU", "REMEMBER", 3)
    return asks and (
        m.any_near(["I"], ["PERSONAL_VERB"], 4)
        or (m.near("HOW", "I", 3) and m.any_near(["HOW"], ["old", "experienced", "long"], 1))
        or (m.near("FACT", "I", 4))
    )


def _do_you_know_mine(m: Reading) -> bool:
    return (
        m.near("YOU", "REMEMBER", 3)
        and m.any_near(["REMEMBER"], ["I", "MY"], 5)
        and not m.near("HOW", "YOU", 2)
        and not m.has("TALK", "ABOUT_ME")
    )


def _my_thing(m: Reading) -> bool:
    """ "My … is …", of anything that is no part of software."""
    stated = m.opens("MY") and not (m.asks or m.has(CODE, "CODEBASE", "TALK", "DATA", "DELETE"))
    return stated and not strong_software(m)


def _of_themselves(m: Reading) -> bool:
    return tells(m) and not strong_software(m)


RULES = (
    Rule("tells of themselves", "profile", 3, _of_themselves),
    Rule("tells of something of theirs", "profile", 3, _my_thing),
    Rule("tells a name", "profile", 5, _named),
    Rule("a fact of the speaker's own", "profile", 4, _my_fact),
    Rule("tells who they are", "profile", 4, i_am),
    Rule("tells what they do or like", "profile", 4, habit),
    Rule("introduces themselves", "profile", 6, _introduces),
    Rule(
        "a wish from now on",
        "profile",
        5,
        lambda m: m.has("FROM_NOW") and not (m.asks or m.opens(*ASKING)),
    ),
    Rule("tells what they have or can", "profile", 4, _has_or_can),
    Rule("a wish for all answers", "profile", 6, _wish_for_good),
    Rule("an order that always holds", "profile", 7, always),
    Rule("an order how to be spoken to", "profile", 4, _do_not),
    Rule("a wish as to the answers in a first message", "profile", 3, _answers_so),
    Rule("asks for a fact about themselves", "profile", 5, _asks_own_fact),
    Rule("asks whether a fact is still known", "profile", 5, _do_you_know_mine),
)
