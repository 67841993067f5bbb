"""Figures of ranked lists against the targets of questions, with intervals.

Two levels. *Files*: results are reduced to their first mention of each path; ndcg@10 is graded
(a main target gains 2, a secondary one 1), hit@1, mrr@10 and recall@5/@10 count main targets.
*Lines*, of questions whose main targets name lines: a result finds a target when their overlap
is at least half of the shorter of the two, a result longer than LONGEST_RESULT lines counting
with its first lines alone, and each target is found once; ndcg, mrr, recall and hit follow from
that. These favour systems that return long pieces; cover@N does not: results are read in order
until N lines have been read, and it is the mean share of each target's lines among them.

*In context*, of runs that say what would be sent: whether it holds HELD_SHARE of the lines of one
main target at least.

A question that a run leaves out scores 0. Intervals are percentile bootstraps over questions,
95 %, of a fixed seed; runs are compared by the same draw of questions (paired).

Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20(4), 2002;
Efron and Tibshirani, "An Introduction to the Bootstrap", 1993.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.evals.search.questions import Question, Target
from research.evals.search.ranked import Ranked

DEPTH = 10
LONGEST_RESULT = 300
BUDGETS = (250, 500, 1_000)
REPETITIONS = 2_000
SEED = 1

FILE_FIGURES = ("ndcg@10", "mrr@10", "recall@5", "recall@10", "hit@1")
LINE_FIGURES = (
    "line ndcg@10",
    "line mrr@10",
    "line recall@5",
    "line recall@10",
    "line hit@1",
    *(f"cover@{budget}" for budget in BUDGETS),
)
IN_CONTEXT = "answer in context"
HELD_SHARE = 0.8
"""Part of a main target's lines that a context must hold to count as holding the answer."""
FIGURES = (*FILE_FIGURES, *LINE_FIGURES, IN_CONTEXT)
GROUPS = ("repo", "category", "language", "source")

MISSING = Ranked("", "", "", ())
"""In the place of a list that a run leaves out."""

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions, and between which values it would lie for others like them."""

    mean: float
    low: float
    high: float
    questions: int

    @property
    def beyond_chance(self) -> bool:
        """Of a difference: whether its interval leaves 0 out."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Report:
    """What `score` found."""

    figures: Mapping[str, Figure]
    groups: Mapping[str, Mapping[str, Mapping[str, Figure]]]
    """One of GROUPS → its value → figures."""
    latency_ms: tuple[float, float] | None
    """Median and 95th percentile, where the run states times."""
    missing: int
    """Questions that the run leaves out."""
    per_question: tuple[Mapping[str, float], ...]
    """In the order of the questions."""


def score(
    questions: Sequence[Question], ranked: Iterable[Ranked], units: Iterable[Ranked] | None = None
) -> Report:
    """Judge a run.

    Where a system gives two lists, `ranked` is that of files and `units` the one that the
    figures of lines are taken from.
    """
    found = _matched(questions, ranked)
    lines = found if units is None else _matched(questions, units)
    values = [
        _file_figures(question, one.results)
        | _line_figures(question, other.results)
        | _context_figures(question, other.context)
        for question, one, other in zip(questions, found, lines, strict=True)
    ]
    groups: dict[str, dict[str, dict[str, Figure]]] = {}
    for group in GROUPS:
        for value in sorted({getattr(question, group) for question in questions} - {""}):
            rows = [v for q, v in zip(questions, values, strict=True) if getattr(q, group) == value]
            groups.setdefault(group, {})[value] = _figures(rows)
    times = [one.latency_ms for one in found if one.latency_ms is not None]
    latency = (float(np.median(times)), float(np.quantile(times, 0.95))) if times else None
    return Report(_figures(values), groups, latency, found.count(MISSING), tuple(values))


def compare(ours: Report, theirs: Report) -> dict[str, Figure]:
    """Figure → ours minus theirs over the same questions, paired."""
    if len(ours.per_question) != len(theirs.per_question):
        raise ValueError("the reports are of different questions")
    differences = [
        {name: value - b[name] for name, value in a.items() if name in b}
        for a, b in zip(ours.per_question, theirs.per_question, strict=True)
    ]
    return _figures(differences)


def _matched(questions: Sequence[Question], ranked: Iterable[Ranked]) -> list[Ranked]:
    """The list of each question, MISSING where there is none."""
    lists = list(ranked)
    by_id = {one.id: one for one in lists if one.id}
    by_text = {(one.repo, one.question): one for one in lists}
    return [
        by_id.get(one.id) or by_text.get((one.repo, one.question)) or MISSING for one in questions
    ]


def _figures(rows: Sequence[Mapping[str, float]]) -> dict[str, Figure]:
    found = {}
    for name in FIGURES:
        values = np.array([row[name] for row in rows if name in row])
        if len(values):
            found[name] = interval_of(values)
    return found


def interval_of(values: NDArray[np.float64]) -> Figure:
    """Their mean and its interval. The same number of questions is always drawn alike: what differs
    is what was measured."""
    drawn = np.random.default_rng(SEED).integers(len(values), size=(REPETITIONS, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return Figure(float(values.mean()), float(low), float(high), len(values))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _file_figures(question: Question, results: Sequence[Result]) -> dict[str, float]:
    grades: dict[str, int] = {}
    for target in question.relevant:
        grades[target.path] = max(target.grade, grades.get(target.path, 0))
    main = question.main_files
    ranked = list(dict.fromkeys(result["path"] for result in results))[:DEPTH]
    gain = sum(grades.get(path, 0) * _discount(rank) for rank, path in enumerate(ranked, 1))
    ideal = sum(
        grade * _discount(rank)
        for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:DEPTH], 1)
    )
    first = next((rank for rank, path in enumerate(ranked, 1) if path in main), 0)
    return {
        "ndcg@10": gain / ideal,
        "mrr@10": 1 / first if first else 0.0,
        "recall@5": sum(path in main for path in ranked[:5]) / len(main),
        "recall@10": sum(path in main for path in ranked) / len(main),
        "hit@1": float(first == 1),
    }


def _line_figures(question: Question, results: Sequence[Result]) -> dict[str, float]:
    targets = question.main_lines
    if not targets:
        return {}
    left = set(range(len(targets)))
    new, first = [], 0
    for rank, result in enumerate(results[:DEPTH], 1):
        hit = {number for number, target in enumerate(targets) if _finds(result, target)}
        if hit and not first:
            first = rank
        new.append(len(hit & left))
        left -= hit
    found = sum(1 for count in new if count)
    gain = sum(_discount(rank) for rank, count in enumerate(new, 1) if count)
    # One result may find several targets: the best list has one result for them as well.
    best = min(DEPTH, len(targets) - sum(new) + found)
    ideal = sum(_discount(rank) for rank in range(1, best + 1))
    return {
        "line ndcg@10": gain / ideal,
        "line mrr@10": 1 / first if first else 0.0,
        "line recall@5": sum(new[:5]) / len(targets),
        "line recall@10": sum(new) / len(targets),
        "line hit@1": float(first == 1),
        **{f"cover@{budget}": _cover(targets, results, budget) for budget in BUDGETS},
    }


def _context_figures(question: Question, context: Sequence[Result] | None) -> dict[str, float]:
    if context is None or not question.main_lines:
        return {}
    spans = [(place["path"], place["start"], place["end"]) for place in context]
    return {IN_CONTEXT: float(holds_answer(question, spans))}


def holds_answer(question: Question, spans: Iterable[tuple[str, int, int]]) -> bool:
    """Whether these lines (path, first, last) hold HELD_SHARE of a main target's."""
    held: dict[str, set[int]] = {}
    for path, start, end in spans:
        held.setdefault(path, set()).update(range(start, end + 1))
    return any(
        len(held.get(t.path, set()).intersection(range(t.start, t.end + 1))) >= HELD_SHARE * t.lines
        for t in question.main_lines
    )


def _finds(result: Result, target: Target) -> bool:
    if result["path"] != target.path:
        return False
    start = int(result.get("start") or 1)
    end = int(result.get("end") or start + LONGEST_RESULT)
    end = min(end, start + LONGEST_RESULT - 1)
    common = min(end, target.end) - max(start, target.start) + 1
    return common > 0 and 2 * common >= min(end - start + 1, target.lines)


def _cover(targets: Sequence[Target], results: Sequence[Result], budget: int) -> float:
    """Mean share of the targets' lines among the first `budget` lines that are returned."""
    read: dict[str, set[int]] = {}
    left = budget
    for result in results:
        start = int(result.get("start") or 1)
        end = min(int(result.get("end") or start + left), start + left - 1)
        have = read.setdefault(result["path"], set())
        fresh = set(range(start, end + 1)) - have
        have |= fresh
        left -= len(fresh)
        if left <= 0:
            break
    shares = [
        len(read.get(t.path, set()).intersection(range(t.start, t.end + 1))) / t.lines
        for t in targets
    ]
    return sum(shares) / len(shares)
