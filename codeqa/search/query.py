"""What a question asks for: words, names, paths, filters and the kind of question it is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from codeqa.languages import languages
from codeqa.search.mentions import Mention, take_mentions
from codeqa.search.question_words import (
    FILE_ENDINGS,
    ROLE_OF_WORD,
    asking_words,
    describing_part,
    separate,
)
from codeqa.search.traceback import Traceback, take_traceback
from codeqa.store import Filter
from codeqa.text.tag import strip_tag
from codeqa.text.tokens import name_key, search_tokens, split_identifier, well_formed, words
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS

LONGEST_QUESTION = 4_000
"""Characters of a question that are searched for; more would be a pasted file."""
MOST_WORDS = 48
"""Distinct words searched for: full-text search takes time for each of them."""

_PHRASE = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”")
_FENCED = re.compile(r"`+([^`\n]+)`+")
_QUALIFIED = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*)+")
_CALLED = re.compile(r"([^\W\d]\w*)[(（]")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}|[^\W_]_+[^\W_]")
_SUBJECT = re.compile(r"\bdoes (\w+)")
_FILE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?![\w/])")
_FOLDER = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w.-]*)")
_WHOLE = r"(?:whole |entire )?"
_THING = r"(?:project|repo|repository|code ?base)"
_VIEW = r"(?:overview|architecture|layout|structure|summary)"
_OVERVIEW = re.compile(
    r"what(?: is|'s| does| are)?(?: this| the| it)? ?"
    rf"{_WHOLE}(?:{_THING}|code|library|package|app|application|program|it|this)"
    r"(?: about| do| for)?\W*$"
    rf"|how (?:is|are) (?:the|this|it)?\s*{_WHOLE}"
    rf"(?:{_THING}|code|library|package|source|files?)?\s*"
    r"(?:organi[sz]ed|structured|laid out|arranged)"
    rf"|^(?:give me |show me )?(?:an? |the )?(?:high.level )?{_VIEW}"
    rf"(?: of (?:the|this|its) {_WHOLE}(?:{_THING}|code|{_VIEW}))?\W*$"
    rf"|{_VIEW} of (?:the|this) {_WHOLE}{_THING}"
    rf"|(?:overall|project|repository|code ?base)(?:'s)? {_VIEW}"
    r"|where (?:do|should|can) i (?:start|begin)",
    re.IGNORECASE,
)
"""What a question about the whole repository looks like."""
NO_FILTER = Filter()
KINDS = METHOD_KINDS | CLASS_KINDS | TEXT_KINDS

_FILTER = re.compile(r"(?<!\S)(-?)(lang|language|path|file|kind):(?:\"([^\"\n]*)\"|(\S+))", re.I)
_SAME = {"lang": "language", "file": "path"}
_OTHER_KINDS = {"func": "function", "fn": "function", "def": "function", "doc": "document"}
_OTHER_LANGUAGES = {
    "c++": "cpp",
    "c#": "csharp",
    "golang": "go",
    "node": "javascript",
    "shell": "bash",
    "docker": "dockerfile",
    "make": "makefile",
    "terraform": "hcl",
}
"""Names in use that are neither ours nor a file ending (`lang:py` and `lang:rs` are)."""


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
    filters: Filter = NO_FILTER
    """What its `lang:`, `kind:` and `path:` say; paths as written."""
    unknown_kinds: tuple[str, ...] = ()
    """Values of `kind:` that no unit has; they stay in the text."""
    pointed: tuple[str, ...] = ()
    """What stands behind each `@`, as written."""
    traceback: Traceback | None = None
    """What was pasted of one; of its text only the error is searched for."""
    mentions: tuple[Mention, ...] = ()
    """What of these is in the index (`resolve_query`): guaranteed, folders restrict."""
    subjects: tuple[str, ...] = ()
    """Words after "does", as written: what something is asked about by its name."""
    misspelt: tuple[tuple[str, str], ...] = ()
    """Names that nothing is called by, each with the nearest that there is."""
    roles: frozenset[str] = frozenset()
    """Roles that the question asks about: these are not pushed back."""
    symbol_like: bool = False
    """It is a name to look up rather than a sentence."""
    overview: bool = False
    """It asks about the whole repository."""

    @property
    def points_at_code(self) -> bool:
        """Whether it says itself which code it is about."""
        return bool(self.pointed or self.traceback)

    @property
    def filtered(self) -> bool:
        return self.filters != NO_FILTER or any(mention.folders for mention in self.mentions)


def parse_query(question: str, *, language: str = "", kind: str = "", path: str = "") -> Query:
    """Take `question` apart; the keyword filters join those written in it.

    An unknown `kind:` is searched for as a word rather than refused.
    """
    question, language, kind, path = map(well_formed, (question, language, kind, path))
    text = strip_tag(unicodedata.normalize("NFC", question).replace("\0", " "))
    text, traceback = take_traceback(text)
    text, pointed = take_mentions(text[:LONGEST_QUESTION])
    given = [("lang", language), ("kind", kind), ("path", path)]
    text, filters, unknown_kinds = _take_filters(text, given)
    phrases = [first or second for first, second in _PHRASE.findall(text)]
    text = separate(text)
    query = Query(
        text=text,
        words=(),
        tokens=(),
        phrases=tuple(phrases),
        filters=filters,
        unknown_kinds=unknown_kinds,
        pointed=pointed,
        traceback=traceback,
        roles=frozenset(ROLE_OF_WORD[w] for w in _lower(text) if w in ROLE_OF_WORD),
        overview=_OVERVIEW.search(text) is not None,
    )
    return with_words(query, text)


def _take_filters(
    text: str, given: Iterable[tuple[str, str]]
) -> tuple[str, Filter, tuple[str, ...]]:
    """`text` without its filters, what these and `given` ask for, and the values of `kind:` that no
    unit has: they stay in the text as words.

    A `-` before a filter leaves out what it names; several of one key are alternatives.
    """
    found: dict[str, dict[str, None]] = {}
    unknown_kinds: dict[str, None] = {}

    def add(minus: str, key: str, value: str) -> bool:
        if not value.strip():
            return False
        field = f"{_SAME.get(key.lower(), key.lower())}s"
        named = {"kinds": kind_named, "languages": language_named}.get(field, str)(value)
        if named:
            found.setdefault(f"excluded_{field}" if minus else field, {})[named] = None
        else:
            unknown_kinds[value] = None
        return bool(named)

    def take(match: re.Match[str]) -> str:
        return " " if add(match[1], match[2], match[3] or match[4] or "") else match[0]

    text = re.sub(r"\s+", " ", _FILTER.sub(take, text)).strip()
    for key, value in given:
        add("", key, value)
    filters = Filter(**{field: tuple(values) for field, values in found.items()})
    return text, filters, tuple(unknown_kinds)


def kind_named(value: str) -> str:
    """The kind that is meant by `value` (`Classes` → `class`); '' for none."""
    low = value.lower()
    for one in (low, low.removesuffix("s"), low.removesuffix("es")):
        one = _OTHER_KINDS.get(one, one)
        if one in KINDS:
            return one
    return ""


def language_named(value: str) -> str:
    """The language that is meant by `value` (`JS` → `javascript`), else `value` in lower case."""
    low = value.lower()
    names = {key: language.name for key, language in languages().items()}
    if low in names or low in names.values():
        return names.get(low, low)
    ending = "." + low.removeprefix(".")
    found = [one.name for one in languages().values() if ending in one.extensions]
    return _OTHER_LANGUAGES.get(low) or (found[0] if found else low)


def says_something(text: str) -> bool:
    """Whether `text` holds a word that does more than ask: "and why is that?" holds none."""
    found = _lower(text)
    return not asking_words(found).issuperset(found)


def with_words(query: Query, text: str) -> Query:
    """`query` with words, names and files of `text`, which may be a part or a repair of its own.

    What is left of the question stays as it is, the text for the embedding included.
    """
    files = _files(text)
    plain = describing_part(_FILE.sub(" ", text) if files else text)
    asking = asking_words(_lower(text))
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
        subjects=tuple(_SUBJECT.findall(text)),
    )


def _lower(text: str) -> list[str]:
    return [word.lower() for word in words(text)]


def _names(text: str, files: list[str], asking: frozenset[str]) -> tuple[list[str], list[str]]:
    """Identifiers that are written as code, and dotted names."""
    names: dict[str, None] = {}
    qualified: dict[str, None] = {}
    for match in _QUALIFIED.finditer(text):
        initials = len(max(words(match[0]), key=len)) < 2  # "e.g.", "i.e."
        if initials or any(match[0] in path for path in files):
            continue
        dotted = re.sub(r"::|#|->", ".", match[0])
        qualified[dotted] = None
        names[dotted.rsplit(".", 1)[1]] = None
    for quoted in _FENCED.findall(text):
        if len(quoted.split()) == 1:
            names.update(dict.fromkeys(words(quoted)[-1:]))
    names.update(dict.fromkeys(_CALLED.findall(text)))
    names.update(dict.fromkeys(w for w in words(text) if _HUMP.search(w)))
    return [name for name in names if name.lower() not in asking], list(qualified)


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
    parts = {
        word for name in names for word in (name.lower(), *split_identifier(name), *_lower(name))
    }
    return len(described) == 1 or (bool(names) and parts.issuperset(described))
