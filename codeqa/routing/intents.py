"""What a message is for, told by its words: each with what it may mean by the lexicon
(`lexicon.toml`), whether it is understood by itself, and its intent by a linear model of them.

The model was fitted to `research/evals/intents/development.txt` by
`python -m research.training.intents`; to correct it, add messages there and fit it anew. What it is
right about: research/benchmarks/results/intents.md.
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

import numpy as np
import numpy.typing as npt

from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.tokens import name_key, variants, word_set

SHORTEST_STEM = 2
SHORTEST_FORM = 3
_ENDINGS = ("s", "es", "d", "ed", "ing")

Kinds = frozenset[str]
NO_KINDS: Kinds = frozenset()
LONGEST = 1_200
"""Characters that are looked at of a longer message, two thirds of them from its beginning:
what is wanted stands before or after what was pasted."""
CODE, NUMBER = "CODE", "NUMBER"
"""Kinds that no lexicon can list."""

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
"""Words after which `'s` is "is"; after others it is a genitive."""
_LEADS_IN = word_set("please actually by the way also and but so just wait now")
"""Words before the one that a clause begins with in earnest."""
_EMPTY = frozenset(
    ("COMMON", "AUX", "PRONOUN", "SUCH", "OPENING", "SOCIAL", "THANKS", "FORM", "DOUBT", "I",
     "ME", "MY", "YOU", "OUR", "WHERE", "WHAT", "NOT", NUMBER)
)  # fmt: skip
"""Kinds of words that name nothing by themselves."""

_ORDERS = ("show", "list", "explain", "describe", "find", "tell", "give", "write", "fix", "add",
           "compare")  # fmt: skip
_NO_POINTING = {"CODEBASE", "EVERYDAY", "SOCIAL", "OPINION", "YOU", "LASTING", "PRIVATE"}
"""Kinds of phrases in which a pronoun is none."""


@dataclass(slots=True)
class Reading:
    """A message read with the lexicon. Places are those of its words and pieces of code."""

    words: list[str] = field(default_factory=list)
    kinds: list[set[str]] = field(default_factory=list)
    clause: list[int] = field(default_factory=list)
    """Number of the clause that each word stands in; marks part clauses."""
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Kind or word → where it stands."""
    lead: list[int] = field(default_factory=list)
    """How many words of its clause stand before each, without those that lead in."""
    asks: bool = False
    """Has a question mark."""

    def has(self, *names: str) -> bool:
        return any(name in self.at for name in names)

    def near(self, firsts: str | Sequence[str], seconds: str | Sequence[str], within: int) -> bool:
        """Whether one of `seconds` follows one of `firsts`, words or kinds, by at most `within`
        words in one clause."""
        return any(
            0 < later - early <= within and self.clause[later] == self.clause[early]
            for first in ((firsts,) if isinstance(firsts, str) else firsts)
            for early in self.at.get(first, ())
            for second in ((seconds,) if isinstance(seconds, str) else seconds)
            for later in self.at.get(second, ())
        )

    def opens(self, *names: str) -> bool:
        """Whether a clause has one of these as its first word, after words that only lead in."""
        return any(not self.lead[place] for name in names for place in self.at.get(name, ()))

    def begins(self, *names: str) -> bool:
        return bool(self.kinds) and not self.kinds[0].isdisjoint(names)

    def specific(self, place: int) -> bool:
        return not self.kinds[place] & _EMPTY

    @property
    def length(self) -> int:
        return len(self.words)

    @property
    def names(self) -> int:
        """How many words name something: all but those of grammar, of talk and of any code."""
        return sum(self.specific(place) for place in range(self.length))


def read(text: str) -> Reading:
    """Read `text`; of a long one its beginning and its end."""
    known = lexicon()
    text = unicodedata.normalize("NFC", shortened(text))
    found = Reading()
    clause = 0
    for match in _TOKEN.finditer(text):
        piece, sort = match.group(), match.lastgroup
        if sort == "mark":
            found.asks |= any(mark in piece for mark in "?？")
            clause += 1
            continue
        if sort == "code":
            parts = [(piece, {CODE})]
        elif sort == "number":
            parts = [(piece, {NUMBER})]
        else:
            parts = [(word, set(known.kinds(word))) for word in _expanded(piece)]
        for word, kinds in parts:
            found.words.append(word)
            found.kinds.append(kinds)
            found.clause.append(clause)
    _add_phrases(found, known)
    _count_leads(found)
    for place, word in enumerate(found.words):
        for name in {word, *found.kinds[place]}:
            found.at[name].append(place)
    return found


def shortened(text: str) -> str:
    """What is looked at of `text`: all of it, or its beginning and end."""
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 3
    return text[: LONGEST - tail] + "\n" + text[-tail:]


def _expanded(piece: str) -> list[str]:
    """The words of a piece: contractions are taken apart."""
    word = piece.lower().replace("’", "'")
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word].split()
    if word.endswith("'s"):
        return [word[:-2], "is"] if word[:-2] in _IS else [word[:-2]]
    for tail, meaning in _TAILS.items():
        if word.endswith(tail) and len(word) > len(tail):
            return [word[: -len(tail)], meaning]
    return word.split("'")


def _add_phrases(found: Reading, lexicon: Lexicon) -> None:
    """A phrase gives its kinds to its words; what they are by themselves they stay."""
    for place, word in enumerate(found.words):
        for phrase, kinds in lexicon.phrases.get(word, ()):
            if tuple(found.words[place : place + len(phrase)]) == phrase:
                for inside in range(place, place + len(phrase)):
                    found.kinds[inside] |= kinds


def _count_leads(found: Reading) -> None:
    current, before = -1, 0
    for word, kinds, clause in zip(found.words, found.kinds, found.clause, strict=True):
        if clause != current:
            current, before = clause, 0
        found.lead.append(before)
        if before or not (word in _LEADS_IN or kinds & {"SOCIAL", "OPENING", "THANKS"}):
            before += 1


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What words, beginnings of words and phrases may mean."""

    words: Mapping[str, Kinds]
    stems: Mapping[str, Kinds]
    phrases: Mapping[str, list[tuple[tuple[str, ...], Kinds]]]
    """First word → phrases."""

    def kinds(self, word: str) -> Kinds:
        """What `word` alone may be: the kinds of its forms, and of each of its beginnings."""
        found = NO_KINDS
        for form in _forms(word):
            found |= self.words.get(form, NO_KINDS)
        for length in range(SHORTEST_STEM, len(word) + 1):
            if stem := self.stems.get(word[:length]):
                found |= stem
        return found


def _forms(word: str) -> Iterator[str]:
    """`word`, and the words that it may be an English form of: "stopped" of "stop"."""
    yield word
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= SHORTEST_FORM:
            yield stem
            if ending == "es" and stem[-1] == "i":
                yield stem[:-1] + "y"
            if ending in ("ed", "ing"):
                yield stem + "e"
                if stem[-1] == stem[-2]:
                    yield stem[:-1]


@cache
def lexicon() -> Lexicon:
    text = files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    words: dict[str, Kinds] = defaultdict(frozenset)
    stems: dict[str, Kinds] = defaultdict(frozenset)
    phrases: dict[tuple[str, ...], Kinds] = defaultdict(frozenset)
    for kind, entries in tomllib.loads(text).items():
        for entry in filter(None, (" ".join(part.split()) for part in entries.split(","))):
            if " " in entry:
                phrases[tuple(entry.split())] |= {kind}
            elif entry.endswith("*"):
                stems[entry[:-1]] |= {kind}
            else:
                words[entry] |= {kind}
    first = defaultdict(list)
    for phrase, kinds in phrases.items():
        first[phrase[0]].append((phrase, kinds))
    return Lexicon(dict(words), dict(stems), dict(first))


# What a message says of itself.


def wants_something(message: Reading) -> bool:
    """A question, by its mark or its first word, or an order."""
    return message.asks or message.opens("WHERE", "WHAT", "AUX", *_ORDERS)


def stands_alone(message: Reading) -> bool:
    """Whether `message` is a question or an order that needs no earlier turn: it names code or two
    other things, and points to nothing but those ("how does the pool keep its workers")."""
    why = message.opens("why") and not message.near("why", "AUX", 1)  # "why a tree, not a list?"
    named = message.names >= 2 or message.has(CODE)
    points = points_back(message) or why or message.begins("OPENING")
    return wants_something(message) and named and not points


def points_back(message: Reading) -> bool:
    """Whether a word of it stands for something that only an earlier turn names."""
    places = (*message.at.get("PRONOUN", ()), *message.at.get("SUCH", ()))
    return any(_points(message, at) and not _named_before(message, at) for at in places)


def goes_on(message: Reading) -> bool:
    """Whether it begins as what goes on from an earlier turn: "and", "what about"."""
    return message.begins("OPENING")


def _points(message: Reading, place: int) -> bool:
    """Whether a pronoun is one: no part of a phrase, no "that" which begins a clause."""
    if message.kinds[place] & _NO_POINTING:
        return False
    if message.words[place] != "that" or not 0 < place < message.length - 1:
        return True
    return not (message.specific(place - 1) or "SOFTWARE" in message.kinds[place - 1])


def _named_before(message: Reading, place: int) -> bool:
    """Whether what a pronoun stands for may be named in the message itself."""
    if any(CODE in kinds for kinds in message.kinds[: place + 2]):
        return True
    named = [before for before in range(place) if message.specific(before)]
    if not named:
        return False
    owned = message.words[place] in ("its", "their")  # "how does the pool keep its workers"
    earlier = message.clause[named[0]] < message.clause[place]
    return owned or earlier or (len(named) > 1 and "and" in message.words[named[1] : place])


# Whether it is about the repository.

_OF_THE_WRITER = ("I", "MY", "OUR", "ABOUT_ME")
_POINTING = word_set("this that these those your")
_CAPITALISED = re.compile(r"(?<=\w )[A-Z]\w+")


def asks_of_code(text: str, message: Reading, tables: Tables) -> bool:
    """Whether `text`, read as `message`, names a definition of the repository, or asks about things
    that its code speaks of, and not about its writer: "where do you keep the posts?" where there is
    a `load_post`. Raises what the tables raise."""
    words = message.words
    leads = {"tell", "show", "give", "let"}
    spoken = any(not place or words[place - 1] not in leads for place in message.at.get("ME", ()))
    if spoken or message.has(*_OF_THE_WRITER):
        return False
    pieces = [words[place] for place in message.at.get(CODE, ())]
    named = [name for piece in pieces for name in re.findall(r"\w{3,}", piece)[-1:]]
    named += _CAPITALISED.findall(text)
    if any(unit.name in named for unit in tables.named([name_key(one) for one in named])):
        return True
    things = [word for place, word in enumerate(words) if _is_thing(message, place)]
    if not (things and wants_something(message)):
        return False
    tokens = " ".join(form for word in things for form in (word, *variants(word)))
    return any(tables.best([TextSearch(table, tokens, 1) for table in UNIT_TABLES]))


def _is_thing(message: Reading, place: int) -> bool:
    """Whether a word may be what a code base calls its things: one of software, or unknown."""
    kinds, before = message.kinds[place], message.words[place - 1] if place else ""
    watches = "WATCH" in kinds and message.has("YOU")  # "do you set cookies?"
    other = kinds and ("SOFTWARE" not in kinds or "OTHERS" in kinds)  # "other users"
    return not (other or watches or before in _POINTING) and len(message.words[place]) > 2


# Its intent.

INTENTS = ("general", "knowledge_base", "continuation", "profile", "privacy")
NEED_CODE = ("knowledge_base", "continuation")
"""Intents that are answered from the code."""
MODEL_BELOW = 0.7
"""Confidence under which a model is asked (research/benchmarks/results/intents.md says how
many messages lie below, and how many of them are wrong)."""
SCALE = 100
"""A weight is kept as a whole number of hundredths."""
NEAR = 4
"""Words of one clause that lie no further apart make a pair."""
_MOST_NAMES, _MOST_WORDS = 4, 12


@dataclass(frozen=True, slots=True)
class Intent:
    """One of INTENTS, and how it was found."""

    name: str
    confidence: float
    """0 to 1: how often a message so classified is one."""
    source: str
    """`tag`, `user`, `cache`, `heuristics` (words) or `model`."""
    reason: str = ""
    """What decided, in words."""


Weights = Mapping[str, npt.NDArray[np.float64]]
"""Feature → its weight for each of INTENTS."""


def by_words(message: Reading, *, has_history: bool, weights: Weights | None = None) -> Intent:
    """The intent of a message, which comes without tag and mode, by its words alone: no language
    model, no network, well under a millisecond. `weights` are the shipped ones unless given."""
    if 3 * sum(map(bool, message.kinds)) < message.length:  # another language, or bare names
        name = "continuation" if has_history else "knowledge_base"
        return Intent(name, 0.5, "heuristics", "few of its words are known")
    weights = _shipped() if weights is None else weights
    telling: dict[str, npt.NDArray[np.float64]] = {}
    total = np.zeros(len(INTENTS))
    for feature, words in features(message, has_history):
        if (weight := weights.get(feature)) is not None:
            total += weight
            if words:
                telling[words] = telling.get(words, 0) + weight
    if not has_history:
        total[INTENTS.index("continuation")] = -np.inf
    chances = np.exp(total - total.max())
    chances /= chances.sum()
    # A needless search costs less than leaving out one that was wanted.
    if chances[INTENTS.index("general")] < MODEL_BELOW:
        chances[INTENTS.index("general")] = 0
    best, second = np.argsort(-chances)[:2]
    most = sorted(telling, key=lambda words: telling[words][second] - telling[words][best])[:3]
    quoted = ", ".join(f"“{words}”" for words in most)
    reason = f"its words: {quoted}" if most else "it has no words"
    return Intent(INTENTS[best], round(float(chances[best]), 2), "heuristics", reason)


def features(message: Reading, has_history: bool) -> Iterator[tuple[str, str]]:
    """What the linear model sees of a message, each once, with the words that it is of."""
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
        {*kinds, "NAMES"} if message.specific(place) else kinds
        for place, kinds in enumerate(message.kinds)
    ]
    for place, kinds in enumerate(senses):
        word = message.words[place]
        named = [] if NUMBER in kinds else [word]
        for sense in (*named, *sorted(kinds)):
            yield sense, word
            if not message.lead[place]:
                yield f"^{sense}", word
        for kind in sorted(kinds):
            if not place:
                yield f"^^{kind}", word
            if place == message.length - 1:
                yield f"{kind}$", word
            for later in range(place + 1, min(place + 1 + NEAR, message.length)):
                if message.clause[later] == message.clause[place]:
                    for other in sorted(senses[later]):
                        yield f"{kind}..{other}", f"{word} … {message.words[later]}"


@cache
def _shipped() -> Weights:
    return as_arrays(json.loads(files(__package__).joinpath("intents.json").read_text("utf-8")))


def as_arrays(kept: Mapping[str, list[int]]) -> Weights:
    """Weights as they are kept, as numbers to sum up."""
    return {name: np.array(row) / SCALE for name, row in kept.items()}
