"""Where edges lead from a definition, in words: its callers' callers, what it calls, its tests."""

from __future__ import annotations

from collections.abc import Sequence

from codeqa.extractive.cited import Cited, cited_list
from codeqa.symbols.relations import EdgeCall, Walk
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_span

_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


def walk_section(walk: Walk) -> Cited:
    """What `walk` found, a line each with the calls on the way."""
    about = ", ".join(code_span(unit.qualified_name) for unit in walk.start)
    for relation in walk.relations:
        about = _OF[relation].format(about)
    title = f"{about[0].upper()}{about[1:]}"
    if not walk.found:
        return Cited(f"{title}: none was found.")
    return cited_list(f"**{title}**:", (_way(one.calls) for one in walk.found))


def _way(calls: Sequence[EdgeCall]) -> Cited:
    """`a` calls `b`, which calls `c`: each call with its place."""
    if len(calls) > 1 and calls[0][0] == calls[1][1]:  # from the definition up to its callers
        calls = calls[::-1]
    told, last, places = "", None, list[ShownLines]()
    for caller, called, line in calls:
        name = code_span(caller.qualified_name)
        start = ", which" if caller == last else f"{'; ' if told else ''}{name}"
        callee = code_span(called.qualified_name)
        told += f"{start} calls {callee} {cite(caller.path, line, line)}"
        places.append(ShownLines(caller.path, line, line, caller.qualified_name))
        last = called
    return Cited(f"- {told}", tuple(places))
