"""What may be asked next: up to three questions that the code just shown gives rise to.

They are made from names that really stand there, so that the index can answer them, and a
search by name does: where it is used, whether it is tested, when an error is raised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from codeqa.chat.citations import find_citations
from codeqa.repository.roles import role_of
from codeqa.types import Chunk

MOST = 3
LONGEST = 60
"""Characters of a name that still makes a question that reads well."""
SHORTEST = 4
"""Characters of a name that few other things have."""
SCANNED = 20_000
"""Characters of a chunk in which names are looked for."""

_TYPE = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|internal|abstract|final|sealed|static"
    r"|partial|data|open|pub(?:\([a-z]+\))?|unsafe|case)[ \t]+)*"
    r"(?:class|interface|struct|trait|enum|protocol|object|record|type)[ \t]+([^\W\d]\w*)",
    re.MULTILINE,
)
_FUNCTION = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|override|open"
    r"|pub(?:\([a-z]+\))?|unsafe|async|const|suspend|inline|local)[ \t]+)*"
    r"(?:def|fn|func|fun|function)\*?[ \t]+(?:\([^)\n]*\)[ \t]*)?(?:self\.)?([^\W\d]\w*)",
    re.MULTILINE,
)
_METHOD = re.compile(r"[ \t]*(?:[\w<>\[\],.*&:?~]+[ \t]+){0,8}[*&]?([^\W\d]\w*)[ \t]*\([^;=]*$")
WITHOUT_KEYWORD = frozenset(
    ["c", "cpp", "csharp", "java", "dart", "javascript", "typescript", "tsx", "jsx"]
)
"""Languages whose functions and methods begin with their type, or with nothing at all."""
HEAD_LINES = 40
LINE = 200
"""Lines of a chunk, and characters of a line, in which such a head is looked for."""
_NO_NAMES = frozenset(
    [
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "return",
        "new",
        "else",
        "do",
        "sizeof",
        "using",
        "lock",
    ]
)
_BASES = re.compile(
    r"^[ \t]*(?:export[ \t]+)?class[ \t]+\w+(?:\[[^\]\n]*\]|<[^>\n]*>)?[ \t]*"
    r"(?:\(([^)\n]*)\)|extends[ \t]+([\w.]+)|:[ \t]*(?:public[ \t]+)?([\w.:]+)[ \t]*\{)",
    re.MULTILINE,
)
_RAISED = re.compile(r"\b(?:raise|throw)[ \t]+(?:new[ \t]+)?(?:\w+\.)*([A-Z]\w*)")
_WORD = re.compile(r"[^\W\d]\w*")
_CODE = re.compile(r"`([^`\n]{1,200})`")

_USES = re.compile(
    r"\b(?:us(?:e[sd]?|ages?|ing)|call(?:s|ed|ers?|ing)?|references?|invoked?)\b", re.IGNORECASE
)
_TESTS = re.compile(r"\btest(?:s|ed|ing)?\b", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:inherit|derive|subclass|extend|implement)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Named:
    """A definition that a chunk begins with."""

    name: str
    is_type: bool


def suggest(question: str, chunks: Sequence[Chunk], answer: str) -> tuple[str, ...]:
    """Up to MOST questions that follow from `chunks`, the context of `answer` to `question`.

    What the answer cites comes first, then what it names, then the rest of the context. What
    `question` asks is not asked again.
    """
    shown = [chunk for chunk in _by_use(chunks, answer) if role_of(chunk.path) == "source"]
    asked = set(_WORD.findall(question))
    named = list({one.name: one for chunk in shown if (one := _named(chunk, asked))}.values())
    named.sort(key=lambda one: one.name not in _mentioned(answer))
    found: list[str] = []
    for text in _questions(question, named, shown):
        if _plain(text) != _plain(question) and text not in found:
            found.append(text)
        if len(found) == MOST:
            break
    return tuple(found)


def _questions(question: str, named: Sequence[_Named], shown: Sequence[Chunk]) -> Iterator[str]:
    """Questions, the most likely first; each is of another kind than the one before it."""
    asked = {word.lower() for word in _WORD.findall(question)}
    main = named[0] if named else None
    if main and not (_USES.search(question) and main.name.lower() in asked):
        yield f"Where is `{_as_asked(main.name, question)}` used?"
    others = [one for one in named[1:] if one.name.lower() not in asked]
    if others:
        yield f"What does `{others[0].name}` do?"
    bases = Counter(base for chunk in shown for base in _bases(chunk))
    below = next((one for one in named if one.is_type and bases[one.name]), None)
    if below and not _BELOW.search(question):
        yield f"Which classes inherit from `{below.name}`?"
    raised = (name for chunk in shown for name in _RAISED.findall(chunk.content[:SCANNED]))
    error = next((name for name in raised if _fits(name) and name.lower() not in asked), "")
    if error:
        yield f"When is `{error}` raised?"
    if main and not _TESTS.search(question):
        yield f"Are there tests for `{_as_asked(main.name, question)}`?"
    for other in others:
        yield f"Where is `{other.name}` used?"
        yield f"What does `{other.name}` do?"


def _by_use(chunks: Sequence[Chunk], answer: str) -> list[Chunk]:
    """`chunks`, those first that `answer` cites, in the order in which it does."""
    cited = find_citations(answer)

    def place(chunk: Chunk) -> int:
        inside = (
            number
            for number, one in enumerate(cited)
            if one.path == chunk.path
            and one.start <= chunk.end_line
            and chunk.start_line <= one.end
        )
        return next(inside, len(cited))

    return sorted(chunks, key=place)


def _as_asked(name: str, question: str) -> str:
    """`name` with the owners that `question` gives it: there may be others of that name."""
    found = re.search(rf"(?<![\w.])(?:[^\W\d]\w{{0,99}}(?:\.|::|#)){{0,5}}{name}(?!\w)", question)
    return found[0] if found else name


def _named(chunk: Chunk, asked: Collection[str]) -> _Named | None:
    """What `chunk` defines first; None for text, a call site, and a name that says little unless
    it is `asked` about."""
    if chunk.why.startswith("uses "):
        return None
    text = chunk.content[:SCANNED]
    found = [
        (match.start(), _Named(match[1], is_type))
        for pattern, is_type in ((_TYPE, True), (_FUNCTION, False))
        if (match := pattern.search(text))
    ]
    named = min(found, key=lambda one: one[0])[1] if found else None
    if named is None and chunk.language in WITHOUT_KEYWORD:
        heads = (_METHOD.match(line[:LINE]) for line in text.split("\n")[:HEAD_LINES])
        names = (head[1] for head in heads if head and head[1] not in _NO_NAMES)
        named = next((_Named(name, False) for name in names), None)
    return named if named and (named.name in asked or _fits(named.name)) else None


def _bases(chunk: Chunk) -> set[str]:
    """Classes that those of `chunk` inherit from."""
    found = _BASES.findall(chunk.content[:SCANNED])
    return {name for groups in found for text in groups for name in _WORD.findall(text)}


def _mentioned(answer: str) -> set[str]:
    """Words that `answer` shows as code."""
    return {word for code in _CODE.findall(answer) for word in _WORD.findall(code)}


def _fits(name: str) -> bool:
    return SHORTEST <= len(name) <= LONGEST and not name.startswith("_")


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
