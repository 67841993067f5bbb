"""Chunks into a block that never exceeds its budget of characters.

The rules, in order:

1. Chunks enter whole and by rank. One that no longer fits is left out and the next,
   perhaps smaller, is tried.
2. A chunk that lies within lines already packed is left out; one that holds packed
   chunks takes the place of the first of them when that fits, else it is left out.
   Neighbours are never merged.
3. While others wait, one chunk gets at most half of the budget: a longer one is cut after
   a line and its `Lines:` say so. What is left at the end is given back to chunks that
   were cut, by rank. A chunk alone may use the whole budget.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from codeqa.context.blocks import HEADER, chunk_id, format_block, format_chunk
from codeqa.types import Chunk, ContextBlock

LARGEST_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more
of the same size, so that a single huge function never is the whole evidence."""

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""


def pack(chunks: Sequence[Chunk], budget: int, *, share: float = LARGEST_SHARE) -> ContextBlock:
    """The block of `chunks` (best first) in at most `budget` characters.

    `share` is the part of it that one chunk may take while others wait. `dropped` holds what
    found no room, not the contained duplicates.
    """
    packed: list[tuple[Chunk, Chunk]] = []  # each whole, and what is shown of it
    dropped: list[Chunk] = []

    def room_beside(others: Sequence[tuple[Chunk, Chunk]]) -> int:
        return budget - len(HEADER) - sum(_cost(shown) for _, shown in others)

    most = room_beside(()) if len(chunks) == 1 else int(room_beside(()) * share)
    for chunk in chunks:
        if any(_holds(shown, chunk) for _, shown in packed):
            continue
        inside = [pair for pair in packed if _holds(chunk, pair[1])]
        others = [pair for pair in packed if pair not in inside]
        cut = chunk if inside else _cut(chunk, most)
        # What is left of a chunk after cutting may lie within another one.
        repeated = cut is not None and any(_holds(shown, cut) for _, shown in packed)
        if cut is None or repeated or _cost(cut) > room_beside(others):
            dropped.append(chunk)
            continue
        others.insert(packed.index(inside[0]) if inside else len(packed), (chunk, cut))
        packed = others
    for place, (whole, shown) in enumerate(packed):
        others = [*packed[:place], *packed[place + 1 :]]
        longer = _cut(whole, room_beside(others)) if shown is not whole else None
        if longer and not any(_holds(longer, other) for _, other in others):
            packed[place] = (whole, longer)
    shown_chunks = _unique([shown for _, shown in packed])
    return ContextBlock(format_block(shown_chunks), tuple(shown_chunks), tuple(dropped))


def _cost(chunk: Chunk) -> int:
    return len(format_chunk(_WIDEST_NUMBER, chunk))


def _holds(outer: Chunk, inner: Chunk) -> bool:
    return (
        outer.path == inner.path
        and outer.start_line <= inner.start_line
        and inner.end_line <= outer.end_line
    )


def _cut(chunk: Chunk, limit: int) -> Chunk | None:
    """`chunk`, or as many of its first lines as fit `limit`; None when not one does."""
    if _cost(chunk) <= limit:
        return chunk
    lines = chunk.content.split("\n")

    def first(count: int) -> Chunk:
        content = "\n".join(lines[:count])
        key, end = chunk_id(chunk.path, chunk.id, content), chunk.start_line + count - 1
        return replace(chunk, id=key, end_line=end, content=content)

    # The cost grows with the lines, so halving finds the last that fits.
    fits = bisect_right(range(1, len(lines)), limit, key=lambda count: _cost(first(count)))
    return first(fits) if fits else None


def _unique(chunks: list[Chunk]) -> list[Chunk]:
    """Chunks with distinct ids: the same text of the same symbol twice gets a second id."""
    seen: set[str] = set()
    result = []
    for chunk in chunks:
        name = chunk.id
        while name in seen:
            name = chunk_id(chunk.path, name, chunk.content)
        seen.add(name)
        result.append(replace(chunk, id=name) if name != chunk.id else chunk)
    return result
