"""What a message asks of what is known of its writer: to be told it, or to have it deleted.

Nothing is deleted but by `confirmed_scope` and `facts_to_forget`, which take exact words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codeqa.account.facts import (
    NOT_TO_BE_KEPT,
    SENTENCE_CHARACTERS,
    detect_facts,
    spelled,
    without_introduction,
)
from codeqa.intents.reading import read

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
        keep_nothing=bool(NOT_TO_BE_KEPT.search(text)),
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
    asked = " ".join(spelled(text[:SENTENCE_CHARACTERS]).lower().split())
    if found := _ASKED_NOUN.search(asked):
        return _NOUNS[found["noun"]]
    for kind, pattern in _ASKED:
        if pattern.search(asked):
            return kind
    return ""


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

_KNOW = (
    r"(?:what(?:'?s|\s+is|\s+was|\s+are)?|which|who|tell\s+me|say|(?:do|can|did)\s+you\s+(?:still\s+)?"
    r"(?:know|remember|recall)|you\s+know|remember|remind\s+me|how)"
)
_ASKED_NOUN = re.compile(
    rf"(?<!\w){_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:first\s+|full\s+)?(?P<noun>{_NOUN})"
    r"(?=\W*$|\s+(?:is|are|was|again)(?!\w))"
)
_ASKED = tuple(
    (kind, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"))
    for kind, pattern in (
        (
            "*",
            r"who\s+am\s+i|wer\s+bin\s+ich|qui\s+suis[- ]je|quién\s+soy|"
            r"what\s+do\s+you\s+(?:know|remember|have)\s+(?:\w+\s+)?about\s+me|"
            r"what\s+(?:have|did)\s+i\s+(?:told|tell)\s+you\s+about\s+(?:me|myself)",
        ),
        (
            "name",
            r"^my\s+name\s*\?|what\s+(?:do|will|should)\s+you\s+call\s+me|"
            r"what\s+am\s+i\s+called|"
            r"wie\s+hei(?:ß|ss)e\s+ich|wie\s+ist\s+mein\s+name|"
            r"comment\s+(?:est-ce\s+que\s+)?"
            r"(?:je\s+m'appelle|m'appelle[- ]je)|quel\s+est\s+mon\s+(?:pré)?nom|"
            r"c[óo]mo\s+me\s+llamo|"
            r"cuál\s+es\s+mi\s+nombre|come\s+mi\s+chiamo|как\s+меня\s+зовут",
        ),
        (
            "language",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}language\s+(?:do|did|should|will)\s+(?:i|you)\s+"
            r"(?:prefer|want|like|choose|answer|reply|use)",
        ),
        (
            "verbosity",
            r"how\s+(?:long|short|detailed|brief)\s+(?:do|should|will)\s+(?:i|you|my|your)\s"
            r".{0,30}answers?",
        ),
        ("fact", rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:favou?rite|preferred)\s+\w+"),
    )
)
