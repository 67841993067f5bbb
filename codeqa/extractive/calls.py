"""What a definition calls, in the order of its text, and where the edges lead that a follow-up asks
for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import PurePosixPath

from codeqa.code.calls import Call, callees
from codeqa.code.cited import Cited, cited_list, named
from codeqa.code.documentation import first_sentence
from codeqa.code.relations import Walk
from codeqa.store import Tables
from codeqa.text.citation_format import ShownLines
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_span
from codeqa.types import METHOD_KINDS, Unit

CALLS = 8
"""Definitions listed that one calls."""
TRIVIAL_LINES = 3
"""A callee so short and without a doc comment is an accessor, and not listed."""
SIGNATURE = 80
"""Characters of a signature that stands for a doc comment."""

_ASKS_HOW = re.compile(
    r"\b(?:how (?!many|much|often|long|old)|what happens|what if|why\b|(?:which|what) order)",
    re.IGNORECASE,
)
_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


def asks_how(text: str) -> bool:
    """Whether the question is about a course of events rather than about a place."""
    return _ASKS_HOW.search(text) is not None


def calls_section(tables: Tables, unit: Unit) -> Cited:
    """A line for each definition of the source that `unit` calls, accessors left out."""
    called = [call.called for call in callees(tables, unit) if _is_told(unit, call)]
    return cited_list("**What it calls, in this order:**", map(_call_item, called[:CALLS]))


def _call_item(unit: Unit) -> Cited:
    told = inline(first_sentence(unit.doc_comment))
    told = told or code_span(textwrap.shorten(unit.signature, SIGNATURE, placeholder=" …"))
    name = named(unit)
    return Cited(f"- {name.text}: {told}", name.lines)


def _is_told(unit: Unit, call: Call) -> bool:
    called = call.called
    near = call.sure or PurePosixPath(called.path).parent == PurePosixPath(unit.path).parent
    short = called.end_line - called.start_line < TRIVIAL_LINES and not called.doc_comment
    is_step = called.kind in METHOD_KINDS and called.kind != "constructor"
    return called.role == "source" and near and is_step and not short


def walk_section(walk: Walk) -> Cited:
    """What `walk` found, a line each with the calls on the way."""
    about = ", ".join(code_span(unit.qualified_name) for unit in walk.start)
    for relation in walk.relations:
        about = _OF[relation].format(about)
    title = f"{about[0].upper()}{about[1:]}"
    if not walk.found:
        return Cited(f"{title}: none was found.")
    return cited_list(f"**{title}**:", (_way(one.calls) for one in walk.found))


def _way(calls: Sequence[Call]) -> Cited:
    """`a` calls `b`, which calls `c`: each call with its place."""
    if (
        len(calls) > 1 and calls[0].caller == calls[1].called
    ):  # from the definition up to its callers
        calls = calls[::-1]
    told, last, places = "", None, list[ShownLines]()
    for call in calls:
        caller, line = call.caller, call.line
        name = code_span(caller.qualified_name)
        start = ", which" if caller == last else f"{'; ' if told else ''}{name}"
        callee = code_span(call.called.qualified_name)
        told += f"{start} calls {callee} {cite(caller.path, line, line)}"
        places.append(ShownLines(caller.path, line, line, caller.qualified_name))
        last = call.called
    return Cited(f"- {told}", tuple(places))
