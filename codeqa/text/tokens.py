"""Words of code, the forms in which they are written, and a conservative count of model tokens."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

CHARACTERS_PER_TOKEN = 3.0
"""Characters per model token, low on purpose.

A common rule says 4 for English prose; source code, with its punctuation and
short names, lies nearer to 3, and an estimate that is too high only shortens a text.
"""

_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*", re.UNICODE)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SEPARATOR = re.compile(r"\.|::|\\")
_ENDING = re.compile(
    r"(?<=\w{3})(?:(?:at|it)?ions?|ings?|ers?|ors?|ed|ly|ments?|ness|(?<![suio])s|es|e|en|ung(?:en)?|ti?"
    r"|ées?|és?|ez|ant|eurs?|ados?|adas?|ando|ar|ieren|iert)$"
)
_PART_ANY_SCRIPT = re.compile(r"[^\W\d_]+|[0-9]+")


def well_formed(text: str) -> str:
    """`text` with `?` for lone surrogates, which no UTF-8 and no database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def estimate_tokens(text: str) -> int:
    """Upper estimate of the model tokens in `text`; no tokenizer is downloaded for it."""
    wide = sum(1 for character in text if ord(character) > 0x2E7F) if not text.isascii() else 0
    return int((len(text) - wide) / CHARACTERS_PER_TOKEN) + wide + 1 if text else 0


def word_set(text: str) -> frozenset[str]:
    """The blank-separated words of `text`: a set written as running text."""
    return frozenset(text.split())


def words(text: str) -> list[str]:
    """Whole identifiers and words in `text`, as written, in order."""
    return _WORD.findall(text)


def split_identifier(word: str) -> list[str]:
    """`getHTTPResponse_v2` → `["get", "http", "response", "v", "2"]`, lower case."""
    parts = _PART if word.isascii() else _PART_ANY_SCRIPT
    return [part.lower() for part in parts.findall(word)]


def search_tokens(text: str) -> list[str]:
    """Lower-case tokens for full-text search: each identifier's parts, then the whole.

    The whole identifier is kept (underscores removed) beside its parts, so that an exact
    name outweighs words that merely share a part with it.
    """
    tokens: list[str] = []
    for word in words(text):
        parts = split_identifier(word)
        tokens.extend(parts)
        if len(parts) > 1:
            tokens.append(word.replace("_", "").lower())
    return tokens


def last_word(qualified_name: str) -> str:
    """What stands behind the last separator: `b` of `a.b`, `a::b` and `a\\b`."""
    return _SEPARATOR.split(qualified_name)[-1]


@lru_cache(65_536)  # a question compares the names of some classes with thousands of receivers
def name_key(name: str) -> str:
    """Key under which spellings of one name meet: `getUser`, `get_user`, `GetUser`."""
    return unicodedata.normalize("NFKC", name).replace("_", "").replace("-", "").lower()


def variants(word: str) -> tuple[str, ...]:
    """Other forms in which an English word stands in code: `routes`, `routing` → `route`.

    Light on purpose: plural, -ing, -ed and -er of words of five letters or more, and what is
    called -ation in prose and -ate, -ator, -e or -er in code (`pagination` → `Paginator`); a
    form that is no word costs nothing, for no unit holds it.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ()
    forms: list[str] = []
    if word.endswith("ies"):
        forms += [word[:-3] + "y", word[:-1]]
    elif word.endswith("ied"):
        forms.append(word[:-3] + "y")
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        forms.append(word[:-2])
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        forms.append(word[:-1])
    for ending in ("ing", "ed", "er", "ers", "or", "ors"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending == "ed"):
            stem = word[: -len(ending)]
            forms += [stem, stem + "e"]
            if len(stem) > 3 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    if word.endswith("ation") and len(word) > 8:
        stem = word[:-5]
        forms += [stem + ending for ending in ("ate", "ator", "e", "er")]
    if not word.endswith(("s", "ing", "ed")):
        forms.append(word + "s")
    return tuple(dict.fromkeys(form for form in forms if len(form) > 2 and form != word))


def written_forms(word: str) -> tuple[str, ...]:
    """What counts as holding `word` where it stands in lower-case text.

    `path_router` also as `pathrouter` and as two words; of forms that hold each other the
    shortest: `routes` is found with `route`.
    """
    # Of `_` alone nothing is left, and nothing stands in every text.
    spelled = (word, word.replace("_", ""), word.replace("_", " ").strip(), *variants(word))
    forms = dict.fromkeys(filter(None, spelled))
    return tuple(f for f in forms if not any(other in f for other in forms if other != f))


def stem(word: str) -> str:
    """What the forms of a word have in common, in European languages: `saving` and `saved` → `sav`,
    `subdivision` and `subdivides` → `subdivi`. For telling that a word stands somewhere at all."""
    bare = _ENDING.sub("", word) if len(word) > 4 else word
    return bare[:-1] if len(bare) > 7 else bare


def form_pattern(word: str) -> re.Pattern[str]:
    """Finds any of `written_forms(word)` in lower-case text, also inside an identifier."""
    return re.compile("|".join(map(re.escape, written_forms(word))))
