"""What a message says to the app about its writer, found by rules, in English.

A fact is a name, how the writer wants to be answered, or what they ask to have remembered. Its key
is its kind (`name`), or a kind and which one of several (`fact-1f0c9a`). Values are one short line
each: they go to a model beside the rules, and must not look like any.
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
"""Only so much of a message is read: nobody introduces themselves at greater length."""
SENTENCE_CHARACTERS = 300
VALUE_CHARACTERS = 200
PROFILE_LINES = 40
"""Lines that a model is told of; what was learnt first goes first."""
PREFERENCES = ("language", "verbosity", "format")
"""Kinds that are lasting wishes: they go with every answer of a model."""
SEVERAL = ("format", "fact")
"""Kinds of which a user may have told more than one."""
CONFIRMATIONS = {
    "conversation": "delete this conversation for good",
    "profile": "delete my profile for good",
    "everything": "delete everything for good",
}
"""What is to be sent, exactly, before something is deleted."""

_UNSAFE = re.compile(r"[<>\[\]{}|`=\\]+")
"""What fences, roles and the parts of a message are written with; no fact needs it."""
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
"""How a name is told, and how many words it may have where one begins with a small letter."""
_PARTICLES = word_set("van von de der den del della di da la le al el bin ibn ben ter dos")
_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|for the record|fyi|make a note)\b"
    r"[\s,:]*(?:that\b)?[\s,]*",
    re.IGNORECASE,
)
"""At the beginning of a sentence: what follows is to be kept."""
_FAVOURITE = re.compile(r"my favou?rite \w[\w '-]{0,30} (?:is|are) \S", re.IGNORECASE)
"""At the beginning of a sentence: a plain fact about its writer."""
_ASKED = re.compile(
    r"\b(?:what|which|where|tell|say|remind|know|remember)\b.{0,40}\bmy (?:first |full )?(?:"
    r"(?:name|language|preferences|role|team)(?: is| are| again)?\W*$|favou?rite |preferred )|"
    r"\bwho am i\b|\bwhat (?:do|did|have) (?:you|i) (?:know|remember|have|tell|told) (?:you )?"
    r"(?:about|of) (?:me|myself)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PersonalReading:
    """What a message says to the app about its writer, worked out once."""

    facts: Mapping[str, str]
    """Facts that its writer states of themselves, by their key."""
    asks: bool
    """It asks for what its writer told of themselves."""
    keep_nothing: bool
    """Its writer does not want it to be kept."""
    wished: str
    """The scope that it asks to delete, which must be confirmed; '' for none."""
    confirmed: str
    """The scope that it confirms to delete, in the exact words; '' for none."""


def read_personal(text: str) -> PersonalReading:
    """Read `text`, which comes without tag and mode."""
    keep_nothing = not_kept(text)
    facts = {} if keep_nothing else detect_facts(text)
    asks = _ASKED.search(_plain(text[:SENTENCE_CHARACTERS])) is not None
    return PersonalReading(facts, asks, keep_nothing, wished_scope(text), confirmed_scope(text))


def detect_facts(text: str) -> dict[str, str]:
    """Facts that the writer of `text` states of themselves, by their key; later ones count. None of
    a question: "my name is mangled in the log, why?" is about the code."""
    found: dict[str, str] = {}
    masked = mask_secrets(well_formed(text[:TEXT_CHARACTERS]))
    for part in _ENDS.split(_QUOTED.sub("\n", masked)):
        sentence = _plain(part)
        if len(sentence) > SENTENCE_CHARACTERS or sentence.rstrip(" )\"'").endswith("?"):
            continue
        introduced = _REMEMBER.match(sentence)
        statement = sentence[introduced.end() :] if introduced else sentence
        said = read(statement)
        if introduced and not said.begins("I", "ME", "MY", "OUR"):
            continue  # "remember the parser?" asks for no keeping
        kind, name = _wish_in(said, lasting=bool(introduced)), _name_in(statement)
        if (introduced or _FAVOURITE.match(statement)) and not (kind or name):
            kind = "fact"
        for fact, value in (("name", name), (kind, statement if kind else "")):
            if clean := clean_value(value):
                digest = hashlib.blake2b(clean.lower().encode(), digest_size=3).hexdigest()
                found[f"{fact}-{digest}" if fact in SEVERAL else fact] = clean
    return found


def not_kept(text: str) -> bool:
    """Whether the writer of `text` does not want something to be kept, seen or sent."""
    said = read(text)
    if said.has(CODE, "CODEBASE", "mind") or said.opens("WHERE", "WHAT"):
        return False
    if said.near("I", "know", 3) or (said.asks and not said.has("YOU", "please")):
        return False
    stops = said.near("stop", ("STORE", "WATCH"), 1)
    to_others = said.near("NOT", "SEND", 2) and said.has("OTHERS")
    return stops or to_others or said.near("NOT", ("STORE", "REMEMBER", "WATCH"), 6)


def _plain(sentence: str) -> str:
    """`sentence` as one line without its greeting, with straight apostrophes and composed
    letters."""
    line = unicodedata.normalize("NFC", " ".join(sentence.split())).translate(_APOSTROPHES)
    found = _INTRODUCTION.match(line)
    return line[found.end() :] if found else line


def _wish_in(said: Reading, *, lasting: bool) -> str:
    """What kind of wish as to all answers a sentence states, '' for none.

    For one answer alone a wish is no fact: it is to be remembered (`lasting`), to hold always,
    or what somebody says that they prefer.
    """
    kind = "verbosity" if said.has("SHORT", "LONG") else "format"
    kind = "language" if said.has("LANGUAGE") else kind
    lasting = lasting or said.has("LASTING", "always", "never")
    leads_in = {"please", "do", "always", "need", "to"}
    words = zip(said.words, said.kinds, strict=True)
    in_earnest = (
        kinds for word, kinds in words if not (kinds & {"LASTING", "NOT"} or word in leads_in)
    )
    first = next(in_earnest, set[str]())
    prefers, of_answers = said.has("PREFER"), said.has("REPLY")
    to_the_app = kind != "format" or of_answers or said.has("ME", "I", "MY", "YOU")
    if ("ANSWER" in first and to_the_app) or ("I" in first and prefers):
        return kind if lasting or (of_answers and prefers and kind != "format") else ""
    return ""


def _name_in(sentence: str) -> str:
    for pattern, most_small in _NAMED:
        if found := pattern.search(sentence):
            parts = found["name"].split()
            small = {part for part in parts if part[0].islower()} - _PARTICLES
            of_things = any(
                "NO_NAME" in lexicon().kinds(part.lower()) for part in (parts[0], *small)
            )
            if not (of_things or (small and len(parts) > most_small)):
                return found["name"]
    return ""


def confirmed_scope(text: str) -> str:
    """What `text`, whole and word by word, confirms to delete: a scope, or '' for none."""
    said = " ".join(text.split()).strip(" `'\"“”.!").lower()
    return next((scope for scope in CONFIRMATIONS if said == CONFIRMATIONS[scope]), "")


def wished_scope(text: str) -> str:
    """What `text` asks to delete, '' when it asks for none; it must be confirmed."""
    said = read(text)
    # A question about deleting is answered by the report; it is not the wish to.
    asks = said.opens("WHAT", "WHERE") or (said.opens("AUX") and not said.near("AUX", "YOU", 1))
    if asks or not said.has("DELETE"):
        return ""
    mine = ("DATA", "chats", "conversations", "messages", "questions", "history", "account")
    if said.has("all", "everything") or said.near("MY", mine, 2):
        only_profile = said.has("profile") and not said.has("everything")
        return "profile" if only_profile else "everything"
    told = said.near("MY", ("name", "language", "preferences", "facts"), 1)
    if told or said.has("profile", "ABOUT_ME", "ME"):
        return "profile"
    return "conversation" if said.has("TALK", "SUCH", "PRONOUN") else ""


def kind_of_fact(key: str) -> str:
    """The kind of a key: `fact-1f0c9a` is `fact`."""
    return key.partition("-")[0]


def preferences(profile: Mapping[str, str]) -> dict[str, str]:
    """Those that are lasting wishes."""
    return {key: value for key, value in profile.items() if kind_of_fact(key) in PREFERENCES}


def profile_text(profile: Mapping[str, str]) -> str:
    """The profile as `key: value` lines; the values are cleaned once more."""
    clean = [(clean_value(kind_of_fact(key)), clean_value(value)) for key, value in profile.items()]
    lines = [f"{kind}: {value}" for kind, value in clean if value]
    return "\n".join(lines[-PROFILE_LINES:])


def clean_value(value: str) -> str:
    """`value` as one line without marks that mean something to a model; secrets are masked."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", shown).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()
