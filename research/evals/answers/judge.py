"""What the rules of a case say of an answer, and how well its context was chosen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from codeqa.chat.events import Citation
from codeqa.chat.pinned import parse_span
from codeqa.types import Chunk, Unit
from research.evals.answers.cases import Case, says, shown_lines
from research.evals.search.scores import Figure, interval_of

OPENING = 300
"""Characters in which an answer says that it does not know: what comes later is of a part."""
QUOTED = re.compile(r"^\s*(`{3,}).*?(?:^\s*\1|\Z)|^\s*>[^\n]*|`[^`\n]*`", re.MULTILINE | re.DOTALL)
"""Code and quotations, in which it is not the answer that speaks."""
UNKNOWN = re.compile(
    r"evidence is weak|nothing (?:was found|in (?:the|this) code)|no such\b|\bnot found\b"
    r"|(?:does|do|did|is|are|was|were|has|have|can|could)(?: not|n['’]t) (?:\w+ ){0,2}?(?:know|"
    r"exist|appear|contain|mention|define|show|found|find|have|use|support|implement|include|say|"
    r"see|part of|any|there|present|provide)\b"
    r"|there (?:is|are|was|were) (?:no|not|neither)\b",
    re.IGNORECASE,
)
"""How answers say that something is not there, or that they do not know."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say; for each group whether it is fulfilled."""

    cited: tuple[bool, ...]
    mentioned: tuple[bool, ...]
    said: tuple[str, ...]
    """What was not to be said, and was."""
    unknown: bool
    """It says that it does not know."""
    passed: bool
    """All rules, and of a trap that it does not know."""


@dataclass(frozen=True, slots=True)
class Result:
    """One case asked once."""

    id: str
    repository: str
    kind: str
    digest: str
    """Of the case and of what answered it."""
    verdict: Verdict
    problem: str
    """Why there is no answer, '' where there is one."""
    recall: float | None
    """Part of the necessary lines that the block holds; None where none are labelled."""
    precision: float | None
    """Part of the block's lines that are labelled, or in a unit that holds labelled lines."""
    tokens: int
    """Of the block, estimated."""
    seconds: float
    context: tuple[str, ...] = ()
    """`path:first-last` of each chunk."""

    @property
    def figures(self) -> dict[str, float]:
        """FIGURES → the value, for those that this case has."""
        trap, verdict = self.kind == "trap", self.verdict
        values: dict[str, float | None] = {
            "passed": verdict.passed,
            "citations": None if trap else _share(verdict.cited),
            "mentions": None if trap else _share(verdict.mentioned),
            "clean": not verdict.said,
            "unknown, traps": verdict.unknown if trap else None,
            "unknown, others": None if trap else verdict.unknown,
            "recall": self.recall,
            "precision": self.precision,
            "tokens": self.tokens,
            "seconds": self.seconds,
        }
        return {name: float(value) for name, value in values.items() if value is not None}


FIGURES = (
    "passed", "citations", "mentions", "clean", "unknown, traps", "unknown, others", "recall",
    "precision", "tokens", "seconds",
)  # fmt: skip


def judge(case: Case, answer: str, citations: Iterable[Citation]) -> Verdict:
    """Judge an answer by its text and its checked citations (`TurnRecord.citations`); one that is
    wrong counts for nothing."""
    places = [(c.path, c.start, c.end) for c in citations if c.verified]
    cited = tuple(any(_cites(places, one) for one in group) for group in case.must_cite)
    mentioned = tuple(any(says(answer, one) for one in group) for group in case.must_mention)
    said = tuple(one for one in case.must_not_say if says(answer, one))
    own_words = QUOTED.sub("", answer)[:OPENING]
    unknown = not answer.strip() or bool(UNKNOWN.search(own_words))
    right = unknown if case.kind == "trap" else all(cited) and all(mentioned)
    return Verdict(cited, mentioned, said, unknown, passed=right and not said)


def context_figures(
    case: Case, chunks: Sequence[Chunk], units: Callable[[Sequence[str]], Sequence[Unit]]
) -> tuple[float | None, float | None]:
    """Recall and precision of the block; `units` gives the units of ids."""
    if not case.lines:
        return None, None
    wanted, held, lines = 0, 0, 0
    for place in (place for place in case.lines if place.necessary):
        _, first, last = place.span
        wanted += last - first + 1
        shown = {n for start, end, _ in shown_lines(place, chunks) for n in range(start, end + 1)}
        held += len(shown)
    spans = [place.span for place in case.lines]
    holding = {
        unit.id
        for unit in units([chunk.unit_id for chunk in chunks if chunk.unit_id])
        if any(_overlap(span, (unit.path, unit.start_line, unit.end_line)) for span in spans)
    }
    useful = 0
    for chunk in chunks:
        numbers = range(chunk.start_line, chunk.end_line + 1)
        lines += len(numbers)
        if chunk.unit_id in holding:
            useful += len(numbers)
        else:
            useful += sum(any(_overlap(s, (chunk.path, n, n)) for s in spans) for n in numbers)
    return held / wanted, useful / lines if lines else 0.0


def figures_of(results: Iterable[Result]) -> dict[str, Figure]:
    """FIGURES → mean and interval over the results that have it."""
    rows = [result.figures for result in results]
    values = {name: [row[name] for row in rows if name in row] for name in FIGURES}
    return {name: interval_of(np.array(found)) for name, found in values.items() if found}


def differences(ours: Sequence[Result], theirs: Sequence[Result]) -> dict[str, Figure]:
    """FIGURES → ours minus theirs, over the cases that both have."""
    before = {result.id: result.figures for result in theirs}
    pairs = [(one.figures, before[one.id]) for one in ours if one.id in before]
    values = {n: [a[n] - b[n] for a, b in pairs if n in a and n in b] for n in FIGURES}
    return {name: interval_of(np.array(found)) for name, found in values.items() if found}


def _share(fulfilled: Sequence[bool]) -> float | None:
    return sum(fulfilled) / len(fulfilled) if fulfilled else None


def _cites(places: Iterable[tuple[str, int, int]], wanted: str) -> bool:
    if not wanted.rpartition(":")[2].replace("-", "").isdigit():
        return any(path == wanted for path, _, _ in places)
    return any(_overlap(place, parse_span(wanted)) for place in places)


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]
