"""Deletions that somebody asks for in a message: understood, asked back, told when done."""

from __future__ import annotations

import re

from codeqa.account.figures import counted, size_of
from codeqa.account.forgetting import SCOPES, Erased
from codeqa.account.stored import StoredData
from codeqa.text.markdown import code_span, escape

CONFIRMATIONS = {
    "conversation": "delete this conversation for good",
    "profile": "delete my profile for good",
    "everything": "delete everything for good",
}
"""What is to be sent, exactly, before something is deleted."""
NOT_HERE = {
    "conversation": "This conversation holds nothing yet, so there is nothing to delete.",
    "profile": "You have not told me anything about yourself, so there is nothing to delete.",
    "everything": "Nothing is stored of you, so there is nothing to delete.",
}


def confirmed_scope(text: str) -> str:
    """What `text` confirms to delete: `conversation`, `profile`, `everything`, or '' for none.

    Only the whole sentence counts; case, blanks around it, a full stop and quotes do not.
    """
    said = " ".join(text.split()).strip(" `'\"“”.!").lower()
    return next((scope for scope in SCOPES if said == CONFIRMATIONS[scope]), "")


def wished_scope(text: str) -> str:
    """What `text` asks to delete, '' when it asks for none; it must be confirmed."""
    if not _DELETE.search(text) or _HOW.search(text):
        return ""
    for scope, pattern in _SCOPES:
        if pattern.search(text):
            return scope
    return ""


def asked_back(scope: str, stored: StoredData) -> str:
    """What a deletion would take away, and how it is confirmed."""
    what = {
        "conversation": [counted(stored.here, "question") + " with answers, thumbs and vectors"],
        "profile": [counted(len(stored.profile), "line") + " of your profile"],
        "everything": _everything(stored),
    }[scope]
    empty = {
        "conversation": not stored.here,
        "profile": not stored.profile,
        "everything": not (stored.turns or stored.profile or stored.cached),
    }[scope]
    if empty:
        return NOT_HERE[scope]
    goes = "\n".join(f"- {one}" for one in what)
    stays = {
        "conversation": "Your profile and your other conversations stay. A single message cannot "
        "be deleted by itself.",
        "profile": "The conversations in which you told me stay, and with them what you said "
        "there.",
        "everything": "The indices of repositories stay, the list of those opened last, and keys "
        "of models"
        + (f" (in {code_span(stored.keys_file)})" if stored.keys_file else "")
        + ": none of them holds what you said. Other users' data is not touched.",
    }[scope]
    named = {"conversation": "This conversation", "profile": "Your profile"}.get(
        scope, "Everything"
    )
    return (
        f"{named} would be deleted for good:\n\n{goes}\n\n{stays} Nothing has been deleted yet. "
        f"To do it, send exactly:\n\n`{CONFIRMATIONS[scope]}`"
    )


def erased_text(erased: Erased) -> str:
    """What was deleted, and what the search of the data folder for it came to."""
    named = {"conversation": "This conversation", "profile": "Your profile"}.get(
        erased.scope, "Everything that was stored of you"
    )
    parts = [counted(number, _COUNTED[name]) for name, number in erased.counts.items() if number]
    told = f": {', '.join(parts)}" if parts else "; there was nothing"
    lines = [f"{named} is deleted{told}."]
    where = (
        f"{counted(erased.searched_files, 'file')} of the data folder "
        f"({size_of(erased.searched_bytes)}) were searched for "
        f"{counted(erased.searched_texts, 'id')} and pieces of it"
    )
    if erased.found:
        lines.append(f"{where}, and not all of it is gone:")
    else:
        besides = " but what stands below" if erased.kept or erased.problems else ""
        lines.append(
            f"{where}: none is left{besides}. Index tables hold code, not what was said, and were "
            "searched for ids alone."
        )
    rest = [*erased.found, *erased.kept, *erased.problems]
    told = "\n\n".join(lines)
    return told + ("\n\n" + "\n".join(f"- {escape(one)}" for one in rest) if rest else "") + "\n"


def _everything(stored: StoredData) -> list[str]:
    questions = counted(stored.turns, "question")
    about = counted(stored.repositories, "repository")
    numbers = (
        (stored.turns, f"{counted(stored.conversations, 'conversation')} about {about}, with "
         f"{questions} and the answers to them"),
        (stored.thumbs, counted(stored.thumbs, "thumb") + " with your reasons"),
        (stored.vectors, "vectors of " + counted(stored.vectors, "question")),
        (len(stored.profile), counted(len(stored.profile), "line") + " of your profile"),
        (stored.cached or 0, counted(stored.cached or 0, "piece") + " of cached code"),
    )  # fmt: skip
    return [told for number, told in numbers if number]


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

_COUNTED = {
    "conversations": "conversation", "turns": "question", "thumbs": "thumb", "vectors": "vector",
    "facts": "line of the profile", "cached": "cached piece of code",
}  # fmt: skip
