"""Reads by rules for English what users tell the app about themselves.

A fact is the user's name, how they want to be answered, or what they ask to remember. Its key is
its kind (`name`), or kind and digest (`fact-1f0c9a`) where a user may have several. A value is one
short line, which goes to a model and must not look like an instruction.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import CODE, Reading, lexicon, read
from codeqa.text.tokens import well_formed, word_set

TEXT_CHARACTERS = 4_000
SENTENCE_CHARACTERS = 300
VALUE_CHARACTERS = 200
PROFILE_LINES = 40
"""Most lines of a profile that a model gets, the latest ones."""
PREFERENCES = ("language", "verbosity", "format")
"""Kinds that are wishes as to all answers."""
REPEATABLE_KINDS = ("format", "fact")
"""Kinds of which a user may have several."""
CONFIRMATIONS = {
    "conversation": "delete this conversation for good",
    "profile": "delete my profile for good",
    "everything": "delete everything for good",
}
"""Scope → the exact message that confirms its deletion."""

_UNSAFE = re.compile(r"[<>\[\]{}|`=\\]+")
"""Markup of fences, roles and parts of a message."""
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

_QUOTED = re.compile(r"(?s:(?:```|~~~).*?(?:```|~~~|\Z))|(?m:^\s*(?:>|\||#|//|\$ |at |File \").*$)")
_ENDS = re.compile(r"(?<=[^\W\d_][^\W\d_][.!?…;])\s+|(?<=[.!?…]['\")])\s+|\n+")
_APOSTROPHES = str.maketrans("’‘`´", "''''")
_INTRODUCTION = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|evening|day)|thanks|thank you|okay|ok|so|well|yes|"
    r"no(?=[,.!])|sorry|btw|by the way|actually|also|and|but|please|just|there|all|everyone|team|"
    r"can you|could you|i want you to|you (?:can|may|should))(?!\w)[\s,.!:–-]*)+",
    re.IGNORECASE,
)
_WORD = r"[^\W\d_](?:[^\W\d_]|[.'‐-](?=[^\W\d_]))*(?:\.(?= [A-Z]))?"
_NAME = (
    rf"(?P<name>{_WORD}(?: {_WORD}){{0,4}}?)(?=\W*$|[,;!()–—:/]|\.(?!\s?[A-Z])| - |"
    r" (?:and|but|or|from|by the way|btw|not|which|who|so|because|here|now|please|instead)\b)"
)
_NAMED = (
    (re.compile(rf"(?i)(?:^|[\s,;.:–-])my (?:\w+ )?name ?(?:is|'s):? {_NAME}"), 3),
    (re.compile(rf"(?i)^call me {_NAME}"), 1),
)
"""Sentences with a name, and how many words it may have where one begins with a small letter."""
_PARTICLES = word_set("van von de der den del della di da la le al el bin ibn ben ter dos")
_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|for the record|fyi|make a note)\b"
    r"[\s,:]*(?:that\b)?[\s,]*",
    re.IGNORECASE,
)
_FAVOURITE = re.compile(r"my favou?rite \w[\w '-]{0,30} (?:is|are) \S", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:what|which|where|tell|say|remind|know|remember)\b.{0,40}\bmy (?:first |full )?(?:"
    r"(?:name|language|preferences|role|team)(?: is| are| again)?\W*$|favou?rite |preferred )|"
    r"\bwho am i\b|\bwhat (?:do|did|have) (?:you|i) (?:know|remember|have|tell|told) (?:you )?"
    r"(?:about|of) (?:me|myself)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PersonalReading:
    """Statements of a message about its user."""

    facts: Mapping[str, str]
    asks: bool
    """It asks for what the user said about themselves."""
    keep_nothing: bool
    """The user does not want it to be stored."""
    wished: str
    """The scope that it asks to delete, which takes a confirmation; '' for none."""
    confirmed: str
    """The scope whose deletion it confirms; '' for none."""


def read_personal(text: str) -> PersonalReading:
    """Read `text`, a message without tag and mode."""
    keep_nothing = not_kept(text)
    facts = {} if keep_nothing else detect_facts(text)
    asks = _ASKED.search(_plain(text[:SENTENCE_CHARACTERS])) is not None
    return PersonalReading(facts, asks, keep_nothing, wished_scope(text), confirmed_scope(text))


def detect_facts(text: str) -> dict[str, str]:
    """Return the facts in `text` by key; of one key the last. Questions state none."""
    facts: dict[str, str] = {}
    masked = mask_secrets(well_formed(text[:TEXT_CHARACTERS]))
    for part in _ENDS.split(_QUOTED.sub("\n", masked)):
        sentence = _plain(part)
        if len(sentence) > SENTENCE_CHARACTERS or sentence.rstrip(" )\"'").endswith("?"):
            continue
        introduction = _REMEMBER.match(sentence)
        statement = sentence[introduction.end() :] if introduction else sentence
        reading = read(statement)
        if introduction and not reading.begins("I", "ME", "MY", "OUR"):
            continue  # "remember the parser?"
        kind, name = _wish_in(reading, lasting=bool(introduction)), _name_in(statement)
        if not (kind or name) and (introduction or _FAVOURITE.match(statement)):
            kind = "fact"
        if name := clean_value(name):
            facts["name"] = name
        value = clean_value(statement)
        if kind and value:
            digest = hashlib.blake2b(value.lower().encode(), digest_size=3).hexdigest()
            facts[f"{kind}-{digest}" if kind in REPEATABLE_KINDS else kind] = value
    return facts


def not_kept(text: str) -> bool:
    """Return whether the user does not want something to be stored, seen or sent."""
    reading = read(text)
    if reading.has(CODE, "CODEBASE", "mind") or reading.opens("WHERE", "WHAT"):
        return False
    if reading.near("I", "know", 3) or (reading.asks and not reading.has("YOU", "please")):
        return False
    if reading.near("stop", ("STORE", "WATCH"), 1):
        return True
    if reading.near("NOT", "SEND", 2) and reading.has("OTHERS"):
        return True
    return reading.near("NOT", ("STORE", "REMEMBER", "WATCH"), 6)


def _plain(sentence: str) -> str:
    """Return a sentence on one line without its greeting, NFC, with straight apostrophes."""
    line = unicodedata.normalize("NFC", " ".join(sentence.split())).translate(_APOSTROPHES)
    greeting = _INTRODUCTION.match(line)
    return line[greeting.end() :] if greeting else line


def _wish_in(reading: Reading, *, lasting: bool) -> str:
    """Return the kind of wish as to all answers, not to this one alone, in a sentence or ''."""
    kind = "format"
    if reading.has("LANGUAGE"):
        kind = "language"
    elif reading.has("SHORT", "LONG"):
        kind = "verbosity"
    prefers, of_answers = reading.has("PREFER"), reading.has("REPLY")
    to_the_app = kind != "format" or of_answers or reading.has("ME", "I", "MY", "YOU")
    first = _first_kinds(reading)
    if not ("ANSWER" in first and to_the_app) and not ("I" in first and prefers):
        return ""
    if lasting or reading.has("LASTING", "always", "never"):
        return kind
    return kind if of_answers and prefers and kind != "format" else ""


def _first_kinds(reading: Reading) -> set[str]:
    """Return the kinds of the first word that does not only lead in."""
    for word, kinds in zip(reading.words, reading.kinds, strict=True):
        if word not in ("please", "do", "always", "need", "to") and not kinds & {"LASTING", "NOT"}:
            return kinds
    return set()


def _name_in(sentence: str) -> str:
    for pattern, most_small in _NAMED:
        if match := pattern.search(sentence):
            parts = match["name"].split()
            small = {part for part in parts if part[0].islower()} - _PARTICLES
            if len(parts) > most_small and small:
                continue
            if not any("NO_NAME" in lexicon().kinds(part.lower()) for part in (parts[0], *small)):
                return match["name"]
    return ""


def confirmed_scope(text: str) -> str:
    """Return the scope whose deletion `text` confirms word by word, '' for none."""
    words = " ".join(text.split()).strip(" `'\"“”.!").lower()
    return next((scope for scope in CONFIRMATIONS if words == CONFIRMATIONS[scope]), "")


def wished_scope(text: str) -> str:
    """Return the scope that `text` asks to delete, '' for none."""
    reading = read(text)
    # A question about deleting is no wish: the privacy report answers it.
    if reading.opens("WHAT", "WHERE") or not reading.has("DELETE"):
        return ""
    if reading.opens("AUX") and not reading.near("AUX", "YOU", 1):
        return ""
    stored = ("DATA", "chats", "conversations", "messages", "questions", "history", "account")
    if reading.has("all", "everything") or reading.near("MY", stored, 2):
        if reading.has("profile") and not reading.has("everything"):
            return "profile"
        return "everything"
    if reading.has("profile", "ABOUT_ME", "ME"):
        return "profile"
    if reading.near("MY", ("name", "language", "preferences", "facts"), 1):
        return "profile"
    return "conversation" if reading.has("TALK", "SUCH", "PRONOUN") else ""


def kind_of_fact(key: str) -> str:
    """Return the kind of a key: `fact` of `fact-1f0c9a`."""
    return key.partition("-")[0]


def preferences(profile: Mapping[str, str]) -> dict[str, str]:
    """Return the facts that are wishes as to all answers."""
    return {key: value for key, value in profile.items() if kind_of_fact(key) in PREFERENCES}


def profile_text(profile: Mapping[str, str]) -> str:
    """Return the profile as lines `kind: value`, cleaned again, as the stored one may be older."""
    lines = []
    for key, fact in profile.items():
        if value := clean_value(fact):
            lines.append(f"{clean_value(kind_of_fact(key))}: {value}")
    return "\n".join(lines[-PROFILE_LINES:])


def clean_value(value: str) -> str:
    """Return `value` as one line without markup, hidden characters and secrets."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    visible = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", visible).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()
