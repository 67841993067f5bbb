"""What an answer is made of: the hits that matter, where they are used, what is missing; or the
list or the overview that a question of that kind asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.extractive.call_path import CallPath, asks_how, find_path, is_thin
from codeqa.extractive.listing import Listing, listing_of
from codeqa.extractive.overview import Overview, overview_of
from codeqa.extractive.uses import Uses, find_uses
from codeqa.extractive.walk import walk_spans
from codeqa.search import Query, SearchResult, written_forms
from codeqa.store import Tables
from codeqa.symbols.relations import Walk
from codeqa.text.citation_format import ShownLines
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

SHOWN = 3
"""Units shown in full; more would be a list, not an answer."""
SHOWN_SCORE = 0.7
"""A unit is shown in full when it scores at least this part of the best."""
OTHERS = 5
MORE_FILES = 3
"""Further units, and best units of further files, named in one line each."""
WEAK_COVERAGE = 0.4
"""When no hit holds at least this part of the question's words, the evidence is weak."""

_ASKS_USES = re.compile(
    r"\b(?:who|what|which|where)\b.*\b(?:calls?|called|uses?|used|invoke[sd]?|references?)\b"
    r"|\b(?:callers?|usages?|references?|uses) (?:of|to)\b|\bcall sites?\b",
    re.IGNORECASE,
)
NO_USES = Uses()


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full, with the places that use it."""

    hit: Hit
    uses: Uses = NO_USES


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that a generator may draw on."""

    query: Query
    findings: tuple[Finding, ...] = ()
    others: tuple[Hit, ...] = ()
    """What is named in a line each: further units, then the best of further files."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    weak: bool = False
    asks_uses: bool = False
    overview: Overview | None = None
    listing: Listing | None = None
    """Places that a question of its own kind asks for."""
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; nothing was searched when this is what there is."""
    chosen: bool = False
    """`cached` is what the user chose of what was found, in that order."""
    coverage: str = ""
    channels: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    path: CallPath | None = None
    """Of the first finding, when the question is how something works."""
    walk: Walk | None = None
    """Where the edges lead that the question asks for."""

    def spans(self) -> list[ShownLines]:
        """Every line that may be cited."""
        units = [hit.unit for hit in (*(one.hit for one in self.findings), *self.others)]
        units += self.path.units() if self.path else []
        if self.overview:
            units += self.overview.units()
        spans = [ShownLines(u.path, u.start_line, u.end_line, u.qualified_name) for u in units]
        spans += [lines for lines, _ in self.listing.places] if self.listing else []
        spans += [span for finding in self.findings for span in finding.uses.spans()]
        spans += walk_spans(self.walk) if self.walk else []
        return spans + [ShownLines(c.path, c.start_line, c.end_line) for c in self.cached]


def gather_evidence(
    tables: Tables, result: SearchResult, further: Sequence[Hit] = (), walk: Walk | None = None
) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used.

    What explains a flow may be among `further` hits, behind those of `result`; what `walk` led to
    stands in front of it.
    """
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        hits = tuple(hit for hit in hits if "symbol" in hit.channels)
    asks_uses = _ASKS_USES.search(query.text) is not None
    main = _main(hits)
    path = None
    thin = bool(main) and main[0].unit.is_method and is_thin(main[0].unit)
    flow = asks_how(query.text) or (thin and not asks_uses and not query.symbol_like)
    if flow and not walk:
        path = find_path(tables, query, (*hits, *further))
        named = {unit.id for unit in path.units()} if path else set()
        # What the path leads through before what only has the words, wrappers and stubs last.
        near = [h for h in hits if h in main or (h.unit.id in named and _is_near(h, hits))]
        near.sort(key=lambda hit: (hit.unit.id not in named, is_thin(hit.unit)))
        first = [path.leader] if path else []
        main = [*first, *(hit for hit in near if hit.unit.id not in _ids(first))][:SHOWN]
    if walk and walk.asks_callers:
        start = {unit.id for unit in walk.start}
        main = [*(hit for hit in hits if hit.unit.id in start), *main]
        main = list({hit.unit.id: hit for hit in main}.values())[:SHOWN]
    elif walk:
        asks_uses = False
    # Who asks for the uses of a bare name asks for all that is called so.
    every = asks_uses and not query.qualified

    def finding(hit: Hit) -> Finding:
        if hit.unit.kind in TEXT_KINDS:
            return Finding(hit)
        first = hit is main[0]
        return Finding(hit, find_uses(tables, hit, listed=first, asked=asks_uses, namesakes=every))

    findings = map(finding, main)
    shown = _ids(main) | ({unit.id for unit in path.units()} if path else set())
    others = [hit for hit in result.units if hit.unit.id not in shown][:OTHERS]
    named = {hit.unit.path for hit in (*main, *others)}
    others += [file.best for file in result.files if file.path not in named][:MORE_FILES]
    held = [_held(hit.unit, query) for hit in result.units]
    best = max((len(words) for words in held[:SHOWN]), default=0)
    return QuotedEvidence(
        query=query,
        findings=tuple(findings),
        others=tuple(others),
        missing=tuple(w for w in query.words if not any(w in words for words in held)),
        weak=not walk and (not result.units or best < WEAK_COVERAGE * len(query.words)),
        asks_uses=asks_uses,
        overview=overview_of(tables) if query.overview else None,
        listing=None if walk and walk.found else listing_of(tables, result),
        coverage=result.coverage,
        channels=result.channels,
        changed=frozenset(result.changed),
        path=path,
        walk=None if walk and walk.asks_callers else walk,
    )


def _ids(hits: Iterable[Hit]) -> set[str]:
    return {hit.unit.id for hit in hits}


def _main(hits: Sequence[Hit]) -> list[Hit]:
    """The first hits that score near the best, none inside another that is shown."""
    main: list[Hit] = []
    for hit in hits[: 2 * SHOWN]:
        if len(main) == SHOWN or not _is_near(hit, hits):
            break
        if main and hit.unit.kind == "chunk" and hit.unit.start_line == hit.unit.end_line:
            continue  # a line between definitions; it is named below
        if not any(_overlap(hit.unit, other.unit) for other in main):
            main.append(hit)
    return main


def _is_near(hit: Hit, hits: Sequence[Hit]) -> bool:
    return hit.score >= SHOWN_SCORE * hits[0].score


def _overlap(one: Unit, other: Unit) -> bool:
    inside = one.path == other.path and (
        one.start_line <= other.end_line and other.start_line <= one.end_line
    )
    # A member beside its long class is no repetition: of the class only the head is shown.
    return inside and (one.is_method == other.is_method)


def _held(unit: Unit, query: Query) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in query.words if any(form in text for form in written_forms(w)))
