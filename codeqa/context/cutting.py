"""Cut a chunk between statements to the spans that matter most."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from codeqa.context.block import chunk_cost, span_of
from codeqa.context.statements import Statement, choose_lines, owning_statements, statements
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Chunk

HEAD_SHARE = 0.3
"""Part of the room that signature and first statement (often the doc comment) may take beside lines
further down."""


def cut_chunk(chunk: Chunk, limit: int, words: Sequence[re.Pattern[str]] = ()) -> tuple[Chunk, ...]:
    """Return `chunk`, or as many of its statements as fit `limit` characters; () for none.

    These are the first ones. Of a function whose lines with the most of `words` stand further down,
    they are the signature and what is around those lines: several spans, in their order. A single
    statement that is too long ends after a line.
    """
    if chunk_cost(chunk) <= limit:
        return (chunk,)
    lines = chunk.content.split("\n")
    parts = () if chunk.kind in TEXT_KINDS else statements(chunk.content, chunk.language)
    # The cost grows with the lines, so halving finds the last that fits.
    fits = bisect_right(
        range(1, len(lines)), limit, key=lambda count: chunk_cost(span_of(chunk, 0, count))
    )
    end = next((end for end in range(fits, 0, -1) if _is_between(parts, end)), fits)
    weights = _weights(lines, words) if chunk.kind not in CLASS_KINDS else []
    if len(parts) > 1 and max(weights, default=0.0) > max(weights[:end], default=0.0):
        ranges = _around(chunk, lines, parts, limit, weights)
        spans = tuple(span_of(chunk, *bounds) for bounds in ranges)
        if spans and sum(map(chunk_cost, spans)) <= limit:
            return spans
    return (span_of(chunk, 0, end),) if end else ()


def _weights(lines: Sequence[str], words: Sequence[re.Pattern[str]]) -> list[float]:
    """Return how much each line matters: a word that stands on every line says nothing."""
    weights = [0.0] * len(lines)
    for word in words:
        holding = [number for number, line in enumerate(lines) if word.search(line.lower())]
        for number in holding:
            weights[number] += 1 / len(holding)
    return weights


def _around(
    chunk: Chunk,
    lines: Sequence[str],
    parts: Sequence[Statement],
    limit: int,
    weights: Sequence[float],
) -> list[tuple[int, int]]:
    """Return spans around the lines that matter, signature and first statement before them."""
    gap = chunk_cost(span_of(chunk, 0, 1))  # each span is a chunk, with a head of its own
    costs = [len(line) + 1 for line in lines]
    owners = owning_statements(lines, parts)
    head = next((n for n, owner in enumerate(owners) if owner > 0), 0)
    for end in (parts[1].end, head):
        if 0 < sum(costs[:end]) <= HEAD_SHARE * limit:
            limit -= sum(costs[:end])
            costs[:end] = [0] * end
            break
    return choose_lines(lines, parts, weights, costs, limit - gap, gap)


def _is_between(parts: Sequence[Statement], end: int) -> bool:
    """Return whether no simple statement goes on over the line `end`."""
    holders = {part.parent for part in parts}
    for number, part in enumerate(parts):
        if part.start < end < part.end and number not in holders:
            return False
    return True
