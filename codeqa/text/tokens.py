"""Words of code, the forms in which they are written, and an estimate of model tokens."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

CHARACTERS_PER_TOKEN = 3.0
"""Characters per model token: English prose has about 4, source code nearer to 3. An estimate that
is too high only shortens a text."""

_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*", re.UNICODE)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SEPARATOR = re.compile(r"\.|::|\\")
_ENDING = re.compile(
    r"(?<=\w{3})(?:(?:at|it)?ions?|ings?|ers?|ors?|ed|ly|ments?|ness|(?<![suio])s|es|e|en|ung(?:en)?|ti?"
    r"|ées?|és?|ez|ant|eurs?|ados?|adas?|ando|ar|ieren|iert)$"
)
_PART_ANY_SCRIPT = re.compile(r"[^\W\d_]+|[0-9]+")
CJK = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uac00-\ud7af\u1100-\u11ff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean letters, of which words stand side by side without blanks."""
_CJK_LETTER = re.compile(rf"[{CJK}]")
_CJK_OR_OTHERS = re.compile(rf"([{CJK}]+)|[^{CJK}]+")


def well_formed(text: str) -> str:
    """Replace lone surrogates, which neither UTF-8 nor a database takes, by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the model tokens in `text`, without a tokenizer."""
    if not text:
        return 0
    wide = 0
    if not text.isascii():
        wide = sum(ord(character) > 0x2E7F for character in text)  # about one token each
    return int((len(text) - wide) / CHARACTERS_PER_TOKEN) + wide + 1


def word_set(text: str) -> frozenset[str]:
    """Return the set of blank-separated words in `text`."""
    return frozenset(text.split())


def words(text: str) -> list[str]:
    """Return the identifiers and words of `text`, whole and in order."""
    return _WORD.findall(text)


def split_identifier(word: str) -> list[str]:
    """Split into lower-case parts: `getHTTPResponse_v2` → `get`, `http`, `response`, `v`, `2`.

    Of Chinese, Japanese and Korean each two neighbouring letters are a part, as nothing tells where
    a word ends: `注销用户` → `注销`, `销用`, `用户`.
    """
    if word.isascii():
        return [part.lower() for part in _PART.findall(word)]
    parts: list[str] = []
    for run in _CJK_OR_OTHERS.finditer(word):
        if letters := run[1]:
            parts += [letters[at : at + 2] for at in range(max(1, len(letters) - 1))]
        else:
            part = _PART if run[0].isascii() else _PART_ANY_SCRIPT
            parts += [piece.lower() for piece in part.findall(run[0])]
    return parts


def search_tokens(text: str) -> list[str]:
    """Return lower-case tokens for full-text search: the parts of each identifier, then the whole.

    With the whole, underscores removed, an exact name outweighs words that share only a part. What
    holds Chinese, Japanese or Korean letters is mostly part of a sentence, and has no whole.
    """
    tokens: list[str] = []
    for word in words(text):
        parts = split_identifier(word)
        tokens.extend(parts)
        if len(parts) > 1 and (word.isascii() or not _CJK_LETTER.search(word)):
            tokens.append(word.replace("_", "").lower())
    return tokens


def last_word(qualified_name: str) -> str:
    """Return the part after the last separator: `b` of `a.b`, `a::b` and `a\\b`."""
    return _SEPARATOR.split(qualified_name)[-1]


@lru_cache(65_536)  # a question compares the names of some classes with thousands of receivers
def name_key(name: str) -> str:
    """Return the key that spellings of one name share: `getUser`, `get_user`, `GetUser`."""
    return unicodedata.normalize("NFKC", name).replace("_", "").replace("-", "").lower()


def variants(word: str) -> tuple[str, ...]:
    """Return other forms in which an English word stands in code: `routes`, `routing` → `route`.

    These are plurals, -ing, -ed and -er, and -ate, -ator, -e or -er for -ation (`pagination` →
    `Paginator`). A form that is no word does no harm, as no unit has it.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ()
    forms = _singulars(word)
    for ending in ("ing", "ed", "er", "ers", "or", "ors"):
        stem = word.removesuffix(ending)
        shortest = 3 if ending == "ed" else 4
        if stem != word and len(stem) >= shortest:
            forms += [stem, stem + "e"]
            if len(stem) > 3 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    if word.endswith("ation") and len(word) > 8:
        stem = word[:-5]
        forms += [stem + ending for ending in ("ate", "ator", "e", "er")]
    if not word.endswith(("s", "ing", "ed")):
        forms.append(word + "s")
    return tuple(dict.fromkeys(form for form in forms if len(form) > 2 and form != word))


def _singulars(word: str) -> list[str]:
    if word.endswith("ies"):
        return [word[:-3] + "y", word[:-1]]
    if word.endswith("ied"):
        return [word[:-3] + "y"]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return [word[:-2]]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return [word[:-1]]
    return []


def written_forms(word: str) -> tuple[str, ...]:
    """Return the forms of `word` to look for in lower-case text.

    `path_router` is also `pathrouter` and two words. Of forms that contain each other the
    shortest is enough: `route` finds `routes`.
    """
    spelled = (word, word.replace("_", ""), word.replace("_", " ").strip(), *variants(word))
    forms = dict.fromkeys(filter(None, spelled))  # without the empty forms of `_`
    return tuple(f for f in forms if not any(other in f for other in forms if other != f))


def stem(word: str) -> str:
    """Return what the forms of a word share in European languages: `saving`, `saved` → `sav`."""
    bare = _ENDING.sub("", word) if len(word) > 4 else word
    return bare[:-1] if len(bare) > 7 else bare


def form_pattern(word: str) -> re.Pattern[str]:
    """Compile a pattern that finds any form of `word` in lower-case text, also in identifiers."""
    return re.compile("|".join(map(re.escape, written_forms(word))))
