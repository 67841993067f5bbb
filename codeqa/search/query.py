"""What a question asks for: words, names, paths, filters and the kind of question it is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from codeqa.search.mentions import Mention, take_mentions
from codeqa.search.query_filters import take_filters
from codeqa.search.question_languages import asking_words, describing_part, separate
from codeqa.search.vocabulary import (
    FILE_ENDINGS,
    OVERVIEW_PATTERN,
    QUESTION_WORDS,
    ROLE_OF_WORD,
)
from codeqa.text.tag import strip_tag
from codeqa.text.tokens import name_key, search_tokens, split_identifier, well_formed, words

LONGEST_QUESTION = 4_000
"""Characters of a question that are searched for; more would be a pasted file."""
MOST_WORDS = 48
"""Distinct words searched for: full-text search takes time for each of them."""

_PHRASE = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”")
_FENCED = re.compile(r"`+([^`\n]+)`+")
_QUALIFIED = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*)+")
_CALLED = re.compile(r"([^\W\d]\w*)[(（]")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}|[^\W_]_+[^\W_]")
_FILE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?![\w/])")
_FOLDER = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w.-]*)")
_OVERVIEW = re.compile(OVERVIEW_PATTERN, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart; every collection is in order of appearance and distinct."""

    text: str
    """The question without tag, filters and the `@` of mentions."""
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
    excluded_languages: tuple[str, ...] = ()
    excluded_kinds: tuple[str, ...] = ()
    unknown_kinds: tuple[str, ...] = ()
    """Values of `kind:` that no unit has; they stay in the text."""
    pointed: tuple[str, ...] = ()
    """What stands behind each `@`, as written."""
    mentions: tuple[Mention, ...] = ()
    """What of it is in the index (`resolve_query`): guaranteed, folders restrict."""
    misspelt: tuple[tuple[str, str], ...] = ()
    """Names that nothing is called by, each with the nearest that there is (`typos`)."""
    roles: frozenset[str] = frozenset()
    """Roles that the question asks about: these are not pushed back."""
    symbol_like: bool = False
    """It is a name to look up rather than a sentence."""
    overview: bool = False
    """It asks about the whole repository."""

    @property
    def filtered(self) -> bool:
        folders = any(mention.folders for mention in self.mentions)
        asked = self.languages or self.kinds or self.paths
        left_out = self.excluded_languages or self.excluded_kinds or self.excluded_paths
        return bool(asked or left_out or folders)


def parse_query(question: str, *, language: str = "", kind: str = "", path: str = "") -> Query:
    """Take `question` apart; the keyword filters join those written in it.

    An unknown `kind:` is searched for as a word rather than refused.
    """
    question, language, kind, path = map(well_formed, (question, language, kind, path))
    text = strip_tag(unicodedata.normalize("NFC", question).replace("\0", " "))[:LONGEST_QUESTION]
    text, pointed = take_mentions(text)
    text, filters = take_filters(text)
    phrases = [first or second for first, second in _PHRASE.findall(text)]
    for key, value in (("lang", language), ("kind", kind), ("path", path)):
        filters.add(key, value)
    text = separate(text)
    query = Query(
        text=text,
        words=(),
        tokens=(),
        phrases=tuple(phrases),
        languages=filters.of("lang"),
        kinds=filters.of("kind"),
        paths=filters.of("path"),
        excluded_paths=filters.of("-path"),
        excluded_languages=filters.of("-lang"),
        excluded_kinds=filters.of("-kind"),
        unknown_kinds=tuple(filters.unknown_kinds),
        pointed=pointed,
        roles=frozenset(ROLE_OF_WORD[w] for w in _lower(text) if w in ROLE_OF_WORD),
        overview=_OVERVIEW.search(text) is not None,
    )
    return with_words(query, text)


def says_something(text: str) -> bool:
    """Whether `text` holds a word that does more than ask: "and why is that?" holds none."""
    found = _lower(text)
    return not asking_words(found, QUESTION_WORDS).issuperset(found)


def with_words(query: Query, text: str) -> Query:
    """`query` with words, names and files of `text`, which may be a part or a repair of its own.

    What is left of the question stays as it is, the text for the embedding included.
    """
    files = _files(text)
    plain = describing_part(_FILE.sub(" ", text) if files else text)
    asking = asking_words(_lower(text), QUESTION_WORDS)
    found = list(dict.fromkeys(w for w in _lower(plain) if w not in asking)) or _lower(text)
    names, qualified = _names(text, files, asking)
    tokens = dict.fromkeys(token for word in (*names, *found) for token in search_tokens(word))
    return replace(
        query,
        words=tuple(found[:MOST_WORDS]),
        tokens=tuple(tokens)[: 2 * MOST_WORDS],
        names=tuple(names),
        qualified=tuple(qualified),
        joined=tuple(_joined(plain, asking)),
        files=tuple(files),
        symbol_like=_symbol_like(found, [*names, *qualified]),
    )


def _lower(text: str) -> list[str]:
    return [word.lower() for word in words(text)]


def _names(text: str, files: list[str], asking: frozenset[str]) -> tuple[list[str], list[str]]:
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
    for name in [n for n in names if n.lower() in asking]:
        del names[name]
    return list(names), list(qualified)


def _joined(text: str, asking: frozenset[str]) -> list[str]:
    """Keys of single words and of two or three neighbours, question words between them kept out."""
    found: dict[str, None] = {}
    run: list[str] = []
    for word in [*words(text), ""]:
        if word and word.lower() not in asking:
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
