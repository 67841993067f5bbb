"""Gather what an answer without a language model is made from.

That is the best definitions of a search, or what a question of a special kind asks for, and the
words that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from codeqa.asked import asks, line_pattern, word_list
from codeqa.code.calls import RelationWalk
from codeqa.code.descriptions import cite_unit, overview_of
from codeqa.quoted.beside import callers_line, followed, use_lines, values_named
from codeqa.quoted.direct import (
    of_kind,
    place_named,
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

CONSIDERED, MOST_FURTHER = 20, 4
"""Best units of the search that an answer is made from, and further ones that are named."""

MOST_QUOTED = 3

HOLDING, LOOKED = 2, 20
"""Places named that hold a word which no hit holds, and hits that are read for them: the best two
may hold only its parts."""

WEAK_COVERAGE, MOST_WEIGHED = 0.4, 10
"""The evidence is weak when no hit holds this part of the question's words, of which at most so
many count."""

_QUANTITY = re.compile(r"\bhow (many|much)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
    look_up: Callable[[], str] = str
    """Returns the text of `below`."""

    @cached_property
    def below(self) -> str:
        """The text below its code: constants that it names, and where it is used.

        It is looked up when the answer comes to it, for it takes longer than all before.
        """
        return self.look_up()


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that an answer without a model may say; texts are Markdown that cites its places."""

    query: Query
    lead: str = ""
    """The text before all else: the answer to a question of a special kind, or where the edges
    lead that the question asks for."""
    counted: bool = False
    """`lead` is complete, counted in the index or in git."""
    is_whole_answer: bool = False
    """`lead` is the whole answer: no model is needed."""
    findings: tuple[Finding, ...] = ()
    others: tuple[Hit, ...] = ()
    """Hits that are only named, best first."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    absent: str = ""
    """A sentence for each of these that nothing in the index holds."""
    elsewhere: str = ""
    """Places of the other hits, as items of a list."""
    weak: bool = False
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; then nothing was searched."""
    chosen: bool = False
    """`cached` is what the user chose of the context, in that order."""
    whole_code: bool = False
    """Show all code of the findings, not only the lines that matter."""
    coverage: str = ""
    """A sentence: how much of the repository was searched."""
    changed: frozenset[str] = frozenset()
    """Paths of files that have changed since they were indexed."""

    @property
    def cited(self) -> str:
        """Markdown that cites all that may be cited."""
        texts, citations = [self.lead, self.elsewhere], list[str]()
        for finding in self.findings:
            texts.append(finding.below)
            citations.append(cite_unit(finding.hit.unit))
        citations += [cite_unit(hit.unit) for hit in self.others]
        citations += [cite(chunk.path, chunk.start_line, chunk.end_line) for chunk in self.cached]
        return joined(texts + citations)


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """The answer to a question of a special kind."""

    lead: str
    units: Sequence[Unit] = ()
    """The definitions to show below it, in place of the hits."""
    further: int = 0
    """Hits to name below."""


def gather_evidence(
    tables: Tables, result: SearchResult, walk: RelationWalk | None = None
) -> QuotedEvidence:
    """Choose from `result` what is shown, and look up what stands beside it.

    The answer to a question of a special kind, or where `walk` leads, comes first.
    """
    result = result.head(CONSIDERED)
    query, hits = result.query, _hits(tables, result)
    looked_up = None if walk and walk.ends else _looked_up(tables, result, hits)
    lead = looked_up.lead if looked_up else walk_section(walk) if walk else ""
    main = _main([Hit(unit, 1.0) for unit in looked_up.units] if looked_up else hits, query)
    main[1:1] = followed(tables, main, query)

    enough, missing = _coverage(result)
    names = {name_key(hit.unit.name) for hit in main} & set(map(name_key, query.names))
    weak = not (walk or names or enough)
    further = MOST_FURTHER
    if looked_up:
        further = 0 if weak and not looked_up.units else looked_up.further
    candidates = hits if len(hits) == len(result.units) else result.units
    others = [hit for hit in candidates if not (repeats(hit.unit, main) or _cites(lead, hit.unit))]
    if not lead and query.words:
        lead = value_line(query, hits)
    absent, elsewhere = ("", "") if lead or walk else _absent(tables, query, missing)
    findings = [Finding(hit, partial(_below, tables, hit.unit, hit is main[0])) for hit in main]
    return QuotedEvidence(
        query, lead, findings=tuple(findings), others=tuple(others[:further]), missing=missing,
        absent=absent, elsewhere=elsewhere, weak=weak, coverage=result.coverage,
        changed=frozenset(result.changed),
    )  # fmt: skip


def _coverage(result: SearchResult) -> tuple[bool, tuple[str, ...]]:
    """Return whether the first hits hold enough of the question's words, and those none holds."""
    words = result.query.words
    present = [held_words(hit.unit, words) for hit in result.units]
    best = max(map(len, present[:MOST_QUOTED]), default=0)
    enough = best >= WEAK_COVERAGE * min(len(words), MOST_WEIGHED)
    text = "\n".join(hit.unit.source_code.lower() for hit in result.units)
    lacking = set(words).difference(word_list("asking"), *present)
    missing = tuple(word for word in words if word in lacking and stem(word) not in text)
    return bool(present) and enough, missing


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
    """Return the answer to a question of a special kind, None for any other."""
    query = result.query
    place = None if query.traceback else asks("place", query.text)
    if place:
        lead, units = place_named(tables, place)
        return _LookedUp(lead, units) if lead else None
    if lead := traceback_section(tables, result) or tests_section(tables, result):
        return _LookedUp(lead, further=MOST_QUOTED)
    named = bool(hits) and "symbol" in hits[0].channels
    if query.overview and not named and (lead := overview_of(tables)):
        return _LookedUp(lead)
    lead, units = of_kind(tables, query)
    # What lists all of it needs no code below.
    return _LookedUp(lead, units, 0 if units else MOST_FURTHER) if lead else None


def _below(tables: Tables, unit: Unit, is_first: bool) -> str:
    """Return the text below the code of a unit."""
    if unit.kind in TEXT_KINDS:
        return ""
    texts = [values_named(tables, unit)]
    if is_first:
        texts.append((callers_line if unit.is_method else use_lines)(tables, unit))
    return joined(texts)


def _main(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Return the best hit for each side of a difference, then the first hits.

    None lies inside another one. Tests come only if there is nothing else.
    """
    main = list({hit.unit.id: hit for hit in _sides(hits, query)}.values())
    source = list(hits)
    if "test" not in query.roles:
        source = [hit for hit in hits if not _is_of_tests(hit.unit)] or source
    source.sort(key=lambda hit: hit.unit.kind == "config" and "config" not in query.words)
    for hit in source:
        says = hit is hits[0] or not _only_imports(hit.unit)
        if len(main) < MOST_QUOTED and says and not repeats(hit.unit, main):
            main.append(hit)
    return main


def _is_of_tests(unit: Unit) -> bool:
    text = f"{unit.path}/{unit.qualified_name}"
    return unit.role == "test" or line_pattern("in_tests").search(text) is not None


def _only_imports(unit: Unit) -> bool:
    """Return whether it is the head of a file that gives no name a value and says nothing."""
    values = "=" in unit.source_code.replace("= require(", "")
    return unit.kind == "module" and not (values or unit.doc_comment)


def _sides(hits: Sequence[Hit], query: Query) -> Iterator[Hit]:
    """Yield the hit whose name is most like each side of "the difference between A and B".

    With names of code "A or B" counts too.
    """
    texts: Sequence[str | None] = ()
    if match := asks("sides", query.text):
        texts = match.groups()
    elif len(query.names) == 2 and " or " in query.text:
        texts = query.names
    sides = [set(search_tokens(text)) for text in texts if text]
    names = [set(search_tokens(hit.unit.qualified_name)) for hit in hits]
    for side, other in zip(sides, reversed(sides), strict=True):
        worth = [len(name & side - other) - len(name & other - side) for name in names]
        if max(worth, default=0) > 0:
            yield hits[worth.index(max(worth))]


def _absent(tables: Tables, query: Query, missing: Sequence[str]) -> tuple[str, str]:
    """Say which of the words `missing` are nowhere, and where the others stand.

    The user who asks "how does it use Redis?" must learn that nothing shown is about it. Words in
    small letters are mostly "come" and "decide", unless they are half of the question.
    """
    spelling = {word.lower(): word for word in words(query.text)[1:]}
    is_question = not QUESTION_WORDS.isdisjoint(map(str.lower, words(query.text)))
    half = is_question and 2 * len(missing) >= len(query.words)
    nowhere, elsewhere = list[str](), list[str]()
    if counts := _QUANTITY.search(query.text):
        nowhere.append("**Without a language model this is not counted.**")
    for word in missing:
        name = spelling.get(word, word)
        if counts and word == counts[1].lower():
            continue
        if name == word and not half:
            continue
        tokens = " ".join(search_tokens(word) + list(variants(word)))
        units: list[Unit] = []
        for hits in tables.best([TextSearch(table, tokens, LOOKED) for table in UNIT_TABLES]):
            units += [unit for unit, _ in hits if held_words(unit, (word,))]
        if units:
            places = ", ".join(map(cite_unit, units[:HOLDING]))
            elsewhere.append(f"- “{escape(name)}” appears in {places}")
        else:
            nowhere.append(f"**“{escape(name)}” appears nowhere in this code or its documents.**")
    return " ".join(nowhere), "\n".join(elsewhere)


def _cites(text: str, unit: Unit) -> bool:
    """Return whether `text` cites a place that begins in `unit`."""
    starts = [int(start) for path, start, _ in CITATION.findall(text) if path == unit.path]
    return any(unit.start_line <= start <= unit.end_line for start in starts)
