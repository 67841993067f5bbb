"""Answer questions of a special kind by a lookup, without a search.

They ask for the line at a place, a value, the members of a class, the contents of a file, the
frames of a traceback, tests, or callers and callees.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from codeqa.asked import asks, question_pattern, word_list
from codeqa.code.calls import Call, RelationWalk, is_test, tests_of, unread
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

MOST_MEMBERS = 50
"""Members of a class that are listed."""

LINES_AROUND = 3
"""Lines shown before and after the one that a frame stands at."""

MOST_FRAMES = 5
"""Frames whose lines are shown; the others are named."""

MOST_TESTS = 20

TEST_NEAR_BEST = 0.65
"""A test is listed if it scores at least this part of the best."""

FRAME_CHARACTERS = 160

LEAST_WORTH, TYPED, LATER_LOSS = 0.3, 0.5, 0.02
"""A line that gives a value is quoted if it is worth more than LEAST_WORTH: the part of its name
that the question has, times the part of the question that the line and its definition have. A value
that is no literal counts half, and each place in the list of hits a little less."""

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
    """Answer which versions are required, what a file holds or which members a class has.

    Return the text, with the definitions of the file; '' and none for other questions.
    """
    if asks("versions", query.text):
        return versions_of(tables, query.words), ()
    if asks("file", query.text) and len(query.files) == 1:
        about = set(query.words) - QUESTION_WORDS - word_list("of_files")
        about -= set(words(query.files[0]))
        with suppress(CodeQAError):
            path = "" if about else one_file(tables, query.files[0])
            return outline_of(tables, path) if path else "", tables.in_file(path)
    if asks("members", query.text):
        names = list(query.names)
        names += [match[1] or match[2] for match in _OWNER.finditer(query.text)]
        units = tables.named(list(map(name_key, names)), SAME_NAME)
        # Of several the one in a file that is named, then in source.
        units.sort(key=lambda unit: (not unit.path.endswith(query.files), unit.role != "source"))
        for unit in units:
            text = members_of(unit) if unit.kind in CLASS_KINDS else ""
            if text:
                return text, ()
    return "", ()


def place_named(tables: Tables, match: re.Match[str]) -> tuple[str, Sequence[Unit]]:
    """Return the line or lines that a question names, and the definition around a line."""
    path, line = match["path"] or match["file"], int(match["line"] or match["of"])
    last = int(match["last"] or match["until"] or line)
    units: list[Unit] = []
    with suppress(CodeQAError):
        units = tables.in_file(one_file(tables, path))
    inner = smallest_around(units, line)
    if inner is None:
        return "", ()
    around = [unit for unit in units if unit.start_line <= line <= unit.end_line]
    outer = max(around, key=lambda unit: min(unit.end_line, last) - unit.start_line)
    source = inner if last == line else outer
    lines, start = source.source_code.split("\n"), source.start_line
    code = "\n".join(lines[line - start : last - start + 1])
    place = cite(inner.path, line, min(last, start + len(lines) - 1))
    title = f"{place} in {code_span(inner.qualified_name)}" if inner.is_method else f"{place} "
    if last > line:
        block = code_block(textwrap.dedent(code), inner.language, place.strip("[]"))
        return joined([title, block]), ()
    if code.strip():
        title = f"**{code_span(code.strip()[:LINE_CHARACTERS])}** {title}"
    return title, [_around(inner, line)]


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
    doc, by_depth = doc_lines(unit), dict[int, list[tuple[int, str]]]()
    for n, line in enumerate(unit.source_code.split("\n"), unit.start_line):
        if _DECLARES.match(line) and not (COMMENT_LINE.match(line) or is_doc(line, doc)):
            depth = len(line) - len(line.lstrip())
            by_depth.setdefault(depth, []).append((n, line.strip()))
    if len(by_depth) < 2:
        return ""
    members = by_depth[sorted(by_depth)[1]]
    if unit.kind == "enum":
        members = [(n, line) for n, line in members if _VARIANT.match(line)]
    items: list[str] = []
    for n, line in members:
        code = code_span(line.rstrip(" {,;(")[:LINE_CHARACTERS])
        items.append(f"- {code} {cite(unit.path, n, n)}")
    title = f"**{unit_title(unit)}** · {unit.kind} {cite_unit(unit)} declares {len(items):,}:"
    return bullet_list(title, items[:MOST_MEMBERS], len(items[MOST_MEMBERS:]))


def value_line(query: Query, hits: Iterable[Hit]) -> str:
    """Quote the line that gives a value to what the question names; '' for none.

    That answers a question about a value, or about a member of a definition.
    """
    units = [hit.unit for hit in hits if not is_test(hit.unit)]
    members = set(query.names).difference(unit.name for unit in units)
    if not (_VALUE_ASKED.search(query.text) or (members and asks("meaning", query.text))):
        return ""
    terms = name_parts(word for word in query.words if not word.startswith("value"))
    if not terms:
        return ""
    best, text = LEAST_WORTH, ""
    for index, unit in enumerate(units):
        own = name_parts(words(f"{unit.path} {unit.qualified_name}"))
        for n, line, match in _values_in(unit):
            name = {stem(part) for part in split_identifier(match["key"])}
            if not name:
                continue
            present = (name | own | name_parts(words(line))) & terms
            worth = len(name & terms) / len(name) * len(present) / len(terms)
            worth *= (1 if _LITERAL.match(line, match.end()) else TYPED) - index * LATER_LOSS
            if worth > best:
                best, number = worth, unit.start_line + n
                text = f"**{code_span(line.strip()[:LINE_CHARACTERS])}** "
                text += cite(unit.path, number, number)
                if members and (comment := _comment_above(unit, n)):
                    text += f": {comment}"
    return text


def _values_in(unit: Unit) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Yield index, text and match of the lines of code that give a value."""
    doc = doc_lines(unit)
    for n, line in enumerate(unit.source_code.split("\n")):
        if COMMENT_LINE.match(line) or is_doc(line, doc):
            continue
        for match in _GIVES.finditer(line):
            if line.count('"', 0, match.start()) % 2 == 0:  # not in a text
                yield n, line, match


def _comment_above(unit: Unit, number: int) -> str:
    """Return the comment above a line of the unit, in a line."""
    lines, comment = unit.source_code.split("\n")[:number], list[str]()
    while lines and COMMENT_LINE.match(lines[-1]):
        comment.insert(0, COMMENT_MARKS.sub("", lines.pop()).rstrip("*/ "))
    return inline(" ".join(" ".join(comment).split()))


def traceback_section(tables: Tables, result: SearchResult) -> str:
    """List the frames of a traceback that lie in this repository; '' without a traceback."""
    raised = result.query.traceback
    if raised is None:
        return ""
    frames = frames_here(tables, raised.frames)
    error = f"**{inline(raised.error)}**\n\n" if raised.error else ""
    if not frames:
        return f"{error}None of its frames is in this repository."
    number = f"{len(frames):,} of its {counted(len(raised.frames), 'frame')}"
    title = f"{error}In this repository: {number}, the innermost first:"
    items = [_frame(unit, line, n < MOST_FRAMES) for n, (unit, line) in enumerate(frames)]
    return bullet_list(title, items)


def _frame(unit: Unit, line: int, with_code: bool) -> str:
    lines, index = unit.source_code.split("\n"), line - unit.start_line
    code = textwrap.shorten(lines[index], FRAME_CHARACTERS, placeholder=" …")
    item = f"- {cite(unit.path, line, line)} in {code_span(unit.qualified_name)}: {code_span(code)}"
    near = lines[max(0, index - LINES_AROUND) : index + LINES_AROUND + 1]
    if with_code and max(map(len, near)) <= FRAME_CHARACTERS:
        block = textwrap.dedent("\n".join(near))
        item += f"\n\n{code_block(block, unit.language)}\n"
    return item


def tests_section(tables: Tables, result: SearchResult) -> str:
    """List the tests that use what is asked about or hold its words; '' for other questions."""
    subject = question_pattern("testing").sub(" ", result.query.text)
    if not asks("tests", result.query.text) or not says_something(subject):
        return ""
    about = with_words(result.query, subject)
    uses: dict[str, str] = {}
    for hit in _ranked(tables, about, "source")[:1]:
        if hit.unit.name in about.names or about.symbol_like:
            for test in tests_of(tables, hit.unit):
                uses[test.caller.id] = f": uses {code_span(test.called.qualified_name)}"
    hits = _ranked(tables, about, "test")
    near = [hit.unit.id for hit in hits if hit.score >= TEST_NEAR_BEST * hits[0].score]
    tests: dict[str, tuple[Unit, str]] = {}
    for unit in tables.by_ids(list(uses) + list(near)):
        if unit.is_method or unit.kind == "chunk":
            # A function inside a test says less than the test.
            methods = [method for method in tables.in_file(unit.path) if method.is_method]
            outer = next((method for method in methods if method.end_line >= unit.end_line), unit)
            tests.setdefault(outer.span, (outer, uses.get(unit.id, "")))
    if not tests:
        nothing = "**No test was found** that uses this or holds its words."
        return f"{nothing} {unread(tables, [])}".strip()
    files = list(dict.fromkeys(unit.path for unit, _ in tests.values()))
    listed = sorted(list(tests.values())[:MOST_TESTS], key=lambda pair: files.index(pair[0].path))
    items = [f"- {cite_unit(unit)} {code_span(unit.qualified_name)}{use}" for unit, use in listed]
    part = f"{len(items)} of " if len(tests) > len(items) else ""
    number = f"**{part}{counted(len(tests), 'test')}** in {counted(len(files), 'file')}"
    title = f"{number}, found by the code that they use and by their words:"
    return bullet_list(title, items, len(tests) - len(items))


def _ranked(tables: Tables, query: Query, role: str) -> list[Hit]:
    """Search for the words of `query` in files of `role`, best first."""
    query = replace(query, filters=replace(query.filters, roles=(role,)))
    return rank(gather(tables, query), query)


def walk_section(walk: RelationWalk) -> str:
    """List where `walk` leads, a line each with the last call of the way."""
    about = ", ".join(code_span(unit.qualified_name) for unit in walk.start)
    for relation in walk.relations:
        about = _OF[relation].format(about)
    title = f"{about[0].upper()}{about[1:]}"
    return bullet_list(f"**{title}**:", map(_call, walk.calls)) or f"{title}: none was found."


def _call(call: Call) -> str:
    caller, called = code_span(call.caller.qualified_name), code_span(call.called.qualified_name)
    return f"- {caller} calls {called} {cite(call.caller.path, call.line, call.line)}"
