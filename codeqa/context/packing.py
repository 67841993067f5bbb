"""Choose which chunks enter a context block of a given size.

1. Chunks enter whole and by rank. One that no longer fits is left out and the next, perhaps
   smaller, is tried.
2. A chunk that lies within lines already packed is left out; one that holds packed chunks takes the
   place of the first of them when that fits, else it is left out. Neighbours are never merged.
3. While others wait, one chunk gets at most half of the budget: a longer one is cut between
   statements, into one or more spans. Room that is left at the end is given back to chunks that
   were cut, by rank. A chunk alone may use the whole budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codeqa.context.block import HEADER, ContextBlock, chunk_cost, chunk_id
from codeqa.context.cutting import cut_chunk
from codeqa.types import Chunk, encloses

LARGEST_CHUNK_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more of the
same size, so that a single huge function never is the whole evidence."""


@dataclass(frozen=True, slots=True)
class _Packed:
    chunk: Chunk
    spans: tuple[Chunk, ...]
    """The parts of it in the block."""


def pack(
    chunks: Sequence[Chunk],
    budget: int,
    *,
    share: float = LARGEST_CHUNK_SHARE,
    words: Sequence[re.Pattern[str]] = (),
) -> ContextBlock:
    """Return the block of `chunks` (best first) in at most `budget` characters.

    While others wait, one chunk gets at most `share` of it; a longer one is cut around lines that
    hold `words`. Chunks within packed ones do not count as `dropped`.
    """
    packed: list[_Packed] = []
    dropped: list[Chunk] = []
    left = budget - len(HEADER)
    most = left if len(chunks) == 1 else int(left * share)
    for chunk in chunks:
        same_file = [entry for entry in packed if entry.chunk.path == chunk.path]
        if _is_within(chunk, same_file):
            continue
        inside = [one for one in same_file if all(encloses(chunk, span) for span in one.spans)]
        beside = [one for one in same_file if one not in inside]
        spans = (chunk,) if inside else cut_chunk(chunk, most, words)
        spans = _outside(spans, beside)
        room = left + sum(_cost(one.spans) for one in inside)
        cost = _cost(spans)
        if not spans or cost > room:
            dropped.append(chunk)
            continue
        left = room - cost
        position = packed.index(inside[0]) if inside else len(packed)
        packed.insert(position, _Packed(chunk, spans))
        for one in inside:
            packed.remove(one)
    _give_back(packed, left, words)
    return ContextBlock(_with_distinct_ids(packed), tuple(dropped))


def _give_back(packed: list[_Packed], left: int, words: Sequence[re.Pattern[str]]) -> None:
    """Lengthen chunks that were cut, by rank, by the `left` characters."""
    for position, one in enumerate(packed):
        if one.spans == (one.chunk,):
            continue
        cost = _cost(one.spans)
        longer = cut_chunk(one.chunk, left + cost, words)
        if _cost(longer) <= cost:
            continue
        others = packed[:position] + packed[position + 1 :]
        beside = [span for other in others for span in other.spans]
        if not any(encloses(span, other) for span in longer for other in beside):
            packed[position] = _Packed(one.chunk, _outside(longer, others))
            left += cost - _cost(packed[position].spans)


def _cost(chunks: Iterable[Chunk]) -> int:
    return sum(map(chunk_cost, chunks))


def _is_within(chunk: Chunk, packed: Sequence[_Packed]) -> bool:
    return any(encloses(span, chunk) for one in packed for span in one.spans)


def _outside(chunks: Iterable[Chunk], packed: Sequence[_Packed]) -> tuple[Chunk, ...]:
    """Return those of `chunks` that do not lie within packed ones."""
    return tuple(chunk for chunk in chunks if not _is_within(chunk, packed))


def _with_distinct_ids(packed: Sequence[_Packed]) -> tuple[Chunk, ...]:
    """Return the packed spans; the same text of the same symbol gets a second id."""
    ids: set[str] = set()
    chunks = []
    for chunk in (span for one in packed for span in one.spans):
        key = chunk.id
        while key in ids:
            key = chunk_id(chunk.path, key, chunk.content)
        ids.add(key)
        chunks.append(replace(chunk, id=key))
    return tuple(chunks)
