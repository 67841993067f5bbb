"""Answers without a language model: what the code itself says, cited, most relevant first.

They are the code of the best hits, the lines that matter of further ones, where the best is used
and what is missing; or what a question of its own kind asks for: a pasted traceback, which tests,
an overview, where the edges lead from what the conversation found. Of a long unit the part is shown
that a model would be shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from codeqa.asked import asks, line_pattern, question_pattern, word_list
from codeqa.code.calls import Call, Walk, tests_of
from codeqa.code.counted import place_item
from codeqa.code.descriptions import (
    bullet_list,
    cite_unit,
    outline_of,
    overview_of,
    unit_item,
    unit_title,
    versions_of,
)
from codeqa.code.tools.edges import use_places
from codeqa.code.tools.reading import one_file
from codeqa.code.usages import usages
from codeqa.context import COMMENT_LINE, cut_chunk, outlined, spans_of, unit_chunk
from codeqa.errors import CodeQAError
from codeqa.repository.classify import role_of
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
    search_tokens,
    split_identifier,
    stem,
    variants,
    words,
    written_forms,
)
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

CONSIDERED, SHOWN, FURTHER = 20, 6, 14
"""Best units of the search that an answer is made from, those whose code is shown, and those that
are named with the lines that matter. Fewer hold the answer less often: the wanted place is among
the first three of .41 of the development questions, the first eight of .64, twenty of .79."""
LINES_SHOWN, LEAST_LINES = 160, 8
"""Lines shown in all: of what is left a unit gets at most half, and so many at least."""
MATTER, NEAR_MOST = 2, 0.7
"""Lines shown of what is named, and the part of the best one's weight that the other has."""
HOLDING, LOOKED = 2, 20
"""Places named that hold a word which nothing shown holds, of as many looked at: the best two may
hold its parts alone."""
WEAK_COVERAGE = 0.4
"""When no hit holds at least this part of the question's words, the evidence is weak."""
USES, FEW_USES = 8, 3
"""Places of use of the best unit that are listed: where the question is about them, and else."""

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""
FRAMES = 5
"""Frames whose lines are shown; the others are named."""
TESTS = 20
NEAR_BEST = 0.65
"""A test is listed that scores at least this part of the best."""
FRAME_CHARACTERS, LINE_CHARACTERS = 160, 240

_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full."""

    hit: Hit
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
    """What is named, best first."""
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
        told = [self.lead, self.absent, *(one.uses for one in self.findings)]
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
    main = _main(hits, query)
    lead, alone, own = walk_section(walk) if walk else "", False, ""
    told: Sequence[Unit] = ()
    if not (walk and walk.found):
        own = _traceback(tables, result) or _tests(tables, result)
        alone = not own and query.overview
        own = overview_of(tables) if alone else own
        if not own:
            of_kind, told = _of_kind(tables, query)
            lead = of_kind or lead
            main = _main([Hit(unit, 1.0) for unit in told], query) or main
    others = [hit for hit in result.units if not (told or _repeats(hit.unit, main))][:FURTHER]
    held = [_held(hit.unit, query.words) for hit in result.units]
    best = max((len(one) for one in held[:SHOWN]), default=0)
    weak = not walk and (not result.units or best < WEAK_COVERAGE * len(query.words))
    if own:
        lead = own
        beside = [hit for hit in (*main, *others) if not _cites(own, hit.unit)]
        others = [] if alone or weak else beside[:SHOWN]
        main = []

    text = "\n".join(hit.unit.source_code.lower() for hit in result.units)
    lacking = set(query.words).difference(word_list("asking"), *held)
    missing = tuple(w for w in query.words if w in lacking and stem(w) not in text)

    def finding(hit: Hit) -> Finding:
        if hit.unit.kind in TEXT_KINDS:
            return Finding(hit)
        most = USES if asks("uses", query.text) else FEW_USES
        return Finding(hit, uses_section(tables, hit.unit, most) if hit is main[0] else "")

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


def _of_kind(tables: Tables, query: Query) -> tuple[str, Sequence[Unit]]:
    """What of a file, or which versions, is asked for, and the definitions of the file; '' and none
    for other questions."""
    if asks("versions", query.text):
        return versions_of(tables, query.words), ()
    if asks("file", query.text) and len(query.files) == 1:
        about = set(query.words) - QUESTION_WORDS - {"file", "module"} - set(words(query.files[0]))
        with suppress(CodeQAError):
            path = "" if about else one_file(tables, query.files[0])
            return outline_of(tables, path) if path else "", tables.in_file(path)
    return "", ()


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


def _main(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The best of each side of a difference, then the first hits, none inside another that is
    shown. Tests only where there is nothing else."""
    main = list({hit.unit.id: hit for hit in _sides(hits, query)}.values())
    source = list(hits)
    if "test" not in query.roles:
        in_tests = line_pattern("in_tests")
        source = [
            h for h in hits if not in_tests.search(f"{h.unit.path}/{h.unit.qualified_name}")
        ] or source
    for hit in source:
        says = hit is hits[0] or not _only_imports(hit.unit)
        if len(main) < SHOWN and says and not _repeats(hit.unit, main):
            main.append(hit)
    return main


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


def uses_section(tables: Tables, unit: Unit, most: int) -> str:
    """How often `unit` is used, and `most` of the places: the surest, source before tests. '' for
    nowhere."""
    sites = usages(tables, unit)
    found = use_places(tables, sites, "call") if sites else []
    in_tests = sum(place.times for place, in_test in found if in_test)
    times = counted(len(sites), "place")
    if in_tests:
        times += ", in tests" if in_tests == len(sites) else f", {in_tests:,} of them in tests"
    # What calls it before what only imports it, source before examples.
    tests = [place for place, in_test in found if in_test]
    source = [place for place, in_test in found if not in_test]
    source.sort(key=lambda place: (role_of(place.path) != "source", place.kind == "import"))
    shown = [*source, *tests][:most]
    left = len(sites) - sum(place.times for place in shown)
    return bullet_list(f"**Used in {times}**:", map(place_item, shown), left)


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

INTRODUCTION = "*Without a language model, this is what the code itself says.*"
COUNTED = "*Counted from the index, without a language model.*"
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
        first = COUNTED if evidence.counted else INTRODUCTION
        weak = _weak(evidence) if evidence.weak and not evidence.lead else ""
        yield joined([first, weak or evidence.absent, evidence.lead])
        left = LINES_SHOWN
        for finding in evidence.findings:
            section = _finding_section(finding, evidence, max(LEAST_LINES, left // 2))
            left -= section.count("\n")
            yield section
        if evidence.others:
            yield joined(["### Also relevant", _unit_lines(evidence.others, evidence.query.words)])


def _unit_lines(hits: Iterable[Hit], words: Sequence[str]) -> str:
    """A line for each, and below it those lines of its code that matter most."""
    items = []
    for unit in (hit.unit for hit in hits):
        items.append(unit_item(unit))
        lines = unit.source_code.split("\n")
        weights = _weights(lines, words)
        best = sorted(range(len(lines)), key=lambda at: -weights[at])[:MATTER]
        for at in sorted(at for at in best if weights[at] >= NEAR_MOST * weights[best[0]] > 0):
            place = cite(unit.path, unit.start_line + at, unit.start_line + at)
            items.append(f"  - {place} {_shortened(lines[at], LINE_CHARACTERS)}")
    return "\n".join(items)


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
    yield joined([COUNTED * evidence.counted, evidence.lead, FROM_BEFORE])
    for chunk in chunks[:CACHED_SHOWN]:
        lines = (chunk.start_line, chunk.end_line)
        unit = Unit(chunk.path, chunk.language, "chunk", "", "", chunk.content, *lines)
        yield joined([cite(unit.path, *lines), excerpt(unit, words)])
    if not evidence.chosen:
        yield "Add `@codebase` to the question to search the code base anew."


def _finding_section(finding: Finding, evidence: QuotedEvidence, room: int) -> str:
    """With about `room` lines of code at most, and the doc comment's beginning where they lack
    it."""
    unit, words = finding.hit.unit, evidence.query.words
    note = " · *the file has changed since it was indexed*" if unit.path in evidence.changed else ""
    heading = f"### {unit_title(unit)}\n\n{unit.kind} · {cite_unit(unit)}{note}"
    if unit.kind in TEXT_KINDS:
        return joined([heading, _text(unit, words, room)])
    code = excerpt(unit, words, min(WHOLE_LINES, room))
    paragraph = unit.doc_comment.partition("\n\n")[0]
    doc = "" if paragraph.partition("\n")[0] in code else block_quote(prose(paragraph))
    return joined([heading, doc, code, finding.uses])


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
