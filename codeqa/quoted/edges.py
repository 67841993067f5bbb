"""What a definition calls, where it is used, and where the edges lead that a follow-up asks for."""

from __future__ import annotations

import re
import textwrap
from pathlib import PurePosixPath

from codeqa.code.calls import Call, Walk, callees
from codeqa.code.counted import place_item
from codeqa.code.descriptions import bullet_list, cite_unit, first_sentence
from codeqa.code.tools.edges import use_places
from codeqa.code.usages import CANDIDATES, usages
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_span
from codeqa.types import METHOD_KINDS, Unit

CALLS = 8
"""Definitions listed that one calls."""
TRIVIAL_LINES = 3
"""A callee so short and without a doc comment is an accessor, and not listed."""
SIGNATURE = 80
"""Characters of a signature that stands for a doc comment."""
USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
TESTS = 3
"""Tests among them, unless there is little else."""

_ASKS_HOW = re.compile(
    r"\b(?:how (?!many|much|often|long|old)|what happens|what if|why\b|(?:which|what) order)",
    re.IGNORECASE,
)
_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


def asks_how(text: str) -> bool:
    """Whether the question is about a course of events rather than about a place."""
    return _ASKS_HOW.search(text) is not None


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


def uses_section(tables: Tables, unit: Unit, *, listed: bool, asked: bool = False) -> str:
    """How often `unit` is used, and where `listed` in which places: the surest, source before
    tests. '' for nowhere, unless that was `asked` for."""
    sites = usages(tables, unit, limit=CANDIDATES).references
    places, in_tests = use_places(tables, sites, "call")
    times = counted(len(sites), "place")
    if in_tests:
        times += ", in tests" if in_tests == len(sites) else f", {in_tests:,} of them in tests"
    if not sites:
        return "No place that uses it was found." if asked else ""
    if not listed:
        return f"Used in {times}."
    # What calls it before what only imports it, source before examples.
    tests = [place for place in places if role_of(place.path) == "test"]
    source = [place for place in places if place not in tests]
    source.sort(key=lambda place: (role_of(place.path) != "source", place.kind == "import"))
    most = USES_ASKED if asked else USES
    shown = [*source[:most], *tests[: TESTS if source else USES]]
    left = len(sites) - sum(place.times for place in shown)
    note = ", in tests" if len(source) <= most else ""
    return bullet_list(f"**Used in {times}**:", map(place_item, shown), left, note)
