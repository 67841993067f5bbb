"""What speaks for `continuation` (S3.05): what only an earlier turn makes understood."""

from __future__ import annotations

from codeqa.intents.common import (
    ASKING,
    Rule,
    always,
    free,
    habit,
    i_am,
    opening,
    remark_on_you,
    tells,
    to_the_app,
)
from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import ends_with, free_pronoun, specific

_WEAK_DOUBTS = frozenset(
    ("really", "seriously", "hm", "hmm", "huh", "wirklich", "sicher", "vraiment", "seguro",
     "davvero", "echt", "точно", "правда")
)  # fmt: skip


def _told(m: Reading) -> bool:
    """Says something of the speaker and asks nothing, so that nothing need be filled in."""
    return not m.asks and (i_am(m) or habit(m) or tells(m))


def _short_opening(m: Reading) -> bool:
    return opening(m) and specific(m) <= 1 and not m.has("CODEBASE") and not _told(m)


def _poor(m: Reading) -> bool:
    return (
        m.has_history
        and specific(m) == 0
        and bool(m.words)
        and not (remark_on_you(m) or always(m) or _own(m) or _told(m))
        and not m.has("EVERYDAY", "LORE")
    )


def _own(m: Reading) -> bool:
    return m.has("ABOUT_ME") or m.any_near(["MY"], ["FACT", "DATA", "TALK"], 3)


def _light(m: Reading) -> bool:
    return (
        m.has_history
        and specific(m) == 1
        and m.length <= 7
        and not (m.has(CODE, "CODEBASE") or (to_the_app(m) and not free_pronoun(m)))
        and not _told(m)
    )


def _form(m: Reading) -> bool:
    return (
        m.has_history
        and m.has("FORM")
        and specific(m) <= 2
        and not (m.has("LASTING") or always(m) or _told(m))
    )


def _doubt(m: Reading) -> bool:
    """By a phrase; "really" and its like only where hardly anything else is said."""
    places = [p for p in m.at.get("DOUBT", ()) if m.length <= 3 or m.words[p] not in _WEAK_DOUBTS]
    return m.has_history and bool(places)


def _ordinal(m: Reading) -> bool:
    return m.has_history and m.has("ORDINAL") and specific(m) <= 3


def _ending(m: Reading) -> bool:
    return m.has_history and ends_with(m, "ENDING")


def _bare_why(m: Reading) -> bool:
    """A question word and no verb: "why half to even?"."""
    return (
        m.has_history and m.length <= 6 and m.opens(*ASKING) and not m.has("AUX", CODE, "CODEBASE")
    )


RULES = (
    Rule("begins as a follow-up", "continuation", 2, opening),
    Rule("a short follow-up", "continuation", 3, _short_opening),
    Rule("a pronoun without a referent", "continuation", 5, free),
    Rule("says nothing by itself", "continuation", 4, _poor),
    Rule("says little by itself", "continuation", 2, _light),
    Rule(
        "little and of something known",
        "continuation",
        1,
        lambda m: _light(m) and m.has("the", "LIGHT"),
    ),
    Rule("a wish as to the last answer", "continuation", 4, _form),
    Rule(
        "nothing but a wish as to the form",
        "continuation",
        3,
        lambda m: _form(m) and specific(m) == 0,
    ),
    Rule("doubts the last answer", "continuation", 4, _doubt),
    Rule("points to one of several", "continuation", 4, _ordinal),
    Rule("ends as a follow-up", "continuation", 3, _ending),
    Rule("a question word and no verb", "continuation", 2, _bare_why),
)
