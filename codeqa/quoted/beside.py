"""Look up what stands beside a definition in an answer.

That is what calls it and what it calls, the values of its constants, and the definition that
decides where it only hands on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from codeqa.code.calls import callees, callers, is_test
from codeqa.code.counted import place_item
from codeqa.code.descriptions import bullet_list, cite_unit
from codeqa.code.tools.references import use_spans
from codeqa.code.tools.search import CAPITALS, constants
from codeqa.code.usages import usages
from codeqa.quoted.hits import LINE_CHARACTERS, SAME_NAME, held_words, name_parts, repeats
from codeqa.search.query import Query
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.markdown import cite, code_span
from codeqa.text.tokens import name_key, words
from codeqa.types import Hit, Unit

MOST_CALLERS = 5
"""Callers and callees of the best unit that are named."""

MOST_CONSTANTS = 4
"""Constants that a body only names, whose values are quoted."""

FOLLOWED_LINES, HELD = 30, 3
"""Lines of a definition whose callee is shown too, and words of the question that it holds."""

_CLOSED = re.compile(r"""(?:[\w\])}"'])[;,]?\s*(?:(?://|\#).*)?$""")
"""A value ends in its line."""


class _DefiningCode(NamedTuple):
    """The definition of a constant: its place and its code."""

    path: str
    line: int
    code: str


def callers_line(tables: Tables, unit: Unit) -> str:
    """Say what `unit` surely calls, and what surely calls it; tests are counted."""
    users, tests = list[str](), 0
    for call in callers(tables, unit)[0]:
        name = code_span(call.caller.qualified_name or call.caller.path)
        if is_test(call.caller):
            tests += 1
        else:
            users.append(f"{name} {cite(call.caller.path, call.line, call.line)}")
    users = _first(users)
    if tests and not is_test(unit):
        users.append(counted(tests, "test"))
    called = [call.called for call in callees(tables, unit) if call.sure]
    names = _first([f"{code_span(callee.qualified_name)} {cite_unit(callee)}" for callee in called])
    sentences = [f"Calls {', '.join(names)}."] if names else []
    if users:
        sentences.append(f"Called by {', '.join(users)}.")
    return " ".join(sentences)


def _first(items: list[str]) -> list[str]:
    """Return the first MOST_CALLERS items, and how many more there are as another."""
    left = len(items) - MOST_CALLERS
    return items[:MOST_CALLERS] + [f"{left:,} more"] if left > 0 else items


def use_lines(tables: Tables, unit: Unit) -> str:
    """List the lines that use a constant or a class, source before tests."""
    groups = use_spans(tables, usages(tables, unit), "use")
    lines = [span for span, in_test in groups if not in_test and span.kind != "import"]
    left = max(0, len(lines) - MOST_CALLERS)
    return bullet_list("**Used in**:", map(place_item, lines[:MOST_CALLERS]), left)


def values_named(tables: Tables, unit: Unit) -> str:
    """Quote the constants that `unit` names: those of its file, or the only one so called."""
    names = list(dict.fromkeys(CAPITALS.findall(unit.source_code)))
    if not names:
        return ""
    definitions_by_name: dict[str, list[_DefiningCode]] = {}
    for definition in tables.named(list(map(name_key, names)), SAME_NAME * len(names)):
        span = _DefiningCode(definition.path, definition.start_line, definition.source_code)
        definitions_by_name.setdefault(definition.name, []).append(span)
    for head in [part for part in tables.in_file(unit.path) if part.is_head]:
        for number, line in constants(head.source_code.split("\n")):
            span = _DefiningCode(head.path, head.start_line + number - 1, line)
            for name in CAPITALS.findall(line.partition("=")[0]):
                definitions_by_name.setdefault(name, []).append(span)
    values: list[str] = []
    for name in names:
        own = definitions_by_name.get(name, [])
        own = [span for span in own if span.path == unit.path] or own
        if len({span[:2] for span in own}) != 1:
            continue
        path, first, code = own[0]
        lines = enumerate(code.split("\n"), first)
        n, line = next(((n, line) for n, line in lines if name in line and "=" in line), (0, ""))
        inside = path == unit.path and unit.start_line <= n <= unit.end_line
        if _CLOSED.search(line) and not inside:
            values.append(f"{code_span(line.strip()[:LINE_CHARACTERS])} {cite(path, n, n)}")
    return f"With {', '.join(values[:MOST_CONSTANTS])}." if values else ""


def followed(tables: Tables, main: Sequence[Hit], query: Query) -> list[Hit]:
    """Return the callee of the first of `main` if that is short; of a constant its shortest user.

    What decides is often one call away. The callee has a similar name or holds words of the
    question.
    """
    first = main[0].unit if main else None
    if first and first.kind == "constant":
        users = [call.caller for call in callers(tables, first, 0.0)[0]]
        users = [unit for unit in users if not (is_test(unit) or repeats(unit, main))]
        shortest = min(users, key=lambda unit: len(unit.source_code), default=None)
        return [Hit(shortest, 1.0)] if shortest else []
    if not first or not first.is_method:
        return []
    if first.source_code.count("\n") - first.doc_comment.count("\n") > FOLLOWED_LINES:
        return []
    own = name_parts(words(first.name))
    for call in callees(tables, first):
        unit = call.called
        if not call.sure or not unit.is_method or is_test(unit) or repeats(unit, main):
            continue
        if own & name_parts(words(unit.name)) or len(held_words(unit, query.words)) >= HELD:
            return [Hit(unit, 1.0)]
    return []
