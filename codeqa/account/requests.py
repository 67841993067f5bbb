"""What a message asks to have deleted, and the exact words that confirm it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codeqa.account.profile import asked_fact, detect_facts, facts_to_forget
from codeqa.account.words import NOT_TO_BE_KEPT

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
    if not _DELETE.search(text) or _HOW.search(text):
        return ""
    for scope, pattern in _SCOPES:
        if pattern.search(text):
            return scope
    return ""


_DELETE = re.compile(
    r"\b(?:delet\w*|eras\w*|wip\w+|clear|remov\w*|forget|purge|get\s+rid|drop|destroy|unremember|"
    r"lösch\w*|entfern\w*|vergiss|supprim\w*|effac\w*|oubli\w*|borr\w*|elimin\w*|olvid\w*|apag\w*|"
    r"exclu[ai]\w*|esquec\w*|cancell\w*|dimentic\w*|verwijder\w*|wis|usuń)\b|删除|削除|удали",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"\b(?:can|could|may|how|where|do)\s+(?:i|you|we|to)\b(?!.*\bplease\b)|\bif\s+i\b",
    re.IGNORECASE,
)
"""A question about deleting, which the account answers; not the wish to."""
_SCOPES = tuple(
    (scope, re.compile(pattern, re.IGNORECASE))
    for scope, pattern in (
        (
            "everything",
            r"\beverything\b|\ball\s+(?:of\s+)?(?:my|the|our|this|data|your)\b(?!.*\bprofile\b)|"
            r"\bmy\s+(?:chats|conversations|messages|data|history|questions|account)\b|"
            r"\balles\b|\balle\s+meine\b|\bmeine\s+daten\b|\btout(?:es)?\b|\bmes\s+données\b|"
            r"\btodos?\b|\btodas?\b|\bmis\s+datos\b|\bmeus\s+dados\b|\btutto\b|\bi\s+miei\s+dati\b|"
            r"\bchats\s+and\b|\bfrom\s+your\s+database\b|所有|すべて|全部|\bвс[её]\b",
        ),
        (
            "profile",
            r"\bprofile?\w*\b|\b(?:about|on|of)\s+me\b|\bme\b\s*[.!]*$|\bprofil\b|\bperfil\b|"
            r"\bpersonal\s+(?:data|information|details|facts)\b|\büber\s+mich\b",
        ),
        (
            "conversation",
            r"\b(?:conversation|chat|thread|history|messages?|session|that|this|it|question|answer|"
            r"unterhaltung|gespräch|verlauf|conversación|conversa|conversazione|discussion|gesprek)"
            r"\b",
        ),
    )
)
