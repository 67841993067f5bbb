"""The grammar of the context block, which can be read back exactly.

::

    [CONTEXT]

    === CHUNK 1 ===
    Id: ctx_3f9a01bc
    Path: src/flask/app.py
    Lines: 109-112
    Language: python
    ```python
    class Flask(App):
    …
    ```

    === CHUNK 2 ===
    …

Lines end with `\n` and nothing else: carriage returns, form feeds and U+2028 are content.
One blank line follows the header and every closing fence, the last one included. A fence
is one backtick longer than any run of backticks in its content, three at least, so that
content can never close it. A path that could break its line is written as a JSON string.

The rules of packing, in order:

1. Chunks enter whole and by rank. One that no longer fits is left out and the next,
   perhaps smaller, is tried.
2. A chunk that lies within lines already packed is left out; one that holds packed
   chunks takes the place of the first of them when that fits, else it is left out.
   Neighbours are never merged.
3. While others wait, one chunk gets at most half of the budget: a longer one is cut between
   statements (`cutting`), and several spans of it are several chunks. What is left at the end
   is given back to chunks that were cut, by rank. A chunk alone may use the whole budget.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from codeqa.context.statements import Statement, choose_lines, owning_statements, statements
from codeqa.text.markdown import fence_for
from codeqa.types import (
    CLASS_KINDS,
    TEXT_KINDS,
    Chunk,
    ContextBlock,
    Reference,
    Unit,
    encloses,
)

HEADER = "[CONTEXT]\n\n"

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]*")
_UNSAFE_PATH = re.compile('[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|^[\\s"]|\\s$')

LONG_CLASS_LINES = 80
"""A class longer than this enters by its head: its members are units of their own and come
in by themselves when they matter, while all of them together would fill the budget."""

CALL_SITE_MARGIN = 2
"""Lines shown before and after the line that uses a unit: enough to read the statement."""

LARGEST_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more
of the same size, so that a single huge function never is the whole evidence."""

HEAD_SHARE = 0.3
"""Part of the room that signature and first statement (often the doc comment) may take to stand
above lines further down."""


def chunk_id(path: str, symbol: str, content: str) -> str:
    """`ctx_` and eight hex digits, the same for the same path, symbol and content."""
    text = "\0".join((path, symbol, content)).encode("utf-8", "surrogatepass")
    return "ctx_" + hashlib.blake2b(text, digest_size=4).hexdigest()


def format_chunk(number: int, chunk: Chunk) -> str:
    """One chunk of the block, its closing blank line included.

    Raises ValueError when the lines do not match the content or a field cannot be written.
    """
    if chunk.content.count("\n") != chunk.end_line - chunk.start_line:
        raise ValueError(f"{chunk.path}: the content is not lines {_lines(chunk)}")
    if not _LANGUAGE.fullmatch(chunk.language):
        raise ValueError(f"{chunk.path}: {chunk.language!r} is no language name")
    fence, path = fence_for(chunk.content), chunk.path
    path = json.dumps(path) if not path or _UNSAFE_PATH.search(path) else path
    return (
        f"=== CHUNK {number} ===\n"
        f"Id: {chunk.id}\n"
        f"Path: {path}\n"
        f"Lines: {_lines(chunk)}\n"
        f"Language: {chunk.language}\n"
        f"{fence}{chunk.language}\n"
        f"{chunk.content}\n"
        f"{fence}\n"
        "\n"
    )


def chunk_cost(chunk: Chunk) -> int:
    """Characters that it takes in a block, at most."""
    return len(format_chunk(_WIDEST_NUMBER, chunk))


def format_block(chunks: Iterable[Chunk]) -> str:
    """The whole block, chunks numbered from 1; '' for no chunks."""
    parts = [format_chunk(number, chunk) for number, chunk in enumerate(chunks, 1)]
    return HEADER + "".join(parts) if parts else ""


def _lines(chunk: Chunk) -> str:
    return f"{chunk.start_line}-{chunk.end_line}"


def span_chunk(unit: Unit, start: int, end: int, symbol: str, why: str = "") -> Chunk:
    """The chunk of lines `start`..`end` (1-based, inclusive) of `unit`, cut to the unit."""
    lines = unit.source_code.split("\n")
    start = max(start, unit.start_line)
    end = min(end, unit.start_line + len(lines) - 1)
    content = "\n".join(lines[start - unit.start_line : end - unit.start_line + 1])
    return Chunk(
        id=chunk_id(unit.path, symbol, content),
        path=unit.path,
        start_line=start,
        end_line=end,
        language=unit.language,
        content=content,
        unit_id=unit.id,
        why=why,
        name=unit.name,
        kind=unit.kind,
        role=unit.role,
        signature=unit.signature,
    )


def unit_chunk(unit: Unit, why: str = "") -> Chunk:
    """The chunk of a unit: all of it, or the head of a class of more than 80 lines."""
    end = unit.end_line
    long = unit.end_line - unit.start_line + 1 > LONG_CLASS_LINES
    if long and unit.kind in CLASS_KINDS and unit.start_line <= unit.head_end_line < end:
        end = unit.head_end_line
    return span_chunk(unit, unit.start_line, end, unit.qualified_name, why)


def call_site_chunk(reference: Reference, inside: Unit) -> Chunk | None:
    """The lines around `reference`, read from the unit `inside` that it lies in.

    None when the unit does not cover the line (the file was indexed anew in between).
    """
    last = inside.start_line + inside.source_code.count("\n")
    if inside.path != reference.path or not inside.start_line <= reference.line <= last:
        return None
    return span_chunk(
        inside,
        reference.line - CALL_SITE_MARGIN,
        reference.line + CALL_SITE_MARGIN,
        f"{reference.kind} {reference.name}",
        why=f"uses {reference.name}",
    )


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
    return ContextBlock(format_block(shown_chunks), tuple(shown_chunks), tuple(dropped))


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


def span_of(chunk: Chunk, start: int, end: int) -> Chunk:
    """The chunk of the lines `start` to `end` of `chunk`, 0-based and half-open."""
    content = "\n".join(chunk.content.split("\n")[start:end])
    return replace(
        chunk,
        id=chunk_id(chunk.path, chunk.id, content),
        start_line=chunk.start_line + start,
        end_line=chunk.start_line + end - 1,
        content=content,
    )


def cut_chunk(chunk: Chunk, limit: int, words: Sequence[re.Pattern[str]] = ()) -> tuple[Chunk, ...]:
    """`chunk`, or as many of its statements as fit `limit` characters of the block; () for none.

    They are the first ones; of a function whose lines with the most of `words` stand further
    down, its signature and what is around those lines: several spans, in their order. A single
    statement that is too long ends after a line.
    """
    if chunk_cost(chunk) <= limit:
        return (chunk,)
    lines = chunk.content.split("\n")
    found = () if chunk.kind in TEXT_KINDS else statements(chunk.content, chunk.language)
    # The cost grows with the lines, so halving finds the last that fits.
    fits = bisect_right(
        range(1, len(lines)), limit, key=lambda count: chunk_cost(span_of(chunk, 0, count))
    )
    end = next((end for end in range(fits, 0, -1) if _is_between(found, end)), fits)
    weights = _weights(lines, words) if chunk.kind not in CLASS_KINDS else []
    if len(found) > 1 and max(weights, default=0.0) > max(weights[:end], default=0.0):
        places = _around(chunk, lines, found, limit, weights)
        spans = tuple(span_of(chunk, *place) for place in places)
        if spans and sum(map(chunk_cost, spans)) <= limit:
            return spans
    return (span_of(chunk, 0, end),) if end else ()


def _weights(lines: Sequence[str], words: Sequence[re.Pattern[str]]) -> list[float]:
    """How much each line matters: a word that stands on every line says nothing."""
    weights = [0.0] * len(lines)
    for word in words:
        holding = [number for number, line in enumerate(lines) if word.search(line.lower())]
        for number in holding:
            weights[number] += 1 / len(holding)
    return weights


def _around(
    chunk: Chunk,
    lines: Sequence[str],
    found: Sequence[Statement],
    limit: int,
    weights: Sequence[float],
) -> list[tuple[int, int]]:
    """Spans around the lines that matter, signature and first statement before them."""
    gap = chunk_cost(span_of(chunk, 0, 1))  # each span is a chunk, with a head of its own
    costs = [len(line) + 1 for line in lines]
    owners = owning_statements(lines, found)
    head = next((n for n, owner in enumerate(owners) if owner > 0), 0)
    with_first = found[1].end
    for end in (with_first, head):
        if 0 < sum(costs[:end]) <= HEAD_SHARE * limit:
            limit -= sum(costs[:end])
            costs[:end] = [0] * end
            break
    return choose_lines(lines, found, weights, costs, limit - gap, gap)


def _is_between(found: Sequence[Statement], end: int) -> bool:
    """Whether no statement without others in it goes on over the line `end`."""
    holders = {one.parent for one in found}
    return not any(
        one.start < end < one.end and number not in holders for number, one in enumerate(found)
    )
