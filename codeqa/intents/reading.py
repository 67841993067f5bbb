"""What a message says, word by word: the kinds of its words, in order, for the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codeqa.intents.lexicon import (
    ENGLISH,
    UNSPACED,
    Kinds,
    Lexicon,
    language_of,
    lexicons,
    pattern_of,
)
from codeqa.intents.tokens import Token, has_panic, is_unspaced, shortened, tokenise

CODE = "CODE"
_LEADS_IN = frozenset(
    ("please", "actually", "btw", "by", "the", "way", "also", "and", "but", "so", "remember",
     "note", "fyi", "just", "wait", "before", "now", "bitte", "übrigens", "por", "favor", "svp")
)  # fmt: skip
"""Words before the one that a clause begins with in earnest."""
_ENDS = frozenset(".!?…;\n—–。！？；")


@dataclass(slots=True)
class Reading:
    """A message read with the lexicon. Positions are those of its words and pieces of code."""

    has_history: bool
    language: str
    words: list[str] = field(default_factory=list)
    kinds: list[set[str]] = field(default_factory=list)
    sentence: list[int] = field(default_factory=list)
    """Number of the sentence that each word stands in."""
    clause: list[int] = field(default_factory=list)
    """The same for what commas and colons part as well."""
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Kind or word → where it stands; of a phrase, its first word."""
    lead: list[int] = field(default_factory=list)
    """How many words of its clause stand before each, without those that lead in."""
    proper: set[int] = field(default_factory=set)
    """Words with a capital letter."""
    asks: bool = False
    """Ends in a question mark, or has one."""
    panic: bool = False
    signs: int = 0

    def has(self, *names: str) -> bool:
        """Whether one of these words or kinds is there."""
        return any(name in self.at for name in names)

    def count(self, *names: str) -> int:
        """How many places one of these stands at."""
        return len({place for name in names for place in self.at.get(name, ())})

    def near(self, first: str, second: str, within: int = 5) -> bool:
        """Whether `second` follows `first` by at most `within` words, in one sentence."""
        return any(
            0 < later - early <= within and self.sentence[later] == self.sentence[early]
            for early in self.at.get(first, ())
            for later in self.at.get(second, ())
        )

    def any_near(self, firsts: Sequence[str], seconds: Sequence[str], within: int = 5) -> bool:
        """`near` for any of both."""
        return any(self.near(a, b, within) for a in firsts for b in seconds)

    def opens(self, *names: str, within: int = 1) -> bool:
        """Whether a clause begins with one of these, after words that only lead in, or has it
        among its first `within` words."""
        return any(self.lead[place] < within for name in names for place in self.at.get(name, ()))

    def begins(self, *names: str) -> bool:
        """Whether the message itself begins with one of these."""
        return any(0 in self.at.get(name, ()) for name in names)

    @property
    def length(self) -> int:
        """How many words and pieces of code there are."""
        return len(self.words)


def read(text: str, *, has_history: bool) -> Reading:
    """Read `text`; of a long one its beginning and its end."""
    text = shortened(text)
    tokens = tokenise(text)
    language = language_of(text, [token.text for token in tokens if token.sort == "word"])
    found = Reading(has_history, language, panic=has_panic(text))
    lexicon = lexicons()[language]
    if language == ENGLISH:
        tokens = [replace(t, text=lexicon.spelt(t.text)) if t.sort == "word" else t for t in tokens]
    sentence = clause = 0
    for token in tokens:
        if token.sort == "mark":
            found.asks |= any(mark in token.text for mark in "?？¿")
            clause += 1
            sentence += token.text[0] in _ENDS
            continue
        if token.sort == "sign":
            found.signs += 1
            continue
        for word, kinds in _of_token(token, language, lexicon):
            if token.capital:
                found.proper.add(len(found.words))
            found.words.append(word)
            found.kinds.append(set(kinds))
            found.sentence.append(sentence)
            found.clause.append(clause)
    _add_phrases(found, lexicon)
    _count_leads(found)
    for place, word in enumerate(found.words):
        for name in (word, *found.kinds[place]):
            found.at[name].append(place)
    return found


def _of_token(token: Token, language: str, lexicon: Lexicon) -> list[tuple[str, Kinds]]:
    word = token.text
    if token.sort == "code":
        return [(word, frozenset([CODE]))]
    if token.sort == "number":
        return [(word, frozenset(["NUMBER"]))]
    if language not in UNSPACED or not is_unspaced(word):
        kinds = lexicon.kinds(word)
        if not kinds and language != ENGLISH:
            known = lexicons()[ENGLISH].kinds(word)
            kinds = known & {"TECH", "SOFTWARE", "PRIVATE"}
        return [(word, kinds)]
    pieces: list[tuple[str, Kinds]] = []
    last = 0
    for match in pattern_of(language).finditer(word):
        if match.start() > last:
            pieces.append((word[last : match.start()], frozenset()))
        pieces.append((match.group(), lexicon.kinds(match.group())))
        last = match.end()
    if last < len(word):
        pieces.append((word[last:], frozenset()))
    return pieces


def _add_phrases(found: Reading, lexicon: Lexicon) -> None:
    """A phrase gives its kinds to its words; what they are by themselves they stay."""
    for place in range(len(found.words)):
        for length, kinds in lexicon.phrases_at(found.words, place):
            if found.sentence[place] == found.sentence[place + length - 1]:
                for inside in range(place, place + length):
                    found.kinds[inside] |= kinds


def _count_leads(found: Reading) -> None:
    current, before = -1, 0
    for word, kinds, clause in zip(found.words, found.kinds, found.clause, strict=True):
        if clause != current:
            current, before = clause, 0
        found.lead.append(before)
        if before or not (word in _LEADS_IN or kinds & {"SOCIAL", "OPENING"}):
            before += 1
