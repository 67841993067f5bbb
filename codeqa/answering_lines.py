"""The very line that answers: one with a number for a limit or a default, one that raises for an
error. It is looked for in the files that were found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codeqa.asked import Kind, kind_of, line_pattern, word_list
from codeqa.code.descriptions import doc_lines, first_sentence, is_doc
from codeqa.context import COMMENT_LINE
from codeqa.search.hybrid import SearchResult
from codeqa.store import Tables
from codeqa.text.tokens import search_tokens, written_forms
from codeqa.types import TEXT_KINDS, Unit

ABOVE, NAMED, IN_PATH = 0.8, 0.6, 0.4
"""What a word counts in the comment above and the heads of what a line lies in, in the names of
these, and in the path."""
SPOKEN = 0.15
"""What it adds that a line says `default` or `max`, and that it gives a name its value."""
FILES, LONGEST_LINE, MOST_LINES, BESIDE, AROUND = 12, 200, 6, 4, 30
"""Files looked through; characters of a line, lines of a call that is read as one, lines of a
comment above, and lines among which the heads of what it lies in are looked for."""
RAISED, SAID = 0.6, 0.5
"""Parts of the question's words that what is raised holds with the names around it, and itself."""
NEAR_BEST, LINES = 0.7, 3
"""Part of the best one's worth that others have, and how many are told."""
_LAST_TEXT = re.compile(r"(\"[^\"]*\"|'[^']*')\W*$")
_TEXTS = re.compile(r"\"[^\"]*\"|'[^']*'")


def answering_lines(tables: Tables, result: SearchResult) -> list[tuple[Unit, int, str]]:
    """The lines that answer the question, best first: the unit around each, its number and text."""
    query, kind = result.query, kind_of(result.query.text)
    words = [written_forms(word) for word in query.words if word not in word_list("minor")]
    if kind is None or not kind.answers or not words:
        return []
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


def _worth(unit: Unit, kind: Kind, words: Sequence[Sequence[str]], text: str, around: str) -> float:
    """Part of the question's words that a line holds with what it stands in; 0 for too few."""
    named = _LAST_TEXT.sub("", text) if kind.name == "DEFAULT" else text
    name = f"{unit.class_name} {unit.name} {first_sentence(unit.doc_comment)}"
    places = (named, 1.0), (around, ABOVE), (name, NAMED)
    tokens = [(search_tokens(place), part) for place, part in (*places, (unit.path, IN_PATH))]
    held = [
        next((part for place, part in tokens if any(one.startswith(forms) for one in place)), 0.0)
        for forms in map(tuple, words)
    ]
    worth, said = sum(held) / len(held), held.count(1.0)
    if kind.name == "ERROR":
        return worth * (worth >= RAISED and said >= max(2, SAID * len(held)))
    bare = _TEXTS.sub('""', text)
    spoken = bool(line_pattern("spoken").search(text))
    given = bool(line_pattern("given").search(bare))
    known = sum(part >= NAMED for part in held)
    enough = known >= (len(held) if len(held) < 3 else len(held) / 2) and (said or spoken)
    if kind.name == "DEFAULT" and not (given or "default" in text.lower()):
        return 0.0
    # 0, 1 and nothing are what a count begins with.
    counts = kind.line.search(line_pattern("no_value").sub("", bare))
    if not counts and (kind.name == "NUMBER" or said < len(held)):
        return 0.0
    return (worth + SPOKEN * (spoken + given)) * bool(enough)


def _wanted(unit: Unit, kind: Kind, seen: set[int]) -> Iterator[tuple[int, str, str]]:
    """Lines of that kind but for those `seen`, with those that belong to them, and what stands
    around them: the comment above and the heads of what they lie in."""
    lines, doc = unit.source_code.split("\n"), doc_lines(unit)
    for at, line in enumerate(lines):
        known = unit.start_line + at in seen
        seen.add(unit.start_line + at)
        if known or len(line) > LONGEST_LINE or not kind.line.search(_TEXTS.sub('""', line)):
            continue
        comment = COMMENT_LINE.match(line) or is_doc(line, doc)
        if comment and (kind.name == "ERROR" or not line_pattern("told").search(line)):
            continue
        text = line
        for more in lines[at + 1 : at + MOST_LINES] * (kind.name == "ERROR"):
            text += f"\n{more}" * (text.count("(") > text.count(")"))
        yield at, text, " ".join(_around(lines, at))


def _around(lines: Sequence[str], at: int) -> Iterator[str]:
    depth, beside = len(lines[at]) - len(lines[at].lstrip()), True
    for above, line in enumerate(reversed(lines[max(0, at - AROUND) : at])):
        beside = beside and above < BESIDE and bool(COMMENT_LINE.match(line))
        indented = len(line) - len(line.lstrip())
        if beside or (line.strip() and indented < depth):
            yield line
            depth = min(depth, indented)
