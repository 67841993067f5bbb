"""Which chunks go into a context block of a given size. The rules, in order:


1. Chunks enter whole and by rank. One that no longer fits is left out and the next,
   perhaps smaller, is tried.
2. A chunk that lies within lines already packed is left out; one that holds packed
   chunks takes the place of the first of them when that fits, else it is left out.
   Neighbours are never merged.
3. While others wait, one chunk gets at most half of the budget: a longer one is cut between
   statements, and several spans of it are several chunks. What is left at the end
   is given back to chunks that were cut, by rank. A chunk alone may use the whole budget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codeqa.context.block import HEADER, ContextBlock, chunk_cost, chunk_id
from codeqa.context.cutting import cut_chunk
from codeqa.types import Chunk, encloses

LARGEST_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more
of the same size, so that a single huge function never is the whole evidence."""


def pack(
    chunks: Sequence[Chunk],
    budget: int,
    *,
    share: float = LARGEST_SHARE,
    words: Sequence[re.Pattern[str]] = (),
) -> ContextBlock:
    """The block of `chunks` (best first) in at most `budget` characters.

    `share` is the part of it that one chunk may take while others wait; a longer one is cut
    around lines that hold `words`. `dropped` holds what found no room, not the contained
    duplicates.
    """
    packed: list[tuple[Chunk, tuple[Chunk, ...]]] = []  # each whole, and what is shown of it
    dropped: list[Chunk] = []
    left = budget - len(HEADER)
    most = left if len(chunks) == 1 else int(left * share)
    for chunk in chunks:
        near = [pair for pair in packed if pair[0].path == chunk.path]  # thousands may be packed
        if any(encloses(one, chunk) for _, shown in near for one in shown):
            continue
        inside = [pair for pair in near if all(encloses(chunk, one) for one in pair[1])]
        beside = [pair for pair in near if pair not in inside]
        shown = (chunk,) if inside else cut_chunk(chunk, most, words)
        shown = _not_in(shown, beside)  # what is left of a chunk may lie within another one
        room = left + sum(_cost(pair[1]) for pair in inside)
        if not shown or _cost(shown) > room:
            dropped.append(chunk)
            continue
        left = room - _cost(shown)
        place = packed.index(inside[0]) if inside else len(packed)
        packed.insert(place, (chunk, shown))
        for pair in inside:
            packed.remove(pair)
    for place, (whole, shown) in enumerate(packed):
        if shown == (whole,):
            continue
        others = [*packed[:place], *packed[place + 1 :]]
        room = left + _cost(shown)
        longer = cut_chunk(whole, room, words)
        if _cost(longer) > _cost(shown) and not any(
            encloses(one, other) for one in longer for _, beside in others for other in beside
        ):
            packed[place] = (whole, _not_in(longer, others))
            left = room - _cost(packed[place][1])
    shown_chunks = _unique([one for _, shown in packed for one in shown])
    return ContextBlock(tuple(shown_chunks), tuple(dropped))


def _cost(chunks: Sequence[Chunk]) -> int:
    return sum(map(chunk_cost, chunks))


def _not_in(
    chunks: Sequence[Chunk], packed: Sequence[tuple[Chunk, tuple[Chunk, ...]]]
) -> tuple[Chunk, ...]:
    """Those of `chunks` that do not lie within what is packed."""
    beside = [one for _, shown in packed for one in shown]
    return tuple(c for c in chunks if not any(encloses(one, c) for one in beside))


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
