"""What people say of themselves: their name, what they do and use, and how they want answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from codeqa.account import phrases
from codeqa.account.profile import clean_value, fact_key
from codeqa.repository.secrets import mask_secrets
from codeqa.text.tokens import well_formed

TEXT_CHARACTERS = 4_000
"""Only so much of a message is read: nobody introduces themselves at greater length."""
SENTENCE_CHARACTERS = 300
NAME_CHARACTERS = 60
NAME_WORDS = 5


def detect_facts(text: str) -> dict[str, str]:
    """Facts that the writer of `text` states of themselves, by their key; later ones count.

    None of a message whose writer does not want it to be kept, and none of a question: "my
    name is mangled in the log, why?" is about the code.
    """
    found: dict[str, str] = {}
    if phrases.NOT_TO_BE_KEPT.search(spelled(text[:TEXT_CHARACTERS])):
        return found
    for sentence in _sentences(text):
        told, introduced = sentence, phrases.REMEMBER.match(sentence)
        if introduced:
            told = told[introduced.end() :]
        lasting = bool(
            (introduced and phrases.FIRST_PERSON.match(told)) or phrases.KEPT_IN_MIND.search(told)
        )
        if introduced and not lasting:
            continue  # "remember the parser?" asks for no keeping
        learnt = [*_facts_of(told, lasting)]
        if introduced and not learnt:
            learnt = [("fact", told)]
        for kind, value in learnt:
            if clean := clean_value(value):
                found[fact_key(kind, clean)] = clean
    return found


def spelled(text: str) -> str:
    """`text` with straight apostrophes, and with those that are often left out."""
    text = unicodedata.normalize("NFC", text).translate(phrases.APOSTROPHES)
    for pattern, right in phrases.SPELLED:
        text = pattern.sub(right, text)
    return text


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


def _facts_of(sentence: str, lasting: bool) -> Iterator[tuple[str, str]]:
    """Kind and value of what a sentence states; `lasting` when it was said to be kept."""
    if name := _name_in(sentence):
        yield "name", name
    told: dict[str, str] = {}
    for kind, pattern in phrases.TOLD:
        found = pattern.search(sentence)
        if not found or kind in told:
            continue
        how = found["v"].split()[0].lower() in phrases.NO_NAME
        if not (how and kind in ("editor", "timezone")):  # "my editor is broken"
            told[kind] = found["v"]
    yield from told.items()
    if phrases.FAVOURITE.match(sentence) and not (told or phrases.OWN_LANGUAGE.search(sentence)):
        yield "fact", sentence
    yield from _wishes_of(sentence, lasting or bool(phrases.LASTING.search(sentence)))


def _wishes_of(sentence: str, lasting: bool) -> Iterator[tuple[str, str]]:
    """How somebody wants to be answered; for one answer alone (not `lasting`) it is no fact."""
    if found := phrases.DO_NOT_CALL.match(sentence):
        yield "address", f"not {found['v']}"
        return
    answers, prefers = bool(phrases.ANSWERS.search(sentence)), bool(phrases.PREFER.search(sentence))
    examples, own = (
        bool(phrases.EXAMPLES.search(sentence)),
        bool(phrases.OWN_LANGUAGE.search(sentence)),
    )
    language, code = (
        phrases.NATURAL_LANGUAGE.search(sentence),
        phrases.CODE_LANGUAGE.search(sentence),
    )
    if language and (own or (answers and (lasting or prefers))):
        yield "language", phrases.LANGUAGES[language[0].lower()]
        return
    if code and (own or (examples and (lasting or prefers))):
        yield "code language", code[0]
        return
    negated = bool(phrases.NOT.search(sentence))
    short, long = bool(phrases.SHORT.search(sentence)), bool(phrases.LONG.search(sentence))
    stated = lasting or prefers or negated
    if short != long and stated and (answers or (lasting and phrases.ORDER.match(sentence))):
        yield "verbosity", "short" if short != negated else "detailed"
        return
    begun = phrases.LASTING.match(sentence)
    told = sentence[begun.end() :].lstrip(" ,:") if begun else sentence
    wish = phrases.WISH.match(told) and (lasting or answers or examples)
    ordered = phrases.ORDER.match(told) or phrases.ORDER.match(sentence)
    if wish or (lasting and ordered and (answers or examples or phrases.TO_ME.search(sentence))):
        yield "format", sentence


def _name_in(sentence: str) -> str:
    """The name that somebody gives themselves, '' for none."""
    if (found := phrases.CORRECTED.match(sentence)) and (name := _name(found["name"], sure=False)):
        return name
    for pattern in (phrases.CALLED, phrases.CALLED_EAST):
        if (found := pattern.search(sentence)) and (name := _name(found["name"], sure=True)):
            return name
    if found := phrases.CALL_ME.match(sentence):
        return _name(found["name"], sure=False)
    if found := phrases.I_AM.match(sentence):
        return _name(found["name"], sure=False, person=True)
    return ""


def _name(text: str, *, sure: bool, person: bool = False) -> str:
    """The name at the beginning of `text`; where it is not `sure` that one stands there it must
    be written like one, or be all that there is."""
    quotes = " \"'“”‘’«»*?"
    given = phrases.NAME_ENDS.split(text.strip(quotes), maxsplit=1)[0].strip(quotes)
    parts = given.split()
    if not 1 <= len(parts) <= NAME_WORDS or len(given) > NAME_CHARACTERS:
        return ""
    if (
        not all(phrases.NAME_WORD.fullmatch(part) for part in parts)
        or parts[0].lower() in phrases.NO_NAME
    ):
        return ""
    lowered = [
        part for part in parts if part[0].islower() and part.lower() not in phrases.PARTICLES
    ]
    if any(part in phrases.NO_NAME for part in lowered) or (lowered and len(parts) > 3):
        return ""
    if (person or not sure) and lowered and (person or len(parts) > 1):
        return ""
    role = re.search(rf"(?<!\w)(?:{phrases.ROLES})(?!\w)", given, re.IGNORECASE)
    if person and (phrases.NO_PERSON.match(given) or phrases.CODE_LANGUAGE.match(given) or role):
        return ""
    return given
