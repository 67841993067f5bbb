"""Whether a message in a conversation is understood by itself, and whether it wants something."""

from __future__ import annotations

from codeqa.routing.words import CODE, Reading, read

_ORDERS = ("show", "list", "explain", "describe", "find", "tell", "give", "write", "fix", "add",
           "compare")  # fmt: skip
_NO_POINTING = {"CODEBASE", "EVERYDAY", "SOCIAL", "OPINION", "YOU", "LASTING", "PRIVATE"}
"""Kinds of phrases in which a pronoun is none."""


def wants_something(message: Reading) -> bool:
    """A question, by its mark or its first word, or an order."""
    return message.asks or message.opens("WHERE", "WHAT", "AUX", *_ORDERS)


def stands_alone(text: str) -> bool:
    """Whether `text` is a question or an order that needs no earlier turn: it names code or two
    other things, and points to nothing but those ("how does the pool keep its workers")."""
    message = read(text, has_history=True)
    why = message.opens("why") and not message.near("why", "AUX", 1)  # "why a tree, not a list?"
    named = message.names >= 2 or message.has(CODE)
    points = _points_back(message) or why or message.begins("OPENING")
    return wants_something(message) and named and not points


def points_back(text: str) -> bool:
    """Whether a word of `text` stands for something that only an earlier turn names."""
    return _points_back(read(text, has_history=True))


def goes_on(text: str) -> bool:
    """Whether `text` begins as what goes on from an earlier turn: "and", "what about"."""
    return read(text, has_history=True).begins("OPENING")


def _points_back(message: Reading) -> bool:
    places = (*message.at.get("PRONOUN", ()), *message.at.get("SUCH", ()))
    return any(_points(message, at) and not _named_before(message, at) for at in places)


def _points(message: Reading, place: int) -> bool:
    """Whether a pronoun is one: no part of a phrase, no "that" which begins a clause."""
    if message.kinds[place] & _NO_POINTING:
        return False
    if message.words[place] != "that" or not 0 < place < message.length - 1:
        return True
    return not (message.specific(place - 1) or "SOFTWARE" in message.kinds[place - 1])


def _named_before(message: Reading, place: int) -> bool:
    """Whether what a pronoun stands for may be named in the message itself."""
    if any(CODE in kinds for kinds in message.kinds[: place + 2]):
        return True
    named = [before for before in range(place) if message.specific(before)]
    if not named:
        return False
    owned = message.words[place] in ("its", "their")  # "how does the pool keep its workers"
    earlier = message.clause[named[0]] < message.clause[place]
    return owned or earlier or (len(named) > 1 and "and" in message.words[named[1] : place])
