"""Questions that have an answer of their own kind: a pasted traceback, which tests, an overview."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from codeqa.code.calls import tests_of
from codeqa.code.descriptions import bullet_list, cite_unit
from codeqa.code.overview import overview_of
from codeqa.search import Query, SearchResult, says_something
from codeqa.search.channels import gather
from codeqa.search.mentions import frames_here
from codeqa.search.query import with_words
from codeqa.search.ranking import rank
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_block, code_span
from codeqa.types import Hit, Unit

AROUND = 3
"""Lines shown before and after the one that a frame stands at."""
FRAMES = 5
"""Frames whose lines are shown; the others are named."""
TESTS = 20
NEAR = 0.65
"""A test is listed that scores at least this part of the best."""
LONGEST_LINE = 160


def answer_of_own_kind(tables: Tables, result: SearchResult) -> tuple[str, bool]:
    """As Markdown, what a question of its own kind asks for, and whether it is the whole answer;
    '' for any other question."""
    if found := _traceback(tables, result) or _tests(tables, result):
        return found, False
    return overview_of(tables) if result.query.overview else "", True


# A traceback: the code that its frames stand in.


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
    near = [hit.unit.id for hit in hits if hit.score >= NEAR * hits[0].score]
    found: dict[str, tuple[Unit, str]] = {}
    for unit in tables.by_ids(list(dict.fromkeys((*told, *near)))):
        if unit.is_method or unit.kind == "chunk":
            # A function inside a test says less than the test.
            around = (one for one in tables.in_file(unit.path) if one.is_method)
            outer = next((one for one in around if one.end_line >= unit.end_line), unit)
            found.setdefault(outer.location, (outer, told.get(unit.id, "")))
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
