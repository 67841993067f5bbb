"""Where edges lead from a definition, in words: its callers' callers, what it calls, its tests."""

from __future__ import annotations

from collections.abc import Sequence

from codeqa.symbols.relations import EdgeCall, Relation, Walk
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_span
from codeqa.types import Unit

_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


def walk_section(walk: Walk) -> str:
    """Markdown of what `walk` found, a line each with the calls on the way, cited."""
    about = _about(walk.start, walk.relations)
    title = f"{about[0].upper()}{about[1:]}"
    if not walk.found:
        return f"{title}: none was found."
    return f"**{title}**:\n\n" + "\n".join(f"- {_way(one.calls)}" for one in walk.found)


def _way(calls: Sequence[EdgeCall]) -> str:
    """`a` calls `b`, which calls `c`: each call with its place."""
    if len(calls) > 1 and calls[0][0] == calls[1][1]:  # from the definition up to its callers
        calls = calls[::-1]
    told, last = "", None
    for caller, called, line in calls:
        start = ", which" if caller == last else f"{'; ' if told else ''}{_name(caller)}"
        told += f"{start} calls {_name(called)} {cite(caller.path, line, line)}"
        last = called
    return told


def _name(unit: Unit) -> str:
    return code_span(unit.qualified_name)


def walk_spans(walk: Walk) -> list[ShownLines]:
    """The lines that are cited."""
    calls = {(caller, line) for one in walk.found for caller, _, line in one.calls}
    return [ShownLines(unit.path, line, line, unit.qualified_name) for unit, line in calls]


def _about(start: Sequence[Unit], relations: Sequence[Relation]) -> str:
    about = ", ".join(code_span(unit.qualified_name) for unit in start)
    for relation in relations:
        about = _OF[relation].format(about)
    return about
