"""What the app itself answers, without a model: small talk, facts, and what is stored.

Nothing here is guessed: what would take a language model is said to take one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codeqa.account import (
    PersonalReading,
    StoredData,
    deletion_question,
    is_preference,
    kind_of,
    matching,
    privacy_report,
)
from codeqa.chat.features import GOODBYE, HELLO, THANKS
from codeqa.text.markdown import code_span, escape
from codeqa.text.tokens import word_set, words

TRY = (
    "@codebase what is this repository, and how is it organised?",
    "@codebase where does the program start?",
)
CHOOSE_A_MODEL = (
    "Choose one at the top of the page or with `codeqa models use`; a server on this machine will "
    "do, and nothing is sent before you choose."
)
FACTS_SHOWN = 40
READ_CHARACTERS = 2_000
"""Only so much of a message is looked at: what is answered here is said in a sentence."""


def general_reply(text: str, repository: str, *, name: str = "", model: str = "") -> str:
    """The reply to small talk and general questions, as Markdown.

    `repository` and `name` are what the repository and the user are called, `model` the model
    that is chosen, '' for none.
    """
    said = " ".join(text[:READ_CHARACTERS].lower().split())
    code_of = f"the code of {code_span(repository)}"
    examples = "\n".join(f"- {code_span(question)}" for question in TRY)
    offer = f"Ask me about {code_of}, for example:\n\n{examples}"
    you = f", {escape(name)}" if name else ""
    if _ASKS_WHAT_FOR.search(said):
        return (
            f"I answer questions about {code_of}, and cite the lines that an answer stands on. A "
            "question that begins with `@codebase` is searched for; one without goes on from what "
            "was found before. `@` and the name of a file, folder or definition looks at just "
            "that. Without a language model I quote the code; with one I explain it.\n\n"
            f"Try:\n\n{examples}\n"
        )
    if _SAYS_THANKS.search(said):
        return f"You are welcome{you}.\n"
    if _SAYS_GOODBYE.match(said):
        return f"Goodbye{you}. This conversation is kept: you can go on with it any time.\n"
    if _SAYS_HELLO.match(said):
        return f"Hello{you}. {offer}\n"
    if _IS_FINE.match(said):
        return "Good. Ask on whenever you like.\n"
    if model:
        return f"{offer}\n"
    return (
        f"That takes a language model, and none is used: without one I answer from {code_of} "
        f"alone. {CHOOSE_A_MODEL}\n\nIf it is about the code, begin with `@codebase`, for "
        f"example {code_span(TRY[0])}.\n"
    )


def profile_reply(
    text: str,
    personal: PersonalReading,
    *,
    known: Mapping[str, str],
    learnt: Mapping[str, str],
    model: str = "",
) -> str:
    """The reply to what users say of themselves, or ask of what they said.

    `known` are the facts from before, `learnt` those that this message adds and that are kept.
    """
    if learnt:
        return _remembered(known, learnt, model)
    kind = personal.asked
    if not kind:
        if near := _near(known, "", text[:READ_CHARACTERS]):
            return _told(near)
        return (
            "I did not find anything in this to remember: I keep your name, how you want to be "
            "answered, and what you ask me to remember, as in `My name is Ada.`, `I prefer short "
            "answers.` or `Remember that I work on the parser.`\n"
        )
    if found := matching(known, kind) or _near(known, kind, text[:READ_CHARACTERS]):
        return _told(found)
    told = "anything about yourself" if kind == "*" else _noun(kind)
    return f"You have not told me {told}.\n"


def privacy_reply(text: str, personal: PersonalReading, stored: StoredData | None) -> str:
    """The reply to a question about what is stored, and to a wish to delete.

    A deletion is never done here, only asked back. Without `stored` the account cannot be read,
    which is said.
    """
    text = text[:READ_CHARACTERS]
    if stored is None:
        return (
            "What is stored cannot be read at the moment. `codeqa privacy show` in a terminal "
            "says what stands in the way.\n"
        )
    if personal.wished:
        return f"{deletion_question(personal.wished, stored)}\n"
    added = (
        "I have not added anything to your profile. This message is kept with its conversation, "
        "like every other, until you delete that: send `delete this conversation`.\n\n"
    )
    return f"{added if personal.keep_nothing else ''}{privacy_report(text, stored)}\n"


def forgotten_reply(kinds: Sequence[str], number: int) -> str:
    """The reply after `number` single facts were removed; their values are not repeated."""
    named = _noun(kind_of(kinds[0]))
    if not number:
        return f"There was nothing to forget: you had not told me {named}.\n"
    return (
        f"I have forgotten {named}. The messages in which you told me stay in their "
        "conversations until you delete those.\n"
    )


def _told(facts: Mapping[str, str]) -> str:
    clauses = [_clause(key, value) for key, value in list(facts.items())[:FACTS_SHOWN]]
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses) + "\n"


def _remembered(known: Mapping[str, str], learnt: Mapping[str, str], model: str) -> str:
    shown = list(learnt.items())[:FACTS_SHOWN]
    lines = [f"I will remember that {_listed([_clause(key, value) for key, value in shown])}."]
    if any(known.get(key) not in (None, value) for key, value in learnt.items()):
        lines.append("That replaces what you said before.")
    if any(map(is_preference, learnt)) and not model:
        lines.append("It takes a language model to answer like that; what I quote stays as it is.")
    kind = kind_of(next(iter(learnt)))
    if len(learnt) == 1 and kind not in _SAID:
        lines.append(f"`forget {_noun(kind).replace('your', 'my')}` removes it,")
        lines.append("`delete my profile` all of it.")
    else:
        lines.append("`delete my profile` removes it.")
    return " ".join(lines) + "\n"


def _near(profile: Mapping[str, str], kind: str, text: str) -> dict[str, str]:
    """Where nothing is known under `kind`: what was remembered and shares a word with the
    question."""
    if kind == "language":
        return matching(profile, "code language")
    asked = {word.lower() for word in words(text)} - _COMMON
    return {
        key: value
        for key, value in profile.items()
        if kind_of(key) in _SAID and asked & {word.lower() for word in words(value)}
    }


_COMMON = word_set(
    "what which where who how is am are was do did have has you know remember i me my the a an "
    "in on at of to for with and that favourite favorite preferred"
)
_SAID = ("fact", "format", "experience", "address")
"""Kinds that no noun of ours stands for."""
_CLAUSES = {
    "language": "you want answers in {}",
    "code language": "your preferred programming language is {}",
    "verbosity": "you want {} answers",
}


def _clause(key: str, value: str) -> str:
    """A fact as a clause: `your name is Ada`."""
    kind = kind_of(key)
    if kind in _CLAUSES:
        return _CLAUSES[kind].format(escape(value))
    return f"you said: “{escape(value)}”" if kind in _SAID else f"your {kind} is {escape(value)}"


def _noun(kind: str) -> str:
    """What a user tells with a fact of that kind: `your name`."""
    return "that" if kind in _SAID else f"your {kind}"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


_SAYS_HELLO = re.compile(rf"\W*(?:{HELLO}|test)(?!\w)")
_SAYS_THANKS = re.compile(rf"(?<!\w)(?:{THANKS})(?!\w)")
_SAYS_GOODBYE = re.compile(rf"\W*(?:ok(?:ay)?\W+)?(?:{GOODBYE})(?!\w)")
_ASKS_WHAT_FOR = re.compile(
    r"(?<!\w)(?:what (?:can|could|do) (?:you|i) (?:do|ask|help)|what are you|who are you|"
    r"how (?:do|can) (?:i|you) (?:use (?:you|this)|help|work)|what is (?:this|codeqa)|"
    r"can (?:you|i) (?:help|ask|read|do|understand|see|run)|help|was kannst du|que peux-tu|"
    r"qué puedes)(?!\w)"
)
_IS_FINE = re.compile(
    r"\W*(?:ok(?:ay)?|cool|nice(?: one)?|great|good|perfect|awesome|got it|no worries|alright|"
    r"sounds good|super|lol|haha+|wow|ah|i see)(?!\w)[^?]{0,20}$"
)
"""Of text in small letters with single blanks."""
