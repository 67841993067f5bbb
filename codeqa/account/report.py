"""The app's own account of what is stored of a user, where, how long, and who receives it."""

from __future__ import annotations

import re

from codeqa.account.deletion import DeletionResult
from codeqa.account.facts import kind_of
from codeqa.account.inventory import Receiver, StoredData, counted
from codeqa.account.requests import CONFIRMATIONS
from codeqa.text.markdown import code_span, escape

NOT_HERE = {
    "conversation": "This conversation holds nothing yet, so there is nothing to delete.",
    "profile": "You have not told me anything about yourself, so there is nothing to delete.",
    "everything": "Nothing is stored of you, so there is nothing to delete.",
}


_OWN_TOKEN = (
    "every token is a user of its own, and sees only its own conversations. Whoever runs the "
    "server can read its files."
)
_EVERYBODY = "everybody who uses CodeQA on this machine can: without tokens all are one user."


def privacy_report(text: str, stored: StoredData) -> str:
    """All that is stored, where, how long, and who receives it; first what `text` asks for."""
    parts = [
        _focus(text, stored),
        "What is stored of you, counted just now:\n\n" + _listing(stored),
        f"**Where:** {_where(stored)}",
        f"**Who receives it:** {_receivers(stored)}",
        f"**Who can see it:** {_OWN_TOKEN if stored.shared else _EVERYBODY}",
        "**Not there:** telemetry, statistics of use, advertising. CodeQA sends nothing to its "
        "makers. Your browser keeps the theme, the switches and a question that you have not sent "
        "yet" + ("; a cookie keeps you signed in for 30 days." if stored.shared else "; there are "
        "no cookies."),
        f"**Deleting it:** {_deleting(stored)}",
    ]  # fmt: skip
    return "\n\n".join(filter(None, parts))


def _focus(text: str, stored: StoredData) -> str:
    """The answer to what `text` asks first, '' where the account as a whole is the answer."""
    answers = {
        "kept": "Conversations are kept until you delete them, found code is cached for 24 hours.",
        "cookies": "One cookie keeps you signed in; there is no other."
        if stored.shared
        else "No, there are no cookies.",
        "tracked": "No: nothing is tracked, and nothing is reported to anybody.",
        "seen": f"No: {_OWN_TOKEN}" if stored.shared else f"Yes: {_EVERYBODY}",
        "trained": "CodeQA trains nothing on what you say."
        + (" What a provider does with it, its own terms say." if stored.senders else ""),
        "sent": _sent(stored),
        "secrets": "What looks like a key is replaced by asterisks before it is stored or sent; "
        "other passwords are not recognised. Deleting the conversation removes them, and one that "
        "was exposed is best changed.",
    }
    return next((answers[about] for about, asked in _ASKED_FIRST if asked.search(text)), "")


_ASKED_FIRST = tuple(
    (about, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for about, words in (
        ("kept", r"how\s+long|retention|wie\s+lange|combien\s+de\s+temps|cuánto\s+tiempo"),
        ("cookies", r"cookies?"),
        ("tracked", r"track\w*|telemetry|analytics|spy\w*|monitor\w*|usage\s+data"),
        ("seen", r"(?:other|anyone|anybody|someone|who)\b.{0,30}\b(?:users?|see|read|access)"),
        ("trained", r"train\w*"),
        ("sent", r"sen[dt]|third\s+part\w+|openai|anthropic|leave\w*|upload\w*|cloud|"
                 r"shar(?:e|ed|ing)|internet|gesendet|envoyé\w*|envía\w*"),
        ("secrets", r"(?:api\s+)?keys?|passwords?|secrets?|tokens?|credentials?"),
    )
)  # fmt: skip
"""What a question may name."""


def _sent(stored: StoredData) -> str:
    if stored.senders:
        hosts = ", ".join(code_span(one.host or one.name) for one in stored.senders)
        return f"Yes: questions and the code found for them are sent to {hosts}."
    if stored.plugins:
        return "No, unless a hook of your own (CODEQA_PLUGINS) sends it."
    return "No: as it is set now, nothing that you type and no code leaves this machine."


def _listing(stored: StoredData) -> str:
    lines = [
        f"{counted(stored.conversations, 'conversation')} about "
        f"{counted(stored.repositories, 'repository')}, with {counted(stored.turns, 'question')}, "
        "their answers, the code that was found for them and what was sent to a model. They are "
        "kept until you delete them; of more than 10,000 questions the oldest go.",
        f"{counted(stored.thumbs, 'thumb')}, with the reasons that you gave.",
        f"{counted(stored.vectors, 'question')} also as a vector, to recognise similar ones.",
        _cached(stored),
        f"{counted(len(stored.profile), 'line')} of a profile, which you told me"
        + (":" if stored.profile else "."),
    ]
    told = [f"- {line}" for line in lines]
    facts = stored.profile.items()
    told += [f"    - {escape(kind_of(key))}: {escape(value)}" for key, value in facts]
    return "\n".join(told)


def _cached(stored: StoredData) -> str:
    if stored.cached is None:
        return "Code found for your conversations, for 24 hours, in a Redis server that is silent."
    return (
        f"{counted(stored.cached, 'piece')} of code found for a conversation, cached for 24 hours; "
        "and for 30 minutes what kind of question you asked, under a hash of its words."
    )


def _where(stored: StoredData) -> str:
    told = (
        f"on this machine, in {code_span(stored.folder)}; what was said in `state.sqlite` "
        f"({size_of(stored.state_bytes)}, for all users)"
    )
    if stored.redis:
        told += f", the cache in the Redis server at {code_span(stored.redis)}"
    recent = counted(stored.recent, "repository") + " opened last"
    return f"{told}. A list of the {recent} belongs to the installation."


def _receivers(stored: StoredData) -> str:
    told = [_receiver(one) for one in stored.receivers]
    if not any(one.part == "model" for one in stored.receivers):
        told.insert(0, "no language model is chosen, so questions are sent to none")
    if stored.plugins:
        told.append("hooks of your own (CODEQA_PLUGINS) see questions and answers")
    if not stored.senders and not stored.plugins:
        told.append("nothing leaves this machine")
    return _capital("; ".join(told)) + ". Each answer keeps the name of the host that wrote it."


def _receiver(one: Receiver) -> str:
    what = {
        "model": "gets each question, the code found for it, earlier questions and answers that "
        "belong to it, and your profile",
        "embedding": "gets the text of each question that is searched for, and the code as it is "
        "indexed",
        "reranker": "gets each question that is reranked, and up to 50 pieces of code",
    }[one.part]
    part = {"model": "language model"}.get(one.part, one.part)
    if not one.host:
        return f"the {part} {code_span(one.name)} {what}, wherever its package runs it"
    local = ", on this machine," if one.local else ""
    return f"the {part} {code_span(one.name)} at {code_span(one.host)}{local} {what}"


def _deleting(stored: StoredData) -> str:
    keys = ""
    if stored.keys_file:
        keys = (
            f" Keys of models are kept apart, in {code_span(stored.keys_file)}; they are deleted "
            "where models are chosen."
        )
    return (
        "send `delete this conversation`, `delete my profile` or `delete everything`, and you are "
        "asked to confirm; or use `codeqa privacy delete` in a terminal. Afterwards the data "
        f"folder is searched for what was deleted. `codeqa privacy show --json` gives a copy.{keys}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def deletion_question(scope: str, stored: StoredData) -> str:
    """What a deletion would take away, and how it is confirmed."""
    counts = (
        (stored.turns, f"{counted(stored.conversations, 'conversation')} about "
         f"{counted(stored.repositories, 'repository')}, with {counted(stored.turns, 'question')} "
         "and the answers to them"),
        (stored.thumbs, counted(stored.thumbs, "thumb") + " with your reasons"),
        (stored.vectors, "vectors of " + counted(stored.vectors, "question")),
        (len(stored.profile), counted(len(stored.profile), "line") + " of your profile"),
        (stored.cached or 0, counted(stored.cached or 0, "piece") + " of cached code"),
        (stored.here, counted(stored.here, "question") + " with answers, thumbs and vectors"),
    )  # fmt: skip
    of_scope = {"conversation": counts[5:], "profile": counts[3:4], "everything": counts[:5]}[scope]
    goes = [f"- {told}" for number, told in of_scope if number]
    if not goes:
        return NOT_HERE[scope]
    keys = f" (in {code_span(stored.keys_file)})" if stored.keys_file else ""
    stays = {
        "conversation": "Your profile and your other conversations stay. A single message cannot "
        "be deleted by itself.",
        "profile": "The conversations in which you told me stay, and with them what you said "
        "there.",
        "everything": "The indices of repositories stay, the list of those opened last, and keys "
        f"of models{keys}: none of them holds what you said. Other users' data is not touched.",
    }[scope]
    return (
        f"{_NAMES.get(scope, 'Everything')} would be deleted for good:\n\n" + "\n".join(goes)
        + f"\n\n{stays} Nothing has been deleted yet. To do it, send exactly:\n\n"
        f"`{CONFIRMATIONS[scope]}`"
    )  # fmt: skip


def deletion_report(erased: DeletionResult) -> str:
    """What was deleted, and what the search of the data folder for it came to."""
    named = _NAMES.get(erased.scope, "Everything that was stored of you")
    parts = [counted(number, _COUNTED[name]) for name, number in erased.counts.items() if number]
    gone = f": {', '.join(parts)}" if parts else "; there was nothing"
    searched = (
        f"{counted(erased.searched_files, 'file')} of the data folder "
        f"({size_of(erased.searched_bytes)}) were searched for "
        f"{counted(erased.searched_texts, 'id')} and pieces of it"
    )
    if erased.found:
        came_to = "and not all of it is gone:"
    else:
        besides = " but what stands below" if erased.kept or erased.problems else ""
        came_to = (
            f"none is left{besides}. Index tables hold code, not what was said, and were searched "
            "for ids alone."
        )
    told = [f"{named} is deleted{gone}.", f"{searched}{', ' if erased.found else ': '}{came_to}"]
    if rest := [*erased.found, *erased.kept, *erased.problems]:
        told.append("\n".join(f"- {escape(one)}" for one in rest))
    return "\n\n".join(told) + "\n"


def size_of(count: float) -> str:
    """Bytes in the unit that fits."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


_NAMES = {"conversation": "This conversation", "profile": "Your profile"}
_COUNTED = {
    "conversations": "conversation", "turns": "question", "thumbs": "thumb", "vectors": "vector",
    "facts": "line of the profile", "cached": "cached piece of code",
}  # fmt: skip
