"""What users tell of themselves: found by rules, kept as `key: value`, asked for, taken back.

A key is a kind (`name`), or a kind and which one of several (`experience-rust`, `fact-1f0c9a`).
Values are one short line each: they go to a model beside the rules, and must not look like any.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping

from codeqa.account.asked import ASKED, FORGET, NOUNS
from codeqa.account.facts import facts_of
from codeqa.account.words import FIRST_PERSON, KEPT_IN_MIND, NOT_TO_BE_KEPT, REMEMBER
from codeqa.repository.secrets import mask_secrets
from codeqa.text.tokens import split_identifier, well_formed, words

PREFERENCES = ("language", "verbosity", "code language", "format", "address")
"""Kinds that are lasting wishes: they go with every answer of a model."""
SEVERAL = ("experience", "format", "address", "fact")
"""Kinds of which a user may have told more than one."""
KINDS = (
    "name", "pronouns", "role", "team", "employer", "experience", "editor", "system", "timezone",
    "fact", *PREFERENCES,
)  # fmt: skip

TEXT_CHARACTERS = 4_000
"""Only so much of a message is read: nobody introduces themselves at greater length."""
SENTENCE_CHARACTERS = 300
VALUE_CHARACTERS = 200
PROFILE_LINES = 40
"""Lines that a model is told of; what was learnt first goes first."""

_FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^\s*(?:>|\||#|//|\$ |at |File \").*$", re.MULTILINE)
_ENDS = re.compile(r"(?<=[^\W\d_][^\W\d_][.!?…;])\s+|(?<=[.!?…]['\")])\s+|[。！？]+|\n+")
_QUESTION = re.compile(r"[?？]\W*$")
_INTRODUCTION = re.compile(
    r"(?:(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|olá|oi|hoi|good\s+(?:morning|evening|day)|"
    r"guten\s+(?:tag|morgen)|thanks|thank\s+you|ok|okay|so|well|right|yes|no(?=[,.!])|nope|sorry|oops|btw|"
    r"by\s+the\s+way|actually|also|and|but|please|just|oh|ah|fyi|to\s+be\s+clear|correction|"
    r"there|all|everyone|team|danke|merci|gracias)(?!\w)[\s,.!:–-]*)+",
    re.IGNORECASE,
)
_APOSTROPHES = str.maketrans("’‘`´", "''''")
_SPELLED = (
    (re.compile(r"(?<!\w)im(?=\s)", re.IGNORECASE), "I'm"),
    (re.compile(r"(?<!\w)ive(?=\s)", re.IGNORECASE), "I've"),
    (re.compile(r"(?<!\w)id(?=\s+(?:like|prefer|rather|love)\b)", re.IGNORECASE), "I'd"),
    (re.compile(r"(?<!\w)dont(?=\s)", re.IGNORECASE), "don't"),
    (re.compile(r"(?<!\w)isnt(?=\s)", re.IGNORECASE), "isn't"),
    (re.compile(r"(?<!\w)whats(?=\s)", re.IGNORECASE), "what's"),
)
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
    if NOT_TO_BE_KEPT.search(_spelled(text[:TEXT_CHARACTERS])):
        return found
    for sentence in _sentences(text):
        lasting, told = False, sentence
        if introduced := REMEMBER.match(told):
            told = told[introduced.end() :]
            lasting = bool(FIRST_PERSON.match(told))
        lasting = lasting or bool(KEPT_IN_MIND.search(told))
        if introduced and not lasting:
            continue  # "remember the parser?" asks for no keeping
        learnt = [*facts_of(told, lasting)]
        if introduced and not learnt:
            learnt = [("fact", told)]
        for kind, value in learnt:
            if clean := _clean(value):
                found[_key(kind, clean)] = clean
    return found


def is_statement(text: str) -> bool:
    """Whether the writer states something lasting of themselves."""
    return bool(detect_facts(text))


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
    """The profile as `key: value` lines (S3.20); the values are cleaned once more."""
    lines = [
        f"{_clean(kind_of(key))}: {clean}"
        for key, value in profile.items()
        if (clean := _clean(value))
    ]
    return "\n".join(lines[-PROFILE_LINES:])


def matching(profile: Mapping[str, str], kind: str) -> dict[str, str]:
    """The facts of a kind, or under exactly that key; `*` is all of them."""
    return {k: v for k, v in profile.items() if kind in ("*", k, kind_of(k))}


def asked_fact(text: str) -> str:
    """The kind of fact that `text` asks for: `name`; `*` for all, '' for none."""
    asked = " ".join(_spelled(text[:SENTENCE_CHARACTERS]).lower().split())
    for kind, pattern in ASKED:
        if pattern.search(asked):
            return kind
    return ""


def facts_to_forget(text: str) -> tuple[str, ...]:
    """Kinds or keys of the single facts that `text` wants to be forgotten: `("name",)`.

    Empty for anything else, also for the whole profile: that is asked back first.
    """
    asked = " ".join(_spelled(text[:SENTENCE_CHARACTERS]).split())
    found = FORGET.match(_without_introduction(asked))
    if not found:
        return ()
    if clause := found["clause"]:
        return tuple(detect_facts(clause)) or tuple(detect_facts(f"remember that {clause}"))
    return (NOUNS[found["noun"].lower()],)


def _sentences(text: str) -> Iterator[str]:
    """The sentences of `text` that may state something, each as one line without its greeting."""
    masked = mask_secrets(well_formed(text[:TEXT_CHARACTERS]))
    prose = _QUOTED.sub("\n", _FENCED.sub("\n", masked))
    for part in _ENDS.split(_spelled(prose)):
        sentence = _without_introduction(" ".join(part.split()))
        if 3 <= len(sentence) <= SENTENCE_CHARACTERS and not _QUESTION.search(sentence):
            yield sentence


def _without_introduction(sentence: str) -> str:
    found = _INTRODUCTION.match(sentence)
    return sentence[found.end() :] if found else sentence


def _spelled(text: str) -> str:
    """`text` with straight apostrophes, and with those that are often left out."""
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    for pattern, right in _SPELLED:
        text = pattern.sub(right, text)
    return text


def _clean(value: str) -> str:
    """`value` as one line without marks that mean something to a model; secrets are masked."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", _LEADING.sub("", shown)).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()


def _key(kind: str, value: str) -> str:
    """The key of a fact: of kinds with several, by what it is about."""
    if kind not in SEVERAL:
        return kind
    if kind == "experience":
        topic = _topic(value)
        return f"{kind}-{topic}" if topic else kind
    digest = hashlib.blake2b(value.lower().encode(), digest_size=3).hexdigest()
    return f"{kind}-{digest}"


def _topic(value: str) -> str:
    """What an experience is with: `new to Rust` and `expert in Rust` are about the same."""
    told = [part for word in words(value) for part in split_identifier(word)]
    kept = [word for word in told if word not in _ABOUT and not word.isdigit()]
    return "-".join(kept[:3])[:40]


_ABOUT = frozenset(
    words(
        """i ve m am have a an the and or but of for in to with at on new here still quite very
        fairly not do don t know speak use write learn learning been writing using programming
        coding working never used written years year months experience fluent good experienced
        familiar unfamiliar expert beginner beginer novice only also already mostly completely
        totally rather pretty code program neu im bin ganz teach teaching some little bit"""
    )
)
