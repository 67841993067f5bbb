"""Whether a message can be understood by itself: pronouns, and what its words say."""

from __future__ import annotations

import re

from codeqa.intents.reading import CODE, Reading

_EMPTY = frozenset(
    {
        "FUNCTION", "LIGHT", "AUX", "PRONOUN", "SUCH", "OPENING", "SOCIAL", "FORM", "DOUBT",
        "ORDINAL", "I", "ME", "MY", "YOU", "YOUR", "OUR", "WHERE", "WHO", "WHICH", "WHAT", "HOW",
        "WHY", "WHEN", "NOT", "NUMBER", "TASK",
    }
)  # fmt: skip
"""Kinds of words that name nothing by themselves."""
_CONJUNCTIONS = frozenset(
    ("know", "knows", "say", "says", "said", "think", "see", "remember", "note", "sure", "so",
     "is", "assume", "mean", "means", "tell", "ensure", "make", "makes", "guarantee")
)  # fmt: skip
"""Words after which "that" may begin a clause instead of pointing at something."""
_IN_PHRASES = frozenset({"CODEBASE", "EVERYDAY", "SOCIAL", "OPINION", "LORE", "APP", "LASTING"})
"""A pronoun that is a part of these ("what time is it") stands for nothing."""
_ARTICLES = frozenset({"das", "die", "dat", "het", "este", "esta", "questo", "questa", "lo"})
"""Words that are articles or adjectives before a noun."""
_EXPLETIVE = [[word] for word in ("possible", "take", "takes", "true", "better", "worth", "cost")]
"""Words before which "it" is only grammar."""
_INVERTED = frozenset({"il", "elle", "ils", "elles"})
"""French asks by them after the subject: "les tests démarrent-ils"."""
_ENDINGS_APART = {
    "ja": re.compile("[\u30a0-\u30ff\u4e00-\u9fff]"),
    "ko": re.compile(r"\w{3}"),
    "zh": re.compile(r"\w{2}"),
}
"""What of these languages is more than an ending, where the lexicon does not know it."""
_TRAILING = frozenset(("on", "for", "from", "with", "to", "in", "at", "about"))
"""Words after "that" when it is an object ("what do you base that on")."""
_BEFORE_ONE = frozenset(
    ("another", "other", "which", "second", "first", "third", "last", "next", "that", "this",
     "each", "old", "new")
)  # fmt: skip
"""Words before "one" that make it point at something."""


def specific(m: Reading) -> int:
    """How many words name something: all but those of grammar, of talk and of any code."""
    return sum(_is_specific(m, place) for place in range(m.length))


def _is_specific(m: Reading, place: int) -> bool:
    if m.kinds[place] & _EMPTY:
        return False
    if m.language in _ENDINGS_APART and not m.kinds[place]:
        return _ENDINGS_APART[m.language].search(m.words[place]) is not None
    return True


def strong_software(m: Reading) -> bool:
    """Whether a word of software names something: in a first message any, later none that may be
    a word of the last answer, and never a fact of the speaker's ("my job")."""
    return any(
        "SOFTWARE" in kinds
        and "CLOUD" not in kinds
        and not (m.has_history and "LIGHT" in kinds)
        and not ("FACT" in kinds and any("MY" in k for k in m.kinds[max(0, place - 2) : place]))
        for place, kinds in enumerate(m.kinds)
    )


def only(m: Reading, *names: str) -> bool:
    """Whether every word is of one of these kinds."""
    wanted = set(names)
    return all(kinds & wanted for kinds in m.kinds)


def ends_with(m: Reading, name: str) -> bool:
    """Whether the message's last word is of this kind."""
    return bool(m.kinds) and name in m.kinds[-1]


def free_pronoun(m: Reading) -> bool:
    """Whether a pronoun or a demonstrative refers to nothing in the message itself."""
    return any(
        _points(m, place) and not _named_before(m, place)
        for kind in ("PRONOUN", "SUCH", "one", "ones", "there")
        for place in m.at.get(kind, ())
    )


def _points(m: Reading, place: int) -> bool:
    word = m.words[place]
    before = m.words[place - 1] if place else ""
    after = m.kinds[place + 1] if place + 1 < m.length else set()
    ends = place + 1 == m.length or m.clause[place + 1] != m.clause[place]
    if m.kinds[place] & _IN_PHRASES or CODE in after or (word != "it" and "TALK" in after):
        return False
    if word in ("itself", "themselves"):  # "the rotation itself", but not "they start themselves"
        return place >= 2 and m.words[place - 2] in ("the", "this", "that")
    if word == "there":
        return before not in ("is", "are", "was", "were") and not after & {"AUX"}
    if word in ("one", "ones"):
        return before in _BEFORE_ONE
    if word == "that" and place:
        kinds = m.kinds[place - 1]
        if ends or m.words[place + 1] in _TRAILING:
            return True
        names = not kinds & _EMPTY or ("LIGHT" in kinds and "CODE_VERB" not in kinds)
        return not names and not (before in _CONJUNCTIONS and after & {"I", "YOU", "PRONOUN"})
    if word in _ARTICLES and after <= {"SOFTWARE"} and not ends:
        return False
    return not (word == "it" and m.words[place + 1 : place + 2] in _EXPLETIVE)


def _named_before(m: Reading, place: int) -> bool:
    """Whether what the pronoun stands for may be named in the message before it."""
    if any(CODE in kinds for kinds in m.kinds[:place]):
        return True
    earlier = [i for i in range(place) if _is_specific(m, i)]
    if not earlier:
        return False
    if m.clause[earlier[0]] < m.clause[place] or m.words[place] in _INVERTED:
        return True
    return len(earlier) >= 2 and "and" in m.words[earlier[1] : place]
