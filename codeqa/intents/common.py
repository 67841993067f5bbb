"""What a rule is, and what rules of several intents ask of a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import free_pronoun


@dataclass(frozen=True, slots=True)
class Rule:
    """`weight` for `intent` when the message `holds`. `name` tells it in words."""

    name: str
    intent: str
    weight: int
    holds: Callable[[Reading], bool]


ASKING = ("WHERE", "WHO", "WHICH", "WHAT", "HOW", "WHY", "WHEN")
"""Kinds of words that questions begin with."""


_MOMENTARY = frozenset(
    ("want", "need", "get", "got", "try", "tried", "trying", "see", "think", "meant", "mean",
     "found", "find", "expected", "thought", "guess", "wonder", "can", "question", "problem",
     "error", "issue", "wish", "hope", "pasted", "saw", "understand", "forgot", "will", "should",
     "must", "could", "ask", "asked", "said", "looked", "looking", "agree", "disagree", "suppose",
     "writing", "trying", "working", "building", "debugging", "changed", "added", "removed", "ran",
     "run", "call", "set", "would", "bet", "appreciate", "sorry", "see", "just", "am", "tell",
     "told", "was", "wrote", "love")
)  # fmt: skip
"""Words after "I" that tell of the moment, not of the speaker; "am" has a rule of its own."""


def asks(m: Reading) -> bool:
    """A question by its mark or its first word."""
    return m.asks or m.opens(*ASKING, "AUX")


def to_you(m: Reading) -> bool:
    """A question or a request that is put to the app: "can you", "do you"."""
    return m.near("AUX", "YOU", 1) and m.opens("AUX", within=2)


def tells(m: Reading) -> bool:
    """A statement with the speaker as its subject, other than a wish, a need or a trouble."""
    if m.asks or m.opens(*ASKING, "AUX", "TASK") or m.has(CODE, "CODEBASE", "DOUBT") or m.panic:
        return False
    starts = [p for p in m.at.get("I", ()) if m.lead[p] <= 1]
    return bool(starts) and not any(
        word in _MOMENTARY for p in starts for word in m.words[p + 1 : p + 4]
    )


def to_the_app(m: Reading) -> bool:
    """A question with the app as its subject, and not an order in the form of one."""
    order = m.any_near(["YOU"], ["TASK", "CODE_VERB"], 2)
    if m.language != "en":
        return m.has("YOU") and (m.asks or m.opens(*ASKING)) and not order
    of_it = m.near("AUX", "YOU", 1) and m.opens("AUX", *ASKING, within=2)
    of_its = m.near("AUX", "YOUR", 1) and m.opens(*ASKING)
    able = m.any_near(["can", "could", "would", "will"], ["YOU"], 1)
    return (of_it or of_its) and not (able and order)


def of_the_code(m: Reading) -> bool:
    """Speaks of code: by pieces of it, or by naming the code base."""
    return m.has(CODE, "CODEBASE") or m.panic


def i_am(m: Reading) -> bool:
    """Tells who or what the speaker is."""
    if not m.opens("I", within=2) or (m.opens(*ASKING) and m.asks):
        return False
    if any(
        place + 2 in m.proper for place in m.at.get("I", ()) if m.words[place + 1 :][:1] == ["am"]
    ):
        return True
    return (
        m.near("I", "am", 2)
        and m.any_near(
            ["am"], ["ROLE", "a", "an", "from", "on", "in", "NUMBER", "OTHERS", "SUCH"], 4
        )
    ) or (m.language != "en" and m.any_near(["I"], ["ROLE", "HABIT"], 4))


def only_wishes(m: Reading, subject: int, verb: int) -> bool:
    """ "I would like to know", "I like to see": a wish of the moment."""
    return "would" in m.words[subject:verb] and m.words[verb] in ("like", "love", "know", "prefer")


def habit(m: Reading) -> bool:
    """Tells what the speaker does, likes or knows."""
    if m.has("ROLE") and m.language in ("zh", "ja", "ko", "ru", "es", "it", "pt") and not asks(m):
        return m.has("I", "HABIT", "ROLE") and m.length <= 14
    if m.language in ("es", "pt", "it", "pl", "zh", "ja", "ko"):
        return m.has("HABIT") and not asks(m)
    if m.has("APP"):
        return False
    places = [p for p in m.at.get("I", ()) if m.lead[p] <= 1 or m.words[p - 1] in ("and", "that")]
    return any(
        any(
            p < q <= p + 3 and m.sentence[p] == m.sentence[q] and not only_wishes(m, p, q)
            for q in m.at.get("HABIT", ())
        )
        for p in places
    ) and not m.opens(*ASKING)


def always(m: Reading) -> bool:
    """An order that is to hold always."""
    return m.opens("ALWAYS", within=2) and not m.asks and not m.opens(*ASKING, "AUX")


def remark_on_you(m: Reading) -> bool:
    """ "You are …", said of the app."""
    return m.near("you", "are", 1) and not m.opens(*ASKING) and not m.has("CODEBASE", CODE)


def opening(m: Reading) -> bool:
    """Begins with a word that goes on from something."""
    return m.has_history and bool(m.words) and "OPENING" in m.kinds[0]


def free(m: Reading) -> bool:
    """A pronoun that only the turn before can explain."""
    return m.has_history and free_pronoun(m)
