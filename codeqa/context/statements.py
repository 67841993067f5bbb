"""Find the statements of a unit, and choose the lines to show.

A unit is often a fragment (a method without its class) and is parsed as it stands. A block of its
grammar holds statements; where no tree helps (languages without a grammar, broken code, the inside
of long literals and macros) indentation tells what belongs together. Lines are 0-based here, spans
half-open.
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
"""Lines from which a simple statement (a literal, a call, a macro) is divided by indentation."""
LONGEST_CODE = 1 << 18
"""Characters beyond which no tree is made: this runs while a question waits for its answer."""
WHOLE_SHARE = 0.5
"""Part of the room up to which a statement is shown with all that it holds."""
LINES_TRIED = 64
"""Lines that matter, and statements around them, for which room is sought, best first."""

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
"""Nodes that are no statements themselves: a part of one, or a holder of others."""
_CONTINUES = re.compile(
    r"\s*(?:[)\]}>]|(?:else|elif|elsif|except|catch|finally|rescue|ensure|end)\b)"
)
COMMENT_LINE = re.compile(r"\s*(?:#(?![!\[])|//|/\*|\*(?:\s|/|$)|--\s|;)")
"""How a comment begins its line, in most languages."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole statement: lines `start` to `end`, comments and attributes above it included."""

    start: int
    first: int
    """The line on which its code begins; `end` for comments without code below them."""
    end: int
    parent: int = -1
    """Number of the statement around it."""


@lru_cache(maxsize=128)
def statements(code: str, language: str) -> tuple[Statement, ...]:
    """Return all statements of `code`, each before those inside it; siblings do not overlap.

    The lines of a compound statement outside those in it are its head, its `else`, its closing
    brace. `language` is a unit's.
    """
    lines = code.split("\n")
    spans = _parsed(code, language) or list(_by_indentation(lines, 0, len(lines)))
    holders = {span.start for span in spans}
    for span in list(spans):
        inside = any(line in holders for line in range(span.start + 1, span.end))
        if span.end - span.first > LONG_LEAF and not inside:
            spans += _by_indentation(lines, span.first + 1, span.end, _indent(lines[span.first]))
    spans.sort(key=lambda span: (span.start, -span.end))
    nested: list[Statement] = []
    around: list[int] = []
    for span in spans:
        while around and nested[around[-1]].end <= span.start:
            around.pop()
        parent = around[-1] if around else -1
        if parent >= 0 and span.end > nested[parent].end:
            continue
        around.append(len(nested))
        nested.append(replace(span, parent=parent))
    return tuple(nested)


def _parsed(code: str, language: str) -> list[Statement]:
    """Return statements by the first grammar that reads all of it, or the last; [] for none."""
    spans: list[Statement] = []
    if len(code) > LONGEST_CODE:
        return spans
    for candidate in languages().values():
        if candidate.name != language or not candidate.grammar:
            continue
        grammar = parsing.grammar(candidate.key)
        try:
            data, tree, _ = parsing.parse_masked(grammar, code.encode(), [])
        except parsing.TooSlowError:
            return []
        leading = set(grammar.language.comment_nodes) | set(grammar.language.attribute_nodes)
        spans = _of_tree(tree.root_node, data, code.count("\n") + 1, leading)
        if not tree.root_node.has_error:
            break
    return spans


def _of_tree(
    root: tree_sitter.Node, data: bytes, height: int, leading: Collection[str]
) -> list[Statement]:
    """Return statements; `leading` are types of comments and attributes, `height` the lines."""
    lines = data.split(b"\n")
    spans: list[Statement] = []
    above: dict[int, int] = {}
    """Comments and attributes on lines of their own: the line below them → their first line."""
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
    """Yield each line deeper than `margin`, with the deeper ones below it."""
    open_: list[tuple[int, int, int]] = []
    """Indentation, first line and first line of code of unfinished statements."""
    last, above = start, -1
    for number in range(start, end):
        if not lines[number].strip():
            continue
        if COMMENT_LINE.match(lines[number]):
            above = number if above < 0 else above
            continue
        depth, continues = _indent(lines[number]), bool(_CONTINUES.match(lines[number]))
        while open_ and (open_[-1][0] > depth or (open_[-1][0] == depth and not continues)):
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


# Its steps share the lines chosen so far.
def choose_lines(
    lines: Sequence[str],
    parts: Sequence[Statement],
    weights: Sequence[float],
    costs: Sequence[int],
    room: int,
    gap: int = 1,
) -> list[tuple[int, int]]:
    """Return spans of whole statements around lines that matter, with the heads around them.

    `parts` are the statements of `lines`, `weights` says how much each line matters, `costs` what
    it takes (lines or characters; 0 for one that is shown anyway, more than `room` for one that
    never is), `gap` what a mark for lines left out takes. All together take at most `room`.
    """
    owners = owning_statements(lines, parts)
    heads = [[line for line in own if costs[line] <= room] for own in _heads(lines, parts)]
    total = list(accumulate(costs, initial=0))
    chosen = {line for line, cost in enumerate(costs) if not cost}

    def add(around: Iterable[int], added: Iterable[int], line: int) -> bool:
        """Add lines and all heads `around`, or those of the branch at `line`, if there is room."""
        nonlocal chosen
        every = [heads[number] for number in around]
        for some in (every, [_of_branch(one, line) for one in every]):
            spans = spans_of(chosen.union(added, *some), lines)
            cost = sum(total[end] - total[start] for start, end in spans)
            if cost + gap * (len(spans) - 1) <= room:
                chosen = {line for span in spans for line in range(*span)}
                return True
        return False

    def add_whole(number: int, most: float) -> bool:
        start, end = parts[number].start, parts[number].end
        fits = total[end] - total[start] <= most
        return fits and add(_around(parts, number), range(start, end), start)

    order = [line for line, owner in enumerate(owners) if owner >= 0 and 0 < costs[line] <= room]
    order.sort(key=lambda line: -weights[line])
    matter = [line for line in order if weights[line] > 0] or order[:1]
    for line in matter[:LINES_TRIED]:
        if line not in chosen:
            around = [owners[line]] + _around(parts, owners[line])
            # The largest statement that leaves half of the room, else the heads alone.
            if not any(add_whole(number, WHOLE_SHARE * room) for number in reversed(around)):
                add(around, (), line)
    if matter:
        beside = sorted(range(len(parts)), key=lambda number: _distance(parts[number], matter[0]))
        for number in beside[:LINES_TRIED]:
            add_whole(number, room)
    return spans_of(chosen, lines)


def _heads(lines: Sequence[str], parts: Sequence[Statement]) -> list[list[int]]:
    """Return for each statement its own lines of code, which lie in no other one."""
    heads: list[list[int]] = [[] for _ in parts]
    for line, owner in enumerate(owning_statements(lines, parts)):
        if owner >= 0 and line >= parts[owner].first and lines[line].strip():
            heads[owner].append(line)
    return heads


def _around(parts: Sequence[Statement], number: int) -> list[int]:
    """Return the numbers of the statements around that one, innermost first."""
    around = []
    while (number := parts[number].parent) >= 0:
        around.append(number)
    return around


def _of_branch(heads: Sequence[int], line: int) -> list[int]:
    """Return of the heads of a chain of branches the first, that around `line` and the last."""
    end = bisect_right(heads, line)
    begin = end - 1
    while begin > 0 and heads[begin - 1] == heads[begin] - 1:
        begin -= 1
    return list(heads[:1]) + list(heads[max(begin, 0) : end]) + list(heads[-1:])


def _distance(part: Statement, line: int) -> int:
    """Return the lines between; those after a line count half as much as those before it."""
    return part.start - line if part.start > line else 2 * max(0, line - part.end + 1)


def owning_statements(lines: Sequence[str], parts: Sequence[Statement]) -> list[int]:
    """Return for each line the number of its innermost statement, -1 for none."""
    owners = [-1] * len(lines)
    for number, part in enumerate(parts):
        owners[part.start : part.end] = [number] * (part.end - part.start)
    return owners


def spans_of(numbers: Collection[int], lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return line numbers as spans, which blank lines do not separate."""
    spans: list[tuple[int, int]] = []
    for line in sorted(numbers):
        if spans and not any(one.strip() for one in lines[spans[-1][1] : line]):
            spans[-1] = (spans[-1][0], line + 1)
        else:
            spans.append((line, line + 1))
    return spans


def outlined(lines: Sequence[str], spans: Sequence[tuple[int, int]], first: int) -> str:
    """Return the text of `spans` with marks for the lines between; `lines` begin at `first`."""
    parts: list[str] = []
    for number, (start, end) in enumerate(spans):
        if number:
            margin = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
            begin, last = spans[number - 1][1] + first, start + first - 1
            span = f"{begin}-{last}" if last > begin else f"{begin}"
            parts.append(f"{margin}… {counted(last - begin + 1, 'line')} ({span})")
        parts += lines[start:end]
    return "\n".join(parts)
