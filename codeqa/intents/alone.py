"""Whether a message in a conversation is understood by itself."""

from __future__ import annotations

from codeqa.intents.reading import CODE, Reading, read
from codeqa.intents.signs import named_before, points, wants_something


def stands_alone(text: str) -> bool:
    """Whether `text` is a question or an order that needs no earlier turn: it names code or two
    other things, and points to nothing but those ("how does the pool keep its workers")."""
    m = read(text, has_history=True)
    why = m.opens("why") and not m.near("why", "AUX", 1)  # "why a tree and not a list?"
    named = m.names >= 2 or m.has(CODE)
    return wants_something(m) and named and not (_points_back(m) or why or m.begins("OPENING"))


def points_back(text: str) -> bool:
    """Whether a word of `text` stands for something that only an earlier turn names."""
    return _points_back(read(text, has_history=True))


def goes_on(text: str) -> bool:
    """Whether `text` begins as what goes on from an earlier turn: "and", "what about"."""
    return read(text, has_history=True).begins("OPENING")


def _points_back(m: Reading) -> bool:
    return any(
        points(m, place) and not named_before(m, place) and not _owned(m, place)
        for kind in ("PRONOUN", "SUCH")
        for place in m.at.get(kind, ())
    )


def _owned(m: Reading, place: int) -> bool:
    return m.words[place] in ("its", "their") and any(map(m.specific, range(place)))
