"""What speaks for `general` (S3.03): what no look at the code would answer otherwise."""

from __future__ import annotations

from codeqa.intents.common import (
    ASKING,
    Rule,
    asks,
    free,
    of_the_code,
    remark_on_you,
    tells,
    to_the_app,
)
from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import free_pronoun, only, specific, strong_software


def _small_talk(m: Reading) -> bool:
    doubted = m.has_history and m.asks and m.length <= 2
    if m.opens("AUX", *ASKING) and not any("SOCIAL" in kinds for kinds in m.kinds[:1]):
        return False
    if m.has("PING") and m.length <= 3:
        return only(m, "PING", "SOCIAL", "FILLER") and not m.asks
    return m.has("SOCIAL") and only(m, "SOCIAL", "FILLER") and not doubted


def _nothing_said(m: Reading) -> bool:
    return not m.words


def _about_the_app(m: Reading) -> bool:
    """A question with the app as its subject that no code answers."""
    return (
        to_the_app(m)
        and not (of_the_code(m) or free(m))
        and not m.any_near(["YOU"], ["STORE", "REMEMBER", "WATCH", "FORM", "DELETE"], 4)
        and not (m.has("SEND") and m.has("MY", "OUR", "OTHERS", "SUCH", "ME"))
        and not (m.opens("HOW", "AUX", "WHERE") and strong_software(m) and m.has("CODE_VERB"))
    )


def _what_are_you(m: Reading) -> bool:
    return (
        (
            m.near("WHO", "YOU", 2)
            or m.near("WHAT", "YOU", 3)
            or m.near("HOW", "YOU", 3)
            or m.opens("help", "hilfe", "ayuda", "aide")
            or (m.has("APP") and asks(m))
        )
        and specific(m) <= 1
        and not m.has(
            "mean", "STORE", "ABOUT_ME", "REMEMBER", "SUCH", "OPINION", "DATA", CODE, "PRONOUN"
        )
    )


def _opinion(m: Reading) -> bool:
    advice = m.near("should", "i", 1) and m.opens("should", "AUX") and not strong_software(m)
    return (m.has("OPINION") or (advice and not m.has("PRONOUN"))) and not (
        of_the_code(m) or tells(m)
    )


def _choice(m: Reading) -> bool:
    """ "Tabs or spaces?": nothing but two things to choose from."""
    return (
        m.has("or", "vs", "versus")
        and not m.has("I")
        and m.length <= 7
        and m.has("TECH")
        and not of_the_code(m)
    )


def _knowledge(m: Reading) -> bool:
    if not m.has_history and m.near("what", "does", 1) and m.near("does", "mean", 3):
        return not of_the_code(m)
    if strong_software(m) and _definite(m):
        return False
    follows = m.has_history and (m.has("ORDINAL") or free_pronoun(m))
    names = any(place and not kinds for place, kinds in enumerate(m.kinds) if place in m.proper)
    told = m.has("OUR", "MY") or (names and m.has("difference"))
    return m.has("LORE") and not of_the_code(m) and not told and not follows


def _concept(m: Reading) -> bool:
    """ "What is a monad", "the difference between a list and a tuple": the same everywhere."""
    if of_the_code(m) or m.has("OUR", "here", "PRONOUN", "SUCH"):
        return False
    asked = m.near("what", "is", 1) or m.near("what", "are", 1) or m.has("difference", "mean")
    asked = asked or m.opens("explain", "define", "describe")
    if m.near("how", "does", 1) and m.any_near(["does"], ["a", "an"], 1) and m.words[-1] == "work":
        return not _definite(m)
    indefinite = m.any_near(
        ["is", "between", "explain", "define", "describe", "what", "a", "does"], ["a", "an"], 4
    )
    return asked and (indefinite or m.has("TECH")) and not _definite(m)


def _definite(m: Reading) -> bool:
    """Speaks of the one thing that there is here; "the difference" and "the best" are none."""
    words = ("difference", "best", "point", "meaning", "purpose", "idea", "concept", "advantage")
    return any(
        m.words[place + 1 : place + 2] and m.words[place + 1] not in words
        for place in m.at.get("the", ())
    )


def _how_to(m: Reading) -> bool:
    """ "How do I undo a commit in git": with a technology's name, and nothing of one's own."""
    return (
        (
            m.near("how", "i", 2)
            or m.near("how", "to", 1)
            or m.near("how", "you", 2)
            or m.near("how", "does", 1)
        )
        and m.has("TECH")
        and not of_the_code(m)
        and not m.has("OUR", "here", "PRONOUN", "SUCH")
        and not (m.near("how", "does", 1) and _definite(m))
    )


def _thanks(m: Reading) -> bool:
    return (
        m.has("THANKS")
        and not m.asks
        and not m.opens(*ASKING, "AUX", "TASK", "DELETE")
        and not m.has("FORM", "ORDINAL", "but", "NAME_IS", "LASTING", CODE, "am")
        and not (strong_software(m) or m.any_near(["MY"], ["FACT"], 3))
    )


def _praises(m: Reading) -> bool:
    """ "That was quick"."""
    subject = any(m.lead[p] == 0 for name in ("SUCH", "it", "YOU") for p in m.at.get(name, ()))
    last = bool(m.kinds) and "PRAISE" in m.kinds[-1]
    return (
        subject
        and last
        and m.has("is", "was", "are", "were")
        and not m.asks
        and m.length <= 6
        and not m.has("NOT", "DOUBT")
    )


def _sum(m: Reading) -> bool:
    return m.opens("WHAT", "HOW") and m.has("NUMBER") and specific(m) == 0 and not m.has_history


def _about_this_app(m: Reading) -> bool:
    return m.has("APP") and not m.has("STORE", "SEND", "WATCH", "DELETE", CODE)


def _praise(m: Reading) -> bool:
    """A short remark that begins as small talk and asks for nothing."""
    return (
        m.begins("SOCIAL")
        and not m.asks
        and m.length <= 12
        and not of_the_code(m)
        and not m.opens(*ASKING, "AUX", "TASK")
        and not m.has("FORM", "DOUBT", "ORDINAL", "NOT", "I", "MY", "SOFTWARE", "STORE", "DELETE")
    )


def _in_technology(m: Reading) -> bool:
    return (
        m.has("TECH")
        and asks(m)
        and not of_the_code(m)
        and not m.has("OUR", "here", "PRONOUN", "WHERE", "WHICH", "CODE_VERB")
    )


def _everyday(m: Reading) -> bool:
    return m.has("EVERYDAY") and not of_the_code(m) and not tells(m)


def _meta(m: Reading) -> bool:
    return (
        (
            m.any_near(["talk", "chat", "speak", "discuss"], ["about", "something"], 2)
            and m.has("let", "can", "could")
        )
        or (m.near("ask", "something", 3) or m.near("ask", "question", 4))
        or m.near("change", "subject", 3)
        or m.near("change", "topic", 3)
        or (m.near("have", "question", 3) and specific(m) <= 1)
    )


RULES = (
    Rule("small talk and nothing else", "general", 20, _small_talk),
    Rule("a remark that asks for nothing", "general", 4, _praise),
    Rule("thanks that ask nothing", "general", 10, _thanks),
    Rule("praise or blame", "general", 8, _praises),
    Rule("a sum", "general", 3, _sum),
    Rule("no words at all", "general", 3, _nothing_said),
    Rule("a question about the app", "general", 3, _about_the_app),
    Rule("asks what the app is or can do", "general", 3, _what_are_you),
    Rule("a remark on the app", "general", 2, remark_on_you),
    Rule("asks for an opinion", "general", 4, _opinion),
    Rule("a choice between two things", "general", 6, _choice),
    Rule("general knowledge", "general", 5, _knowledge),
    Rule("a concept that is the same everywhere", "general", 6, _concept),
    Rule("how something is done with a technology", "general", 3, _how_to),
    Rule("about this app", "general", 5, _about_this_app),
    Rule("about a technology as such", "general", 2, _in_technology),
    Rule("everyday things", "general", 4, _everyday),
    Rule("about the conversation itself", "general", 7, _meta),
)
