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

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeqa.context.blocks import HEADER, chunk_id, format_block, format_chunk
from codeqa.types import Chunk, ContextBlock

LARGEST_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more
of the same size, so that a single huge function never is the whole evidence."""

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""


@dataclass(slots=True)
class _Packed:
    whole: Chunk
    shown: Chunk
    cost: int


def pack(chunks: Sequence[Chunk], budget: int, *, share: float = LARGEST_SHARE) -> ContextBlock:
    """The block of `chunks` (best first) in at most `budget` characters.

    `share` is the part of it that one chunk may take while others wait. `dropped` holds what
    found no room, not the contained duplicates.
    """
    packed: list[_Packed] = []
    dropped: list[Chunk] = []
    room = budget - len(HEADER)
    most = room if len(chunks) == 1 else int(room * share)
    for chunk in chunks:
        if any(_holds(other.shown, chunk) for other in packed):
            continue
        inside = [other for other in packed if _holds(chunk, other.shown)]
        free = room + sum(other.cost for other in inside)
        shown = chunk if inside else _cut(chunk, most)
        # What is left of a chunk after cutting may lie within another one.
        repeated = shown is not None and any(_holds(other.shown, shown) for other in packed)
        if shown is None or repeated or _cost(shown) > free:
            dropped.append(chunk)
            continue
        entry = _Packed(chunk, shown, _cost(shown))
        room = free - entry.cost
        if inside:
            packed[packed.index(inside[0])] = entry
            packed = [other for other in packed if other not in inside]
        else:
            packed.append(entry)
    for entry in packed:
        if entry.shown is not entry.whole:
            room = _extend(entry, packed, room)
    shown_chunks = _unique([entry.shown for entry in packed])
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
    low, high = 0, len(lines) - 1
    while low < high:  # the cost grows with the lines, so halving finds the last that fits
        middle = (low + high + 1) // 2
        if _cost(_first_lines(chunk, lines, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return _first_lines(chunk, lines, low) if low else None


def _first_lines(chunk: Chunk, lines: list[str], count: int) -> Chunk:
    content = "\n".join(lines[:count])
    return replace(
        chunk,
        id=chunk_id(chunk.path, chunk.id, content),
        end_line=chunk.start_line + count - 1,
        content=content,
    )


def _extend(entry: _Packed, packed: list[_Packed], room: int) -> int:
    """Give `room` to a chunk that was cut, unless it would then hold another one."""
    longer = _cut(entry.whole, entry.cost + room)
    if longer is None or any(o is not entry and _holds(longer, o.shown) for o in packed):
        return room
    room += entry.cost - _cost(longer)
    entry.shown, entry.cost = longer, _cost(longer)
    return room


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
