"""What an answer without a language model is made from: the best definitions of a search, or what
a question of its own kind asks for, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from codeqa.asked import asks, line_pattern, word_list
from codeqa.code.calls import Walk
from codeqa.code.descriptions import cite_unit, overview_of
from codeqa.quoted.beside import callers_line, followed, use_lines, values_named
from codeqa.quoted.direct import (
    of_kind,
    place_asked,
    tests_section,
    traceback_section,
    value_line,
    walk_section,
)
from codeqa.quoted.hits import held_words, repeats
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.search.result import SearchResult
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.markdown import CITATION, cite, escape, joined
from codeqa.text.tokens import name_key, search_tokens, stem, variants, words
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

CONSIDERED, FURTHER = 20, 4
"""Best units of the search that an answer is made from, and further ones that are named."""

SHOWN = 3

HOLDING, LOOKED = 2, 20
"""Places named that hold a word which nothing shown holds, of as many looked at: the best two may
hold its parts alone."""

WEAK_COVERAGE, MOST_WEIGHED = 0.4, 10
"""When no hit holds at least this part of the question's words, of so many at most, the evidence is
weak."""


@dataclass(frozen=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
    look_up: Callable[[], str] = str
    """Gives what is told below its code."""

    @cached_property
    def below(self) -> str:
        """What is told below its code: constants that it names, and where it is used. Looked up
        when the answer comes to it, which takes longer than all before."""
        return self.look_up()


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
    """What is named, best first."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    absent: str = ""
    """What is said of those that are nowhere."""
    elsewhere: str = ""
    """Where the others stand, items of a list."""
    weak: bool = False
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; nothing was searched when this is what there is."""
    chosen: bool = False
    """`cached` is what the user chose of what was found, in that order."""
    whole_code: bool = False
    """All code of what is shown, not the lines that matter."""
    coverage: str = ""
    changed: frozenset[str] = frozenset()

    @property
    def cited(self) -> str:
        """Markdown that cites all that may be cited."""
        hits = [*(one.hit for one in self.findings), *self.others]
        told = [self.lead, self.elsewhere, *(one.below for one in self.findings)]
        chunks = (cite(chunk.path, chunk.start_line, chunk.end_line) for chunk in self.cached)
        return joined([*told, *(cite_unit(hit.unit) for hit in hits), *chunks])


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """What a question of its own kind asks for."""

    lead: str
    units: Sequence[Unit] = ()
    """The definitions to show below it, in place of those that were found."""
    further: int = 0
    """Places named below."""


def gather_evidence(
    tables: Tables, result: SearchResult, walk: Walk | None = None
) -> QuotedEvidence:
    """Choose from `result` what is shown, and look up what is told beside it; what a question of
    its own kind asks for, or `walk` led to, stands in front."""
    result = result.head(CONSIDERED)
    query, hits = result.query, _hits(tables, result)
    looked_up = None if walk and walk.ends else _looked_up(tables, result, hits)
    lead = looked_up.lead if looked_up else walk_section(walk) if walk else ""
    main = _main([Hit(unit, 1.0) for unit in looked_up.units] if looked_up else hits, query)
    main[1:1] = followed(tables, main, query)

    # How much of the question was found.
    held = [held_words(hit.unit, query.words) for hit in result.units]
    best = max((len(one) for one in held[:SHOWN]), default=0)
    enough = best >= WEAK_COVERAGE * min(len(query.words), MOST_WEIGHED)
    names = {name_key(hit.unit.name) for hit in main} & set(map(name_key, query.names))
    weak = not (walk or names or (result.units and enough))
    text = "\n".join(hit.unit.source_code.lower() for hit in result.units)
    lacking = set(query.words).difference(word_list("asking"), *held)
    missing = tuple(w for w in query.words if w in lacking and stem(w) not in text)

    further = FURTHER
    if looked_up:
        further = 0 if weak and not looked_up.units else looked_up.further
    places = hits if len(hits) == len(result.units) else result.units
    others = [hit for hit in places if not (repeats(hit.unit, main) or _cites(lead, hit.unit))][
        :further
    ]
    if not lead and query.words:
        lead = value_line(query, hits)
    absent, elsewhere = ("", "") if lead or walk else _absent(tables, query, missing)
    return QuotedEvidence(
        query=query,
        lead=lead,
        findings=tuple(
            Finding(hit, partial(_below, tables, hit.unit, first=hit is main[0])) for hit in main
        ),
        others=tuple(others),
        missing=missing,
        absent=absent,
        elsewhere=elsewhere,
        weak=weak,
        coverage=result.coverage,
        changed=frozenset(result.changed),
    )


def _hits(tables: Tables, result: SearchResult) -> tuple[Hit, ...]:
    """Return the hits that an answer is made from, best first."""
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        return tuple(hit for hit in hits if "symbol" in hit.channels)
    if query.symbol_like:
        return hits
    # Every question may say what the repository is called.
    own_name = name_key(tables.location.name)
    return tuple(sorted(hits, key=lambda hit: name_key(hit.unit.name) == own_name))


def _looked_up(tables: Tables, result: SearchResult, hits: Sequence[Hit]) -> _LookedUp | None:
    """Return what a question of its own kind asks for, None for any other."""
    query = result.query
    place = None if query.traceback else asks("place", query.text)
    if place:
        lead, units = place_asked(tables, place)
        return _LookedUp(lead, units) if lead else None
    if lead := traceback_section(tables, result) or tests_section(tables, result):
        return _LookedUp(lead, further=SHOWN)
    named = bool(hits) and "symbol" in hits[0].channels
    if query.overview and not named and (lead := overview_of(tables)):
        return _LookedUp(lead)
    lead, units = of_kind(tables, query)
    # What lists all of it needs no code below.
    return _LookedUp(lead, units, 0 if units else FURTHER) if lead else None


def _below(tables: Tables, unit: Unit, *, first: bool) -> str:
    """Say what stands below the code of a unit."""
    if unit.kind in TEXT_KINDS:
        return ""
    told = [values_named(tables, unit)]
    if first:
        told.append((callers_line if unit.is_method else use_lines)(tables, unit))
    return joined(told)


def _main(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The best of each side of a difference, then the first hits, none inside another that is
    shown. Tests only where there is nothing else."""
    main = list({hit.unit.id: hit for hit in _sides(hits, query)}.values())
    source = list(hits)
    if "test" not in query.roles:
        in_tests = line_pattern("in_tests")
        source = [
            h
            for h in hits
            if h.unit.role != "test"
            and not in_tests.search(f"{h.unit.path}/{h.unit.qualified_name}")
        ] or source
    source.sort(key=lambda hit: hit.unit.kind == "config" and "config" not in query.words)
    for hit in source:
        says = hit is hits[0] or not _only_imports(hit.unit)
        if len(main) < SHOWN and says and not repeats(hit.unit, main):
            main.append(hit)
    return main


def _only_imports(unit: Unit) -> bool:
    """Tell whether it is the head of a file that gives no name a value and says nothing."""
    values = "=" in unit.source_code.replace("= require(", "")
    return unit.kind == "module" and not (values or unit.doc_comment)


def _sides(hits: Sequence[Hit], query: Query) -> Iterator[Hit]:
    """Return the hit that is called most like each side of "the difference between A and B" or,
    with names of code, of "A or B"."""
    found = asks("sides", query.text)
    either = query.names if len(query.names) == 2 and " or " in query.text else ()
    sides = [set(search_tokens(side)) for side in (found.groups() if found else either) if side]
    named = [(set(search_tokens(hit.unit.qualified_name)), hit) for hit in hits]
    for side, other in zip(sides, reversed(sides), strict=True):
        worth = [len(own & side - other) - len(own & other - side) for own, _ in named]
        if max(worth, default=0) > 0:
            yield named[worth.index(max(worth))][1]


def _absent(tables: Tables, query: Query, missing: Sequence[str]) -> tuple[str, str]:
    """What is said of words that are nowhere, and where those stand that only other code holds: who
    asks "how does it use Redis?" must learn that what is shown has nothing of it. Words in small
    letters are mostly "come" and "decide", unless they are half of the question."""
    written = {word.lower(): word for word in words(query.text)[1:]}
    half = 2 * len(missing) >= len(query.words) and bool(
        QUESTION_WORDS & {word.lower() for word in words(query.text)}
    )
    nowhere, elsewhere = list[str](), list[str]()
    for word in missing:
        name = written.get(word, word)
        if name == word and not half:
            continue
        tokens = " ".join((*search_tokens(word), *variants(word)))
        found = tables.best([TextSearch(table, tokens, LOOKED) for table in UNIT_TABLES])
        units = [unit for hits in found for unit, _ in hits if held_words(unit, (word,))]
        if units:
            places = ", ".join(map(cite_unit, units[:HOLDING]))
            elsewhere.append(f"- “{escape(name)}” stands in {places}")
        else:
            nowhere.append(f"**Nothing in this code or its documents says “{escape(name)}”.**")
    return " ".join(nowhere), "\n".join(elsewhere)


def _cites(told: str, unit: Unit) -> bool:
    """Tell whether `told` cites a place that begins in `unit`."""
    starts = [int(start) for path, start, _ in CITATION.findall(told) if path == unit.path]
    return any(unit.start_line <= start <= unit.end_line for start in starts)
