"""What users tell of themselves: found in messages, kept as `key: value`, told to models.

That is their name, how they want to be answered, and what they ask to have remembered. A key is a
kind (`name`), or a kind and which one of several (`fact-1f0c9a`); earlier versions learnt further
kinds, which are still shown and deleted. Values are one short line each: they go to a model beside
the rules, and must not look like any.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping

from codeqa.account import phrases
from codeqa.repository.secrets import mask_secrets
from codeqa.text.tokens import well_formed

TEXT_CHARACTERS = 4_000
"""Only so much of a message is read: nobody introduces themselves at greater length."""
SENTENCE_CHARACTERS = 300
NAME_CHARACTERS = 60
NAME_WORDS = 5
LEARNT = ("name", "language", "verbosity", "format", "fact")
PREFERENCES = ("language", "verbosity", "code language", "format", "address")
"""Kinds that are lasting wishes, of now and earlier: they go with every answer of a model."""
SEVERAL = ("format", "fact")
"""Kinds of which a user may have told more than one."""
VALUE_CHARACTERS = 200
PROFILE_LINES = 40
"""Lines that a model is told of; what was learnt first goes first."""

_UNSAFE = re.compile(r"[<>\[\]{}|`=\\]+")
"""What fences, roles and the parts of a message are written with; no fact needs it."""
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_LEADING = re.compile(r"^(?:that|dass|que|che|dat)\s+", re.IGNORECASE)


def detect_facts(text: str) -> dict[str, str]:
    """Facts that the writer of `text` states of themselves, by their key; later ones count.

    None of a message whose writer does not want it to be kept, and none of a question: "my
    name is mangled in the log, why?" is about the code.
    """
    found: dict[str, str] = {}
    if phrases.NOT_TO_BE_KEPT.search(spelled(text[:TEXT_CHARACTERS])):
        return found
    for sentence in _sentences(text):
        introduced = phrases.REMEMBER.match(sentence)
        told = sentence[introduced.end() :] if introduced else sentence
        if introduced and not phrases.FIRST_PERSON.match(told):
            continue  # "remember the parser?" asks for no keeping
        learnt = [*_facts_of(told, lasting=bool(introduced))]
        if introduced and not learnt:
            learnt = [("fact", told)]
        for kind, value in learnt:
            if clean := clean_value(value):
                found[fact_key(kind, clean)] = clean
    return found


def spelled(text: str) -> str:
    """`text` with straight apostrophes."""
    return unicodedata.normalize("NFC", text).translate(phrases.APOSTROPHES)


def without_introduction(sentence: str) -> str:
    """`sentence` without its greeting."""
    found = phrases.INTRODUCTION.match(sentence)
    return sentence[found.end() :] if found else sentence


def _sentences(text: str) -> Iterator[str]:
    """The sentences of `text` that may state something, each as one line without its greeting."""
    masked = mask_secrets(well_formed(text[:TEXT_CHARACTERS]))
    prose = phrases.QUOTED.sub("\n", phrases.FENCED.sub("\n", masked))
    for part in phrases.ENDS.split(spelled(prose)):
        sentence = without_introduction(" ".join(part.split()))
        if 3 <= len(sentence) <= SENTENCE_CHARACTERS and not phrases.QUESTION.search(sentence):
            yield sentence


def _facts_of(sentence: str, *, lasting: bool) -> Iterator[tuple[str, str]]:
    """Kind and value of what a sentence states: a name, or how its writer wants to be answered.

    For one answer alone a wish is no fact: it is to be remembered (`lasting`), to hold always,
    or what somebody says that they prefer.
    """
    if name := _name_in(sentence):
        yield "name", name
    begun = phrases.LASTING.match(sentence)
    told = sentence[begun.end() :].lstrip(" ,:") if begun else sentence
    lasting = lasting or bool(phrases.LASTING.search(sentence))
    prefers = bool(phrases.PREFER.search(sentence))
    of_answers = bool(phrases.ANSWERS.search(sentence))
    language = phrases.NATURAL_LANGUAGE.search(sentence)
    own_language = phrases.OWN_LANGUAGE.search(sentence)
    negated = bool(phrases.NOT.search(sentence))
    short, long = bool(phrases.SHORT.search(sentence)), bool(phrases.LONG.search(sentence))
    ordered = phrases.ORDER.match(told) or phrases.ORDER.match(sentence)
    if language and (own_language or (of_answers and (lasting or prefers))):
        yield "language", phrases.LANGUAGES[language[0].lower()]
    elif short != long and (
        (of_answers and (lasting or prefers or negated)) or (lasting and ordered)
    ):
        yield "verbosity", "short" if short != negated else "detailed"
    elif lasting and (
        (prefers and phrases.FIRST_PERSON.match(told))
        or (ordered and (of_answers or phrases.TO_ME.search(sentence)))
    ):
        yield "format", sentence


def _name_in(sentence: str) -> str:
    """The name that somebody gives themselves, '' for none."""
    for pattern, most_small in phrases.NAMED:
        if (found := pattern.search(sentence)) and (name := _name(found["name"], most_small)):
            return "" if pattern is phrases.I_AM and phrases.NO_PERSON.match(name) else name
    return ""


def _name(text: str, most_small: int) -> str:
    """The name at the beginning of `text`, '' for none; one with words in small letters has at
    most `most_small` words."""
    quotes = " \"'“”‘’«»*?"
    given = phrases.NAME_ENDS.split(text.strip(quotes), maxsplit=1)[0].strip(quotes)
    parts = given.split()
    if not 1 <= len(parts) <= NAME_WORDS or len(given) > NAME_CHARACTERS:
        return ""
    small = {part for part in parts if part[0].islower()} - phrases.PARTICLES
    if (small and len(parts) > most_small) or phrases.NO_NAME & {parts[0].lower(), *small}:
        return ""
    return given if all(phrases.NAME_WORD.fullmatch(part) for part in parts) else ""


def kind_of(key: str) -> str:
    """The kind of a key: `experience-rust` is `experience`."""
    return key.partition("-")[0]


def is_preference(key: str) -> bool:
    """Whether the fact under `key` is a lasting wish."""
    return kind_of(key) in PREFERENCES


def preferences(profile: Mapping[str, str]) -> dict[str, str]:
    """The lasting wishes of a profile."""
    return {key: value for key, value in profile.items() if is_preference(key)}


def profile_text(profile: Mapping[str, str]) -> str:
    """The profile as `key: value` lines; the values are cleaned once more."""
    lines = [
        f"{clean_value(kind_of(key))}: {clean}"
        for key, value in profile.items()
        if (clean := clean_value(value))
    ]
    return "\n".join(lines[-PROFILE_LINES:])


def matching(profile: Mapping[str, str], kind: str) -> dict[str, str]:
    """The facts of a kind, or under exactly that key; `*` is all of them."""
    return {k: v for k, v in profile.items() if kind in ("*", k, kind_of(k))}


def clean_value(value: str) -> str:
    """`value` as one line without marks that mean something to a model; secrets are masked."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", _LEADING.sub("", shown)).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()


def fact_key(kind: str, value: str) -> str:
    """The key of a fact; of kinds with several, one for each value."""
    if kind not in SEVERAL:
        return kind
    digest = hashlib.blake2b(value.lower().encode(), digest_size=3).hexdigest()
    return f"{kind}-{digest}"
