"""Answers that are lists of places: a pasted traceback, tests, a literal text, versions."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from codeqa.errors import CodeQAError
from codeqa.extractive.doc_comment import inline
from codeqa.files import Files
from codeqa.repository.roles import role_of
from codeqa.search import Query, SearchResult, says_something
from codeqa.search.channels import filter_of, gather
from codeqa.search.query import with_words
from codeqa.search.ranking import rank
from codeqa.search.traceback import frames_here
from codeqa.store import INDEXED, Tables
from codeqa.symbols import usages
from codeqa.symbols.surroundings import CANDIDATES
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_block, code_span, joined
from codeqa.text.tokens import word_set
from codeqa.types import ROLES, Hit, Unit

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""
FRAMES = 5
"""Frames whose lines are shown; the others are named."""
TESTS = 20
SURE_USE = 0.3
"""A use in a test counts from this confidence on."""
NEAR = 0.65
"""A test is listed that scores at least this part of the best."""
LINES = 40
PER_FILE = 6
"""Lines listed in all, and of one file."""
READ_SECONDS = 3.0
"""How long files are read for one question."""
LONGEST_LINE = 160

Place = tuple[ShownLines, str]
"""Lines, and the Markdown that stands behind their citation."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The places that a question of its own kind asks for."""

    said: str
    """What they are and how many there are, as Markdown."""
    places: tuple[Place, ...] = ()
    left: int = 0
    """How many more there are."""
    alone: bool = False
    """Nothing else that was found belongs to the answer."""

    def sections(self) -> Iterator[str]:
        """It as Markdown."""
        yield joined([self.said])
        for one, told in self.places:
            yield f"- {cite(one.path, one.start, one.end)}{told}\n"
        yield f"- and {self.left:,} more\n\n" if self.left else "\n"

    def holds(self, unit: Unit) -> bool:
        """Whether one of the places is in `unit`."""
        places = [one for one, _ in self.places if one.path == unit.path]
        return any(unit.start_line <= one.start <= unit.end_line for one in places)


def listing_of(tables: Tables, result: SearchResult) -> Listing | None:
    """The list that the question asks for, None for a question of another kind."""
    kinds = (_traceback, _literal, _versions, _tests)
    return next(filter(None, (kind(tables, result) for kind in kinds)), None)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# A traceback: the code that its frames stand in.


def _traceback(tables: Tables, result: SearchResult) -> Listing | None:
    raised = result.query.traceback
    if raised is None:
        return None
    found = frames_here(tables, raised.frames)
    error = f"**{inline(raised.error)}**\n\n" if raised.error else ""
    if not found:
        return Listing(f"{error}None of its frames lies in this repository.")
    of = f"{len(found):,} of its {_count(len(raised.frames), 'frame')}"
    said = f"{error}In this repository, the innermost first, {of}:"
    places = [_frame(unit, line, at < FRAMES) for at, (unit, line) in enumerate(found)]
    return Listing(said, tuple(places))


def _frame(unit: Unit, line: int, shown: bool) -> Place:
    lines = unit.source_code.split("\n")
    at = line - unit.start_line
    place, told = _line(unit.path, line, lines[at], f" in {code_span(unit.qualified_name)}")
    near = lines[max(0, at - AROUND) : at + AROUND + 1]
    if shown and max(map(len, near)) <= LONGEST_LINE:
        told += f"\n\n{code_block(textwrap.dedent(chr(10).join(near)), unit.language)}\n"
    return place, told


def _line(path: str, number: int, line: str, inside: str = "") -> Place:
    shown = textwrap.shorten(line, LONGEST_LINE, placeholder=" …")
    return ShownLines(path, number, number), f"{inside}: {code_span(shown)}"


# A literal text: the lines that hold it, from the files as they are now.

_LITERAL = re.compile(
    r"\W*(?:(?:grep|rg)(?: -\w+)*(?: for)? (?P<word>[^\s\"“]+)"
    r"|(?:(?:grep|rg|search|(?:find|list|show)(?: me)? (?:all|every))(?: for)?(?: the)?"
    r"(?: (?:text|string|word|phrase))? )?[\"“](?P<quoted>[^\"“”]{2,})[\"”]"
    r"|(?:search|(?:find|list|show)(?: me)? (?:all|every)|list)(?: for)?(?: all)?(?: the)?"
    r" (?P<capitals>[A-Z][A-Z0-9_]{2,})s?(?: comments?)?)"
    r"(?: in (?:the|this) (?:code|repo|repository|project|code ?base|source))?[.?!\s]*"
)


def _literal(tables: Tables, result: SearchResult) -> Listing | None:
    asked = _LITERAL.fullmatch(result.query.text)
    if asked is None:
        return None
    wanted = asked["word"] or asked["quoted"] or asked["capitals"]
    where = filter_of(result.query)
    allowed = {unit.path for unit in tables.units(where)} if where else None
    records = [one for one in tables.files() if one.status == INDEXED]
    records.sort(key=lambda one: (ROLES.index(one.role), one.path))
    paths = [one.path for one in records if allowed is None or one.path in allowed]
    # Letters are taken as written where one is a capital.
    spelled = str if wanted != wanted.lower() else str.lower
    found, read = _lines(tables, paths, lambda line: wanted in spelled(line))
    of = _count(len(paths), "file")
    of = of if read == len(paths) else f"the first {read:,} of {of}, for reading takes too long"
    number = sum(map(len, found.values()))
    if not number:
        return Listing(f"**“{inline(wanted)}” stands on no line** of {of}.", alone=True)
    places = [_line(path, *one) for path, held in found.items() for one in held[:PER_FILE]][:LINES]
    counted = f"{_count(number, 'line')} of {_count(len(found), 'file')}"
    said = f"**“{inline(wanted)}” stands on {counted}**, of {of} that were read:"
    return Listing(said, tuple(places), number - len(places), alone=True)


def _lines(
    tables: Tables, paths: Sequence[str], wanted: Callable[[str], object]
) -> tuple[dict[str, list[tuple[int, str]]], int]:
    """Path → numbers and texts of the lines that are `wanted`, in the files as they are now, and
    how many files were read in READ_SECONDS."""
    files, found = Files(lambda: tables), dict[str, list[tuple[int, str]]]()
    until = time.monotonic() + READ_SECONDS
    for read, path in enumerate(paths):
        if time.monotonic() > until:
            return found, read
        with suppress(CodeQAError):  # a file that is gone holds nothing
            lines = enumerate(files.read(path).text.split("\n"), 1)
            if held := [(number, line) for number, line in lines if wanted(line)]:
                found[path] = held
    return found, len(paths)


# The versions of a language that the manifests name.

_TELLING = {
    "python": r"requires-python|python_requires|Programming Language :: Python :: \d|^python\s*=",
    "node": r'"node"\s*:',
    "go": r"^(?:go|toolchain)\s",
    "rust": r"^\s*rust-version\s*=",
    "java": r"java\.version|maven\.compiler|<release>|sourceCompatibility|JavaLanguageVersion",
}
"""Language → the lines of a manifest that say which versions of it are asked for."""
_MANIFESTS = word_set(
    "pyproject.toml setup.cfg setup.py package.json go.mod Cargo.toml pom.xml build.gradle"
)
_ABOUT_VERSIONS = word_set(
    "version versions support supports supported minimum min require requires required need needs"
)


def _versions(tables: Tables, result: SearchResult) -> Listing | None:
    words = {*result.query.words} - {tables.location.root.name.lower()}
    languages = sorted(words & {*_TELLING})
    if not languages or not words & _ABOUT_VERSIONS or words - _ABOUT_VERSIONS - {*languages}:
        return None
    known = [path for path in tables.catalogue().paths if path.rpartition("/")[2] in _MANIFESTS]
    known.sort(key=lambda path: (ROLES.index(role_of(path)), path))
    telling = re.compile("|".join(_TELLING[language] for language in languages))
    found, _ = _lines(
        tables, sorted(known, key=lambda p: (ROLES.index(role_of(p)), p)), telling.search
    )
    places = [_line(path, *one) for path, held in found.items() for one in held]
    said = f"**Versions of {' and '.join(languages).capitalize()}**, as the manifests say:"
    return Listing(said, tuple(places[:LINES]), alone=True) if places else None


# Tests: those that use the definition which the question names, and those that hold its words.

_ASKS_TESTS = re.compile(
    r"^(?:which|what|any|list|show|find|where are|are there|is there)\W+(?:\w+\W+){0,3}?tests?\b"
    r".*\b(?:cover\w*|exercis\w+|check\w*|verif\w+|for|of|use)\b"
    r"|^(?:unit |integration )?tests (?:for|of)\b|^(?:and )?(?:where|how|is|are)\b.*\btested\b",
    re.IGNORECASE,
)
_TESTING = re.compile(
    r"\b(?:unit |integration )?(?:tests?|tested|cover\w*|exercis\w+|checks?|verif\w+)\b", re.I
)


def _tests(tables: Tables, result: SearchResult) -> Listing | None:
    subject = _TESTING.sub(" ", result.query.text)
    if not _ASKS_TESTS.search(result.query.text) or not says_something(subject):
        return None
    about = with_words(result.query, subject)
    told: dict[str, str] = {}
    for hit in _ranked(tables, about, "source")[:1]:
        if hit.unit.name in about.names or about.symbol_like:
            for use in usages(tables, hit.unit, CANDIDATES).references:
                if use.confidence >= SURE_USE and role_of(use.reference.path) == "test":
                    told[use.reference.unit_id] = f": uses {code_span(hit.unit.qualified_name)}"
    hits = _ranked(tables, about, "test")
    told |= {
        h.unit.id: "" for h in hits if h.score >= NEAR * hits[0].score and h.unit.id not in told
    }
    found: dict[str, Place] = {}
    for unit in tables.by_ids(list(told)):
        if unit.is_method or unit.kind == "chunk":
            # A function inside a test says less than the test.
            outer = min(_around(tables, unit), key=lambda one: one.start_line, default=unit)
            lines = ShownLines(outer.path, outer.start_line, outer.end_line)
            name = f" {code_span(outer.qualified_name)}{told[unit.id]}"
            found.setdefault(outer.location, (lines, name))
    if not found:
        return Listing("**No test was found** that uses this or holds its words.")
    files = list(dict.fromkeys(lines.path for lines, _ in found.values()))
    places = sorted([*found.values()][:TESTS], key=lambda one: files.index(one[0].path))
    counted = f"**{_count(len(found), 'test')}** in {_count(len(files), 'file')}"
    said = f"{counted}, found by what they use and by their words:"
    return Listing(said, tuple(places), len(found) - len(places))


def _around(tables: Tables, unit: Unit) -> list[Unit]:
    first, last = unit.start_line, unit.end_line
    methods = [one for one in tables.in_file(unit.path) if one.is_method]
    return [one for one in methods if one.start_line <= first and last <= one.end_line]


def _ranked(tables: Tables, query: Query, role: str) -> list[Hit]:
    """What the words of `query` find in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)
