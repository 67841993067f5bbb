"""What is told beside a definition: what calls it and what it calls, the values of constants, and
what decides where it only hands on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeqa.code.calls import callees, callers, is_test
from codeqa.code.counted import place_item
from codeqa.code.descriptions import bullet_list, cite_unit
from codeqa.code.tools.edges import use_places
from codeqa.code.tools.search import CAPITALS, constants
from codeqa.code.usages import usages
from codeqa.quoted.hits import LINE_CHARACTERS, SAME_NAME, held_words, name_parts, repeats
from codeqa.search.query import Query
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.markdown import cite, code_span
from codeqa.text.tokens import name_key, words
from codeqa.types import Hit, Unit

CALLERS = 5
"""Callers and callees of the best unit that are told, in a line each."""

CONSTANTS = 4
"""Constants that a body only names, whose values are told."""

FOLLOW, HELD = 30, 3
"""Lines of a definition whose callee is shown too, and words of the question that this holds."""

_CLOSED = re.compile(r"""(?:[\w\])}"'])[;,]?\s*(?:(?://|\#).*)?$""")
"""A value ends in its line."""


def callers_line(tables: Tables, unit: Unit) -> str:
    """Say what `unit` surely calls, and what surely calls it, a line each; tests are counted."""
    users, _ = callers(tables, unit)
    tests = sum(is_test(one.caller) for one in users)
    calling = [one for one in users if not is_test(one.caller)]
    by = _first([
        f"{code_span(one.caller.qualified_name or one.caller.path)} "
        f"{cite(one.caller.path, one.line, one.line)}"
        for one in calling
    ])  # fmt: skip
    if tests and not is_test(unit):
        by.append(counted(tests, "test"))
    called = [one.called for one in callees(tables, unit) if one.sure]
    calls = _first([f"{code_span(one.qualified_name)} {cite_unit(one)}" for one in called])
    lines = [("Calls", calls), ("Called by", by)]
    return " ".join(f"{title} {', '.join(items)}." for title, items in lines if items)


def _first(items: list[str]) -> list[str]:
    """Return the first CALLERS items, and how many more there are as another."""
    left = len(items) - CALLERS
    return [*items[:CALLERS], f"{left:,} more"] if left > 0 else items


def use_lines(tables: Tables, unit: Unit) -> str:
    """List the lines that use a constant or a class, source before tests."""
    places = use_places(tables, usages(tables, unit), "use")
    shown = [place for place, in_test in places if not in_test and place.kind != "import"]
    left = len(shown) - CALLERS
    return (
        bullet_list("**Used in**:", map(place_item, shown[:CALLERS]), max(0, left)) if shown else ""
    )


def values_named(tables: Tables, unit: Unit) -> str:
    """The values of the constants that `unit` names, in a line: of its file, or alone so called."""
    named = dict.fromkeys(CAPITALS.findall(unit.source_code))
    found = tables.named(list(map(name_key, named)), SAME_NAME * len(named)) if named else []
    places = [(one.name, one.path, one.start_line, one.source_code) for one in found]
    heads = [one for one in tables.in_file(unit.path) if one.is_head] if named else []
    places += [
        (name, head.path, head.start_line + number - 1, line)
        for head in heads
        for number, line in constants(head.source_code.split("\n"))
        for name in CAPITALS.findall(line.partition("=")[0])
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


def followed(tables: Tables, main: Sequence[Hit], query: Query) -> list[Hit]:
    """What the first of `main` calls, where that is short and is called like it or holds words of
    the question: what decides is often one call away."""
    first = main[0].unit if main else None
    if first and first.kind == "constant":
        users = (call.caller for call in callers(tables, first, 0.0)[0] if not is_test(call.caller))
        others = [unit for unit in users if not repeats(unit, main)]
        shortest = min(others, key=lambda unit: len(unit.source_code), default=None)
        return [Hit(shortest, 1.0)] if shortest else []
    if not first or not first.is_method:
        return []
    if first.source_code.count("\n") - first.doc_comment.count("\n") > FOLLOW:
        return []
    own = name_parts(words(first.name))
    for call in callees(tables, first):
        unit = call.called
        near = own & name_parts(words(unit.name)) or len(held_words(unit, query.words)) >= HELD
        if call.sure and near and unit.is_method and not (is_test(unit) or repeats(unit, main)):
            return [Hit(unit, 1.0)]
    return []
