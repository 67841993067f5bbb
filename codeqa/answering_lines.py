"""The very line that answers: one with a number for a limit or a default, one that raises for an
error. It is looked for in the files that were found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codeqa.asked import Kind, kind_of, line_pattern, word_list
from codeqa.code.descriptions import doc_lines, is_doc
from codeqa.context import COMMENT_LINE
from codeqa.search.hybrid import SearchResult
from codeqa.store import Tables
from codeqa.text.tokens import form_pattern
from codeqa.types import TEXT_KINDS, Unit

MINOR, ABOVE, NAMED, IN_PATH = 0.4, 0.8, 0.6, 0.4
"""What a word counts that says the kind of a question; what one does in the comment above and in
the heads of what a line lies in, in the names of these, and in the path."""
SPOKEN = 0.15
"""What it adds that a line says `default` or `max`, and that it gives a name its number."""
FILES, LONGEST_LINE, MOST_LINES, AROUND = 12, 200, 6, 30
"""Files looked through; characters of a line, lines of a call that is read as one, and lines above
among which the heads of what it lies in are looked for."""
ITSELF, NEAR_BEST, LINES = 0.2, 0.75, 3
"""Part of the words that a line holds without names around it, part of the best one's worth that
others have, and how many are told."""
_TEXTS = re.compile(r"\"[^\"]*\"|'[^']*'")


def answering_lines(tables: Tables, result: SearchResult) -> list[tuple[Unit, int, str]]:
    """The lines that answer the question, best first: the unit around each, its number and text."""
    query, kind = result.query, kind_of(result.query.text)
    if kind is None or kind.least > 1:
        return []
    minor = MINOR * (kind.name == "NUMBER")
    words = [(form_pattern(w), minor if w in word_list("minor") else 1.0) for w in query.words]
    ranks = {hit.unit.id: rank for rank, hit in enumerate(result.units, 1)}
    paths = dict.fromkeys([*(h.unit.path for h in result.units), *(f.path for f in result.files)])
    found: list[tuple[float, Unit, int, str]] = []
    for path in list(paths)[:FILES]:
        seen: set[int] = set()
        for unit in sorted(tables.in_file(path), key=lambda one: len(one.source_code)):
            place = f"{path}/{unit.qualified_name}"
            test = unit.role != "source" or line_pattern("in_tests").search(place)
            if (test and "test" not in query.roles) or unit.kind in TEXT_KINDS - {"config"}:
                continue
            for at, text, around in _wanted(unit, kind, seen):
                if worth := _worth(unit, kind, words, text, around):
                    worth += SPOKEN / ranks.get(unit.id, 100)
                    found.append((worth, unit, unit.start_line + at, text))
    found.sort(key=lambda one: -one[0])
    return [one[1:] for one in found[:LINES] if one[0] >= NEAR_BEST * found[0][0]]


def _worth(
    unit: Unit, kind: Kind, words: Sequence[tuple[re.Pattern[str], float]], text: str, around: str
) -> float:
    """Part of the question's words that a line holds with what it stands in; 0 for too few."""
    names = ((f"{unit.class_name}\n{unit.name}".lower(), NAMED), (unit.path.lower(), IN_PATH))
    places = ((text.lower(), 1.0), (around, ABOVE), *(names * (kind.name == "NUMBER")))
    held = [
        (share, next((worth for place, worth in places if word.search(place)), 0.0))
        for word, share in words
    ]
    total = sum(share for share, _ in held) or 1.0
    worth = sum(share * part for share, part in held) / total
    itself = sum(share * part for share, part in held if part >= ABOVE) / total
    if kind.name == "ERROR":
        return worth * (worth >= kind.least and sum(part * share == 1 for share, part in held) > 1)
    spoken = SPOKEN * bool(line_pattern("spoken").search(text))
    worth += spoken + SPOKEN * bool(line_pattern("given").search(text))
    valued = kind.line.search(line_pattern("no_value").sub("", _TEXTS.sub("", text)))
    worth *= 1 if valued else 0.5
    return worth * (worth >= kind.least and itself + spoken >= ITSELF)


def _wanted(unit: Unit, kind: Kind, seen: set[int]) -> Iterator[tuple[int, str, str]]:
    """Lines of that kind but for those `seen`, with those that belong to them, and what stands
    around them in small letters: the comment above and the heads of what they lie in."""
    lines, doc = unit.source_code.split("\n"), doc_lines(unit)
    for at, line in enumerate(lines):
        number, known = unit.start_line + at, len(seen)
        seen.add(number)
        if len(seen) == known or len(line) > LONGEST_LINE or not kind.line.search(line):
            continue
        if COMMENT_LINE.match(line) or is_doc(line, doc):
            if kind.name != "NUMBER" or not line_pattern("told").search(line):
                continue
        elif not kind.line.search(_TEXTS.sub("", line)):
            continue
        text = line
        for more in lines[at + 1 : at + MOST_LINES] * (kind.name == "ERROR"):
            text += f"\n{more}" * (text.count("(") > text.count(")"))
        yield at, text, "\n".join(_around(lines, at)).lower()


def _around(lines: Sequence[str], at: int) -> Iterator[str]:
    depth, beside = len(lines[at]) - len(lines[at].lstrip()), True
    for line in reversed(lines[max(0, at - AROUND) : at]):
        beside = beside and bool(COMMENT_LINE.match(line))
        indented = len(line) - len(line.lstrip())
        if beside or (line.strip() and indented < depth):
            yield line
            depth = min(depth, indented)
