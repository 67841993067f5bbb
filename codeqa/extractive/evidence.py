"""What an answer is made of: the hits that matter, where they are used, what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codeqa.extractive.overview import Overview, overview_of
from codeqa.search import Query, SearchResult, written_forms
from codeqa.store import Tables
from codeqa.symbols import UsageSite, usages
from codeqa.text.citation_format import ShownLines
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

SHOWN = 3
"""Units shown in full; more would be a list, not an answer."""
SHOWN_SCORE = 0.7
"""A unit is shown in full when it scores at least this part of the best."""
OTHERS = 5
MORE_FILES = 3
"""Further units, and best units of further files, named in one line each."""
USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
WEAK_COVERAGE = 0.4
"""When no hit holds at least this part of the question's words, the evidence is weak."""

_ASKS_USES = re.compile(
    r"\b(?:who|what|which|where)\b.*\b(?:calls?|called|uses?|used|invoke[sd]?|references?)\b"
    r"|\b(?:callers?|usages?|references?|uses) (?:of|to)\b|\bcall sites?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Use:
    """A place that uses a unit: the unit around it and how sure the match is (0..1)."""

    path: str
    line: int
    inside: str
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full, with the places that use it."""

    hit: Hit
    uses: tuple[Use, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that a generator may draw on."""

    question: str
    query: Query
    findings: tuple[Finding, ...] = ()
    others: tuple[Hit, ...] = ()
    more_files: tuple[Hit, ...] = ()
    """Best units of further files."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    weak: bool = False
    asks_uses: bool = False
    overview: Overview | None = None
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; nothing was searched when this is what there is."""
    chosen: bool = False
    """`cached` is what the user chose of what was found, in that order."""
    coverage: str = ""
    channels: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()

    def spans(self) -> list[ShownLines]:
        """Every line that may be cited."""
        hits = [*(finding.hit for finding in self.findings), *self.others, *self.more_files]
        spans = [_span(hit.unit) for hit in hits]
        for finding in self.findings:
            spans += [ShownLines(use.path, use.line, use.line, use.inside) for use in finding.uses]
        if self.overview:
            spans += [_span(unit) for unit in self.overview.units()]
        return spans + [ShownLines(c.path, c.start_line, c.end_line) for c in self.cached]


def gather_evidence(tables: Tables, result: SearchResult) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used."""
    asks_uses = _ASKS_USES.search(result.query.text) is not None
    overview = overview_of(tables) if result.query.overview else None
    main = _main(_asked_for(result))
    findings = []
    for number, hit in enumerate(main):
        if hit.unit.kind in TEXT_KINDS:
            findings.append(Finding(hit))
            continue
        limit = 0 if number else USES_ASKED if asks_uses else USES
        uses, total = find_uses(tables, hit.unit, limit)
        findings.append(Finding(hit, uses, total))
    shown = {hit.unit.id for hit in main}
    others = [hit for hit in result.units if hit.unit.id not in shown][:OTHERS]
    named = {hit.unit.path for hit in (*main, *others)}
    more_files = [file.best for file in result.files if file.path not in named][:MORE_FILES]
    held = [_held(hit.unit, result.query) for hit in result.units]
    total_words = len(result.query.words)
    best = max((len(words) for words in held[:SHOWN]), default=0)
    return QuotedEvidence(
        question=result.question,
        query=result.query,
        findings=tuple(findings),
        others=tuple(others),
        more_files=tuple(more_files),
        missing=tuple(w for w in result.query.words if not any(w in words for words in held)),
        weak=not result.units or (total_words > 0 and best / total_words < WEAK_COVERAGE),
        asks_uses=asks_uses,
        overview=overview,
        coverage=result.coverage,
        channels=result.channels,
        changed=frozenset(result.changed),
    )


def find_uses(tables: Tables, unit: Unit, limit: int) -> tuple[tuple[Use, ...], int]:
    """Up to `limit` places that use `unit`, best first, and how many there are in all."""
    found = usages(tables, unit, limit=max(2 * limit, 1))
    # Two uses on one line are one place to read.
    lines: dict[tuple[str, int], UsageSite] = {}
    for use in found.references:
        lines.setdefault((use.reference.path, use.reference.line), use)
    kept = list(lines.values())[:limit]
    around = {u.id: u for u in tables.by_ids([use.reference.unit_id for use in kept])}
    uses = []
    for use in kept:
        reference = use.reference
        inside = around.get(reference.unit_id)
        name = inside.qualified_name if inside and inside.kind not in TEXT_KINDS else ""
        uses.append(Use(reference.path, reference.line, name, use.confidence, use.reason))
    return tuple(uses), found.total


def _asked_for(result: SearchResult) -> Sequence[Hit]:
    """All hits; of a question that is a name, when it is defined, those of that name."""
    hits = result.units
    if result.query.symbol_like and hits and "symbol" in hits[0].channels:
        return [hit for hit in hits if "symbol" in hit.channels]
    return hits


def _main(hits: Sequence[Hit]) -> list[Hit]:
    """The first hits that score near the best, none inside another that is shown."""
    main: list[Hit] = []
    for hit in hits[: 2 * SHOWN]:
        if len(main) == SHOWN or hit.score < SHOWN_SCORE * hits[0].score:
            break
        if main and hit.unit.kind == "chunk" and hit.unit.start_line == hit.unit.end_line:
            continue  # a line between definitions; it is named below
        if not any(_overlap(hit.unit, other.unit) for other in main):
            main.append(hit)
    return main


def _overlap(one: Unit, other: Unit) -> bool:
    inside = one.path == other.path and (
        one.start_line <= other.end_line and other.start_line <= one.end_line
    )
    # A member beside its long class is no repetition: of the class only the head is shown.
    return inside and (one.is_method == other.is_method)


def _held(unit: Unit, query: Query) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in query.words if any(form in text for form in written_forms(w)))


def _span(unit: Unit) -> ShownLines:
    return ShownLines(unit.path, unit.start_line, unit.end_line, unit.qualified_name)
