"""What a question of its own kind asks for, looked up rather than searched: the line at a place, a
value, the members of a class, what a file holds, the frames of a traceback, tests, where the edges
lead."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from codeqa.asked import asks, question_pattern, word_list
from codeqa.code.calls import Call, Walk, is_test, tests_of
from codeqa.code.descriptions import (
    COMMENT_MARKS,
    bullet_list,
    cite_unit,
    doc_lines,
    is_doc,
    outline_of,
    unit_title,
    versions_of,
)
from codeqa.code.tools.reading import one_file
from codeqa.context.statements import COMMENT_LINE
from codeqa.errors import CodeQAError
from codeqa.quoted.condense import BODIES
from codeqa.quoted.hits import LINE_CHARACTERS, SAME_NAME, name_parts
from codeqa.search.channels import gather
from codeqa.search.mentions import frames_here, smallest_around
from codeqa.search.query import QUESTION_WORDS, Query, says_something, with_words
from codeqa.search.ranking import rank
from codeqa.search.result import SearchResult
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_block, code_span, joined
from codeqa.text.tokens import name_key, split_identifier, stem, words
from codeqa.types import CLASS_KINDS, Hit, Unit

MEMBERS = 50
"""Members of a class that are listed."""

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""

FRAMES = 5
"""Frames whose lines are shown; the others are named."""

TESTS = 20

NEAR_BEST = 0.65
"""A test is listed that scores at least this part of the best."""

FRAME_CHARACTERS = 160

LEAST_WORTH, TYPED, LATER = 0.3, 0.5, 0.02
"""A line that gives a value is told from so much on: the part of its name that the question has,
times the part of the question that the line and its definition have. What is no literal counts
half, and each place in the list of hits a little less."""

_VALUE_ASKED = re.compile(
    r"(?i)\b(?:defaults?|values?|constants?|limits?|timeouts?|sizes?|how (?:many|long|much|big))\b"
)

_GIVES = re.compile(
    r"""(?P<key>[A-Za-z_][\w-]*)["']?\s*(?::\s*[\w.<>\[\]?&' |]+\s*=|:=|=(?![=>~])|=>|:(?!:))"""
    r"""\s*(?=[\w"'\[({&.-])"""
)

_LITERAL = re.compile(r"(?:[\w.:]+\(\s*)?[\"'\d\[({.-]|(?:True|False|true|false|[A-Z_]{3,})\b")

_OWNER = re.compile(
    r"\b(?:(?!the\b|an?\b)(\w+) (?:enum|class|struct|trait)"
    r"|(?:enum|class|struct|trait|of|in) ([A-Z]\w+))\b"
)
_VARIANT = re.compile(r"(?:case\s+)?\w+\s*(?:$|[(={,;:])")

_DECLARES = re.compile(r"\s*[^\W\d][^@]*")

_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


def of_kind(tables: Tables, query: Query) -> tuple[str, Sequence[Unit]]:
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
        owners = [*query.names, *(one[1] or one[2] for one in _OWNER.finditer(query.text))]
        named = tables.named(list(map(name_key, owners)), SAME_NAME)
        # Of several the one in a file that is named, then in source.
        named.sort(key=lambda one: (not one.path.endswith(query.files), one.role != "source"))
        for unit in named:
            if unit.kind in CLASS_KINDS and (told := members_of(unit)):
                return told, ()
    return "", ()


def place_asked(tables: Tables, asked: re.Match[str]) -> tuple[str, Sequence[Unit]]:
    """Return the line or lines that are asked for, and the definition around a line."""
    path, line = asked["path"] or asked["file"], int(asked["line"] or asked["of"])
    last = int(asked["last"] or asked["until"] or line)
    with suppress(CodeQAError):
        units = tables.in_file(one_file(tables, path))
        if inner := smallest_around(units, line):
            around = [one for one in units if one.start_line <= line <= one.end_line]
            outer = max(around, key=lambda one: min(one.end_line, last) - one.start_line)
            shown_unit = inner if last == line else outer
            lines, start = shown_unit.source_code.split("\n"), shown_unit.start_line
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
    """Return the part of a long unit that holds `line`."""
    first = max(unit.start_line, line - BODIES[1])
    last = min(unit.end_line, line + BODIES[2])
    if unit.end_line - unit.start_line < sum(BODIES[:2]):
        return unit
    lines = unit.source_code.split("\n")[first - unit.start_line : last - unit.start_line + 1]
    return replace(unit, source_code="\n".join(lines), start_line=first, end_line=last)


def members_of(unit: Unit) -> str:
    """List what a class or an enumeration declares, a line each."""
    doc = doc_lines(unit)
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


def value_line(query: Query, hits: Iterable[Hit]) -> str:
    """The line that gives what a question about a value names its value, or that says what a member
    of a definition is; '' for none."""
    units = [hit.unit for hit in hits if not is_test(hit.unit)]
    members = set(query.names).difference(unit.name for unit in units)
    if not (_VALUE_ASKED.search(query.text) or (members and asks("meaning", query.text))):
        return ""
    asked = name_parts(word for word in query.words if not word.startswith("value"))
    best, told = LEAST_WORTH, ""
    for place, unit in enumerate(units):
        own = name_parts(words(f"{unit.path} {unit.qualified_name}"))
        doc = doc_lines(unit)
        for n, line in enumerate(unit.source_code.split("\n")):
            if COMMENT_LINE.match(line) or is_doc(line, doc):
                continue
            for given in _GIVES.finditer(line):
                if line.count('"', 0, given.start()) % 2:
                    continue  # in a text
                key = {stem(part) for part in split_identifier(given["key"])}
                held = (key | own | name_parts(words(line))) & asked
                worth = len(key & asked) / len(key) * len(held) / len(asked) if key and asked else 0
                worth *= (1 if _LITERAL.match(line, given.end()) else TYPED) - place * LATER
                if worth > best:
                    best, at = worth, unit.start_line + n
                    said = _said_above(unit, n) if members else ""
                    told = f"**{code_span(line.strip()[:LINE_CHARACTERS])}** "
                    told += f"{cite(unit.path, at, at)}{said and f': {said}'}"
    return told


def _said_above(unit: Unit, number: int) -> str:
    """Return the comment above a line of the unit, in a line."""
    lines, said = unit.source_code.split("\n")[:number], list[str]()
    while lines and COMMENT_LINE.match(lines[-1]):
        said.insert(0, COMMENT_MARKS.sub("", lines.pop()).rstrip("*/ "))
    return inline(" ".join(" ".join(said).split()))


def traceback_section(tables: Tables, result: SearchResult) -> str:
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
    code = textwrap.shorten(lines[at], FRAME_CHARACTERS, placeholder=" …")
    told = f" in {code_span(unit.qualified_name)}: {code_span(code)}"
    near = lines[max(0, at - AROUND) : at + AROUND + 1]
    if shown and max(map(len, near)) <= FRAME_CHARACTERS:
        told += f"\n\n{code_block(textwrap.dedent(chr(10).join(near)), unit.language)}\n"
    return f"- {cite(unit.path, line, line)}{told}"


def tests_section(tables: Tables, result: SearchResult) -> str:
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
    for unit in tables.by_ids([*told, *near]):
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
    """Search for the words of `query` in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)


def walk_section(walk: Walk) -> str:
    """List what `walk` found, a line each with the call that leads there."""
    about = ", ".join(code_span(unit.qualified_name) for unit in walk.start)
    for relation in walk.relations:
        about = _OF[relation].format(about)
    title = f"{about[0].upper()}{about[1:]}"
    return bullet_list(f"**{title}**:", map(_call, walk.calls)) or f"{title}: none was found."


def _call(call: Call) -> str:
    caller, called = code_span(call.caller.qualified_name), code_span(call.called.qualified_name)
    return f"- {caller} calls {called} {cite(call.caller.path, call.line, call.line)}"
