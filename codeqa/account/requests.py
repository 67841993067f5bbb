"""What a message asks of what is known of its writer: to be told it, or to have it deleted.

Nothing is deleted but by `confirmed_scope` and `facts_to_forget`, which take exact words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codeqa.account.facts import (
    SENTENCE_CHARACTERS,
    detect_facts,
    spelled,
    without_introduction,
)
from codeqa.intents.reading import read
from codeqa.intents.signs import not_kept

CONFIRMATIONS = {
    "conversation": "delete this conversation for good",
    "profile": "delete my profile for good",
    "everything": "delete everything for good",
}
"""What is to be sent, exactly, before something is deleted."""


@dataclass(frozen=True, slots=True)
class PersonalReading:
    """What a message says to the app about its writer, worked out once."""

    facts: Mapping[str, str]
    """Facts that its writer states of themselves, by their key."""
    asked: str
    """The kind of fact that it asks for; `*` for all, '' for none."""
    forget: tuple[str, ...]
    """Kinds or keys of single facts that are to be forgotten."""
    keep_nothing: bool
    """Its writer does not want it to be kept."""
    wished: str
    """The scope that it asks to delete, which must be confirmed; '' for none."""
    confirmed: str
    """The scope that it confirms to delete, in the exact words; '' for none."""

    @property
    def deletes(self) -> bool:
        """It deletes something by itself, so that no model may decide what it is."""
        return bool(self.confirmed or self.forget)


def read_personal(text: str) -> PersonalReading:
    """Read `text`, which comes without tag and mode."""
    return PersonalReading(
        facts=detect_facts(text),
        asked=asked_fact(text),
        forget=facts_to_forget(text),
        keep_nothing=not_kept(read(text, has_history=False)),
        wished=wished_scope(text),
        confirmed=confirmed_scope(text),
    )


def confirmed_scope(text: str) -> str:
    """What `text` confirms to delete: `conversation`, `profile`, `everything`, or '' for none.

    Only the whole sentence counts; case, blanks around it, a full stop and quotes do not.
    """
    said = " ".join(text.split()).strip(" `'\"“”.!").lower()
    return next((scope for scope in CONFIRMATIONS if said == CONFIRMATIONS[scope]), "")


def wished_scope(text: str) -> str:
    """What `text` asks to delete, '' when it asks for none; it must be confirmed."""
    said = read(text, has_history=False)
    # A question about deleting is answered by the account; it is not the wish to.
    asks = said.opens("WHAT", "WHERE") or (said.opens("AUX") and not said.near("AUX", "YOU", 1))
    if asks or not said.has("DELETE"):
        return ""
    if said.has(*_ALL) or said.near("MY", _ALL_OF_MINE, 2):
        return "profile" if said.has(*_PROFILE) and not said.has("everything") else "everything"
    if said.has(*_PROFILE, "ABOUT_ME", "ME"):
        return "profile"
    return "conversation" if said.has("TALK", "SUCH", "PRONOUN") else ""


def asked_fact(text: str) -> str:
    """The kind of fact that `text` asks for: `name`; `*` for all, '' for none."""
    said = read(text[:SENTENCE_CHARACTERS], has_history=False)
    asks = ("WHAT", "WHERE", "REMEMBER", "tell", "say", "remind")
    for place in said.at.get("MY", ()) if said.near(asks, "MY", 5) else ():
        words = [word for word in said.words[place + 1 :] if word not in ("first", "full")]
        for length in (2, 1):
            after = words[length : length + 1]
            noun = _NOUNS.get(" ".join(words[:length]), "")
            if noun and (not after or after[0] in ("is", "are", "was", "again")):
                return noun
        if words and words[0] in ("favourite", "favorite", "preferred"):
            return "fact"
    if said.near(("who", "wer", "qui", "quién"), "I", 2):
        return "*"
    if said.has("ABOUT_ME") and said.near("WHAT", ("know", "remember", "have", "tell", "told"), 3):
        return "*"
    if said.has("NAME_IS") and said.begins("WHAT"):
        return "name"
    if said.near("language", ("I", "YOU"), 2) and said.has("PREFER", "REPLY", "choose", "use"):
        return "language"
    return "verbosity" if said.near("how", ("SHORT", "LONG"), 1) and said.has("REPLY") else ""


def facts_to_forget(text: str) -> tuple[str, ...]:
    """The single facts that `text` wants to be forgotten, each by its kind, its key or what was
    told: `("name",)`, `("fact-8c540f", "my editor is emacs")`.

    Empty for anything else, also for the whole profile: that is asked back first.
    """
    asked = " ".join(spelled(text[:SENTENCE_CHARACTERS]).split())
    found = _FORGET.match(without_introduction(asked))
    if not found:
        return ()
    if clause := found["clause"]:
        return (*(detect_facts(clause) or detect_facts(f"remember that {clause}")), clause)
    return (_NOUNS[found["noun"].lower()],)


_ALL = ("all", "everything", "alle", "alles", "tout", "toutes", "todo", "todos", "tutto")
_ALL_OF_MINE = ("DATA", "chats", "conversations", "messages", "questions", "history", "account")
_PROFILE = ("profile", "profil", "perfil")

_NOUNS = {
    **{kind: kind for kind in ("name", "language", "verbosity", "role", "team", "employer",
                               "editor", "timezone", "experience")},
    "preferred language": "language", "preferences": "format", "namen": "name", "nom": "name",
    "prénom": "name", "nombre": "name", "nome": "name", "naam": "name", "job": "role",
    "job title": "role", "company": "employer", "favourite editor": "editor",
    "time zone": "timezone", "programming language": "code language",
}  # fmt: skip
"""What a fact is called → its kind; those that are not learnt any more may still be kept."""
_NOUN = "|".join(sorted(_NOUNS, key=len, reverse=True))
_FORGET = re.compile(
    r"(?:can\s+you\s+|could\s+you\s+|please\s+|bitte\s+|i\s+want\s+you\s+to\s+|you\s+can\s+)*"
    r"(?:forget|unremember|delete|remove|erase|drop|vergiss|lösche?|oublie|supprime|olvida|borra|"
    r"esquece|esqueça|apaga|dimentica|cancella|vergeet)\s+(?:bitte\s+|about\s+)?(?:"
    rf"(?:my|meinen?|mon|ma|mi|o\s+meu|meu|il\s+mio|mijn)\s+(?P<noun>{_NOUN})(?:\s+(?:again|please))?"
    r"|(?:that|dass|que|che|dat)\s+(?P<clause>(?:i|i'm|i've|my|we|ich|je|mi|me)\b.+))\s*[.!]*$",
    re.IGNORECASE,
)
