"""The part of a unit that matters for a question, always whole lines."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codeqa.search import form_pattern
from codeqa.text.tokens import split_identifier
from codeqa.types import CLASS_KINDS, Unit

EXCERPT_LINES = 12
"""Lines of code shown of one unit: what is read without scrolling."""
LONGEST_LINE = 300
"""A longer line is data or machine-made; it is never shown, nor cut."""
SENTENCE_CHARACTERS = 140

_SENTENCE = re.compile(r"(.+?[.!?])(?=\s+[A-Z`(]|\s*$)", re.DOTALL)
_RULE = re.compile(r"\s*([=\-~^*+#_.:])\1{2,}\s*")
_COMMENT = re.compile(r"\s*(?:#(?![!\[])|//|/\*|\*(?:\s|/|$)|--\s|;)")
_CONTINUATION = re.compile(
    r"\s*(?:[)\]}]|(?:else|elif|elsif|except|catch|finally|rescue|ensure|end|case|default)\b|&&|\|\||\.\w)"
)
_BRACKETS = re.compile(r"[()\[\]]")
_OPENS = re.compile(r"[({\[,:\\]\s*$")
_COMMENT_MARKS = re.compile(r"^\s*(?:///?!?|/\*\*?|\*/|\*(?!\w)|#+|--+|;+|\"\"\"|'''|%+)?\s?")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `start`..`end` (1-based) of a file, their common indentation removed."""

    start: int
    end: int
    code: str
    matches: bool = True
    """Whether words of the question stand in it; else it is just the beginning."""


def excerpt(unit: Unit, words: Sequence[str], limit: int = EXCERPT_LINES) -> Excerpt | None:
    """At most `limit` consecutive lines of the unit's body with the most words of the question.

    A rare word of the unit counts more than one that stands on every line. Of windows with
    the same words the one that reads best is taken: whole statements, the least indented,
    the longest, the words in its middle. Without any of the words, the beginning of the
    body, and of a class nothing; None when nothing but signature and comment is left.
    """
    lines = unit.source_code.split("\n")
    kinds = _body(unit, lines)
    weights = _line_words(lines, kinds, words)

    def rank(window: tuple[int, int]) -> tuple[float, ...]:
        start, end = window
        held: dict[str, float] = {}
        for line in weights[start:end]:
            for word, value in line.items():
                held[word] = max(value, held.get(word, 0.0))
        hits = [number for number in range(start, end) if weights[number]]
        off = abs(sum(hits) / len(hits) - (start + end - 1) / 2) if hits else 0.0
        return round(sum(held.values()), 6), -indent(lines[start]), end - start, -off

    best = max(_windows(lines, kinds, limit), key=rank, default=None)
    matches = best is not None and rank(best)[0] > 0
    if best is None or (unit.kind in CLASS_KINDS and not matches):
        return None
    return _excerpt(unit, lines[slice(*best)], best[0], matches)


def whole_unit(unit: Unit, limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The unit itself when it has at most `limit` lines, none of them overlong."""
    lines = unit.source_code.split("\n")
    if len(lines) > limit or any(len(line) > LONGEST_LINE for line in lines):
        return None
    return _excerpt(unit, lines, 0, True)


def _excerpt(unit: Unit, lines: Sequence[str], start: int, matches: bool) -> Excerpt:
    code = textwrap.dedent("\n".join(line.rstrip("\r") for line in lines)).strip("\n")
    first = unit.start_line + start
    return Excerpt(first, first + len(lines) - 1, code, matches)


def first_sentence(text: str) -> str:
    """The first sentence of a doc comment on one line, '' when it has none."""
    lines = text.strip().split("\n\n", 1)[0].split("\n")
    paragraph = " ".join(" ".join(line for line in lines if not _RULE.fullmatch(line)).split())
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    return textwrap.shorten(sentence, SENTENCE_CHARACTERS, placeholder=" …")


def leading_doc(unit: Unit) -> str:
    """The doc comment; of a file's head only one that stands before all code there.

    A comment further down speaks about the line below it rather than about the file.
    """
    if unit.kind != "module" or unit.signature:
        return unit.doc_comment
    doc = _doc_lines(unit)
    for line in unit.source_code.split("\n"):
        bare = line.strip()
        if bare and doc and (_is_doc(line, doc) or bare.lstrip("rRuU")[:3] in ('"""', "'''")):
            return unit.doc_comment
        if bare and not _COMMENT.match(line) and not bare.startswith(("package ", "<?php")):
            return ""
    return ""


BODY, GAP, WALL = 1, 0, -1
"""What a line is to an excerpt: shown for its own sake, shown between others, never shown."""


def _body(unit: Unit, lines: Sequence[str]) -> list[int]:
    """BODY, GAP (blank lines, the doc comment) or WALL (signature, overlong lines) per line."""
    kinds = [BODY if line.strip() else GAP for line in lines]
    doc = _doc_lines(unit)
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


def signature_lines(unit: Unit) -> list[str]:
    """The signature as it is written in the file, decorators included; [] when not found."""
    lines = unit.source_code.split("\n")
    end = _signature_end(unit, lines)
    doc = _doc_lines(unit)

    def is_comment(line: str) -> bool:
        return not line.strip() or bool(_COMMENT.match(line)) or (bool(doc) and _is_doc(line, doc))

    start = next((n for n in range(end) if not is_comment(lines[n])), end)
    return [line.rstrip("\r") for line in lines[start:end]]


def _doc_lines(unit: Unit) -> set[str]:
    return {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}


def _signature_end(unit: Unit, lines: Sequence[str]) -> int:
    """Lines up to the end of the signature; 0 when it is not found.

    Blanks do not count: a signature over several lines may be kept as one. One that is kept
    in part, because it is very long, ends where its brackets are closed.
    """
    wanted = "".join(unit.signature.split())
    place = "".join("".join(lines).split()).find(wanted) if wanted else -1
    if place < 0:
        return 0
    left, depth = place + len(wanted), _depth(wanted)
    ends = 0
    for number, line in enumerate(lines, 1):
        if left <= 0:
            depth += _depth(line)
        left -= len("".join(line.split()))
        if left <= 0 and (not ends or depth <= 0):
            ends = number
            if depth <= 0:
                break
    return ends


def _depth(text: str) -> int:
    """How many more brackets it opens than it closes."""
    return sum(1 if mark in "([" else -1 for mark in _BRACKETS.findall(text))


def _is_doc(line: str, doc: set[str]) -> bool:
    plain = " ".join(line.split())
    bare = " ".join(_COMMENT_MARKS.sub("", line).rstrip("*/\"' \r").split())
    return bare in doc or plain in doc or (not bare and plain[:1] in tuple("*/#\"'"))


def _windows(lines: Sequence[str], kinds: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Half-open windows of at most `limit` lines that begin and end with a BODY line.

    A WALL, more than two GAP lines on end, or a line less indented than the first break a
    window. One begins with a statement: not with a closing bracket, an `else`, or the rest
    of a comment; and ends with one where that is possible.
    """
    windows = []
    for start, kind in enumerate(kinds):
        if kind != BODY or _continues(lines, start):
            continue
        margin = indent(lines[start])
        last = code_end = whole_end = start
        for end in range(start, min(start + limit, len(kinds))):
            outside = kinds[end] == BODY and indent(lines[end]) < margin
            if kinds[end] == WALL or end - last > 2 or outside:
                break
            if kinds[end] == BODY:
                last = end
                code_end = code_end if _COMMENT.match(lines[end]) else end
                whole_end = end if _ends_statement(lines, kinds, end, margin) else whole_end
        # At least half of a full window; less would be a line without what belongs to it.
        # A comment at the end speaks about what is no longer shown.
        stop = whole_end if whole_end - start >= limit // 2 else code_end
        windows.append((start, (stop if stop > start else last) + 1))
    return windows


def indent(line: str) -> int:
    """Columns before the first character of `line`."""
    wide = line.expandtabs(4)
    return len(wide) - len(wide.lstrip(" "))


def _continues(lines: Sequence[str], index: int) -> bool:
    """Whether the line only goes on with what the line before it began."""
    if _CONTINUATION.match(lines[index]):
        return True
    return index > 0 and bool(_COMMENT.match(lines[index]) and _COMMENT.match(lines[index - 1]))


def _ends_statement(lines: Sequence[str], kinds: Sequence[int], index: int, margin: int) -> bool:
    """Whether what stands at `margin` or deeper is complete after the line `index`."""
    if _COMMENT.match(lines[index]) or _OPENS.search(lines[index]):
        return False
    for after in range(index + 1, len(lines)):
        if lines[after].strip():
            return kinds[after] == WALL or (
                indent(lines[after]) <= margin and not _CONTINUATION.match(lines[after])
            )
    return True


def _line_words(
    lines: Sequence[str], kinds: Sequence[int], words: Sequence[str]
) -> list[dict[str, float]]:
    """Per line the question's words it holds, each with the weight of its rarity.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares = {part: 0.5 for word in words for part in split_identifier(word) if len(part) > 2}
    shares.update(dict.fromkeys(words, 1.0))
    patterns = {word: form_pattern(word) for word in shares}
    found: list[dict[str, float]] = []
    for line, kind in zip(lines, kinds, strict=True):
        lower = line.lower() if kind == BODY else ""
        share = 0.5 if _COMMENT.match(line) else 1.0
        found.append({word: share for word, p in patterns.items() if lower and p.search(lower)})
    counts = Counter(word for line in found for word in line)
    return [
        {word: share * shares[word] / counts[word] ** 0.5 for word, share in line.items()}
        for line in found
    ]
