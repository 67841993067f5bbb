"""What a message says to the app about its writer: facts to keep, a question after them, a wish to
have them deleted. It is found by rules, in English.

A fact is a name, how the writer wants to be answered, or what they ask to have remembered. Its key
is its kind (`name`), or a kind and which one of several (`fact-1f0c9a`). Values are one short line
each: they go to a model beside the rules, and must not look like any.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codeqa.repository.secrets import mask_secrets
from codeqa.routing.words import CODE, Reading, lexicon, read
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
    (re.compile(rf"^(?i:i'?m|i am) {_NAME}"), 0),
)
"""How a name is told, and how many words it may have where one begins with a small letter."""
_PARTICLES = word_set("van von de der den del della di da la le al el bin ibn ben ter dos")
_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|for the record|fyi|make a note)\b"
    r"[\s,:]*(?:that\b)?[\s,]*",
    re.IGNORECASE,
)
"""At the beginning of a sentence: what follows is to be kept."""
_KIND = r"(?P<kind>name|language|preferences|role|team|employer|editor|timezone|experience)"
_ASKED = re.compile(
    r"\b(?:what|which|where|tell|say|remind|know|remember)\b.{0,40}\bmy (?:first |full )?"
    rf"(?:(?:favou?rite |preferred )?{_KIND}(?: is| are| was| again)?\W*$|favou?rite |preferred )",
    re.IGNORECASE,
)
_ALL_ASKED = re.compile(
    r"\bwho am i\b|\bwhat (?:do|did|have) (?:you|i) (?:know|remember|have|tell|told) (?:you )?"
    r"(?:about|of) (?:me|myself)\b",
    re.IGNORECASE,
)
_FORGET = re.compile(
    r"(?:forget|delete|remove|erase) (?:about )?"
    rf"(?:my {_KIND}(?: again| please)?|that (?P<clause>(?:i|i'm|i've|my|we|our)\b.+?))[ .!]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PersonalReading:
    """What a message says to the app about its writer, worked out once."""

    facts: Mapping[str, str]
    """Facts that its writer states of themselves, by their key."""
    asks_for: str
    """The kind of fact that it asks for; `*` for all, '' for none."""
    forget: str
    """The kind of fact that is to be forgotten, or what was told, in its words; '' for none."""
    keep_nothing: bool
    """Its writer does not want it to be kept."""
    wished: str
    """The scope that it asks to delete, which must be confirmed; '' for none."""
    confirmed: str
    """The scope that it confirms to delete, in the exact words; '' for none."""

    @property
    def deletes(self) -> bool:
        """It deletes something by itself, so that no model may decide what it is."""
        return bool(self.confirmed or self.forget)


def read_personal(text: str) -> PersonalReading:
    """Read `text`, which comes without tag and mode."""
    return PersonalReading(
        facts=detect_facts(text),
        asks_for=asked_fact(text),
        forget=fact_to_forget(text),
        keep_nothing=not_kept(text),
        wished=wished_scope(text),
        confirmed=confirmed_scope(text),
    )


def detect_facts(text: str) -> dict[str, str]:
    """Facts that the writer of `text` states of themselves, by their key; later ones count.

    None of a message whose writer does not want it to be kept, and none of a question: "my
    name is mangled in the log, why?" is about the code.
    """
    found: dict[str, str] = {}
    if not_kept(text):
        return found
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
        if introduced and not (kind or name):
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
            too_many = small and len(parts) > most_small
            role = not most_small and _is_any(parts, "ROLE", "PEOPLE", "LANGUAGE")  # "I'm German"
            if not (too_many or role or _is_any((parts[0], *small), "NO_NAME")):
                return found["name"]
    return ""


def _is_any(parts: Iterable[str], *kinds: str) -> bool:
    return any(not lexicon().kinds(part.lower()).isdisjoint(kinds) for part in parts)


def asked_fact(text: str) -> str:
    """The kind of fact that `text` asks for: `name`; `*` for all, '' for none."""
    line = _plain(text[:SENTENCE_CHARACTERS])
    if found := _ASKED.search(line):
        return (found["kind"] or "fact").lower()
    return "*" if _ALL_ASKED.search(line) else ""


def fact_to_forget(text: str) -> str:
    """The single fact that `text` wants to be forgotten, by its kind or in the words in which it
    was told; '' for anything else, also for the whole profile: that is asked back first."""
    found = _FORGET.match(_plain(text[:SENTENCE_CHARACTERS]))
    return (found["kind"] or "").lower() or clean_value(found["clause"]) if found else ""


def confirmed_scope(text: str) -> str:
    """What `text` confirms to delete: `conversation`, `profile`, `everything`, or '' for none.

    Only the whole sentence counts; case, blanks around it, a full stop and quotes do not.
    """
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
    if said.has("profile", "ABOUT_ME", "ME"):
        return "profile"
    return "conversation" if said.has("TALK", "SUCH", "PRONOUN") else ""


def kind_of(key: str) -> str:
    """The kind of a key: `fact-1f0c9a` is `fact`."""
    return key.partition("-")[0]


def matching(profile: Mapping[str, str], kind: str) -> dict[str, str]:
    """The facts of a kind; `*` is all of them, `preferences` all lasting wishes."""
    kinds = PREFERENCES if kind == "preferences" else (kind,)
    return {key: value for key, value in profile.items() if kind == "*" or kind_of(key) in kinds}


def to_forget(profile: Mapping[str, str], what: str) -> list[str]:
    """Keys of the facts that `fact_to_forget` means: those of a kind, or told in these words."""
    words = f" {what} ".casefold()
    named = [key for key, value in profile.items() if f" {value} ".casefold() in words]
    return [*matching(profile, what)] or named


def profile_text(profile: Mapping[str, str]) -> str:
    """The profile as `key: value` lines; the values are cleaned once more."""
    clean = [(clean_value(kind_of(key)), clean_value(value)) for key, value in profile.items()]
    lines = [f"{kind}: {value}" for kind, value in clean if value]
    return "\n".join(lines[-PROFILE_LINES:])


def clean_value(value: str) -> str:
    """`value` as one line without marks that mean something to a model; secrets are masked."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", shown).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()
