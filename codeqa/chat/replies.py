"""What the app itself answers, without a model: small talk, facts, and what is stored.

Nothing here is guessed: what would take a language model is said to take one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codeqa.account import (
    NOT_TO_BE_KEPT,
    StoredData,
    asked_fact,
    confirmed_scope,
    deletion_question,
    deletion_report,
    is_preference,
    kind_of,
    matching,
    privacy_report,
    wished_scope,
)
from codeqa.text.markdown import code_span, escape
from codeqa.text.tokens import words

__all__ = ["Replies", "confirmed_scope", "deletion_report", "wished_scope"]

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


class Replies:
    """Writes replies about the repository called `name`; `tries` are questions to begin with."""

    def __init__(self, name: str, tries: Sequence[str] = TRY) -> None:
        self._name = name
        self._tries = tuple(tries)[:2]

    def reply(
        self,
        kind: str,
        text: str,
        *,
        profile: Mapping[str, str],
        learnt: Mapping[str, str] = {},
        stored: StoredData | None = None,
        model: str = "",
    ) -> str:
        """The reply to `text` as Markdown; `kind` is `greeting` (any general message),
        `profile` or `privacy`.

        `profile` is what was known before, `learnt` what this message adds and is kept. A
        deletion is never done here, only asked back. Without `stored` the account cannot be
        read, which is said.
        """
        text = text[:READ_CHARACTERS]
        if kind == "privacy":
            return self._privacy(text, stored) + "\n"
        if kind == "profile":
            return self._profile(text, profile, learnt, model) + "\n"
        return self._general(text, {**profile, **learnt}, model) + "\n"

    # General messages.

    def _general(self, text: str, profile: Mapping[str, str], model: str) -> str:
        said = " ".join(text.lower().split())
        name = f", {escape(profile['name'])}" if profile.get("name") else ""
        for pattern, answer in (
            (_ABLE, self._able),
            (_THANKS, lambda: f"You are welcome{name}."),
            (_GOODBYE, lambda: f"Goodbye{name}. This conversation is kept, to be gone on with."),
            (_HELLO, lambda: f"Hello{name}. {self._offer()}"),
            (_FINE, lambda: "Good. Ask on whenever you like."),
        ):
            if pattern.search(said):
                return answer()
        if model:
            return self._offer()
        return (
            "That takes a language model, and none is used: without one I answer from the code of "
            f"{code_span(self._name)} alone. {CHOOSE_A_MODEL}\n\n"
            "If it is about the code, begin with `@codebase`, for example "
            f"{code_span(self._tries[0])}."
        )

    def _offer(self) -> str:
        return (
            f"Ask me about the code of {code_span(self._name)}, for example:\n\n{self._examples()}"
        )

    def _able(self) -> str:
        return (
            f"I answer questions about the code of {code_span(self._name)}, and cite the lines "
            "that an answer stands on. A question that begins with `@codebase` is searched for; "
            "one without goes on from what was found before. `@` and the name of a file, folder or "
            "definition looks at just that. Without a language model I quote the code; with one "
            f"I explain it.\n\nTry:\n\n{self._examples()}"
        )

    def _examples(self) -> str:
        return "\n".join(f"- {code_span(question)}" for question in self._tries)

    # Facts about the writer.

    def _profile(
        self, text: str, profile: Mapping[str, str], learnt: Mapping[str, str], model: str
    ) -> str:
        if learnt:
            return self._remembered(profile, learnt, model)
        kind = asked_fact(text)
        if not kind:
            return (
                "I did not find anything in this to remember. Say it plainly, as in "
                "`My name is Ada.` or `Remember that I prefer short answers.`"
            )
        found = matching(profile, kind) or _near(profile, kind, text)
        if found:
            return " ".join(f"{_sentence(key, value)}." for key, value in _shown(found).items())
        if kind == "*":
            return "You have not told me anything about yourself."
        return f"You have not told me {_NOT_TOLD.get(kind, 'that')}."

    def _remembered(self, profile: Mapping[str, str], learnt: Mapping[str, str], model: str) -> str:
        told = _listed([_clause(key, value) for key, value in _shown(learnt).items()])
        changed = any(profile.get(key) not in (None, value) for key, value in learnt.items())
        lines = [f"I will remember that {told}."]
        if changed:
            lines.append("That replaces what you said before.")
        if any(map(is_preference, learnt)) and not model:
            lines.append(
                "It takes a language model to answer like that; what I quote stays as it is."
            )
        if len(learnt) == 1 and (noun := _NOUN.get(kind_of(next(iter(learnt))))):
            lines.append(f"`forget my {noun}` removes it, `delete my profile` all of it.")
        else:
            lines.append("`delete my profile` removes it.")
        return " ".join(lines)

    # What is stored.

    def _privacy(self, text: str, stored: StoredData | None) -> str:
        if stored is None:
            return (
                "What is stored cannot be read at the moment. `codeqa privacy show` in a terminal "
                "says what stands in the way."
            )
        if NOT_TO_BE_KEPT.search(text) and not wished_scope(text):
            return (
                "I have not added anything to your profile. This message is kept with its "
                "conversation, like every other, until you delete that: send `delete this "
                "conversation`.\n\n" + privacy_report(text, stored)
            )
        if scope := wished_scope(text):
            return deletion_question(scope, stored)
        return privacy_report(text, stored)

    def forgotten(self, kinds: Sequence[str], number: int) -> str:
        """The reply after single facts were removed; their values are not repeated."""
        named = _listed([_NOT_TOLD.get(kind_of(kind), "that") for kind in kinds])
        if not number:
            return f"There was nothing to forget: you had not told me {named}.\n"
        return (
            f"I have forgotten {named}. The messages in which you told me stay in their "
            "conversations until you delete those.\n"
        )


def _shown(facts: Mapping[str, str]) -> dict[str, str]:
    return dict(list(facts.items())[:FACTS_SHOWN])


def _near(profile: Mapping[str, str], kind: str, text: str) -> dict[str, str]:
    """Facts of a neighbouring kind, or those that share a word with the question."""
    if kind == "language":
        return matching(profile, "code language")
    if kind in ("fact", "experience"):
        asked = {word.lower() for word in words(text)} - _COMMON
        return {
            key: value
            for key, value in profile.items()
            if asked & {word.lower() for word in words(value)}
        }
    return {}


_COMMON = frozenset(words("what is my favourite favorite preferred do you know i me the a which"))


def _sentence(key: str, value: str) -> str:
    """A fact as a sentence to its owner, without its full stop."""
    clause = _clause(key, value)
    return clause[0].upper() + clause[1:]


def _clause(key: str, value: str) -> str:
    """A fact as a clause: `your name is Ada`."""
    shown = escape(value.removeprefix("not ") if kind_of(key) == "address" else value)
    form = _FORMS.get(kind_of(key), "you said: “{}”")
    if kind_of(key) == "experience" and value.split()[0].lower() in ("i", "i've", "i'm"):
        form = "you said: “{}”"
    return form.format(shown)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


_FORMS = {
    "name": "your name is {}",
    "pronouns": "your pronouns are {}",
    "role": "you gave your role as “{}”",
    "team": "your team is the {}",
    "employer": "you work at {}",
    "experience": "you gave your experience as “{}”",
    "editor": "your editor is {}",
    "system": "your operating system is {}",
    "timezone": "your time zone is {}",
    "language": "you want answers in {}",
    "code language": "your preferred programming language is {}",
    "verbosity": "you want {} answers",
    "address": "you do not want to be called {}",
}
_NOUN = {
    "name": "name", "pronouns": "pronouns", "role": "role", "team": "team", "employer": "employer",
    "editor": "editor", "system": "operating system", "timezone": "time zone",
    "language": "language", "experience": "experience",
}  # fmt: skip
_NOT_TOLD = {
    **{kind: f"your {noun}" for kind, noun in _NOUN.items()},
    "role": "what you do",
    "language": "which language you prefer",
    "code language": "which language you prefer",
    "experience": "what you have experience with",
    "verbosity": "how long answers are to be",
    "format": "how you want answers",
    "address": "how you want to be addressed",
}


_HELLO = re.compile(
    r"^\W*(?:hi+|hello+|hey+|howdy|greetings|good\s+(?:morning|afternoon|evening|day)|yo|hallo|moin|"
    r"servus|guten\s+(?:tag|morgen|abend)|bonjour|bonsoir|salut|hola|buen[oa]s|ciao|buongiorno|olá|"
    r"oi|bom\s+dia|boa\s+(?:tarde|noite)|hoi|goedemorgen|hej|cześć|привет|здравствуйте|test|happy\s+"
    r"new\s+year|merry\s+christmas)(?!\w)|^\W*(?:你好|您好|こんにちは|おはよう|안녕)"
)
_THANKS = re.compile(
    r"(?<!\w)(?:thanks|thank\s+you|thx|ty|cheers|much\s+appreciated|danke|merci|gracias|grazie|"
    r"obrigad[oa]|valeu|bedankt|dank\s+je|tack|dziękuję|спасибо)(?!\w)|谢谢|ありがとう|감사"
)
_GOODBYE = re.compile(
    r"^\W*(?:ok(?:ay)?\W+)?(?:bye|goodbye|see\s+you|see\s+ya|cya|good\s+night|farewell|tschüss|"
    r"auf\s+wiedersehen|au\s+revoir|adiós|hasta\s+(?:luego|mañana)|arrivederci|tchau|até|doei|"
    r"пока)(?!\w)|^再见"
)
_ABLE = re.compile(
    r"(?<!\w)(?:what\s+(?:can|could|do)\s+(?:you|i)\s+(?:do|ask|help)|what\s+are\s+you|who\s+are\s+you|"
    r"how\s+(?:do|can)\s+(?:i|you)\s+(?:use\s+(?:you|this)|help|work)|what\s+is\s+(?:this|codeqa)|"
    r"can\s+(?:you|i)\s+(?:help|ask|read|do|understand|see|run)|help|"
    r"was\s+kannst\s+du|wer\s+bist\s+du|que\s+peux-tu|qui\s+es-tu|qué\s+puedes|quién\s+eres|"
    r"cosa\s+(?:puoi|sai)|chi\s+sei|o\s+que\s+você|quem\s+é\s+você|wat\s+kun\s+je)(?!\w)|"
    r"你能做什么|你是谁|何ができ"
)
_FINE = re.compile(
    r"^\W*(?:ok(?:ay)?|cool|nice(?:\s+one)?|great|good|perfect|awesome|got\s+it|no\s+worries|alright|"
    r"sounds\s+good|super|lol|haha+|wow|ah|i\s+see)(?!\w)[^?]{0,20}$"
)
