"""The context block: what becomes a chunk, how chunks are packed and cut, and the block's form,
which can be read back exactly.

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
   statements, and several spans of it are several chunks. What is left at the end
   is given back to chunks that were cut, by rank. A chunk alone may use the whole budget.

A unit is often a fragment (a method cut out of its class) and is parsed as it stands. What a
grammar calls a block holds statements; where no tree helps (languages without a grammar, broken
code, the inside of long literals and macros) indentation tells what belongs together. Lines are
0-based here, spans half-open.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from codeqa import parsing
from codeqa.languages import languages
from codeqa.text import counted
from codeqa.text.markdown import fence_for
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Chunk, Unit, encloses

if TYPE_CHECKING:
    import tree_sitter

HEADER = "[CONTEXT]\n\n"

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]*")
_UNSAFE_PATH = re.compile('[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|^[\\s"]|\\s$')

LONG_CLASS_LINES = 80
"""A class longer than this enters by its head: its members are units of their own and come
in by themselves when they matter, while all of them together would fill the budget."""

LARGEST_SHARE = 0.5
"""Part of the budget that one chunk may take while others wait: room for at least one more
of the same size, so that a single huge function never is the whole evidence. And part of the room
of a cut chunk up to which a statement is shown with all that it holds."""

HEAD_SHARE = 0.3
"""Part of the room that signature and first statement (often the doc comment) may take to stand
above lines further down."""

LONG_LEAF = 6
"""A statement without statements in it (a literal, a call, a macro) that is longer than so many
lines is taken apart by indentation."""
LONGEST_CODE = 1 << 18
"""Characters beyond which no tree is made: this runs while a question waits for its answer."""
CANDIDATES = 64
"""Lines that matter, most first, and statements around them, that are tried for room."""

_HOLDER = re.compile(
    r"(?:^|_)(?:block|body|(?:declaration|statement|spec)_list|statements?|group"
    r"|program|module|file|chunk|unit|stylesheet|then|else|do|begin|ensure|lambda_literal|subshell"
    r"|(?:case|default|else|elif)(?:_clause|_item)?|section|entry|preproc_\w+|ERROR"
    r"|(?:when|switch|match)_(?:expression|body)|members|transaction)$"
)
"""Nodes that hold statements. One with commas between its children is a list of something else."""
_PART = re.compile(
    r"(?:^|_)(?:block|then|do|else|ensure|compound_statement|statement_list|statements|body)$"
)
"""Nodes that are no statements themselves: a part of one, or what holds others."""
_GOES_ON = re.compile(
    r"\s*(?:[)\]}>]|(?:else|elif|elsif|except|catch|finally|rescue|ensure|end)\b)"
)
COMMENT_LINE = re.compile(r"\s*(?:#(?![!\[])|//|/\*|\*(?:\s|/|$)|--\s|;)")
"""How a comment begins its line, in most languages."""


def chunk_id(path: str, symbol: str, content: str) -> str:
    """`ctx_` and eight hex digits, the same for the same path, symbol and content."""
    text = "\0".join((path, symbol, content)).encode("utf-8", "surrogatepass")
    return "ctx_" + hashlib.blake2b(text, digest_size=4).hexdigest()


def format_chunk(number: int, chunk: Chunk) -> str:
    """One chunk of the block, its closing blank line included.

    Raises ValueError when the lines do not match the content or a field cannot be written.
    """
    if chunk.content.count("\n") != chunk.end_line - chunk.start_line:
        raise ValueError(f"{chunk.place}: the content is not these lines")
    if not _LANGUAGE.fullmatch(chunk.language):
        raise ValueError(f"{chunk.path}: {chunk.language!r} is no language name")
    fence, path = fence_for(chunk.content), chunk.path
    path = json.dumps(path) if not path or _UNSAFE_PATH.search(path) else path
    return (
        f"=== CHUNK {number} ===\n"
        f"Id: {chunk.id}\n"
        f"Path: {path}\n"
        f"Lines: {chunk.start_line}-{chunk.end_line}\n"
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


@dataclass(frozen=True)
class ContextBlock:
    """A packed context: the chunks that it holds, in order, and what is sent of them."""

    chunks: tuple[Chunk, ...]
    dropped: tuple[Chunk, ...] = ()
    """Chunks that did not fit the budget."""
    note: str = ""
    """What the reader should know about it, as sentences."""

    @cached_property
    def text(self) -> str:
        """All of it as it is sent; most turns that are read again are not."""
        return format_block(self.chunks)


NO_CONTEXT = ContextBlock(())


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


def span_of(chunk: Chunk, start: int, end: int) -> Chunk:
    """The chunk of the lines `start` to `end` of `chunk`, 0-based and half-open."""
    content = "\n".join(chunk.content.split("\n")[start:end])
    first, last = chunk.start_line + start, chunk.start_line + end - 1
    key = chunk_id(chunk.path, chunk.id, content)
    return replace(chunk, id=key, start_line=first, end_line=last, content=content)


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
    for end in (found[1].end, head):
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


# Statements


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole statement: lines `start` to `end`, comments and attributes above it included."""

    start: int
    first: int
    """The line on which its code begins; `end` for comments that no code follows."""
    end: int
    parent: int = -1
    """Number of the statement that it lies in."""


@lru_cache(maxsize=128)
def statements(code: str, language: str) -> tuple[Statement, ...]:
    """All statements of `code`, each before those inside it. Spans of siblings do not overlap.

    A simple statement holds no others; what of a compound one no other holds is its head, its
    `else`, its closing brace. `language` is a unit's.
    """
    lines = code.split("\n")
    spans = _parsed(code, language) or list(_by_indentation(lines, 0, len(lines)))
    holders = {span.start for span in spans}
    for span in list(spans):
        inside = any(line in holders for line in range(span.start + 1, span.end))
        if span.end - span.first > LONG_LEAF and not inside:
            spans += _by_indentation(lines, span.first + 1, span.end, _indent(lines[span.first]))
    spans.sort(key=lambda span: (span.start, -span.end))
    found: list[Statement] = []
    around: list[int] = []
    for span in spans:
        while around and found[around[-1]].end <= span.start:
            around.pop()
        parent = around[-1] if around else -1
        if parent >= 0 and span.end > found[parent].end:
            continue
        around.append(len(found))
        found.append(replace(span, parent=parent))
    return tuple(found)


def _parsed(code: str, language: str) -> list[Statement]:
    """By the tree of a grammar that reads all of it, if one does; [] where there is none."""
    known, found = languages().values() if len(code) <= LONGEST_CODE else (), list[Statement]()
    for key in (one.key for one in known if one.name == language and one.grammar):
        grammar = parsing.grammar(key)
        given, _ = parsing.readable(grammar, code.encode())
        try:
            tree, _ = parsing.parse(grammar, given)
        except parsing.TooSlowError:
            return []
        leading = {*grammar.language.comment_nodes, *grammar.language.attribute_nodes}
        found = _of_tree(tree.root_node, given, code.count("\n") + 1, leading)
        if not tree.root_node.has_error:
            break
    return found


def _of_tree(
    root: tree_sitter.Node, data: bytes, height: int, leading: Collection[str]
) -> list[Statement]:
    """`leading` are the types of comments and attributes, `height` is the number of lines."""
    lines = data.split(b"\n")
    spans: list[Statement] = []
    above: dict[int, int] = {}
    """Of comments and attributes with their own lines: the line behind and the first one."""
    waiting = [(root, -1)]
    while waiting:
        node, inside = waiting.pop()  # `inside`: the first line of the statement around it
        children = node.children
        holds = bool(_HOLDER.search(node.type)) and all(one.type != "," for one in children)
        for child in children:
            (first, column), (last, end_column) = child.start_point, child.end_point
            end = min(last + (end_column > 0 or last == first), height)
            begins = inside < first < height and not lines[first][:column].strip()
            if begins and child.type in leading:
                above[end] = min(first, above.get(end, first))
            elif begins and holds and child.is_named:
                part = bool(_PART.search(child.type))
                if not part:
                    spans.append(Statement(first, first, end))
                waiting.append((child, inside if part else first))
            elif last > first or begins:
                waiting.append((child, inside))
    whole = []
    for one in sorted(spans, key=lambda one: one.start):
        start = one.start
        while start in above:
            start = above.pop(start)
        whole.append(replace(one, start=start))
    return whole + [Statement(start, end, end) for end, start in above.items()]


def _by_indentation(
    lines: Sequence[str], start: int, end: int, margin: int = -1
) -> Iterator[Statement]:
    """Lines deeper than `margin`, each with the deeper ones below it."""
    open_: list[tuple[int, int, int]] = []
    """Indentation, first line and first line of code of what is not complete."""
    last, above = start, -1
    for number in range(start, end):
        if not lines[number].strip():
            continue
        if COMMENT_LINE.match(lines[number]):
            above = number if above < 0 else above
            continue
        depth, goes_on = _indent(lines[number]), bool(_GOES_ON.match(lines[number]))
        while open_ and (open_[-1][0] > depth or (open_[-1][0] == depth and not goes_on)):
            _, begun, first = open_.pop()
            yield Statement(begun, first, last)
        if depth > margin and not (open_ and open_[-1][0] == depth):
            open_.append((depth, number if above < 0 else above, number))
        last, above = number + 1, -1
    for _, begun, first in reversed(open_):
        yield Statement(begun, first, last)
    if above >= 0:
        yield Statement(above, end, end)


def _indent(line: str) -> int:
    wide = line.expandtabs(4)
    return len(wide) - len(wide.lstrip(" "))


def choose_lines(
    lines: Sequence[str],
    found: Sequence[Statement],
    weights: Sequence[float],
    costs: Sequence[int],
    room: int,
    gap: int = 1,
) -> list[tuple[int, int]]:
    """Spans of the lines to show: whole statements around those that matter, and what they lie
    in as an outline.

    `found` are the statements of `lines`, `weights` says how much each line matters, `costs` what
    it takes (lines or characters; 0 for one that is shown anyway, more than `room` for one that
    never is), `gap` what a mark for lines left out takes. All together take at most `room`.
    """
    heads: list[list[int]] = [[] for _ in found]
    owners = owning_statements(lines, found)
    for line, owner in enumerate(owners):
        code = owner >= 0 and line >= found[owner].first and lines[line].strip()
        if code and costs[line] <= room:
            heads[owner].append(line)
    total = list(accumulate(costs, initial=0))
    shown = {line for line, cost in enumerate(costs) if not cost}

    def cost(start: int, end: int) -> int:
        return total[end] - total[start]

    def add(around: Iterable[int], wanted: Iterable[int], line: int) -> bool:
        """Show the lines `wanted` with the heads of the statements `around` them, where these are
        too many with those of the branch that holds `line` alone, if there is room."""
        nonlocal shown
        every = [heads[number] for number in around]
        for chosen in (every, [_of_branch(one, line) for one in every]):
            spans = spans_of(shown.union(wanted, *chosen), lines)
            if sum(cost(*span) for span in spans) + gap * (len(spans) - 1) <= room:
                shown = {line for span in spans for line in range(*span)}
                return True
        return False

    def outside(number: int) -> list[int]:
        around = []
        while (number := found[number].parent) >= 0:
            around.append(number)
        return around

    def add_whole(number: int, most: float) -> bool:
        span = found[number].start, found[number].end
        return cost(*span) <= most and add(outside(number), range(*span), span[0])

    order = [line for line, owner in enumerate(owners) if owner >= 0 and 0 < costs[line] <= room]
    order.sort(key=lambda line: -weights[line])
    matter = [line for line in order if weights[line] > 0] or order[:1]
    for line in matter[:CANDIDATES]:
        around = [owners[line], *outside(owners[line])]
        if line not in shown and not any(
            add_whole(number, LARGEST_SHARE * room) for number in reversed(around)
        ):
            add(around, (), line)
    if matter:
        beside = sorted(range(len(found)), key=lambda number: _distance(found[number], matter[0]))
        for number in beside[:CANDIDATES]:
            add_whole(number, room)
    return spans_of(shown, lines)


def _of_branch(heads: Sequence[int], line: int) -> list[int]:
    """Of the heads of a chain of branches the first, that of the branch that `line` lies in, and
    the last."""
    end = bisect_right(heads, line)
    begin = end - 1
    while begin > 0 and heads[begin - 1] == heads[begin] - 1:
        begin -= 1
    return [*heads[:1], *heads[max(begin, 0) : end], *heads[-1:]]


def _distance(one: Statement, line: int) -> int:
    """Lines between; what comes after a line is nearer than what comes before it."""
    return one.start - line if one.start > line else 2 * max(0, line - one.end + 1)


def owning_statements(lines: Sequence[str], found: Sequence[Statement]) -> list[int]:
    """For each line the number of the innermost statement that it belongs to, -1 for none."""
    owners = [-1] * len(lines)
    for number, one in enumerate(found):
        owners[one.start : one.end] = [number] * (one.end - one.start)
    return owners


def spans_of(numbers: Collection[int], lines: Sequence[str]) -> list[tuple[int, int]]:
    """Lines as spans; nothing but blank lines between two of them is no gap."""
    spans: list[tuple[int, int]] = []
    for line in sorted(numbers):
        if spans and not any(one.strip() for one in lines[spans[-1][1] : line]):
            spans[-1] = (spans[-1][0], line + 1)
        else:
            spans.append((line, line + 1))
    return spans


def outlined(lines: Sequence[str], spans: Sequence[tuple[int, int]], first: int) -> str:
    """The text of `spans`, with how many lines are left out between them and which; the file's
    line `first` is the first of `lines`."""
    parts: list[str] = []
    for number, (start, end) in enumerate(spans):
        if number:
            margin = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
            left = spans[number - 1][1] + first, start + first - 1
            said = f"{left[0]}-{left[1]}" if left[1] > left[0] else f"{left[0]}"
            parts.append(f"{margin}… {counted(left[1] - left[0] + 1, 'line')} ({said})")
        parts += lines[start:end]
    return "\n".join(parts)
