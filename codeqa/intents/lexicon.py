"""What single words and phrases may mean: `lexicon.toml` as tables to look up."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SHORTEST_STEM = 2
SHORTEST_FORM = 3
SHORTEST_CORRECTED = 4
"""Letters of a word whose spelling is looked at."""
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that do not part words by blanks."""
_ENDINGS = ("s", "es", "d", "ed", "ing")

Kinds = frozenset[str]
NO_KINDS: Kinds = frozenset()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What words, beginnings of words and phrases may mean."""

    words: Mapping[str, Kinds]
    stems: Mapping[str, Kinds]
    phrases: Mapping[str, list[tuple[tuple[str, ...], Kinds]]]
    """First word → phrases."""
    unspaced: re.Pattern[str]
    """Every entry in a script without blanks, the longest first."""

    def kinds(self, word: str) -> Kinds:
        """What `word` alone may be: the kinds of its forms, and of each of its beginnings."""
        found = NO_KINDS
        for form in _forms(word):
            found |= self.words.get(form, NO_KINDS)
        for length in range(SHORTEST_STEM, len(word) + 1):
            if stem := self.stems.get(word[:length]):
                found |= stem
        return found

    def spelt(self, word: str) -> str:
        """`word`, or the known word that it is with two neighbouring letters exchanged."""
        if len(word) < SHORTEST_CORRECTED or self.kinds(word):
            return word
        for at in range(len(word) - 1):
            other = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            if other in self.words:
                return other
        return word


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
    """The lexicon, read once."""
    text = files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    return _made(tomllib.loads(text))


def _made(listed: Mapping[str, str]) -> Lexicon:
    """The lexicon of kinds and their entries, separated by commas."""
    words: dict[str, Kinds] = defaultdict(frozenset)
    stems: dict[str, Kinds] = defaultdict(frozenset)
    phrases: dict[tuple[str, ...], Kinds] = defaultdict(frozenset)
    unspaced = []
    for kind, entries in listed.items():
        for entry in filter(None, (" ".join(part.split()) for part in entries.split(","))):
            if UNSPACED.match(entry):
                unspaced.append(entry.rstrip("*"))
                words[unspaced[-1]] |= {kind}
            elif " " in entry:
                phrases[tuple(entry.split())] |= {kind}
            elif entry.endswith("*"):
                stems[entry[:-1]] |= {kind}
            else:
                words[entry] |= {kind}
    first = defaultdict(list)
    for phrase, kinds in phrases.items():
        first[phrase[0]].append((phrase, kinds))
    longest = sorted(set(unspaced), key=len, reverse=True)
    return Lexicon(dict(words), dict(stems), dict(first), re.compile("|".join(longest) or "$^"))
