"""What an answer is made of: the hits that matter, where they are used, what is missing; or the
list or the overview that a question of that kind asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.code.calls import Walk
from codeqa.code.descriptions import cite_unit
from codeqa.quoted.edges import asks_how, calls_section, uses_section, walk_section
from codeqa.quoted.listing import answer_of_own_kind
from codeqa.search import Query, SearchResult
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.markdown import CITATION, cite, escape, joined
from codeqa.text.tokens import search_tokens, variants, words, written_forms
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

SHOWN = 3
"""Units shown in full; more would be a list, not an answer."""
SHOWN_SCORE = 0.7
"""A unit is shown in full when it scores at least this part of the best."""
OTHERS = 5
HOLDING, LOOKED = 2, 20
"""Places named that hold a word which nothing shown holds, of as many looked at: the best two may
hold its parts alone."""
MORE_FILES = 3
"""Further units, and best units of further files, named in one line each."""
WEAK_COVERAGE = 0.4
"""When no hit holds at least this part of the question's words, the evidence is weak."""

_ASKS_USES = re.compile(
    r"\b(?:who|what|which|where)\b.*\b(?:calls?|called|uses?|used|invoke[sd]?|references?)\b"
    r"|\b(?:callers?|usages?|references?|uses) (?:of|to)\b|\bcall sites?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
    calls: str = ""
    """What it calls, when the question is how something works."""
    uses: str = ""
    """Where it is used."""


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that a generator may draw on; what is told is Markdown that cites its places."""

    query: Query
    lead: str = ""
    """What stands before all else: the answer to a question of its own kind, or where the edges
    lead that the question asks for."""
    counted: bool = False
    """`lead` is all that there is of what was asked for, counted in the index or in git."""
    whole: bool = False
    """And it is the whole answer: no model is needed."""
    findings: tuple[Finding, ...] = ()
    others: tuple[Hit, ...] = ()
    """What is named in a line each: further units, then the best of further files."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    absent: str = ""
    """What is said of those that are nowhere, and of names that only other code holds."""
    weak: bool = False
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; nothing was searched when this is what there is."""
    chosen: bool = False
    """`cached` is what the user chose of what was found, in that order."""
    coverage: str = ""
    channels: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()

    @property
    def cited(self) -> str:
        """Markdown that cites all that may be cited."""
        hits = [*(one.hit for one in self.findings), *self.others]
        told = [told for one in self.findings for told in (one.calls, one.uses)]
        chunks = (cite(chunk.path, chunk.start_line, chunk.end_line) for chunk in self.cached)
        return joined([self.lead, self.absent, *told, *(cite_unit(h.unit) for h in hits), *chunks])


def gather_evidence(
    tables: Tables, result: SearchResult, walk: Walk | None = None
) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used; what `walk` led to
    stands in front of it."""
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        hits = tuple(hit for hit in hits if "symbol" in hit.channels)
    asks_uses = _ASKS_USES.search(query.text) is not None
    main = _main(hits)
    own, alone = ("", False) if walk and walk.found else answer_of_own_kind(tables, result)
    lead = ""
    if walk:
        lead, asks_uses = walk_section(walk), False
    shown = {hit.unit.id for hit in main}
    others = [hit for hit in result.units if hit.unit.id not in shown][:OTHERS]
    files = {hit.unit.path for hit in (*main, *others)}
    others += [file.best for file in result.files if file.path not in files][:MORE_FILES]
    held = [_held(hit.unit, query.words) for hit in result.units]
    best = max((len(one) for one in held[:SHOWN]), default=0)
    weak = not walk and (not result.units or best < WEAK_COVERAGE * len(query.words))
    if own:
        lead = own
        others = [] if alone or weak else [h for h in (*main, *others) if not _cites(own, h.unit)]
        main = []

    missing = tuple(w for w in query.words if not any(w in one for one in held))

    def finding(hit: Hit) -> Finding:
        first = hit is main[0]
        if hit.unit.kind in TEXT_KINDS:
            return Finding(hit)
        asked = first and asks_uses
        uses = uses_section(tables, hit.unit, listed=first, asked=asked)
        flow = first and not walk and asks_how(query.text)
        return Finding(hit, calls_section(tables, hit.unit) if flow else "", uses)

    return QuotedEvidence(
        query=query,
        lead=lead,
        findings=tuple(map(finding, main)),
        others=tuple(others),
        missing=missing,
        absent="" if lead or walk else _absent(tables, query, missing),
        weak=weak,
        coverage=result.coverage,
        channels=result.channels,
        changed=frozenset(result.changed),
    )


def _absent(tables: Tables, query: Query, missing: Sequence[str]) -> str:
    """Who asks "how does it use Redis?" must learn that what is shown has nothing of it. Words in
    small letters are mostly "come" and "decide", unless they are half of the question."""
    written = {word.lower(): word for word in words(query.text)[1:]}
    half = 2 * len(missing) >= len(query.words)
    said: list[str] = []
    for word in missing:
        name = written.get(word, word)
        if name == word and not half:
            continue
        tokens = " ".join((*search_tokens(word), *variants(word)))
        found = tables.best([TextSearch(table, tokens, LOOKED) for table in UNIT_TABLES])
        units = [unit for hits in found for unit, _ in hits if _held(unit, (word,))]
        text = f"**Nothing in this code or its documents says “{escape(name)}”.**"
        if units:
            places = ", ".join(map(cite_unit, units[:HOLDING]))
            text = f"**What was found does not say “{escape(name)}”.** It stands in {places}."
        said.append(text)
    return " ".join(said)


def _cites(told: str, unit: Unit) -> bool:
    """Whether `told` cites a place that begins in `unit`."""
    starts = [int(start) for path, start, _ in CITATION.findall(told) if path == unit.path]
    return any(unit.start_line <= start <= unit.end_line for start in starts)


def _main(hits: Sequence[Hit]) -> list[Hit]:
    """The first hits that score near the best, none inside another that is shown."""
    main: list[Hit] = []
    for hit in hits[: 2 * SHOWN]:
        if len(main) == SHOWN or not _is_near(hit, hits):
            break
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


def _held(unit: Unit, asked: Iterable[str]) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in asked if any(form in text for form in written_forms(w)))
