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
class Finding:
    """A unit that is shown in full, with the places that use it."""

    hit: Hit
    uses: tuple[tuple[UsageSite, str], ...] = ()
    """Each with the name of the unit around it, '' for none."""
    total: int = 0


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that a generator may draw on."""

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
        units = [hit.unit for hit in hits] + (self.overview.units() if self.overview else [])
        spans = [ShownLines(u.path, u.start_line, u.end_line, u.qualified_name) for u in units]
        for finding in self.findings:
            for site, inside in finding.uses:
                place = site.reference
                spans.append(ShownLines(place.path, place.line, place.line, inside))
        return spans + [ShownLines(c.path, c.start_line, c.end_line) for c in self.cached]


def gather_evidence(tables: Tables, result: SearchResult) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used."""
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        hits = tuple(hit for hit in hits if "symbol" in hit.channels)
    asks_uses = _ASKS_USES.search(query.text) is not None
    main = _main(hits)
    findings = []
    for number, hit in enumerate(main):
        limit = 0 if number else USES_ASKED if asks_uses else USES
        findings.append(_finding(tables, hit, limit))
    shown = {hit.unit.id for hit in main}
    others = [hit for hit in result.units if hit.unit.id not in shown][:OTHERS]
    named = {hit.unit.path for hit in (*main, *others)}
    more_files = [file.best for file in result.files if file.path not in named][:MORE_FILES]
    held = [_held(hit.unit, query) for hit in result.units]
    best = max((len(words) for words in held[:SHOWN]), default=0)
    return QuotedEvidence(
        query=query,
        findings=tuple(findings),
        others=tuple(others),
        more_files=tuple(more_files),
        missing=tuple(w for w in query.words if not any(w in words for words in held)),
        weak=not result.units or best < WEAK_COVERAGE * len(query.words),
        asks_uses=asks_uses,
        overview=overview_of(tables) if query.overview else None,
        coverage=result.coverage,
        channels=result.channels,
        changed=frozenset(result.changed),
    )


def _finding(tables: Tables, hit: Hit, limit: int) -> Finding:
    """`hit` with up to `limit` places that use it, best first, and how many there are in all."""
    if hit.unit.kind in TEXT_KINDS:
        return Finding(hit)
    found = usages(tables, hit.unit, limit=max(2 * limit, 1))
    # Two uses on one line are one place to read.
    lines: dict[tuple[str, int], UsageSite] = {}
    for site in found.references:
        lines.setdefault((site.reference.path, site.reference.line), site)
    kept = list(lines.values())[:limit]
    around = {
        unit.id: unit.qualified_name
        for unit in tables.by_ids([site.reference.unit_id for site in kept])
        if unit.kind not in TEXT_KINDS
    }
    uses = tuple((site, around.get(site.reference.unit_id, "")) for site in kept)
    return Finding(hit, uses, found.total)


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
