"""What may be asked next: up to three questions that the code just shown gives rise to.

They are made from names that really stand there, so that the index can answer them, and a
search by name does: where it is used, whether it is tested, when an error is raised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from codeqa.chat.citations import find_citations
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Chunk

MOST = 3
LONGEST = 60
"""Characters of a name that still makes a question that reads well."""
SHORTEST = 4
"""Characters of a name that few other things have."""
SCANNED = 20_000
"""Characters of a chunk in which raised errors are looked for."""

_RAISED = re.compile(r"\b(?:raise|throw)[ \t]+(?:new[ \t]+)?(?:\w+\.)*([A-Z]\w*)")
_WORD = re.compile(r"[^\W\d]\w*")
_CODE = re.compile(r"`([^`\n]{1,200})`")

_USES = re.compile(
    r"\b(?:us(?:e[sd]?|ages?|ing)|call(?:s|ed|ers?|ing)?|references?|invoked?)\b", re.IGNORECASE
)
_TESTS = re.compile(r"\btest(?:s|ed|ing)?\b", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:inherit|derive|subclass|extend|implement)", re.IGNORECASE)


def suggest(question: str, chunks: Sequence[Chunk], answer: str) -> tuple[str, ...]:
    """Up to MOST questions that follow from `chunks`, the context of `answer` to `question`.

    What the answer cites comes first, then what it names, then the rest of the context. What
    `question` asks is not asked again.
    """
    shown = [chunk for chunk in _cited_first(chunks, answer) if chunk.role == "source"]
    asked = set(_WORD.findall(question))
    named: dict[str, Chunk] = {}
    for chunk in shown:
        if _worth_asking(chunk, asked) and not chunk.why.startswith("uses "):
            named.setdefault(chunk.name, chunk)
    mentioned = {word for code in _CODE.findall(answer) for word in _WORD.findall(code)}
    main_first = sorted(named.values(), key=lambda chunk: chunk.name not in mentioned)
    found: list[str] = []
    for text in _questions(question, main_first, shown):
        if _plain(text) != _plain(question) and text not in found:
            found.append(text)
    return tuple(found[:MOST])


def _questions(question: str, named: Sequence[Chunk], shown: Sequence[Chunk]) -> Iterator[str]:
    """Questions, the most likely first; each is of another kind than the one before it."""
    asked = {word.lower() for word in _WORD.findall(question)}
    main = named[0] if named else None
    if main and not (_USES.search(question) and main.name.lower() in asked):
        yield f"Where is `{_as_asked(main.name, question)}` used?"
    others = [chunk for chunk in named[1:] if chunk.name.lower() not in asked]
    if others:
        yield f"What does `{others[0].name}` do?"
    below = next((chunk for chunk in named if _has_heirs(chunk, named)), None)
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


def _cited_first(chunks: Sequence[Chunk], answer: str) -> list[Chunk]:
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
    owners = r"(?<![\w.])(?:[^\W\d]\w{0,99}(?:\.|::|#)){0,5}"
    found = re.search(rf"{owners}{re.escape(name)}(?!\w)", question)
    return found[0] if found else name


def _worth_asking(chunk: Chunk, asked: Collection[str]) -> bool:
    """Whether the name of what it shows says something, or is `asked` about."""
    named = chunk.kind not in TEXT_KINDS and _WORD.fullmatch(chunk.name)
    return bool(named) and (chunk.name in asked or _fits(chunk.name))


def _has_heirs(chunk: Chunk, others: Sequence[Chunk]) -> bool:
    """Whether the signature of another class names the one that it shows."""
    return chunk.kind in CLASS_KINDS and any(
        other.kind in CLASS_KINDS
        and other.name != chunk.name
        and chunk.name in _WORD.findall(other.signature)
        for other in others
    )


def _fits(name: str) -> bool:
    return SHORTEST <= len(name) <= LONGEST and not name.startswith("_")


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
