"""Answers without a language model: what the code itself says, cited, most relevant first.

They are the code of the best hits, the lines that matter of further ones, where the best is used
and what is missing; or what a question of its own kind asks for: a pasted traceback, which tests,
an overview, where the edges lead from what the conversation found. Of a long unit the part is shown
that a model would be shown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from codeqa.asked import asks, line_pattern, question_pattern, word_list
from codeqa.code.calls import Call, Walk, callees, callers, is_test, tests_of
from codeqa.code.counted import place_item
from codeqa.code.descriptions import (
    COMMENT_MARKS,
    bullet_list,
    cite_unit,
    first_sentence,
    is_doc,
    leading_doc,
    outline_of,
    overview_of,
    unit_item,
    unit_title,
    versions_of,
)
from codeqa.code.tools.edges import use_places
from codeqa.code.tools.reading import one_file
from codeqa.code.tools.search import constants
from codeqa.code.usages import usages
from codeqa.context import (
    COMMENT_LINE,
    choose_lines,
    cut_chunk,
    outlined,
    spans_of,
    statements,
    unit_chunk,
)
from codeqa.errors import CodeQAError
from codeqa.search.channels import gather
from codeqa.search.hybrid import SearchResult
from codeqa.search.mentions import frames_here
from codeqa.search.query import QUESTION_WORDS, Query, says_something, with_words
from codeqa.search.ranking import rank
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text import counted
from codeqa.text.doc_comment import inline, prose
from codeqa.text.markdown import (
    CITATION,
    block_quote,
    cite,
    code_block,
    code_span,
    escape,
    joined,
    pieces,
)
from codeqa.text.tokens import (
    form_pattern,
    name_key,
    search_tokens,
    split_identifier,
    stem,
    variants,
    words,
    written_forms,
)
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Chunk, Hit, Unit

CONSIDERED, FURTHER = 20, 6
"""Best units of the search that an answer is made from, and further ones that are named."""
BODIES = (24, 12, 12, 8)
"""Lines of code of those that are shown: of 25 questions 18 were answered at once from such a
form, as from 225 lines, and 13 from one body of 30 lines."""
SHOWN = 3
ALL_LINES = 1_000
FOLLOW, HELD = 30, 3
MEMBERS = 50
CONSTANTS = 4
"""Constants that a body only names, whose values are told."""
HOLDING, LOOKED = 2, 20
"""Places named that hold a word which nothing shown holds, of as many looked at: the best two may
hold its parts alone."""
WEAK_COVERAGE, MOST_WEIGHED = 0.4, 10
"""When no hit holds at least this part of the question's words, the evidence is weak."""
CALLERS = 5
"""Callers and callees of the best unit that are told, in a line each."""

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""
FRAMES = 5
"""Frames whose lines are shown; the others are named."""
TESTS = 20
NEAR_BEST = 0.65
"""A test is listed that scores at least this part of the best."""
FRAME_CHARACTERS, LINE_CHARACTERS = 160, 120

LEAST_WORTH, TYPED, LATER = 0.3, 0.5, 0.02
"""A line that gives a value is told from so much on: the part of its name that the question has,
times the part of the question that the line and its definition have. What is no literal counts
half, and each place in the list of hits a little less."""
LEAST_FOLD = 3
"""Lines that are left out together at least: a mark takes one itself."""
TELLING, LEAST_HELD = 2, 2
"""Sentences of a comment besides its first that are told, and words of the question that each of
them holds at least."""
ENDS_WEIGHT = 0.05
"""Of a line that returns or raises, beside those that hold the question's words."""
_SENTENCES = re.compile(r"(\S.+?(?:[.!?](?=\s)|(?=\n\s*\n)|\Z))", re.DOTALL)
_TAGS = re.compile(
    r"(?m)^\s*(?:```|>>>|[@:]\w|\w+:\s*$|(?:Parameters|Returns|Raises|Examples?)\b:?\s*$)"
)
_INLINE_TAG = re.compile(r"\{@\w+ ([^{}]*)\}")
"""Where the sentences of a comment end, and code in one of Java."""
_VARIANT = re.compile(r"(?:case\s+)?\w+\s*(?:$|[(={,;:])")
_IMPORTS = re.compile(r"\s*(?:import|from|use|using|require|package|#include)\b")
_DECLARES = re.compile(r"\s*[^\W\d][^@]*")
_ENDS = re.compile(r"\s*(?:return|raise|throw|panic!?|yield|Err)\b")
_RETURNS = re.compile(r"(?m)^\s*(?::returns?:|@returns?|Returns:?)\s+(.+(?:\n[^\n:@]+)?)")
_VALUE_ASKED = re.compile(
    r"(?i)\b(?:defaults?|values?|constants?|limits?|timeouts?|sizes?|how (?:many|long|much|big))\b"
)
_GIVES = re.compile(
    r"(?P<key>[A-Za-z_][\w-]*)[\"']?\s*(?::\s*[\w.<>\[\]?&' |]+\s*=|:=|=(?![=>~])|=>|:(?!:))\s*(?=[\w\"'\[({&.-])"
)
_LITERAL = re.compile(r"[\"'\d\[({.-]|(?:True|False|true|false|[A-Z_]{3,})\b")
_CLOSED = re.compile(r"""(?:[\w\])}"'])[;,]?\s*(?:(?://|\#).*)?$""")
"""A value ends in its line."""
_CONSTANT_NAME = re.compile(r"\b_?[A-Z][A-Z0-9_]{2,}\b")

_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
    below: str = ""
    """What is told below its code: constants that it names, and where it is used."""


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


def gather_evidence(
    tables: Tables, result: SearchResult, walk: Walk | None = None
) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used; what `walk` led to
    stands in front of it."""
    result = result.head(CONSIDERED)
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        hits = tuple(hit for hit in hits if "symbol" in hit.channels)
    if not query.symbol_like:  # every question may say what the repository is called
        own_name = name_key(tables.location.name)
        hits = tuple(sorted(hits, key=lambda hit: name_key(hit.unit.name) == own_name))
    main = _main(hits, query)
    lead, alone, own = walk_section(walk) if walk else "", False, ""
    told: Sequence[Unit] = ()
    asked = None if query.traceback else asks("place", query.text)
    if asked:
        lead, told = _place_asked(tables, asked)
        main = [Hit(unit, 1.0) for unit in told] or main
    elif not (walk and walk.found):
        own = _traceback(tables, result) or _tests(tables, result)
        named = bool(hits) and "symbol" in hits[0].channels
        alone = not own and query.overview and not named
        own = overview_of(tables) if alone else own
        if not own:
            of_kind, told = _of_kind(tables, query)
            lead = of_kind or lead
            # What lists all of it needs no code below.
            main = _main([Hit(unit, 1.0) for unit in told], query) if of_kind else main
    main[1:1] = _followed(tables, main, query)
    further = hits if len(hits) == len(result.units) else result.units
    others = [hit for hit in further if not (told or _repeats(hit.unit, main))][:FURTHER]
    held = [_held(hit.unit, query.words) for hit in result.units]
    best = max((len(one) for one in held[:SHOWN]), default=0)
    named = {name_key(hit.unit.name) for hit in main} & set(map(name_key, query.names))
    enough = best >= WEAK_COVERAGE * min(len(query.words), MOST_WEIGHED)
    weak = not (walk or named or (result.units and enough))
    if own:
        lead = own
        beside = [hit for hit in (*main, *others) if not _cites(own, hit.unit)]
        others = [] if alone or weak else beside[:SHOWN]
        main = []

    if not lead and query.words:
        lead = value_line(query, hits)
    text = "\n".join(hit.unit.source_code.lower() for hit in result.units)
    lacking = set(query.words).difference(word_list("asking"), *held)
    missing = tuple(w for w in query.words if w in lacking and stem(w) not in text)

    absent, elsewhere = ("", "") if lead or walk else _absent(tables, query, missing)

    def finding(hit: Hit) -> Finding:
        if hit.unit.kind in TEXT_KINDS:
            return Finding(hit)
        told = values_named(tables, hit.unit)
        if hit is main[0]:
            used = use_lines if hit.unit.kind == "constant" else callers_line
            told = joined([told, used(tables, hit.unit)])
        return Finding(hit, told)

    return QuotedEvidence(
        query=query,
        lead=lead,
        findings=tuple(map(finding, main)),
        others=tuple(others),
        missing=missing,
        absent=absent,
        elsewhere=elsewhere,
        weak=weak,
        coverage=result.coverage,
        changed=frozenset(result.changed),
    )


def _of_kind(tables: Tables, query: Query) -> tuple[str, Sequence[Unit]]:
    """What of a file, or which versions, is asked for, and the definitions of the file; '' and none
    for other questions."""
    if asks("versions", query.text):
        return versions_of(tables, query.words), ()
    if asks("file", query.text) and len(query.files) == 1:
        about = set(query.words) - QUESTION_WORDS - word_list("of_files")
        about -= set(words(query.files[0]))
        with suppress(CodeQAError):
            path = "" if about else one_file(tables, query.files[0])
            return outline_of(tables, path) if path else "", tables.in_file(path)
    if asks("members", query.text):
        named = tables.named(list(map(name_key, query.names)), LOOKED)
        for unit in sorted(named, key=lambda one: one.role != "source"):
            if unit.kind in CLASS_KINDS and (told := _members(unit)):
                return told, ()
    return "", ()


def _place_asked(tables: Tables, asked: re.Match[str]) -> tuple[str, Sequence[Unit]]:
    """The line or lines that are asked for, and the definition around a line."""
    path, line = asked["path"] or asked["file"], int(asked["line"] or asked["of"])
    last = int(asked["last"] or asked["until"] or line)
    with suppress(CodeQAError):
        units = tables.in_file(one_file(tables, path))
        around = [one for one in units if one.start_line <= line <= one.end_line]
        inner = min(around, key=lambda one: one.end_line - one.start_line, default=None)
        if inner:
            outer = max(around, key=lambda one: min(one.end_line, last) - one.start_line)
            lines = (inner if last == line else outer).source_code.split("\n")
            start = (inner if last == line else outer).start_line
            code = "\n".join(lines[line - start : last - start + 1])
            place = cite(inner.path, line, min(last, start + len(lines) - 1))
            of = f"in {code_span(inner.qualified_name)}" if inner.is_method else ""
            if last > line:
                shown = code_block(textwrap.dedent(code), inner.language, place.strip("[]"))
                return joined([f"{place} {of}", shown]), ()
            shown = f"**{code_span(code.strip()[:LINE_CHARACTERS])}** " if code.strip() else ""
            return f"{shown}{place} {of}", [_around(inner, line)]
    return "", ()


def _around(unit: Unit, line: int) -> Unit:
    """The part of a long unit that holds `line`."""
    first = max(unit.start_line, line - BODIES[1])
    last = min(unit.end_line, line + BODIES[2])
    if unit.end_line - unit.start_line < sum(BODIES[:2]):
        return unit
    lines = unit.source_code.split("\n")[first - unit.start_line : last - unit.start_line + 1]
    return replace(unit, source_code="\n".join(lines), start_line=first, end_line=last)


def _members(unit: Unit) -> str:
    """What a class or an enumeration declares, a line each."""
    doc = {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}
    lines = unit.source_code.split("\n")
    code = [
        (n, line)
        for n, line in enumerate(lines, unit.start_line)
        if _DECLARES.match(line) and not (COMMENT_LINE.match(line) or is_doc(line, doc))
    ]
    least = min((_depth(line) for _, line in code), default=0)
    inner = [_depth(line) for _, line in code if _depth(line) > least]
    declared = [(n, line.strip()) for n, line in code if inner and _depth(line) == min(inner)]
    if unit.kind == "enum":
        declared = [(n, line) for n, line in declared if _VARIANT.match(line)]
    items = [
        f"- {code_span(line.rstrip(' {,;(')[:LINE_CHARACTERS])} {cite(unit.path, n, n)}"
        for n, line in declared
    ]
    title = f"**{unit_title(unit)}** · {unit.kind} {cite_unit(unit)} declares {len(items):,}:"
    return bullet_list(title, items[:MEMBERS], len(items[MEMBERS:])) if items else ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _absent(tables: Tables, query: Query, missing: Sequence[str]) -> tuple[str, str]:
    """What is said of words that are nowhere, and of those that only other code holds: who asks "how does it use Redis?" must learn that what is shown has nothing of it. Words in
    small letters are mostly "come" and "decide", unless they are half of the question."""
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
        units = [unit for hits in found for unit, _ in hits if _held(unit, (word,))]
        if units:
            places = ", ".join(map(cite_unit, units[:HOLDING]))
            elsewhere.append(f"- “{escape(name)}” stands in {places}")
        else:
            nowhere.append(f"**Nothing in this code or its documents says “{escape(name)}”.**")
    return " ".join(nowhere), "\n".join(elsewhere)


def _cites(told: str, unit: Unit) -> bool:
    """Whether `told` cites a place that begins in `unit`."""
    starts = [int(start) for path, start, _ in CITATION.findall(told) if path == unit.path]
    return any(unit.start_line <= start <= unit.end_line for start in starts)


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
        if len(main) < SHOWN and says and not _repeats(hit.unit, main):
            main.append(hit)
    return main


def _followed(tables: Tables, main: Sequence[Hit], query: Query) -> list[Hit]:
    """What the first of `main` calls, where that is short and is called like it or holds words of
    the question: what decides is often one call away."""
    first = main[0].unit if main else None
    if first and first.kind == "constant":
        users = (call.caller for call in callers(tables, first, 0.0)[0] if not is_test(call.caller))
        return [Hit(unit, 1.0) for unit in users if not _repeats(unit, main)][:1]
    if not first or not first.is_method:
        return []
    if first.source_code.count("\n") - first.doc_comment.count("\n") > FOLLOW:
        return []
    own = _parts(words(first.name))
    for call in callees(tables, first):
        unit = call.called
        near = own & _parts(words(unit.name)) or len(_held(unit, query.words)) >= HELD
        if call.sure and near and unit.is_method and not (is_test(unit) or _repeats(unit, main)):
            return [Hit(unit, 1.0)]
    return []


def _only_imports(unit: Unit) -> bool:
    """Whether it is the head of a file that gives no name a value and says nothing."""
    values = "=" in unit.source_code.replace("= require(", "")
    return unit.kind == "module" and not (values or unit.doc_comment)


def _repeats(unit: Unit, shown: Iterable[Hit]) -> bool:
    """Whether it lies in one of `shown` or around it. A member beside its long class does not: of
    the class only the head is shown."""
    alike = (hit.unit for hit in shown if hit.unit.is_method == unit.is_method)
    return any(one.path == unit.path and one.start_line <= unit.end_line
               and unit.start_line <= one.end_line for one in alike)  # fmt: skip


def _sides(hits: Sequence[Hit], query: Query) -> Iterator[Hit]:
    """The hit that is called most like each side of "the difference between A and B" or, with
    names of code, of "A or B"."""
    found = asks("sides", query.text)
    either = query.names if len(query.names) == 2 and " or " in query.text else ()
    sides = [set(search_tokens(side)) for side in (found.groups() if found else either) if side]
    named = [(set(search_tokens(hit.unit.qualified_name)), hit) for hit in hits]
    for side, other in zip(sides, reversed(sides), strict=True):
        worth = [len(own & side - other) - len(own & other - side) for own, _ in named]
        if max(worth, default=0) > 0:
            yield named[worth.index(max(worth))][1]


def _held(unit: Unit, asked: Iterable[str]) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in asked if any(form in text for form in written_forms(w)))


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


def value_line(query: Query, hits: Iterable[Hit]) -> str:
    """The line that gives what a question about a value names its value, or that says what a member
    of a definition is; '' for none."""
    units = [hit.unit for hit in hits if not is_test(hit.unit)]
    members = set(query.names).difference(unit.name for unit in units)
    if not (_VALUE_ASKED.search(query.text) or (members and asks("meaning", query.text))):
        return ""
    asked = _parts(word for word in query.words if not word.startswith("value"))
    best, told = LEAST_WORTH, ""
    for place, unit in enumerate(units):
        own = _parts(words(f"{unit.path} {unit.qualified_name}"))
        doc = {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}
        for n, line in enumerate(unit.source_code.split("\n")):
            if COMMENT_LINE.match(line) or is_doc(line, doc):
                continue
            for given in _GIVES.finditer(line):
                if line.count('"', 0, given.start()) % 2:
                    continue  # in a text
                key = {stem(part) for part in split_identifier(given["key"])}
                held = (key | own | _parts(words(line))) & asked
                worth = len(key & asked) / len(key) * len(held) / len(asked) if key and asked else 0
                worth *= (1 if _LITERAL.match(line, given.end()) else TYPED) - place * LATER
                if worth > best:
                    best, at = worth, unit.start_line + n
                    said = _said_above(unit, n) if members else ""
                    told = f"**{code_span(line.strip()[:LINE_CHARACTERS])}** "
                    told += f"{cite(unit.path, at, at)}{said and f': {said}'}"
    return told


def _said_above(unit: Unit, number: int) -> str:
    """The comment above a line of the unit, in a line."""
    lines, said = unit.source_code.split("\n")[:number], list[str]()
    while lines and COMMENT_LINE.match(lines[-1]):
        said.insert(0, COMMENT_MARKS.sub("", lines.pop()).rstrip("*/ "))
    return inline(" ".join(" ".join(said).split()))


def _parts(names: Iterable[str]) -> frozenset[str]:
    """The stems of names and of their parts."""
    return frozenset(stem(p) for name in names for p in (name.lower(), *split_identifier(name)))


def use_lines(tables: Tables, unit: Unit) -> str:
    """The lines that use a constant, source before tests."""
    places = use_places(tables, usages(tables, unit), "use")
    shown = [place for place, in_test in places if not in_test and place.kind != "import"]
    left = len(shown) - CALLERS
    return (
        bullet_list("**Used in**:", map(place_item, shown[:CALLERS]), max(0, left)) if shown else ""
    )


def callers_line(tables: Tables, unit: Unit) -> str:
    """What `unit` surely calls, and what surely calls it, a line each; tests are counted."""
    users, _ = callers(tables, unit)
    tests = sum(is_test(one.caller) for one in users)
    calling = [one for one in users if not is_test(one.caller)]
    told = [
        f"{code_span(one.caller.qualified_name or one.caller.path)} "
        f"{cite(one.caller.path, one.line, one.line)}"
        for one in calling[:CALLERS]
    ]
    told += [f"{len(calling) - CALLERS:,} more"] * (len(calling) > CALLERS)
    told += [counted(tests, "test")] * bool(tests and not is_test(unit))
    calls = [one.called for one in callees(tables, unit) if one.sure]
    shown = [f"{code_span(one.qualified_name)} {cite_unit(one)}" for one in calls[:CALLERS]]
    shown += [f"{len(calls) - CALLERS:,} more"] * (len(calls) > CALLERS)
    by = f"Called by {', '.join(told)}." if told else ""
    return " ".join(filter(None, [f"Calls {', '.join(shown)}." if shown else "", by]))


def values_named(tables: Tables, unit: Unit) -> str:
    """The values of the constants that `unit` names, in a line: of its file, or alone so called."""
    named = dict.fromkeys(_CONSTANT_NAME.findall(unit.source_code))
    found = tables.named(list(map(name_key, named)), LOOKED * len(named)) if named else []
    places = [(one.name, one.path, one.start_line, one.source_code) for one in found]
    heads = [one for one in tables.in_file(unit.path) if one.is_head] if named else []
    places += [
        (name, head.path, head.start_line + number - 1, line)
        for head in heads
        for number, line in constants(head.source_code.split("\n"))
        for name in _CONSTANT_NAME.findall(line.partition("=")[0])
    ]
    told = list[str]()
    for name in named:
        of_it = [place for place in places if place[0] == name]
        of_it = [place for place in of_it if place[1] == unit.path] or of_it
        if not of_it or len({place[1:3] for place in of_it}) > 1:
            continue
        _, path, at, code = of_it[0]
        lines = enumerate(code.split("\n"), at)
        at, line = next(((n, line) for n, line in lines if name in line and "=" in line), (at, ""))
        if _CLOSED.search(line) and not (
            path == unit.path and unit.start_line <= at <= unit.end_line
        ):
            told.append(f"{code_span(line.strip()[:LINE_CHARACTERS])} {cite(path, at, at)}")
    return f"With {', '.join(told[:CONSTANTS])}." if told else ""


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
    told = f" in {code_span(unit.qualified_name)}: {_shortened(lines[at], FRAME_CHARACTERS)}"
    near = lines[max(0, at - AROUND) : at + AROUND + 1]
    if shown and max(map(len, near)) <= FRAME_CHARACTERS:
        told += f"\n\n{code_block(textwrap.dedent(chr(10).join(near)), unit.language)}\n"
    return f"- {cite(unit.path, line, line)}{told}"


def _shortened(code: str, most: int) -> str:
    return code_span(textwrap.shorten(code, most, placeholder=" …"))


def _tests(tables: Tables, result: SearchResult) -> str:
    subject = question_pattern("testing").sub(" ", result.query.text)
    if not asks("tests", result.query.text) or not says_something(subject):
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
    of = f"{len(items)} of " if len(found) > len(items) else ""
    number = f"**{of}{counted(len(found), 'test')}** in {counted(len(files), 'file')}"
    said = f"{number}, found by what they use and by their words:"
    return bullet_list(said, items, len(found) - len(items))


def _ranked(tables: Tables, query: Query, role: str) -> list[Hit]:
    """What the words of `query` find in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)


# The answer.

INTRODUCTION = (
    "*Without a language model this is the code itself, the most relevant first; one would put it "
    "into words: choose it at the top of the page, or with `codeqa models use`.*"
)
COUNTED = "*Counted, without a language model.*"
FROM_BEFORE = (
    "*From the code already found; nothing was searched anew. Without a language model, this is "
    "what it says.*"
)
NOT_MENTIONED = (
    "The code that was looked up earlier in this conversation does not mention what you ask "
    "about.\n\nAdd `@codebase` to the question to search the code base for it."
)
CACHED_SHOWN = 3
NOTHING_LOOKED_UP = (
    "No code has been looked up for this question.\n\n"
    "Begin the question with `@codebase` to search the code base, for example "
    "`@codebase where does the program start?`\n"
)

WHOLE_LINES, CHARACTERS_A_LINE, HEADS = 80, 60, 400
"""A unit of at most so many lines is shown whole, of another as many of its length or of this one;
`cut_chunk` counts the heads of some spans, which are not shown here."""
LONGEST_LINE = 300
"""A unit with a longer line, which is data or machine-made, is not shown whole."""
PROSE_LANGUAGES = frozenset({"markdown", "rst", "restructuredtext", "text", "rdoc", "asciidoc"})


def quoted_answer(evidence: QuotedEvidence | None) -> Iterator[str]:
    """Yield the answer line by line; each section is made when it is reached. Without `evidence`
    nothing was looked up."""
    if evidence is None:
        yield from pieces(NOTHING_LOOKED_UP)
        return
    for section in _sections(evidence):
        yield from pieces(f"{section}\n\n")


def _sections(evidence: QuotedEvidence) -> Iterator[str]:
    if evidence.cached:
        yield from _from_cache(evidence)
    elif not (evidence.lead or evidence.findings or evidence.others):
        yield _nothing(evidence)
    else:
        weak = _weak(evidence) if evidence.weak and not evidence.lead else ""
        first = joined([weak or evidence.absent, evidence.lead])
        if first:
            yield first
        left = 0
        for finding, limit in zip(evidence.findings, BODIES, strict=False):
            limit = ALL_LINES if evidence.whole_code else limit
            section, used = _finding_section(finding, evidence, limit + left)
            left = max(0, limit + left - used)
            yield section
        if evidence.others:
            items = [*(unit_item(hit.unit) for hit in evidence.others), evidence.elsewhere]
            yield joined(["**Also relevant**:", "\n".join(items)])
        yield COUNTED if evidence.counted else INTRODUCTION


def _weak(evidence: QuotedEvidence) -> str:
    """That too little was found."""
    lacks = _listed(evidence.missing)
    said = "**The evidence is weak.** No definition or section matches enough of the question "
    said += f"to answer it.{f' Nothing that was found holds {lacks}.' if lacks else ''} "
    searched = f" Searched: {escape(evidence.coverage)}." if evidence.coverage else ""
    return f"{said}The nearest that there is follows.{searched}"


def _nothing(evidence: QuotedEvidence) -> str:
    words = _listed(evidence.query.words)
    searched = f"Searched: {escape(evidence.coverage)}." if evidence.coverage else ""
    fewer = "the name of a function or file, or fewer filters." * evidence.query.filtered
    advice = f"Try other words, {fewer or 'or the name of a function, class or file.'}"
    return joined([f"**Nothing was found{f' for {words}' if words else ''}.**", searched, advice])


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"“{escape(word)}”" for word in words)


def _from_cache(evidence: QuotedEvidence) -> Iterator[str]:
    """An answer from the context of an earlier question: the chunks that hold its words."""
    words = evidence.query.words
    chunks = list(evidence.cached)
    if not evidence.chosen:
        scores = [sum(word in chunk.content.lower() for word in words) for chunk in chunks]
        pairs = sorted(zip(scores, chunks, strict=True), key=lambda pair: -pair[0])
        chunks = [chunk for score, chunk in pairs if score]
    if not chunks:
        yield NOT_MENTIONED
        return
    yield joined([evidence.lead, FROM_BEFORE])
    for chunk in chunks[:CACHED_SHOWN]:
        lines = (chunk.start_line, chunk.end_line)
        unit = Unit(chunk.path, chunk.language, "chunk", "", "", chunk.content, *lines)
        yield joined([cite(unit.path, *lines), excerpt(unit, words)])
    if not evidence.chosen:
        yield "Add `@codebase` to the question to search the code base anew."


def _finding_section(finding: Finding, evidence: QuotedEvidence, limit: int) -> tuple[str, int]:
    """What it is and what its comment says in a line, then at most `limit` lines of code; and how
    many these are."""
    unit, words = finding.hit.unit, evidence.query.words
    note = " · *the file has changed since it was indexed*" if unit.path in evidence.changed else ""
    if unit.kind in TEXT_KINDS:
        heading = f"**{unit_title(unit)}** · {unit.kind} {cite_unit(unit)}{note}"
        text = _text(unit, words, limit)
        return joined([heading, text]), text.count("\n")
    said = sentences_of(unit, words)
    heading = f"**{unit_title(unit)}** · {unit.kind} {cite_unit(unit)}{note}{said and f': {said}'}"
    code = condensed(unit, words, limit)
    return joined([f"{heading}\n{code}", finding.below]), max(0, code.count("\n") - 1)


def sentences_of(unit: Unit, words: Sequence[str]) -> str:
    """The first sentence of its comment, those that hold most of `words`, and what it returns."""
    doc = leading_doc(unit)
    returns = _RETURNS.search(doc)
    prose, *_ = _TAGS.split(_INLINE_TAG.sub(r"`\1`", doc), maxsplit=1)
    first, *others = [" ".join(one.split()) for one in _SENTENCES.findall(prose)] or [""]
    held = [sum(1 for word in words if form_pattern(word).search(one.lower())) for one in others]
    telling = sorted(range(len(others)), key=lambda n: -held[n])[:TELLING]
    said = [
        first_sentence(first),
        *(others[n] for n in sorted(telling) if held[n] >= LEAST_HELD and len(others[n]) < 300),
    ]
    said += [first_sentence(f"Returns {returns[1]}")] if returns else []
    return inline(" ".join(dict.fromkeys(filter(None, said))))


def condensed(unit: Unit, words: Sequence[str], limit: int) -> str:
    """The unit as a block of code without what its comment says beside the question: all of it, or
    at most `limit` lines, whole statements around those that hold `words`, return or raise, and
    what they lie in; of a class what it declares."""
    lines, first = unit.source_code.split("\n"), unit.start_line
    doc = {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}
    weights = _weights(lines, words)
    long = {n for n, line in enumerate(lines) if len(line) > LONGEST_LINE}
    hidden = set(long)
    for n, line in enumerate(lines):
        said = is_doc(line, doc) if doc and line.strip() else n - 1 in hidden
        if said:
            hidden.add(n)
    if unit.is_head:  # what a file imports answers nothing
        hidden |= {n for n, line in enumerate(lines) if _IMPORTS.match(line)}
    numbers = set(range(len(lines))) - hidden
    if len(numbers) > limit:
        depths = [len(line) - len(line.lstrip()) for line in lines]
        inner = [depths[n] for n in numbers if depths[n] and lines[n].strip()]
        declared = min(inner, default=0) if unit.kind in CLASS_KINDS else -1
        for n, line in enumerate(lines):
            weights[n] += ENDS_WEIGHT * bool(_ENDS.match(line) or depths[n] == declared)
        height = max(1, len(unit.signature.strip().split("\n")))
        begins = next((n for n in sorted(numbers) if lines[n].strip()), 0)
        head = numbers & set(range(begins, begins + height))
        costs = [limit + 1 if n in hidden else 0 if n in head else 1 for n in range(len(lines))]
        found = statements(unit.source_code, unit.language)
        spans = choose_lines(lines, found, weights, costs, limit - len(head)) if found else []
        chosen = {n for span in spans for n in range(*span)} - hidden
        numbers = chosen or set(sorted(numbers)[:limit])
    for end, start in pairwise((*sorted(numbers), len(lines))):
        if start - end <= LEAST_FOLD:
            numbers |= set(range(end, start)) - long
    spans = spans_of(numbers, lines)
    if not spans:
        return ""
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans, first))
    if (left := len(lines) - spans[-1][1]) > 0 and "".join(lines[-left:]).strip():
        code += (
            f"\n… {counted(left, 'line')} ({first + len(lines) - left}-{first + len(lines) - 1})"
        )
    place = f"{unit.path}:{first + spans[0][0]}-{first + spans[-1][1] - 1}"
    return code_block(code.strip("\n"), unit.language, place)


def _text(unit: Unit, words: Sequence[str], room: int) -> str:
    """A section of a document as quoted prose, other text as code."""
    if unit.language in PROSE_LANGUAGES or unit.kind == "document":
        title = f"**{inline(unit.name)}**"
        told = f"{prose(unit.source_code)}\n\n".removeprefix(f"{title}\n\n").rstrip()
        return block_quote(told) if told else ""
    return excerpt(unit, words, min(WHOLE_LINES, room))


def excerpt(unit: Unit, words: Sequence[str], limit: int = WHOLE_LINES) -> str:
    """The unit as a block of code that says where it stands, so that its lines can be numbered.

    Of one longer than `limit` lines it holds what a model would be shown of it in as much room:
    whole statements around the lines that hold `words`, and what they lie in. '' where that is
    not one line.
    """
    lines, first = unit.source_code.split("\n"), unit.start_line
    shown: Sequence[Chunk] = [unit_chunk(unit)]
    if len(lines) > limit or max(map(len, lines)) > LONGEST_LINE:
        room = HEADS + limit * min(CHARACTERS_A_LINE, len(unit.source_code) // len(lines))
        shown = cut_chunk(shown[0], room, [form_pattern(word) for word in words])
    if not shown:
        return ""
    numbers = {n for one in shown for n in range(one.start_line - first, one.end_line - first + 1)}
    spans = spans_of(numbers, lines)
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans, first))
    place = f"{unit.path}:{first + spans[0][0]}-{first + spans[-1][1] - 1}"
    return code_block(code.strip("\n"), unit.language, place)


def _weights(lines: Sequence[str], words: Sequence[str]) -> list[float]:
    """How much each line matters: the question's words that it holds, each by its rarity.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares = {part: 0.5 for word in words for part in split_identifier(word) if len(part) > 2}
    shares.update(dict.fromkeys(words, 1.0))
    weights = [0.0] * len(lines)
    for word, share in shares.items():
        pattern = form_pattern(word)
        holding = [at for at, line in enumerate(lines) if pattern.search(line.lower())]
        for at in holding:
            told = share / 2 if COMMENT_LINE.match(lines[at]) else share
            weights[at] += told / len(holding) ** 0.5
    return weights
