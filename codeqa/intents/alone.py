"""Whether a message in a conversation is understood by itself."""

from __future__ import annotations

from codeqa.intents.reading import CODE, read
from codeqa.intents.signs import pronoun, wants_something


def stands_alone(text: str) -> bool:
    """Whether `text` is a question or an order that needs no earlier turn: it names code or two
    other things, and points to nothing but those ("how does the pool keep its workers")."""
    m = read(text, has_history=True)
    why = m.opens("why") and not m.near("why", "AUX", 1)  # "why a tree and not a list?"
    named = m.names >= 2 or m.has(CODE)
    return wants_something(m) and named and not (pronoun(m) or why or m.begins("OPENING"))


def points_back(text: str) -> bool:
    """Whether a word of `text` stands for something that only an earlier turn names."""
    return pronoun(read(text, has_history=True))


def goes_on(text: str) -> bool:
    """Whether `text` begins as what goes on from an earlier turn: "and", "what about"."""
    return read(text, has_history=True).begins("OPENING")
