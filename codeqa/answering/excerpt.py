"""The part of a unit that matters for a question, always whole lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from codeqa.retrieval.query import variants
from codeqa.types import CLASS_KINDS, Unit

EXCERPT_LINES = 12
"""Lines of code shown of one unit: what is read without scrolling."""
LONGEST_LINE = 300
"""A longer line is data or machine-made; it is never shown, nor cut."""
SENTENCE_CHARACTERS = 140

_SENTENCE = re.compile(r"(.+?[.!?])(?=\s+[A-Z`(]|\s*$)", re.DOTALL)
_RULE = re.compile(r"\s*([=\-~^*+#_.:])\1{2,}\s*")
_COMMENT_MARKS = re.compile(r"^\s*(?:///?!?|/\*\*?|\*/|\*(?!\w)|#+|--+|;+|\"\"\"|'''|%+)?\s?")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `start`..`end` (1-based) of a file, their common indentation removed."""

    start: int
    end: int
    code: str


def excerpt(unit: Unit, words: Sequence[str], limit: int = EXCERPT_LINES) -> Excerpt | None:
    """At most `limit` consecutive lines of the unit's body with the most words of the question.

    A rare word of the unit counts more than one that stands on every line. Without any of
    the words, the beginning of the body; None when nothing but signature and comment is left.
    """
    lines = unit.source_code.split("\n")
    kinds = _body(unit, lines)
    weights = _line_words(lines, kinds, words)
    best: tuple[float, float, int, int] | None = None
    for start, end in _windows(kinds, limit):
        held = {word: value for line in weights[start:end] for word, value in line.items()}
        hits = [number for number in range(start, end) if weights[number]]
        # Of windows with the same words the one whose words stand in its middle is read best.
        centre = (start + end - 1) / 2
        off = abs(sum(hits) / len(hits) - centre) if hits else 0.0
        rank = (round(sum(held.values()), 6), -off)
        if best is None or rank > best[:2]:
            best = (*rank, start, end)
    if best is None:
        return None
    start, end = best[2:]
    code = textwrap.dedent("\n".join(line.rstrip("\r") for line in lines[start:end]))
    return Excerpt(unit.start_line + start, unit.start_line + end - 1, code)


def whole(unit: Unit, limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The unit itself when it has at most `limit` lines, none of them overlong."""
    lines = unit.source_code.split("\n")
    if len(lines) > limit or any(len(line) > LONGEST_LINE for line in lines):
        return None
    code = textwrap.dedent("\n".join(line.rstrip("\r") for line in lines))
    return Excerpt(unit.start_line, unit.start_line + len(lines) - 1, code.strip("\n"))


def first_sentence(text: str) -> str:
    """The first sentence of a doc comment on one line, '' when it has none."""
    lines = text.strip().split("\n\n", 1)[0].split("\n")
    paragraph = " ".join(" ".join(line for line in lines if not _RULE.fullmatch(line)).split())
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    return textwrap.shorten(sentence, SENTENCE_CHARACTERS, placeholder=" …")


BODY, GAP, WALL = 1, 0, -1
"""What a line is to an excerpt: shown for its own sake, shown between others, never shown."""


def _body(unit: Unit, lines: Sequence[str]) -> list[int]:
    """BODY, GAP (blank lines, the doc comment) or WALL (signature, overlong lines) per line."""
    kinds = [BODY if line.strip() else GAP for line in lines]
    doc = {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}
    for index, line in enumerate(lines):
        if len(line) > LONGEST_LINE:
            kinds[index] = WALL
        elif doc and _is_doc(line, doc):
            kinds[index] = GAP
    end = _signature_end(unit, lines)
    kinds[:end] = [WALL] * end
    if unit.kind in CLASS_KINDS and unit.head_end_line:
        head = max(0, unit.head_end_line - unit.start_line + 1)
        kinds[head:] = [WALL] * (len(lines) - head)
    return kinds


def _signature_end(unit: Unit, lines: Sequence[str]) -> int:
    """Lines up to the end of the signature; 0 when it is not found.

    Blanks do not count: a signature over several lines may be kept as one.
    """
    wanted = "".join(unit.signature.split())
    place = "".join("".join(lines).split()).find(wanted) if wanted else -1
    if place < 0:
        return 0
    left = place + len(wanted)
    for index, line in enumerate(lines):
        left -= len("".join(line.split()))
        if left <= 0:
            return index + 1
    return len(lines)


def _is_doc(line: str, doc: set[str]) -> bool:
    plain = " ".join(line.split())
    bare = " ".join(_COMMENT_MARKS.sub("", line).rstrip("*/\"' \r").split())
    return bare in doc or plain in doc or (not bare and plain[:1] in tuple("*/#\"'"))


def _windows(kinds: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Half-open windows of at most `limit` lines that begin and end with a BODY line.

    A WALL or more than two GAP lines on end break a window.
    """
    windows = []
    for start, kind in enumerate(kinds):
        if kind != BODY:
            continue
        end = last = start
        while end < len(kinds) and end - start < limit and end - last <= 2 and kinds[end] != WALL:
            if kinds[end] == BODY:
                last = end
            end += 1
        windows.append((start, last + 1))
    return windows


def _line_words(
    lines: Sequence[str], kinds: Sequence[int], words: Sequence[str]
) -> list[dict[str, float]]:
    """Per line the question's words it holds, each with the weight of its rarity."""
    patterns = {
        word: re.compile("|".join(re.escape(f) for f in (word, *variants(word)))) for word in words
    }
    found: list[dict[str, float]] = []
    for line, kind in zip(lines, kinds, strict=True):
        lower = line.lower() if kind == BODY else ""
        found.append({word: 1.0 for word, p in patterns.items() if lower and p.search(lower)})
    counts = {word: sum(word in line for line in found) for word in patterns}
    return [{word: 1.0 / counts[word] ** 0.5 for word in line} for line in found]
