"""What users tell of themselves: found in messages, kept as `key: value`, told to models.

That is their name, how they want to be answered, and what they ask to have remembered. A key is a
kind (`name`), or a kind and which one of several (`fact-1f0c9a`); earlier versions learnt further
kinds, which are still shown and deleted. Values are one short line each: they go to a model beside
the rules, and must not look like any. Patterns see one sentence at a time, of bounded length.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from codeqa.intents.reading import Reading, lexicon, read
from codeqa.intents.signs import not_kept
from codeqa.repository.secrets import mask_secrets
from codeqa.text.tokens import well_formed, word_set

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
_LEADS_IN = ("please", "bitte", "do", "always", "need", "to")
_LEADING = re.compile(r"^(?:that|dass|que|che|dat)\s+", re.IGNORECASE)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


# Languages, by how they are named

_NATURAL = {
    "Arabic": "arabic", "Chinese": "chinese chinesisch 中文", "Czech": "czech", "Danish": "danish",
    "Dutch": "dutch nederlands niederländisch",
    "English": "english englisch anglais inglés inglês inglese",
    "French": "french französisch français francés francese francês",
    "German": "german deutsch allemand alemán tedesco alemão", "Greek": "greek", "Hindi": "hindi",
    "Italian": "italian italienisch italien italiano", "Japanese": "japanese 日本語",
    "Korean": "korean 한국어", "Norwegian": "norwegian", "Polish": "polish polnisch",
    "Portuguese": "portuguese portugiesisch portugais português", "Russian": "russian русском",
    "Spanish": "spanish spanisch espagnol español spagnolo espanhol", "Swedish": "swedish",
    "Turkish": "turkish", "Ukrainian": "ukrainian",
}  # fmt: skip
LANGUAGES = {word: name for name, forms in _NATURAL.items() for word in forms.split()}
NATURAL_LANGUAGE = re.compile(
    "|".join(
        word if ord(word[0]) > 0x2E7F else rf"(?<!\w){word}(?!\w)"
        for word in sorted(LANGUAGES, key=len, reverse=True)
    ),
    re.IGNORECASE,
)

# Names

CALLED = re.compile(
    r"(?:^|[\s,;.:–-])(?:my\s+(?:first\s+|full\s+|real\s+)?name\s*(?:is|'s)|mein\s+name\s+ist|"
    r"ich\s+hei(?:ß|ss)e|je\s+m'appelle|mon\s+(?:pré)?nom\s+est|me\s+llamo|mi\s+nombre\s+es|"
    r"mi\s+chiamo|meu\s+nome\s+é|me\s+chamo|ik\s+heet|меня\s+зовут)\s*[:,]?\s+(?P<name>.+)",
    re.IGNORECASE,
)
CALLED_EAST = re.compile(
    r"(?:我叫|我的名字(?:是|叫)|私の名前は)\s*(?P<name>[^\s,，.。!！?？、]{1,30}?)\s*"
    r"(?:です|だ)?(?=$|[\s,，.。!！、])"
)
CALL_ME = re.compile(
    r"^(?:(?:you\s+(?:can|may|should)|just|rather|please)\s*)*(?:call\s+me|nenn(?:e)?\s+mich|"
    r"appelle[sz]?[- ]moi|llámame|chiamami)\s+(?P<name>.+)",
    re.IGNORECASE,
)
I_AM = re.compile(r"^(?i:i'?m|i\s+am|ich\s+bin|je\s+suis|soy|sou|sono)\s+(?P<name>[A-ZÀ-ÞА-Я].*)")
CORRECTED = re.compile(
    r"^(?:my\s+name\s*(?:is\s+not|isn'?t)|i'?m\s+not|i\s+am\s+not|not|ich\s+hei(?:ß|ss)e\s+nicht)\s+"
    r"[\w'’.-]+(?:\s+[\w'’.-]+)?\s*[,;.–-]+\s*(?:but\s+|rather\s+|sondern\s+)?"
    r"(?:it's|it\s+is|i'm|i\s+am|my\s+name\s+is|call\s+me)?\s*(?P<name>.+)",
    re.IGNORECASE,
)
NAMED = ((CORRECTED, 1), (CALLED, 3), (CALLED_EAST, 3), (CALL_ME, 1), (I_AM, 0))
"""How a name is told, and how many words it may have where one begins with a small letter."""
NAME_ENDS = re.compile(
    r"\s*(?:[,;!()–—:/\n]|\.(?!\s?[A-Z])|\s-\s|\s(?:and|but|or|from|here|by\s+the\s+way|btw|please|"
    r"now|instead|in\s+future|not|which|who|so|because|und|aber|bitte|ab|et|mais|y|pero|e|ma)\s|"
    r"\s(?:here|now|please|instead|bitte|btw)$)"
)
NAME_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’‐-](?=[^\W\d_])|\u0301)*\.?")
PARTICLES = word_set("""van von de der den del della di da la le al el bin ibn ben ter dos""")

# What is to be kept, and what not

REMEMBER = re.compile(
    r"(?:(?:can|could)\s+you\s+)?(?:please\s+|pls\s+|bitte\s+)?(?:re?me?m?ber|note|keep\s+in\s+mind|"
    r"don'?t\s+forget|for\s+the\s+record|fyi|know|make\s+a\s+note|merk(?:e)?\s+dir|retiens|"
    r"recuerda|lembre(?:-se)?|lembra|ricorda(?:ti)?)(?:\s+(?:bitte|please))?\s*[,:]?\s*"
    r"(?:(?:that|dass|que|qu'|che)\s*)?,?\s*",
    re.IGNORECASE,
)
"""At the beginning of a sentence: what follows is to be kept."""
OWN_LANGUAGE = _words(
    r"(?:set|change|switch)\s+(?:my|the)\s+(?:\w+\s+){0,2}language\s+to|"
    r"my\s+(?:preferred|favou?rite|main|usual|native)\s+(?:\w+\s+)?language\s+(?:is|now\s+is)"
)
# How a message is read

FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
QUOTED = re.compile(r"^\s*(?:>|\||#|//|\$ |at |File \").*$", re.MULTILINE)
ENDS = re.compile(r"(?<=[^\W\d_][^\W\d_][.!?…;])\s+|(?<=[.!?…]['\")])\s+|[。！？]+|\n+")
QUESTION = re.compile(r"[?？]\W*$")
INTRODUCTION = re.compile(
    r"(?:(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|good\s+(?:morning|evening|day)|thanks|thank\s+"
    r"you|ok|okay|so|well|right|yes|no(?=[,.!])|nope|sorry|oops|btw|by\s+the\s+way|actually|also|and|"
    r"but|please|just|oh|fyi|correction|there|all|everyone|team|danke|merci|gracias)(?!\w)"
    r"[\s,.!:–-]*)+",
    re.IGNORECASE,
)
APOSTROPHES = str.maketrans("’‘`´", "''''")


def detect_facts(text: str) -> dict[str, str]:
    """Facts that the writer of `text` states of themselves, by their key; later ones count.

    None of a message whose writer does not want it to be kept, and none of a question: "my
    name is mangled in the log, why?" is about the code.
    """
    found: dict[str, str] = {}
    if not_kept(read(text, has_history=False)):
        return found
    for sentence in _sentences(text):
        introduced = REMEMBER.match(sentence)
        told = sentence[introduced.end() :] if introduced else sentence
        said = read(told, has_history=False)
        if introduced and not said.begins("I", "ME", "MY", "OUR"):
            continue  # "remember the parser?" asks for no keeping
        learnt = [*_facts_of(told, said, lasting=bool(introduced))]
        if introduced and not learnt:
            learnt = [("fact", told)]
        for kind, value in learnt:
            if clean := clean_value(value):
                found[fact_key(kind, clean)] = clean
    return found


def spelled(text: str) -> str:
    """`text` with straight apostrophes."""
    return unicodedata.normalize("NFC", text).translate(APOSTROPHES)


def without_introduction(sentence: str) -> str:
    """`sentence` without its greeting."""
    found = INTRODUCTION.match(sentence)
    return sentence[found.end() :] if found else sentence


def _sentences(text: str) -> Iterator[str]:
    """The sentences of `text` that may state something, each as one line without its greeting."""
    masked = mask_secrets(well_formed(text[:TEXT_CHARACTERS]))
    prose = QUOTED.sub("\n", FENCED.sub("\n", masked))
    for part in ENDS.split(spelled(prose)):
        sentence = without_introduction(" ".join(part.split()))
        if 3 <= len(sentence) <= SENTENCE_CHARACTERS and not QUESTION.search(sentence):
            yield sentence


def _facts_of(sentence: str, said: Reading, *, lasting: bool) -> Iterator[tuple[str, str]]:
    """Kind and value of what a sentence states: a name, or how its writer wants to be answered.

    For one answer alone a wish is no fact: it is to be remembered (`lasting`), to hold always,
    or what somebody says that they prefer.
    """
    if name := _name_in(sentence):
        yield "name", name
    lasting = lasting or said.has("LASTING", "always", "never")
    prefers, of_answers, begins = said.has("PREFER"), said.has("REPLY"), _beginning(said)
    negated = said.has("NOT", "hate")
    short, long = said.has("SHORT"), said.has("LONG")
    language = NATURAL_LANGUAGE.search(sentence)
    own_language = OWN_LANGUAGE.search(sentence)
    if language and (own_language or (of_answers and (lasting or prefers))):
        yield "language", LANGUAGES[language[0].lower()]
    elif short != long and (
        (of_answers and (lasting or prefers or negated)) or (lasting and "ANSWER" in begins)
    ):
        yield "verbosity", "short" if short != negated else "detailed"
    elif lasting and (
        (prefers and "I" in begins)
        or ("ANSWER" in begins and (of_answers or said.has("ME", "I", "MY", "YOU")))
    ):
        yield "format", sentence


def _beginning(said: Reading) -> set[str]:
    """What the first word may be that is no introduction as "always" or "from now on" is."""
    for word, kinds in zip(said.words, said.kinds, strict=True):
        if not (kinds & {"LASTING", "NOT"} or word in _LEADS_IN):
            return kinds
    return set()


def _name_in(sentence: str) -> str:
    """The name that somebody gives themselves, '' for none."""
    for pattern, most_small in NAMED:
        if (found := pattern.search(sentence)) and (name := _name(found["name"], most_small)):
            role = _is_any(name.split(), "ROLE", "PEOPLE")
            return "" if pattern is I_AM and role else name
    return ""


def _name(text: str, most_small: int) -> str:
    """The name at the beginning of `text`, '' for none; one with words in small letters has at
    most `most_small` words."""
    quotes = " \"'“”‘’«»*?"
    given = NAME_ENDS.split(text.strip(quotes), maxsplit=1)[0].strip(quotes)
    parts = given.split()
    if not 1 <= len(parts) <= NAME_WORDS or len(given) > NAME_CHARACTERS:
        return ""
    small = {part for part in parts if part[0].islower()} - PARTICLES
    if (small and len(parts) > most_small) or _is_any((parts[0], *small), "NO_NAME"):
        return ""
    return given if all(NAME_WORD.fullmatch(part) for part in parts) else ""


def _is_any(parts: Iterable[str], *kinds: str) -> bool:
    return any(not lexicon().kinds(part.lower()).isdisjoint(kinds) for part in parts)


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
