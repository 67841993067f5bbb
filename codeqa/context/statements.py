"""The statements of a piece of code, nested, and which of them to show when not all fit.

Indentation tells what belongs together. By the trees of the grammars, which were used as well, the
answers of evals/answers are no better. Lines are 0-based here, spans half-open.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

LONGEST_CALL = 8
"""Lines of a call that are one statement; of a longer one each argument is."""
LARGEST_SHARE = 0.5
"""Part of the room up to which a statement is shown with all that it holds."""
CANDIDATES = 64
"""Lines that matter, most first, and statements around them, that are tried for room."""

_GOES_ON = re.compile(
    r"\s*(?:[)\]}>{]|(?:else|elif|elsif|except|catch|finally|rescue|ensure|end|where)\b)"
)
"""How a line begins that belongs to the statement before it, though it is indented as that is."""
_ATTRIBUTE = re.compile(r"\s*(?:@|#\[|\[)")
"""How a decorator, annotation or attribute begins its line; in Ruby a variable, which no definition
begins with."""
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
def statements(code: str) -> tuple[Statement, ...]:
    """All statements of `code`, each before those inside it. Spans of siblings do not overlap.

    A simple statement holds no others; what of a compound one no other holds is its head, its
    `else`, its closing brace.
    """
    found: list[Statement] = []
    around: list[int] = []
    lines = code.split("\n")
    for span in sorted(_by_indentation(lines), key=lambda span: (span.start, -span.end)):
        while around and found[around[-1]].end <= span.start:
            around.pop()
        parent = around[-1] if around else -1
        if parent >= 0 and (span.end > found[parent].end or _is_call(lines, found[parent])):
            continue
        around.append(len(found))
        found.append(replace(span, parent=parent))
    return tuple(found)


def _is_call(lines: Sequence[str], one: Statement) -> bool:
    """Whether the lines inside are the arguments of a call, and no statements."""
    return one.end - one.first <= LONGEST_CALL and lines[one.first].rstrip().endswith("(")


def _by_indentation(lines: Sequence[str]) -> Iterator[Statement]:
    """Lines that are indented alike and belong together, each with the deeper ones below it."""
    open_: list[tuple[int, int, int]] = []
    """Indentation, first line and first line of code of what is not complete."""
    last, above, before = 0, -1, ""
    in_head = True  # the parameters of a definition are no statements
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if COMMENT_LINE.match(line) or (not open_ and _ATTRIBUTE.match(line)):
            above = number if above < 0 else above
            continue
        depth, goes_on = _indent(line), bool(_GOES_ON.match(line))
        in_head = in_head and (not open_ or goes_on or before.endswith(("(", ",")))
        while open_ and (open_[-1][0] > depth or (open_[-1][0] == depth and not goes_on)):
            _, begun, first = open_.pop()
            yield Statement(begun, first, last)
        if not (open_ and (in_head or open_[-1][0] == depth)):
            open_.append((depth, number if above < 0 else above, number))
        last, above, before = number + 1, -1, line.rstrip()
    for _, begun, first in reversed(open_):
        yield Statement(begun, first, last)
    if above >= 0:
        yield Statement(above, len(lines), len(lines))


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
            inside = [range(one.start, one.end) for one in found if one.parent == owners[line]]
            behind = [one for one in inside if one.start > line] or inside
            add(around, behind[0] if behind else (), line)
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


def outlined(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> str:
    """The text of `spans`, with how many lines are left out between them."""
    parts: list[str] = []
    for number, (start, end) in enumerate(spans):
        if number:
            margin = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
            count = start - spans[number - 1][1]
            parts.append(f"{margin}… {count} line{'s' if count > 1 else ''}")
        parts += lines[start:end]
    return "\n".join(parts)
