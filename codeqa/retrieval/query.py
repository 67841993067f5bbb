"""What a question asks for: words, names, paths, filters and the kind of question it is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from codeqa.retrieval.vocabulary import (
    FILE_ENDINGS,
    OVERVIEW_PATTERN,
    QUESTION_WORDS,
    ROLE_OF_WORD,
)
from codeqa.tag import strip_tag
from codeqa.tokens import name_key, search_tokens, split_identifier, well_formed, words
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS

LONGEST_QUESTION = 4_000
"""Characters of a question that are searched for; more would be a pasted file."""
MOST_WORDS = 48
"""Distinct words searched for: full-text search takes time for each of them."""

_KINDS = METHOD_KINDS | CLASS_KINDS | TEXT_KINDS

_FILTER = re.compile(r"(?<!\S)(-?)(lang|language|path|file|kind):(?:\"([^\"\n]*)\"|(\S+))", re.I)
_PHRASE = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”")
_FENCED = re.compile(r"`+([^`\n]+)`+")
_QUALIFIED = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*)+")
_CALLED = re.compile(r"([^\W\d]\w*)\(")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}|[^\W_]_+[^\W_]")
_FILE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?![\w/])")
_FOLDER = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w.-]*)")
_OVERVIEW = re.compile(OVERVIEW_PATTERN, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart; every collection is in order of appearance and distinct."""

    text: str
    """The question without tag and filters."""
    words: tuple[str, ...]
    """Lower-case words that describe, question words left out."""
    tokens: tuple[str, ...]
    """What full-text search is asked: parts of the words and whole identifiers."""
    names: tuple[str, ...] = ()
    """Identifiers written as code (`route`, `get_user`, `Flask.route` → also `route`)."""
    qualified: tuple[str, ...] = ()
    """Dotted names as written, `.` between the parts."""
    joined: tuple[str, ...] = ()
    """name_key of words and of neighbouring words joined: "path router" → pathrouter."""
    phrases: tuple[str, ...] = ()
    """Quoted text that a unit should hold literally."""
    files: tuple[str, ...] = ()
    """Files and folders mentioned (`app.py`, `src/flask/`)."""
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    """Roles that the question asks about: these are not pushed back."""
    symbol_like: bool = False
    """It is a name to look up rather than a sentence."""
    overview: bool = False
    """It asks about the whole repository."""

    @property
    def filtered(self) -> bool:
        return bool(self.languages or self.kinds or self.paths or self.excluded_paths)


def parse_query(
    question: str, *, language: str = "", kind: str = "", path: str = "", overview: bool = True
) -> Query:
    """Take `question` apart; the keyword filters join those written in it.

    An unknown `kind:` is searched for as a word rather than refused.
    """
    question, language, path = map(well_formed, (question, language, path))
    text = strip_tag(unicodedata.normalize("NFC", question).replace("\0", " "))[:LONGEST_QUESTION]
    filters: dict[str, list[str]] = {"lang": [], "kind": [], "path": [], "-path": []}

    def take(match: re.Match[str]) -> str:
        minus, key, value = match[1], match[2].lower(), match[3] or match[4] or ""
        key = {"language": "lang", "file": "path"}.get(key, key)
        if not value or (key == "kind" and value.lower() not in _KINDS):
            return match[0]
        if minus and key != "path":
            return match[0]
        filters[minus + key].append(value if key == "path" else value.lower())
        return " "

    text = re.sub(r"\s+", " ", _FILTER.sub(take, text)).strip()
    for key, value in (("lang", language), ("kind", kind), ("path", path)):
        if value:
            filters[key].append(value if key == "path" else value.lower())

    phrases = [first or second for first, second in _PHRASE.findall(text)]
    files = _files(text)
    plain = _FILE.sub(" ", text) if files else text
    described = _described(plain) or [w.lower() for w in words(text)]
    names, qualified = _names(text, files)
    return Query(
        text=text,
        words=tuple(described[:MOST_WORDS]),
        tokens=tuple(_tokens(described, names)[: 2 * MOST_WORDS]),
        names=tuple(names),
        qualified=tuple(qualified),
        joined=tuple(_joined(plain)),
        phrases=tuple(phrases),
        files=tuple(files),
        languages=tuple(filters["lang"]),
        kinds=tuple(filters["kind"]),
        paths=tuple(filters["path"]),
        excluded_paths=tuple(filters["-path"]),
        roles=frozenset(ROLE_OF_WORD[w] for w in _lower(text) if w in ROLE_OF_WORD),
        symbol_like=_symbol_like(described, [*names, *qualified]),
        overview=overview and _OVERVIEW.search(text) is not None,
    )


def _lower(text: str) -> list[str]:
    return [word.lower() for word in words(text)]


def _described(text: str) -> list[str]:
    """Distinct lower-case words of `text` that are no question words."""
    return list(dict.fromkeys(w for w in _lower(text) if w not in QUESTION_WORDS))


def _tokens(described: list[str], names: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for word in (*names, *described):
        found.update(dict.fromkeys(search_tokens(word)))
    return list(found)


def _names(text: str, files: list[str]) -> tuple[list[str], list[str]]:
    """Identifiers that are written as code, and dotted names."""
    names: dict[str, None] = {}
    qualified: dict[str, None] = {}
    mentioned = set(files)
    for match in _QUALIFIED.finditer(text):
        if match[0] in mentioned or any(match[0] in path for path in files):
            continue
        if len(max(words(match[0]), key=len)) < 2:
            continue  # "e.g.", "i.e."
        dotted = re.sub(r"::|#|->", ".", match[0])
        qualified[dotted] = None
        names[dotted.rsplit(".", 1)[1]] = None
    for quoted in _FENCED.findall(text):
        if len(quoted.split()) == 1:
            names.update(dict.fromkeys(words(quoted)[-1:]))
    names.update(dict.fromkeys(_CALLED.findall(text)))
    names.update(dict.fromkeys(w for w in words(text) if _HUMP.search(w)))
    for name in [n for n in names if n.lower() in QUESTION_WORDS]:
        del names[name]
    return list(names), list(qualified)


def _joined(text: str) -> list[str]:
    """Keys of single words and of two or three neighbours, question words between them kept out."""
    found: dict[str, None] = {}
    run: list[str] = []
    for word in [*words(text), ""]:
        if word and word.lower() not in QUESTION_WORDS:
            run.append(word)
            continue
        for size in (1, 2, 3):
            for start in range(len(run) - size + 1):
                found[name_key("".join(run[start : start + size]))] = None
        run = []
    return list(found)[: 3 * MOST_WORDS]


def _files(text: str) -> list[str]:
    """Files (`app.py`, `src/app.py`) and folders (`src/flask/`) that are named."""
    found: dict[str, None] = {}
    for match in _FILE.findall(text):
        stem, _, ending = match.rpartition(".")
        if "/" in match or (stem and ending.lower() in FILE_ENDINGS):
            found[match] = None
    for match in _FOLDER.findall(text):
        if match not in found and not any(path.startswith(match) for path in found):
            found[match] = None
    return list(found)


def _symbol_like(described: list[str], names: list[str]) -> bool:
    """One describing word, or nothing besides names that are written as code."""
    if len(described) == 1:
        return True
    parts = {word for name in names for word in (name.lower(), *split_identifier(name))}
    parts.update(word for name in names for word in _lower(name))
    return bool(names) and parts.issuperset(described)
