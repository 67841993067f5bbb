"""The statements of a unit, and which of its lines to show.

A unit is often a fragment (a method cut out of its class) and is parsed as it stands. What a
grammar calls a block holds statements; where no tree helps (languages without a grammar, broken
code, the inside of long literals and macros) indentation tells what belongs together. Lines are
0-based here, spans half-open.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from codeqa import parsing
from codeqa.languages import languages
from codeqa.text import counted

if TYPE_CHECKING:
    import tree_sitter

LONG_LEAF = 6
"""A statement without statements in it (a literal, a call, a macro) that is longer than so many
lines is taken apart by indentation."""

LONGEST_CODE = 1 << 18
"""Characters beyond which no tree is made: this runs while a question waits for its answer."""

WHOLE_SHARE = 0.5
"""Part of the room up to which a statement is shown with all that it holds."""
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
            add_whole(number, WHOLE_SHARE * room) for number in reversed(around)
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
