"""What an answer without a model is made of: the hits that matter, what they call, where they are
used and what is missing; or what a question of its own kind asks for: a pasted traceback, which
tests, an overview, where the edges lead from what the conversation found."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from codeqa.code.calls import Call, Walk, callees, tests_of
from codeqa.code.counted import place_item
from codeqa.code.descriptions import bullet_list, cite_unit, first_sentence, overview_of
from codeqa.code.tools.edges import use_places
from codeqa.code.usages import members, usages
from codeqa.repository.classify import role_of
from codeqa.search.channels import gather
from codeqa.search.hybrid import SearchResult
from codeqa.search.mentions import frames_here
from codeqa.search.query import Query, says_something, with_words
from codeqa.search.ranking import rank
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text import counted
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import CITATION, cite, code_block, code_span, escape, joined
from codeqa.text.tokens import search_tokens, variants, words, written_forms
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS, Chunk, Hit, Unit

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

CALLS = 8
"""Definitions listed that one calls."""
TRIVIAL_LINES = 3
"""A callee so short and without a doc comment is an accessor, and not listed."""
SIGNATURE = 80
"""Characters of a signature that stands for a doc comment."""
USES, USES_IN_TESTS = 8, 3
"""Places of use listed: in all, and in tests unless there is little else."""

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""
FRAMES = 5
"""Frames whose lines are shown; the others are named."""
TESTS = 20
NEAR_BEST = 0.65
"""A test is listed that scores at least this part of the best."""
LONGEST_LINE = 160

_ASKS_HOW = re.compile(  # a course of events rather than a place
    r"\b(?:how (?!many|much|often|long|old)|what happens|what if|why\b|(?:which|what) order)",
    re.IGNORECASE,
)
_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}
_ASKS_TESTS = re.compile(
    r"^(?:which|what|any|list|show|find|where are|are there|is there)\W+(?:\w+\W+){0,3}?tests?\b"
    r".*\b(?:cover\w*|exercis\w+|check\w*|verif\w+|for|of|use)\b"
    r"|^(?:unit |integration )?tests (?:for|of)\b|^(?:and )?(?:where|how|is|are)\b.*\btested\b",
    re.IGNORECASE,
)
_TESTING = re.compile(
    r"\b(?:unit |integration )?(?:tests?|tested|cover\w*|exercis\w+|checks?|verif\w+)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
    calls: str = ""
    """What it calls, when the question is how something works."""
    uses: str = ""
    """Where it is used."""
    members: tuple[str, ...] = ()
    """Names of what a class has."""


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
    main = _main(hits)
    lead, alone, own = walk_section(walk) if walk else "", False, ""
    if not (walk and walk.found):
        own = _traceback(tables, result) or _tests(tables, result)
        alone = not own and query.overview
        own = overview_of(tables) if alone else own
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
        uses = uses_section(tables, hit.unit, listed=first)
        flow = first and not walk and _ASKS_HOW.search(query.text)
        calls = calls_section(tables, hit.unit) if flow else ""
        is_class = hit.unit.kind in CLASS_KINDS and hit.unit.signature  # and no file's head
        held = members(tables, hit.unit) if is_class else ()
        return Finding(hit, calls, uses, tuple(one.name for one in held))

    return QuotedEvidence(
        query=query,
        lead=lead,
        findings=tuple(map(finding, main)),
        others=tuple(others),
        missing=missing,
        absent="" if lead or walk else _absent(tables, query, missing),
        weak=weak,
        coverage=result.coverage,
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
        if len(main) == SHOWN or hit.score < SHOWN_SCORE * hits[0].score:
            break
        if not any(_overlap(hit.unit, other.unit) for other in main):
            main.append(hit)
    return main


def _overlap(one: Unit, other: Unit) -> bool:
    inside = one.path == other.path and (
        one.start_line <= other.end_line and other.start_line <= one.end_line
    )
    # A member beside its long class is no repetition: of the class only the head is shown.
    return inside and (one.is_method == other.is_method)


def _held(unit: Unit, asked: Iterable[str]) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in asked if any(form in text for form in written_forms(w)))


def calls_section(tables: Tables, unit: Unit) -> str:
    """A line for each definition of the source that `unit` calls, accessors left out."""
    called = [call.called for call in callees(tables, unit) if _is_told(unit, call)]
    return bullet_list("**What it calls, in this order:**", map(_call_item, called[:CALLS]))


def _call_item(unit: Unit) -> str:
    told = inline(first_sentence(unit.doc_comment))
    told = told or code_span(textwrap.shorten(unit.signature, SIGNATURE, placeholder=" …"))
    return f"- {code_span(unit.qualified_name)} {cite_unit(unit)}: {told}"


def _is_told(unit: Unit, call: Call) -> bool:
    called = call.called
    near = call.sure or PurePosixPath(called.path).parent == PurePosixPath(unit.path).parent
    short = called.end_line - called.start_line < TRIVIAL_LINES and not called.doc_comment
    is_step = called.kind in METHOD_KINDS and called.kind != "constructor"
    return called.role == "source" and near and is_step and not short


def walk_section(walk: Walk) -> str:
    """What `walk` found, a line each with the call that leads there."""
    about = ", ".join(code_span(unit.qualified_name) for unit in walk.start)
    for relation in walk.relations:
        about = _OF[relation].format(about)
    title = f"{about[0].upper()}{about[1:]}"
    return bullet_list(f"**{title}**:", map(_call, walk.calls)) or f"{title}: none was found."


def _call(call: Call) -> str:
    caller, called = code_span(call.caller.qualified_name), code_span(call.called.qualified_name)
    return f"- {caller} calls {called} {cite(call.caller.path, call.line, call.line)}"


def uses_section(tables: Tables, unit: Unit, *, listed: bool) -> str:
    """How often `unit` is used, and where `listed` in which places: the surest, source before
    tests. '' for nowhere."""
    sites = usages(tables, unit)
    found = use_places(tables, sites, "call")
    in_tests = sum(place.times for place, in_test in found if in_test)
    times = counted(len(sites), "place")
    if in_tests:
        times += ", in tests" if in_tests == len(sites) else f", {in_tests:,} of them in tests"
    if not sites:
        return ""
    if not listed:
        return f"Used in {times}."
    # What calls it before what only imports it, source before examples.
    tests = [place for place, in_test in found if in_test]
    source = [place for place, in_test in found if not in_test]
    source.sort(key=lambda place: (role_of(place.path) != "source", place.kind == "import"))
    shown = [*source[:USES], *tests[: USES_IN_TESTS if source else USES]]
    left = len(sites) - sum(place.times for place in shown)
    note = ", in tests" if len(source) <= USES else ""
    return bullet_list(f"**Used in {times}**:", map(place_item, shown), left, note)


def _traceback(tables: Tables, result: SearchResult) -> str:
    raised = result.query.traceback
    if raised is None:
        return ""
    found = frames_here(tables, raised.frames)
    error = f"**{inline(raised.error)}**\n\n" if raised.error else ""
    if not found:
        return f"{error}None of its frames lies in this repository."
    of = f"{len(found):,} of its {counted(len(raised.frames), 'frame')}"
    said = f"{error}In this repository, the innermost first, {of}:"
    return bullet_list(said, (_frame(*one, at < FRAMES) for at, one in enumerate(found)))


def _frame(unit: Unit, line: int, shown: bool) -> str:
    lines = unit.source_code.split("\n")
    at = line - unit.start_line
    told = f" in {code_span(unit.qualified_name)}: {_shortened(lines[at])}"
    near = lines[max(0, at - AROUND) : at + AROUND + 1]
    if shown and max(map(len, near)) <= LONGEST_LINE:
        told += f"\n\n{code_block(textwrap.dedent(chr(10).join(near)), unit.language)}\n"
    return f"- {cite(unit.path, line, line)}{told}"


def _shortened(line: str) -> str:
    return code_span(textwrap.shorten(line, LONGEST_LINE, placeholder=" …"))


def _tests(tables: Tables, result: SearchResult) -> str:
    subject = _TESTING.sub(" ", result.query.text)
    if not _ASKS_TESTS.search(result.query.text) or not says_something(subject):
        return ""
    about = with_words(result.query, subject)
    told: dict[str, str] = {}
    for hit in _ranked(tables, about, "source")[:1]:
        if hit.unit.name in about.names or about.symbol_like:
            for one in tests_of(tables, hit.unit):
                told[one.caller.id] = f": uses {code_span(one.called.qualified_name)}"
    hits = _ranked(tables, about, "test")
    near = [hit.unit.id for hit in hits if hit.score >= NEAR_BEST * hits[0].score]
    found: dict[str, tuple[Unit, str]] = {}
    for unit in tables.by_ids(list(dict.fromkeys((*told, *near)))):
        if unit.is_method or unit.kind == "chunk":
            # A function inside a test says less than the test.
            around = (one for one in tables.in_file(unit.path) if one.is_method)
            outer = next((one for one in around if one.end_line >= unit.end_line), unit)
            found.setdefault(outer.place, (outer, told.get(unit.id, "")))
    if not found:
        return "**No test was found** that uses this or holds its words."
    files = list(dict.fromkeys(unit.path for unit, _ in found.values()))
    shown = sorted([*found.values()][:TESTS], key=lambda one: files.index(one[0].path))
    items = [f"- {cite_unit(one)} {code_span(one.qualified_name)}{use}" for one, use in shown]
    number = f"**{counted(len(found), 'test')}** in {counted(len(files), 'file')}"
    said = f"{number}, found by what they use and by their words:"
    return bullet_list(said, items, len(found) - len(items))


def _ranked(tables: Tables, query: Query, role: str) -> list[Hit]:
    """What the words of `query` find in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)
