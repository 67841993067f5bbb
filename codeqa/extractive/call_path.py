"""How something works, as a path: the definition that explains it and what it calls, in the order
of its text, two levels deep; and where the edges lead that a follow-up asks for.

Of the best hits the one leads that does most of what the others are about: a method that calls
several of them explains the flow, a stub or a wrapper around one call explains nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from codeqa.context.statements import statements
from codeqa.extractive.cited import Cited, cited_list, named, together
from codeqa.extractive.doc_comment import inline
from codeqa.extractive.excerpt import first_sentence
from codeqa.search import Query
from codeqa.store import Tables
from codeqa.symbols.callees import Call, callees
from codeqa.symbols.relations import EdgeCall, Walk, follow_relations, is_test
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_span
from codeqa.types import METHOD_KINDS, Hit, Unit

LEADERS = 10
"""Best hits of which one may lead."""
NEAR_BEST = 0.7
"""What a leader calls counts when it scores at least this part of the best hit: below there is
noise (`unpack`, `len`)."""
CALLED_WEIGHT = 0.5
"""What a leader calls, against the leader's own score."""
LEAST_WORTH = 0.7
"""Of a leader: with less, what was found explains itself better."""
CAUGHT_WEIGHT = 2.0
"""What is called by what catches failures, when the question is about one."""
CALLERS = 4
"""Best methods whose callers may lead an answer on what happens to a failure."""
STEPS = 12
FIRST_LEVEL = 8
BELOW_ONE = 3
"""Lines of the path, and at most of them on the first level, and below one of those."""
TRIVIAL_LINES = 3
"""A callee so short and without a doc comment is an accessor, and no step."""
SIGNATURE = 80
"""Characters of a signature that stands for a doc comment."""
STEP_KINDS = METHOD_KINDS - {"constructor"}

_ASKS_HOW = re.compile(
    r"\b(?:how (?!many|much|often|long|old)|what happens|what if|why\b|(?:which|what) order)",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\b(?:rais(?:es?|ed|ing)|throw(?:s|n)?|panic(?:s|ked)?|fail(?:s|ed|ures?)?|crash(?:es|ed)?"
    r"|errors?|exceptions?)\b",
    re.IGNORECASE,
)
_CATCHES = re.compile(r"\b(?:except|catch|rescue|catch_unwind|pcall)\b")
_OF = {"callers": "the callers of {}", "callees": "what {} calls", "tests": "the tests of {}"}


@dataclass(frozen=True, slots=True)
class Step:
    """A definition on the path; `depth` is 1 for what the leader calls, 2 below that."""

    unit: Unit
    depth: int


@dataclass(frozen=True, slots=True)
class CallPath:
    """What explains the flow: the leader and what it calls."""

    leader: Hit
    steps: tuple[Step, ...]
    caller: Unit | None = None
    """The one definition that calls the leader, where there is one."""
    around: tuple[Unit, ...] = ()
    """What that calls, the leader among it."""

    def ids(self) -> set[str]:
        """Of everything that is named."""
        steps = (step.unit for step in self.steps)
        units = (self.leader.unit, *steps, *filter(None, [self.caller]), *self.around)
        return {unit.id for unit in units}


def asks_how(text: str) -> bool:
    """Whether the question is about a course of events rather than about a place."""
    return _ASKS_HOW.search(text) is not None


def find_path(tables: Tables, query: Query, hits: Sequence[Hit]) -> CallPath | None:
    """The path of the hit that explains the flow; None where no hit calls anything."""
    found = {hit.unit.id: hit for hit in hits}
    best = hits[0].score or 1.0 if hits else 1.0
    scores = {key: hit.score / best for key, hit in found.items()}
    failure = _FAILURE.search(query.text) is not None

    @cache
    def called(unit: Unit) -> list[Call]:
        calls = callees(tables, unit, searched=scores)
        return [call for call in calls if _is_step(unit, call, scores)]

    def callers(units: Sequence[Unit]) -> list[Unit]:
        calling = (one.unit for one in follow_relations(tables, units, ("callers",)))
        return [one for one in calling if one.is_method and one.role == "source"]

    def worth(unit: Unit) -> float:
        catches = failure and _CATCHES.search(unit.source_code)
        own = scores.get(unit.id, 0.0)
        weight = own
        for call in called(unit):
            score = scores.get(call.unit.id, 0.0)
            if score >= NEAR_BEST and _explains(call.unit):
                weight += score * (CALLED_WEIGHT * own + CAUGHT_WEIGHT * bool(catches))
        return weight

    leaders = [hit.unit for hit in hits[:LEADERS] if _explains(hit.unit)]
    # Of what the question names the flow is asked for.
    leaders = [one for one in leaders if one.name in (*query.names, *query.subjects)] or leaders
    if failure:
        leaders += filter(_explains, callers(leaders[:CALLERS]))
    leader = max(filter(called, leaders), key=worth, default=None)
    if leader is None or worth(leader) < LEAST_WORTH:
        return None
    calling = callers([leader])
    caller = calling[0] if len(calling) == 1 else None
    around = [call.unit for call in called(caller)][:FIRST_LEVEL] if caller else []
    seen = {unit.id for unit in (leader, *calling)}
    steps = tuple(_steps(leader, called, scores, seen))
    return CallPath(
        found.get(leader.id) or Hit(leader, best), steps, caller, tuple(around[:FIRST_LEVEL])
    )


def path_section(path: CallPath) -> Cited:
    """One line for each step."""
    called_by: list[Cited] = []
    if path.caller:
        called_by = [Cited("Called by "), named(path.caller), Cited(".")]
    if len(path.around) > 1:
        leader = path.leader.unit
        this = Cited(f"this ({code_span(leader.name)})")
        names = (this if one.id == leader.id else named(one) for one in path.around)
        called_by[2:2] = [Cited(", which calls "), together(names, ", ")]
    steps = cited_list("**What it calls, in this order:**", map(_step_item, path.steps))
    return together([together(called_by, ""), steps])


def _step_item(step: Step) -> Cited:
    told = inline(first_sentence(step.unit.doc_comment))
    told = told or code_span(textwrap.shorten(step.unit.signature, SIGNATURE, placeholder=" …"))
    name = named(step.unit)
    return Cited(f"{'  ' * (step.depth - 1)}- {name.text}: {told}", name.lines)


def is_thin(unit: Unit) -> bool:
    """Whether a definition does nothing itself: a stub, or a wrapper around one call."""
    lines = unit.source_code.split("\n")
    found = statements(unit.source_code, unit.language)
    body = [one for one in found if one.parent == 0 and one.first < one.end]
    code = [one for one in body if lines[one.first].strip()[:1] not in ("'", '"')]
    return len(code) <= 1 and all(one.parent <= 0 for one in found)


def _explains(unit: Unit) -> bool:
    return unit.is_method and unit.role == "source" and not is_test(unit) and not is_thin(unit)


def _is_step(unit: Unit, call: Call, scores: Mapping[str, float]) -> bool:
    """Whether what `unit` calls is worth a line: found by the search, or no accessor and near."""
    called = call.unit
    if called.role != "source":
        return False
    near = call.sure or PurePosixPath(called.path).parent == PurePosixPath(unit.path).parent
    short = called.end_line - called.start_line < TRIVIAL_LINES and not called.doc_comment
    return called.id in scores or (near and not short and called.kind in STEP_KINDS)


def _steps(
    leader: Unit,
    called: Callable[[Unit], list[Call]],
    scores: Mapping[str, float],
    seen: set[str],
) -> Iterable[Step]:
    """What `leader` calls and what that calls, in order; where not all has room, what the search
    found goes before what it did not find."""

    def chosen(unit: Unit, most: int) -> list[Unit]:
        new = [call.unit for call in called(unit) if call.unit.id not in seen]
        best = sorted(new, key=lambda one: -scores.get(one.id, 0.0))[:most]
        kept = [one for one in new if one in best]
        seen.update(one.id for one in kept)
        return kept

    first = chosen(leader, FIRST_LEVEL)
    room = STEPS - len(first)
    for unit in first:
        yield Step(unit, 1)
        below = chosen(unit, min(BELOW_ONE, room))
        room -= len(below)
        yield from (Step(one, 2) for one in below)


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
