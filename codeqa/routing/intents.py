"""The intent of a message by its words: what each may mean, and a linear model of them.

`lexicon.toml` has the meanings. The model is fitted to research/evals/intents/development.txt by
`python -m research.training.intents`: to correct it, add messages there and fit it again. How often
it is right: research/benchmarks/results/intents.md.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
import numpy.typing as npt

from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.tokens import name_key, variants, word_set

_ENDINGS = ("s", "es", "d", "ed", "ing")

Kinds = frozenset[str]
NO_KINDS: Kinds = frozenset()
MESSAGE_CHARACTERS = 1_200
"""Characters that are read of a message, two thirds of them from its beginning: a request stands
before or after pasted text."""
CODE, NUMBER = "CODE", "NUMBER"
"""Kinds that the lexicon cannot list."""

_TOKEN = re.compile(
    r"""
    (?P<code>
        ```[^`]*(?:```|$) | `[^`\n]+`
      | https?://\S+ | [\w.+-]+@[\w-]+\.[\w.]+
      | \.{0,2}/?(?:[\w.-]+/){2,}[\w.-]* | [\w.-]+/[\w-]+\.\w+ | (?<!\w)\.{0,2}/\w[\w.-]*  # a path
      | (?:src|lib|tests?|docs|app|pkg|cmd|internal)/\w[\w.-]* | [\w-]{2,}/(?=[\s?!,;]|$)
      | [A-Za-z_]\w*(?:(?:\.|::|->|\#)[A-Za-z_]\w*)+(?:\(\w*\))?    # a.b, a file, a::b
      | [A-Za-z_]\w*\((?:\w*|\.\.\.)\)                             # a call
      | _*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_* | __?[a-z]\w* | [a-z]\w*_(?!\w)      # in_snakes
      | [a-z]+[a-z0-9]*[A-Z][A-Za-z0-9]* | (?:[A-Z][a-z0-9]+){2,}[A-Z]?          # inHumps
      | (?<!\S)--?[a-z][\w-]+ | SIG[A-Z]{3,} | @[A-Za-z_][\w.]*
    )
  | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*(?:\+\+|\#)?)
  | (?P<number>\d[\w.,%+-]*)
  | (?P<mark>[.!?…]+|[,;:()\n—–]|\s-\s)
    """,
    re.VERBOSE,
)
_CONTRACTIONS = {
    "im": "i am", "ive": "i have", "whats": "what is", "wheres": "where is", "dont": "do not",
    "isnt": "is not", "cant": "can not", "cannot": "can not", "can't": "can not",
    "won't": "will not", "let's": "let us", "pls": "please", "u": "you", "ur": "your",
}  # fmt: skip
_TAILS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'d": "would", "'ll": "will"}
_IS = word_set("it that this what who where how why when there here he she name everything")
"""Words after which `'s` means "is"; after others it is a genitive."""
_LEADS_IN = word_set("please actually by the way also and but so just wait now")
_EMPTY = frozenset(
    ("COMMON", "AUX", "PRONOUN", "SUCH", "OPENING", "SOCIAL", "THANKS", "FORM", "DOUBT", "I",
     "ME", "MY", "YOU", "OUR", "WHERE", "WHAT", "NOT", NUMBER)
)  # fmt: skip
"""Kinds of words that name nothing."""

_ORDERS = ("show", "list", "explain", "describe", "find", "tell", "give", "write", "fix", "add",
           "compare")  # fmt: skip
_NO_POINTING = {"CODEBASE", "EVERYDAY", "SOCIAL", "OPINION", "YOU", "LASTING", "PRIVATE"}
"""Kinds of phrases in which a pronoun points to nothing."""


@dataclass(slots=True)
class Reading:
    """The words of a message, pieces of code among them, with their kinds."""

    words: list[str] = field(default_factory=list)
    kinds: list[set[str]] = field(default_factory=list)
    clause: list[int] = field(default_factory=list)
    """The clause of each word by number; punctuation separates clauses."""
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Word or kind → its positions."""
    lead: list[int] = field(default_factory=list)
    """How many words of its clause precede each word, without those that lead in."""
    asks: bool = False
    """It has a question mark."""

    def has(self, *names: str) -> bool:
        return any(name in self.at for name in names)

    def positions(self, *names: str) -> list[int]:
        return [position for name in names for position in self.at.get(name, ())]

    def near(self, first: str, others: str | Sequence[str], within: int) -> bool:
        """Return whether one of `others` follows `first` in a clause by at most `within` words."""
        if isinstance(others, str):
            others = (others,)
        for early in self.positions(first):
            for later in self.positions(*others):
                if 0 < later - early <= within and self.clause[later] == self.clause[early]:
                    return True
        return False

    def opens(self, *names: str) -> bool:
        """Return whether a clause begins with one of these, words that lead in aside."""
        return any(self.lead[position] == 0 for position in self.positions(*names))

    def begins(self, *names: str) -> bool:
        return bool(self.kinds) and not self.kinds[0].isdisjoint(names)

    def specific(self, position: int) -> bool:
        """Return whether the word names something."""
        return not self.kinds[position] & _EMPTY

    @property
    def length(self) -> int:
        return len(self.words)

    @property
    def names(self) -> int:
        """Return how many words name something."""
        return sum(map(self.specific, range(self.length)))


def read(text: str) -> Reading:
    """Read `text`; of a long one its beginning and its end."""
    meanings = lexicon()
    reading = Reading()
    clause = 0
    for match in _TOKEN.finditer(unicodedata.normalize("NFC", shortened(text))):
        piece, sort = match.group(), match.lastgroup
        if sort == "mark":
            reading.asks |= "?" in piece or "？" in piece
            clause += 1
            continue
        if sort == "word":
            words = _expanded(piece)
            reading.kinds += [set(meanings.kinds(word)) for word in words]
        else:
            words = [piece]
            reading.kinds.append({CODE if sort == "code" else NUMBER})
        reading.words += words
        reading.clause += [clause] * len(words)
    _add_phrases(reading, meanings)
    _count_leads(reading)
    for position, word in enumerate(reading.words):
        for name in {word, *reading.kinds[position]}:
            reading.at[name].append(position)
    return reading


def shortened(text: str) -> str:
    """Return the beginning and the end of a text that is too long."""
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    tail = MESSAGE_CHARACTERS // 3
    return text[: MESSAGE_CHARACTERS - tail] + "\n" + text[-tail:]


def _expanded(piece: str) -> list[str]:
    """Return a word in lower case, a contraction as its words."""
    word = piece.lower().replace("’", "'")
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word].split()
    if word.endswith("'s"):
        return [word[:-2], "is"] if word[:-2] in _IS else [word[:-2]]
    for tail, meaning in _TAILS.items():
        if word.endswith(tail) and len(word) > len(tail):
            return [word[: -len(tail)], meaning]
    return word.split("'")


def _add_phrases(reading: Reading, meanings: Lexicon) -> None:
    """Add the kinds of each phrase to those of its words."""
    for start, word in enumerate(reading.words):
        for phrase, kinds in meanings.phrases.get(word, ()):
            end = start + len(phrase)
            if tuple(reading.words[start:end]) == phrase:
                for word_kinds in reading.kinds[start:end]:
                    word_kinds |= kinds


def _count_leads(reading: Reading) -> None:
    current, before = -1, 0
    for word, kinds, clause in zip(reading.words, reading.kinds, reading.clause, strict=True):
        if clause != current:
            current, before = clause, 0
        reading.lead.append(before)
        if before or not (word in _LEADS_IN or kinds & {"SOCIAL", "OPENING", "THANKS"}):
            before += 1


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The kinds of words, of beginnings of words and of phrases."""

    words: Mapping[str, Kinds]
    stems: Mapping[str, Kinds]
    phrases: Mapping[str, list[tuple[tuple[str, ...], Kinds]]]
    """First word → phrases."""

    def kinds(self, word: str) -> Kinds:
        """Return the kinds of the forms of `word` and of its beginnings."""
        kinds = NO_KINDS
        for form in _forms(word):
            kinds |= self.words.get(form, NO_KINDS)
        for length in range(2, len(word) + 1):
            kinds |= self.stems.get(word[:length], NO_KINDS)
        return kinds


def _forms(word: str) -> Iterator[str]:
    """Yield `word` and the words that it may be an English form of: "stopped" of "stop"."""
    yield word
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            yield stem
            if ending == "es" and stem[-1] == "i":
                yield stem[:-1] + "y"
            if ending in ("ed", "ing"):
                yield stem + "e"
                if stem[-1] == stem[-2]:
                    yield stem[:-1]


@cache
def lexicon() -> Lexicon:
    """Return the words of `lexicon.toml` by their kinds."""
    text = files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    words: dict[str, Kinds] = defaultdict(frozenset)
    stems: dict[str, Kinds] = defaultdict(frozenset)
    phrases: dict[tuple[str, ...], Kinds] = defaultdict(frozenset)
    for kind, entries in tomllib.loads(text).items():
        for entry in filter(None, map(str.split, entries.split(","))):
            if len(entry) > 1:
                phrases[tuple(entry)] |= {kind}
            elif entry[0].endswith("*"):
                stems[entry[0][:-1]] |= {kind}
            else:
                words[entry[0]] |= {kind}
    by_first_word = defaultdict(list)
    for phrase, kinds in phrases.items():
        by_first_word[phrase[0]].append((phrase, kinds))
    return Lexicon(dict(words), dict(stems), dict(by_first_word))


# Whether a message is understood by itself.


def wants_something(message: Reading) -> bool:
    """Return whether it is a question, by its mark or first word, or an order."""
    return message.asks or message.opens("WHERE", "WHAT", "AUX", *_ORDERS)


def stands_alone(message: Reading) -> bool:
    """Return whether it asks for something, names it, and points to no earlier turn."""
    if not wants_something(message) or points_back(message) or goes_on(message):
        return False
    if message.opens("why") and not message.near("why", "AUX", 1):  # "why a tree, not a list?"
        return False
    return message.names >= 2 or message.has(CODE)


def points_back(message: Reading) -> bool:
    """Return whether a pronoun of it stands for something that only an earlier turn names."""
    for position in message.positions("PRONOUN", "SUCH"):
        if _points(message, position) and not _named_before(message, position):
            return True
    return False


def goes_on(message: Reading) -> bool:
    """Return whether it begins like "and" or "what about"."""
    return message.begins("OPENING")


def _points(message: Reading, position: int) -> bool:
    """Return whether a pronoun is neither part of a phrase nor a "that" that begins a clause."""
    if message.kinds[position] & _NO_POINTING:
        return False
    if message.words[position] != "that" or not 0 < position < message.length - 1:
        return True
    return not (message.specific(position - 1) or "SOFTWARE" in message.kinds[position - 1])


def _named_before(message: Reading, position: int) -> bool:
    """Return whether the message itself may name what a pronoun stands for."""
    if any(CODE in kinds for kinds in message.kinds[: position + 2]):
        return True
    names = list(filter(message.specific, range(position)))
    if not names:
        return False
    if message.words[position] in ("its", "their"):  # "how does the pool keep its workers"
        return True
    if message.clause[names[0]] < message.clause[position]:
        return True
    return len(names) > 1 and "and" in message.words[names[1] : position]


# Whether it is about the repository.

_POINTING = word_set("this that these those your")
_CAPITALISED = re.compile(r"(?<=\w )[A-Z]\w+")


def asks_of_code(text: str, message: Reading, tables: Tables) -> bool:
    """Return whether `text`, read as `message`, is about the code and not about its user.

    It names a definition, or asks about a thing that the code has a word for: "where do you keep
    the posts?" where there is a `load_post`.
    """
    words = message.words
    for position in message.positions("ME"):  # "tell me" is not about the user
        if position == 0 or words[position - 1] not in ("tell", "show", "give", "let"):
            return False
    if message.has("I", "MY", "OUR", "ABOUT_ME"):
        return False
    names = _CAPITALISED.findall(text)
    for position in message.positions(CODE):
        names += re.findall(r"\w{3,}", words[position])[-1:]
    if any(unit.name in names for unit in tables.named(list(map(name_key, names)))):
        return True
    things = [word for position, word in enumerate(words) if _is_thing(message, position)]
    if not (things and wants_something(message)):
        return False
    tokens = " ".join(" ".join((word, *variants(word))) for word in things)
    return any(tables.best([TextSearch(table, tokens, 1) for table in UNIT_TABLES]))


def _is_thing(message: Reading, position: int) -> bool:
    """Return whether a word may be what a code base calls its things: of software, or unknown."""
    kinds, word = message.kinds[position], message.words[position]
    if kinds and ("SOFTWARE" not in kinds or "OTHERS" in kinds):  # "other users"
        return False
    if "WATCH" in kinds and message.has("YOU"):  # "do you set cookies?"
        return False
    before = message.words[position - 1] if position else ""
    return before not in _POINTING and len(word) > 2


# Its intent.

INTENTS = ("general", "knowledge_base", "continuation", "profile", "privacy")
NEED_CODE = ("knowledge_base", "continuation")
"""Intents that are answered from the code."""
MODEL_BELOW = 0.7
"""Confidence below which a model is asked (research/benchmarks/results/intents.md)."""
WEIGHT_SCALE = 100
"""Weights are stored as whole hundredths."""
PAIR_DISTANCE = 4
"""Largest distance of two words of a clause that make a pair."""
_MOST_NAMES, _MOST_WORDS = 4, 12


@dataclass(frozen=True, slots=True)
class Intent:
    """The purpose of a message, and what decided it."""

    name: str
    """One of INTENTS."""
    confidence: float
    """Probability from 0 to 1."""
    source: Literal["tag", "user", "cache", "heuristics", "model"]
    """`heuristics`: words decided; `user`: a mode that the user chose."""
    reason: str = ""
    """What decided, in words."""


Weights = Mapping[str, npt.NDArray[np.float64]]
"""Feature → its weight for each of INTENTS."""


def by_words(message: Reading, *, has_history: bool, weights: Weights | None = None) -> Intent:
    """Classify a message without tag and mode by its words alone, well under a millisecond."""
    if 3 * sum(map(bool, message.kinds)) < message.length:  # another language, or bare names
        name = "continuation" if has_history else "knowledge_base"
        return Intent(name, 0.5, "heuristics", "few of its words are known")
    if weights is None:
        weights = _shipped()
    telling: dict[str, npt.NDArray[np.float64]] = {}
    total = np.zeros(len(INTENTS))
    for feature, words in features(message, has_history):
        weight = weights.get(feature)
        if weight is None:
            continue
        total += weight
        if words:
            telling[words] = telling.get(words, 0) + weight
    if not has_history:
        total[INTENTS.index("continuation")] = -np.inf
    chances = np.exp(total - total.max())
    chances /= chances.sum()
    general = INTENTS.index("general")
    if chances[general] < MODEL_BELOW:  # a needless search costs less than a missing one
        chances[general] = 0
    best, second = np.argsort(-chances)[:2]
    most = sorted(telling, key=lambda words: telling[words][second] - telling[words][best])[:3]
    quoted = ", ".join(f"“{words}”" for words in most)
    reason = f"its words: {quoted}" if most else "it has no words"
    return Intent(INTENTS[best], round(float(chances[best]), 2), "heuristics", reason)


def features(message: Reading, has_history: bool) -> Iterator[tuple[str, str]]:
    """Yield each feature of the linear model once, with the words that it comes from."""
    seen = set[str]()
    history = "later" if has_history else "first"
    for feature, words in _features(message):
        if feature not in seen:
            seen.add(feature)
            yield feature, words
            if ".." not in feature and not feature.endswith("$"):
                yield f"{history} {feature}", words


def _features(message: Reading) -> Iterator[tuple[str, str]]:
    yield "any", ""
    yield f"names {min(message.names, _MOST_NAMES)}", ""
    yield f"length {min(message.length, _MOST_WORDS) // 2}", ""
    yield f"asks {message.asks}", ""
    senses = [
        sorted(kinds | {"NAMES"} if message.specific(position) else kinds)
        for position, kinds in enumerate(message.kinds)
    ]
    for position, word in enumerate(message.words):
        kinds = senses[position]
        names = kinds if NUMBER in kinds else [word, *kinds]
        later_senses = list(_later_senses(message, senses, position))
        for name in names:
            yield name, word
            if message.lead[position] == 0:
                yield f"^{name}", word
        for kind in kinds:
            if position == 0:
                yield f"^^{kind}", word
            if position == message.length - 1:
                yield f"{kind}$", word
            for later, other in later_senses:
                yield f"{kind}..{other}", f"{word} … {later}"


def _later_senses(
    message: Reading, senses: Sequence[list[str]], position: int
) -> Iterator[tuple[str, str]]:
    """Yield the next words of the clause with each of their senses."""
    for later in range(position + 1, min(position + 1 + PAIR_DISTANCE, message.length)):
        if message.clause[later] == message.clause[position]:
            for sense in senses[later]:
                yield message.words[later], sense


@cache
def _shipped() -> Weights:
    return as_arrays(json.loads(files(__package__).joinpath("intents.json").read_text("utf-8")))


def as_arrays(hundredths: Mapping[str, list[int]]) -> Weights:
    """Convert stored weights to numbers that can be summed."""
    return {name: np.array(row) / WEIGHT_SCALE for name, row in hundredths.items()}
