"""What single words and phrases mean: `lexicon.toml` as tables to look up."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

ALL, ENGLISH = "all", "en"
UNSPACED = {"zh": "[\u4e00-\u9fff]", "ja": "[\u3040-\u30ff]", "ko": "[\uac00-\ud7af]"}
"""Languages whose words are found anywhere in a run of letters, by the letters that tell them;
Japanese comes after Chinese, whose letters it uses as well."""
CYRILLIC = re.compile("[\u0400-\u04ff]")
SHORTEST_STEM = 3
SHORTEST_CORRECTED = 4
"""Letters of a word whose spelling is looked at."""

Kinds = frozenset[str]
Phrase = tuple[tuple[str, ...], Kinds]

NO_KINDS: Kinds = frozenset()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of one language together with those of all."""

    words: Mapping[str, Kinds]
    stems: Mapping[str, Kinds]
    phrases: Mapping[str, Sequence[Phrase]]
    """First word → phrases, the longest first."""

    def kinds(self, word: str) -> Kinds:
        """What `word` alone may be."""
        found = self.words.get(word)
        if found is not None or not self.stems:
            return found or NO_KINDS
        for length in range(len(word), SHORTEST_STEM - 1, -1):
            if stem := self.stems.get(word[:length]):
                return stem
        return NO_KINDS

    def spelt(self, word: str) -> str:
        """`word`, or the known word that it is with two neighbouring letters exchanged."""
        if word in self.words or len(word) < SHORTEST_CORRECTED:
            return word
        for at in range(len(word) - 1):
            other = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            if other in self.words:
                return other
        return word

    def phrases_at(self, words: Sequence[str], start: int) -> Iterator[tuple[int, Kinds]]:
        """Length and kinds of every phrase that begins at `start`."""
        for phrase, kinds in self.phrases.get(words[start], ()):
            if tuple(words[start : start + len(phrase)]) == phrase:
                yield len(phrase), kinds


@lru_cache(maxsize=1)
def lexicons() -> Mapping[str, Lexicon]:
    """The lexicon of each language, English first; read once."""
    text = files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kind, languages in tomllib.loads(text).items():
        for language, listed in languages.items():
            for entry in listed.split(","):
                entries[language][entry.strip()].add(kind)
    common = entries.pop(ALL)
    return {language: _lexicon(common, entries[language]) for language in sorted(entries, key=_at)}


@lru_cache(maxsize=len(UNSPACED))
def pattern_of(language: str) -> re.Pattern[str]:
    """Every entry of a language without blanks, the longest first."""
    lexicon = lexicons()[language]
    entries = [*lexicon.words, *(" ".join(p) for ps in lexicon.phrases.values() for p, _ in ps)]
    return re.compile("|".join(map(re.escape, sorted(entries, key=lambda e: (-len(e), e)))))


@lru_cache(maxsize=1)
def indicators() -> Mapping[str, frozenset[str]]:
    """Word or stem with `*` → languages in Latin letters that have it: what tells a language."""
    found: dict[str, set[str]] = defaultdict(set)
    for language, lexicon in lexicons().items():
        if language not in UNSPACED and language != "ru":
            for word in lexicon.words:
                found[word].add(language)
            for stem in lexicon.stems:
                found[stem + "*"].add(language)
            for phrases in lexicon.phrases.values():
                for phrase, _ in phrases:
                    for word in phrase:
                        found[word].add(language)
    return {word: frozenset(languages) for word, languages in found.items()}


def language_of(text: str, words: Sequence[str]) -> str:
    """The language of `text` as far as the lexicon tells; English where nothing does."""
    for language in ("ko", "ja", "zh"):
        if re.search(UNSPACED[language], text):
            return language
    if CYRILLIC.search(text):
        return "ru"
    known, counts = indicators(), defaultdict[str, int](int)
    for word in words:
        languages = known.get(word)
        for length in range(len(word), SHORTEST_STEM - 1, -1) if languages is None else ():
            if languages := known.get(word[:length] + "*"):
                break
        for language in languages or ():
            counts[language] += 1
    best = max(counts.values(), default=0)
    return ENGLISH if counts[ENGLISH] == best else max(counts, key=lambda name: counts[name])


def _at(language: str) -> tuple[bool, str]:
    return language != ENGLISH, language


def _lexicon(*sources: Mapping[str, set[str]]) -> Lexicon:
    words: dict[str, set[str]] = defaultdict(set)
    stems: dict[str, set[str]] = defaultdict(set)
    phrases: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for source in sources:
        for entry, kinds in source.items():
            parts = tuple(entry.replace("-", " ").split())
            if len(parts) > 1:
                phrases[parts] |= kinds
            elif entry.endswith("*"):
                stems[entry[:-1]] |= kinds
            else:
                words[entry] |= kinds
    for word, kinds in words.items():  # a word in full may be one of a stem's besides
        for length in range(SHORTEST_STEM, len(word) + 1):
            kinds |= stems.get(word[:length], set())
    first: dict[str, list[Phrase]] = defaultdict(list)
    for phrase in sorted(phrases, key=len, reverse=True):
        first[phrase[0]].append((phrase, frozenset(phrases[phrase])))
    return Lexicon(
        {word: frozenset(kinds) for word, kinds in words.items()},
        {stem: frozenset(kinds) for stem, kinds in stems.items()},
        dict(first),
    )
