"""The app's own account of what is stored of a user, where, how long, and who receives it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codeqa.account.facts import kind_of
from codeqa.account.privacy import DeletionResult, StoredData
from codeqa.account.requests import CONFIRMATIONS
from codeqa.text import counted
from codeqa.text.markdown import code_span, escape

_ASKED_FIRST = (
    (
        "Who receives it",
        r"sen[dt]|third\s+part\w+|openai|anthropic|leave\w*|upload\w*|cloud|shar(?:e|ed|ing)|"
        r"internet|train\w*|gesendet|envoyé\w*|envía\w*",
    ),
    (
        "Who can see it",
        r"(?:other|anyone|anybody|someone|who)\b.{0,30}\b(?:users?|see|read|access)",
    ),
    ("Not there", r"cookies?|track\w*|telemetry|analytics|spy\w*|monitor\w*|usage\s+data"),
)
"""What a question may name → the part of the account that answers it."""


def privacy_report(text: str, stored: StoredData) -> str:
    """All that is stored, where, how long, and who receives it; first what `text` asks for."""
    cache = f" and the Redis server at {code_span(stored.redis)}" if stored.redis else ""
    keys = f" (in {code_span(stored.keys_file)})" if stored.keys_file else ""
    parts = {
        "What is stored of you": "counted just now:\n\n" + "\n".join(_listing(stored)),
        "Where": (
            f"on this machine, in {code_span(stored.folder)}{cache}; what was said in "
            f"`state.sqlite` ({stored.state_bytes / 1000:,.0f} kB, for all users). Keys of "
            f"models{keys} belong to the installation."
        ),
        "Who receives it": (
            f"{'; '.join(_receivers(stored))}. Each answer keeps the name of its model's host."
        ),
        "Who can see it": (
            "every token is a user of its own, and sees only its own conversations. Whoever runs "
            "the server can read its files."
            if stored.shared
            else "everybody who uses CodeQA on this machine: without tokens all are one user."
        ),
        "Not there": (
            "tracking, telemetry, statistics of use, advertising. CodeQA sends nothing to its "
            "makers and trains nothing on what you say. Your browser keeps the theme, the switches "
            "and a question that you have not sent yet; "
            + ("a cookie keeps you signed in for 30 days." if stored.shared
               else "there are no cookies.")
        ),
        "Deleting it": (
            "send `delete this conversation`, `delete my profile` or `delete everything`, and you "
            "are asked to confirm; or use `codeqa privacy delete` in a terminal. "
            "`codeqa privacy show --json` gives a copy."
        ),
    }  # fmt: skip
    asked = (name for name, words in _ASKED_FIRST if re.search(rf"(?i)\b(?:{words})\b", text))
    first = next(asked, "")
    names = sorted(parts, key=lambda name: name != first)
    return "\n\n".join(f"**{name}:** {parts[name]}" for name in names)


def _listing(stored: StoredData) -> Iterator[str]:
    yield (
        f"- {counted(stored.conversations, 'conversation')} about "
        f"{counted(stored.repositories, 'repository', 'repositories')}, with "
        f"{counted(stored.turns, 'question')}, their answers, the code that was found for "
        "them and what was sent to a model. They are kept until you "
        "delete them; of more than 10,000 questions the oldest go. What looks like "
        "a key is replaced by asterisks before; other passwords are not recognised."
    )
    yield f"- {counted(stored.thumbs, 'thumb')}, with the reasons that you gave."
    yield f"- {counted(stored.vectors, 'question')} also as a vector, to recognise similar ones."
    if stored.cached is None:
        yield "- Code found for conversations, for 24 hours, in a Redis server that is silent."
    else:
        yield (
            f"- {counted(stored.cached, 'piece')} of code found for a conversation, cached for 24 "
            "hours; and for 30 minutes what kind of question you asked, under a hash of its words."
        )
    yield f"- {counted(len(stored.profile), 'line')} of a profile, which you told me."
    for key, value in stored.profile.items():
        yield f"    - {escape(kind_of(key))}: {escape(value)}"


def _receivers(stored: StoredData) -> Iterator[str]:
    if not any(one.part == "model" for one in stored.receivers):
        yield "no language model is chosen, so questions are sent to none"
    for one in stored.receivers:
        local = ", on this machine," if one.local else ""
        at = f" at {code_span(one.host)}{local}" if one.host else ", wherever its package runs it,"
        yield f"the {one.part} {code_span(one.name)}{at} {_RECEIVES[one.part]}"
    if stored.plugins:
        yield "hooks of your own (CODEQA_PLUGINS) see questions and answers"
    elif all(one.local for one in stored.receivers):
        yield "nothing leaves this machine"


_RECEIVES = {
    "model": "gets each question, the code found for it, earlier questions and answers that belong "
    "to it, and your profile",
    "embedding": "gets each question that is searched for, and the code as it is indexed",
    "reranker": "gets each question that is reranked, and up to 50 pieces of code",
}


def deletion_question(scope: str, stored: StoredData) -> str:
    """What a deletion would take away, and how it is confirmed."""
    profile = (len(stored.profile), "line", "of your profile")
    goes = {
        "conversation": ((stored.here, "question", "with answers, thumbs and vectors"),),
        "profile": (profile,),
        "everything": (
            (stored.turns, "question", f"in {counted(stored.conversations, 'conversation')}, with "
             "the answers"),
            (stored.thumbs, "thumb", "with your reasons"),
            (stored.vectors, "vector", "of questions"),
            profile,
            (stored.cached or 0, "piece", "of cached code"),
        ),
    }[scope]  # fmt: skip
    lines = [f"- {counted(number, noun)} {rest}" for number, noun, rest in goes if number]
    if not lines:
        return "Nothing of that is stored, so there is nothing to delete."
    keys = f" (in {code_span(stored.keys_file)})" if stored.keys_file else ""
    stays = {
        "conversation": "Your profile and your other conversations stay. A single message cannot "
        "be deleted by itself.",
        "profile": "The conversations in which you told me stay, and with them what you said "
        "there.",
        "everything": f"The indices of repositories and keys of models{keys} stay: none of them "
        "holds what you said. Other users' data is not touched.",
    }[scope]
    return (
        f"{_NAMES[scope]} would be deleted for good:\n\n" + "\n".join(lines)
        + f"\n\n{stays} Nothing has been deleted yet. To do it, send exactly:\n\n"
        f"`{CONFIRMATIONS[scope]}`"
    )  # fmt: skip


def deletion_report(erased: DeletionResult) -> str:
    """What was deleted, and what could not be done."""
    counts = [(erased.counts[name], *noun) for name, noun in _COUNTED.items()]
    parts = [counted(number, noun) + rest for number, noun, rest in counts if number]
    gone = f": {', '.join(parts)}" if parts else "; there was nothing"
    told = [f"{_NAMES[erased.scope]} is deleted{gone}."]
    told.append("\n".join(f"- {escape(one)}" for one in erased.problems))
    return "\n\n".join(filter(None, told)) + "\n"


_NAMES = {
    "conversation": "This conversation",
    "profile": "Your profile",
    "everything": "Everything that is stored of you",
}
_COUNTED = {
    "conversations": ("conversation", ""), "turns": ("question", ""), "thumbs": ("thumb", ""),
    "vectors": ("vector", ""), "facts": ("line", " of the profile"),
    "cached": ("piece", " of cached code"),
}  # fmt: skip
