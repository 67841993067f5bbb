"""Whether a message in a conversation is understood by itself."""

from __future__ import annotations

from codeqa.intents.reading import CODE, Reading, read
from codeqa.intents.signs import ORDERS, is_question, named_before, points


def stands_alone(text: str) -> bool:
    """Whether `text` is a question or an order that needs no earlier turn: it names code or two
    other things, and points to nothing but those ("how does the pool keep its workers")."""
    m = read(text, has_history=True)
    pointing = any(
        points(m, place) and not named_before(m, place) and not _owned(m, place)
        for kind in ("PRONOUN", "SUCH")
        for place in m.at.get(kind, ())
    )
    why = m.opens("why") and not m.near("why", "AUX", 1)  # "why a tree and not a list?"
    asks = is_question(m) or m.opens(*ORDERS)
    named = m.names >= 2 or m.has(CODE)
    return asks and named and not (pointing or why or m.begins("OPENING"))


def _owned(m: Reading, place: int) -> bool:
    return m.words[place] in ("its", "their") and any(map(m.specific, range(place)))
