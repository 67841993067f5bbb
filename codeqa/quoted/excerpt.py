"""The part of a unit that matters for a question: whole statements, and what they lie in."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codeqa.code.descriptions import doc_lines, is_doc
from codeqa.context.statements import (
    COMMENT_LINE,
    Statement,
    choose_lines,
    outlined,
    spans_of,
    statements,
)
from codeqa.text.tokens import form_pattern, split_identifier
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Unit

EXCERPT_LINES = 12
"""Lines of code shown of one unit: what is read without scrolling."""
LONG_DECLARATION = 11
"""Lines of a declaration that are shown, beside its last two."""
LONGEST_LINE = 300
"""A longer line is data or machine-made; it is never shown, nor cut."""
WHOLE = 1.4
"""A body up to this part longer than what is asked for is shown whole."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `start`..`end` (1-based) of a file, their common indentation removed."""

    start: int
    end: int
    code: str
    """Where lines are left out, one says how many."""
    label: str = ""
    """What the lines are, '' for all of the unit or its declaration alone."""


def excerpt(unit: Unit, words: Sequence[str], limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The declaration and at most `limit` lines of the body: whole statements that hold the most
    words of the question, what they lie in, and what stands near them.

    A rare word of the unit counts more than one that stands on every line. Without any of the
    words, the beginning of the body, and of a class only its declaration; None for comments alone.
    """
    lines = unit.source_code.split("\n")
    found = statements(unit.source_code, unit.language)
    costs = _costs(unit, lines, found, limit)
    if costs.count(1) <= WHOLE * limit:
        limit = max(limit, costs.count(1) + 1)
    weights = _weights(lines, costs, words, limit)
    spans = choose_lines(lines, found, weights, costs, limit)
    shown = [line for span in spans for line in range(*span) if costs[line]]
    matches = any(weights[line] for line in shown)
    label = "The lines that matter" if matches else "It begins with"
    if not shown or (unit.kind in CLASS_KINDS and not matches):
        spans, label = spans_of([line for line, cost in enumerate(costs) if not cost], lines), ""
    if not spans:
        return None
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans))
    first = unit.start_line
    return Excerpt(first + spans[0][0], first + spans[-1][1] - 1, code, label)


def whole_unit(unit: Unit, limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The unit itself when it has at most `limit` lines, none of them overlong."""
    lines = unit.source_code.split("\n")
    if len(lines) > limit or any(len(line) > LONGEST_LINE for line in lines):
        return None
    code = textwrap.dedent("\n".join(line.rstrip("\r") for line in lines)).strip("\n")
    return Excerpt(unit.start_line, unit.start_line + len(lines) - 1, code)


def _declaration(
    unit: Unit, lines: Sequence[str], found: Sequence[Statement]
) -> tuple[list[int], int]:
    """Numbers of the lines of the declaration, and of the first line behind it and its doc."""
    body = 0 if not unit.signature or unit.kind in TEXT_KINDS else 1
    if len(found) < body:
        return [], 0
    end = found[body].start if body < len(found) else len(lines)
    head = [n for n in range(end * body) if lines[n].strip() and not COMMENT_LINE.match(lines[n])]
    doc = doc_lines(unit)
    while doc and end < len(lines) and (not lines[end].strip() or is_doc(lines[end], doc)):
        end += 1
    return [n for n in head if n >= found[0].first or not is_doc(lines[n], doc)], end


def _costs(unit: Unit, lines: Sequence[str], found: Sequence[Statement], limit: int) -> list[int]:
    """1 for each line of the body, 0 for the declaration, more than `limit` for what is not shown:
    overlong lines, comments that stand alone, the doc comment, members of a class."""
    declaration, behind = _declaration(unit, lines, found)
    last = unit.head_end_line - unit.start_line if unit.kind in CLASS_KINDS else 0
    costs = [1] * len(lines)
    hidden = [line for one in found if one.first == one.end for line in range(one.start, one.end)]
    hidden += [n for n, line in enumerate(lines) if len(line) > LONGEST_LINE or 0 < last < n]
    for line in (*range(behind), *hidden):
        costs[line] = limit + 1
    for line in (*declaration[:LONG_DECLARATION], *declaration[-2:]):
        costs[line] = 0
    return costs


def _weights(
    lines: Sequence[str], costs: Sequence[int], words: Sequence[str], limit: int
) -> list[float]:
    """How much each line of the body matters: the question's words that it holds, each by its
    rarity.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares = {part: 0.5 for word in words for part in split_identifier(word) if len(part) > 2}
    shares.update(dict.fromkeys(words, 1.0))
    patterns = {word: form_pattern(word) for word in shares}
    found: list[list[str]] = []
    for line, cost in zip(lines, costs, strict=True):
        lower = line.lower() if 0 < cost <= limit else ""
        found.append([word for word, pattern in patterns.items() if pattern.search(lower)])
    counts = Counter(word for held in found for word in held)
    weights = []
    for line, held in zip(lines, found, strict=True):
        worth = sum(shares[word] / counts[word] ** 0.5 for word in held)
        weights.append(worth / 2 if COMMENT_LINE.match(line) else worth)
    return weights
