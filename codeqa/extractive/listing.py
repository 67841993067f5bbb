"""Answers that are lists of places: a pasted traceback, tests, a literal text, versions."""

from __future__ import annotations

import re
import textwrap
import time
from collections import Counter
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
from codeqa.types import ROLES, TEXT_KINDS, Hit, Unit

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
MORE_FILES = 5
"""Files named that hold more lines."""
READ_SECONDS = 3.0
"""How long files are read for one question."""
LONGEST_LINE = 160


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file, and what is said of them."""

    path: str
    start: int
    end: int
    told: str = ""
    """Markdown behind the citation."""
    code: str = ""
    """Shown below it."""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The places that a question of its own kind asks for."""

    said: str
    """What they are and how many there are, as Markdown."""
    places: tuple[Place, ...] = ()
    after: str = ""
    """What else there is to know."""
    alone: bool = False
    """Nothing else that was found belongs to the answer."""

    def spans(self) -> list[ShownLines]:
        """The lines that are cited."""
        return [ShownLines(one.path, one.start, one.end) for one in self.places]

    def holds(self, unit: Unit) -> bool:
        """Whether one of the places is in `unit`."""
        return any(
            one.path == unit.path and unit.start_line <= one.start <= unit.end_line
            for one in self.places
        )

    def sections(self) -> Iterator[str]:
        """It as Markdown."""
        yield joined([self.said])
        for place in self.places:
            code = f"\n{code_block(place.code, place.language)}\n\n" if place.code else ""
            yield f"- {cite(place.path, place.start, place.end)}{place.told}\n{code}"
        yield f"\n{self.after}\n\n" if self.after else "\n"


def listing_of(tables: Tables, result: SearchResult) -> Listing | None:
    """The list that the question asks for, None for a question of another kind."""
    kinds = (_traceback, _literal, _versions, _tests)
    return next(filter(None, (kind(tables, result) for kind in kinds)), None)


# A traceback: the code that its frames stand in.


def _traceback(tables: Tables, result: SearchResult) -> Listing | None:
    raised = result.query.traceback
    if raised is None:
        return None
    found = frames_here(tables, raised.frames)
    error = f"**{inline(raised.error)}**\n\n" if raised.error else ""
    number = len(raised.frames)
    if not found:
        return Listing(f"{error}None of its {number:,} frames lies in this repository.")
    elsewhere = number - len(found)
    others = f" {elsewhere:,} of its {number:,} frames lie elsewhere." if elsewhere > 0 else ""
    said = f"{error}It came through this code, the innermost first.{others}"
    return Listing(
        said, tuple(_frame(unit, line, at < FRAMES) for at, (unit, line) in enumerate(found))
    )


def _frame(unit: Unit, line: int, shown: bool) -> Place:
    lines = unit.source_code.split("\n")
    at = line - unit.start_line
    inside = f" in {code_span(unit.qualified_name)}" if unit.kind not in TEXT_KINDS else ""
    told = f"{inside}: {code_span(textwrap.shorten(lines[at], LONGEST_LINE, placeholder=' …'))}"
    near = lines[max(0, at - AROUND) : at + AROUND + 1]
    readable = shown and max(map(len, near)) <= LONGEST_LINE
    code = textwrap.dedent("\n".join(near)) if readable else ""
    return Place(unit.path, line, line, told, code, unit.language)


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
    as_written = wanted != wanted.lower()
    found, read = _lines(
        tables, paths, lambda line: wanted in (line if as_written else line.lower())
    )
    named = f"“{inline(wanted)}”"
    of = f"{len(paths):,} files" if read == len(paths) else f"{read:,} of {len(paths):,} files"
    of += "" if read == len(paths) else ", for reading them takes too long"
    number = sum(map(len, found.values()))
    if not number:
        return Listing(f"**{named} stands on no line** of {of}.", alone=True)
    places = [_line_place(p, *line) for p, held in found.items() for line in held[:PER_FILE]]
    lines = f"{number:,} line{'s' if number > 1 else ''}"
    in_files = f"{len(found):,} file{'s' if len(found) > 1 else ''}"
    said = f"**{named} stands on {lines} of {in_files}**; {of} were read."
    left = Counter({path: len(held) for path, held in found.items()})
    left.subtract(place.path for place in places[:LINES])
    more = [f"{code_span(path)} ({n:,})" for path, n in left.most_common(MORE_FILES) if n > 0]
    after = f"{number - min(LINES, len(places)):,} more lines, in {', '.join(more)}"
    after += ", …" if sum(n > 0 for n in left.values()) > MORE_FILES else "."
    return Listing(said, tuple(places[:LINES]), after if more else "", alone=True)


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
            if held := [(number, line.strip()) for number, line in lines if wanted(line)]:
                found[path] = held
    return found, len(paths)


def _line_place(path: str, number: int, line: str) -> Place:
    shown = textwrap.shorten(line, LONGEST_LINE, placeholder=" …")
    return Place(path, number, number, f": {code_span(shown)}")


# The versions of a language that the manifests name.

_MANIFESTS = word_set(
    "pyproject.toml setup.cfg setup.py package.json go.mod Cargo.toml pom.xml build.gradle "
    "build.gradle.kts"
)
_TELLING = {
    "python": r"requires-python|python_requires|Programming Language :: Python :: \d|^python\s*=",
    "node": r'"node"\s*:',
    "go": r"^(?:go|toolchain)\s",
    "rust": r"^\s*(?:rust-version|edition)\s*=",
    "java": r"java\.version|maven\.compiler|<release>|sourceCompatibility|JavaLanguageVersion",
}
"""Language → the lines of a manifest that say which versions of it are asked for."""
_ABOUT_VERSIONS = word_set(
    "version versions supports support supported minimum min require requires required need needs "
    "needed run runs oldest js"
)


def _versions(tables: Tables, result: SearchResult) -> Listing | None:
    words = {*result.query.words} - {tables.location.root.name.lower()}
    languages = words & {*_TELLING}
    if not languages or words - languages - _ABOUT_VERSIONS or not words & _ABOUT_VERSIONS:
        return None
    known = [path for path in tables.catalogue().paths if path.rpartition("/")[2] in _MANIFESTS]
    telling = re.compile("|".join(_TELLING[language] for language in sorted(languages)))
    found, _ = _lines(tables, sorted(known, key=lambda p: (p.count("/"), p)), telling.search)
    places = tuple(_line_place(path, *line) for path, held in found.items() for line in held)
    named = " and ".join(language.capitalize() for language in sorted(languages))
    said = f"**Versions of {named}**, as the manifests say:"
    return Listing(said, places[:LINES], alone=True) if places else None


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
    reasons: dict[str, str] = {}
    for hit in _ranked(tables, about, "source")[:1]:
        if hit.unit.name in about.names or about.symbol_like:
            for use in usages(tables, hit.unit, CANDIDATES).references:
                if use.confidence >= SURE_USE and role_of(use.reference.path) == "test":
                    used = f": uses {code_span(hit.unit.qualified_name)}"
                    reasons.setdefault(use.reference.unit_id, used)
    hits = _ranked(tables, about, "test")
    near = [h.unit for h in hits if h.score >= NEAR * hits[0].score]
    reasons = {**reasons, **{u.id: "" for u in near if u.id not in reasons}}
    found: dict[tuple[str, str], Place] = {}
    for unit in tables.by_ids(list(reasons)):
        if unit.is_method or unit.kind == "chunk":
            unit = _whole_test(tables, unit)
            told = f" {code_span(unit.qualified_name)}{reasons.get(unit.id, '')}"
            place = Place(unit.path, unit.start_line, unit.end_line, told)
            found.setdefault((unit.path, unit.qualified_name), place)
    if not found:
        return Listing("**No test was found** that uses this or holds its words.")
    files = list(dict.fromkeys(path for path, _ in found))
    places = sorted(list(found.values())[:TESTS], key=lambda one: files.index(one.path))
    left = len(found) - len(places)
    of = "1 file" if len(files) == 1 else f"{len(files):,} files"
    said = f"**{len(found):,} tests** in {of} use this or hold its words:"
    return Listing(said, tuple(places), f"And {left:,} more." if left else "")


def _ranked(tables: Tables, query: Query, role: str) -> list[Hit]:
    """What the words of `query` find in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)


def _whole_test(tables: Tables, unit: Unit) -> Unit:
    """The test that `unit` is a part of: a function inside it says little."""
    around = [one for one in tables.in_file(unit.path) if one.is_method]
    around = [o for o in around if o.start_line <= unit.start_line and unit.end_line <= o.end_line]
    return min(around, key=lambda one: one.start_line, default=unit)
