"""Find where a definition is used: the edges of its name, ranked by the evidence for each.

A method counts together with those that it overrides (`inheritance.py`). Edges have only a name.
Which definition in another file it means is decided here, at the time of a question, so that
editing one file never rewrites another's rows. A name that merely looks alike has a low confidence
and is never presented as certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from codeqa.code.evidence import (
    LEAST_CONFIDENCE,
    LIKELY,
    MOST_EDGES,
    OWN_NAMES,
    SELF_NAMES,
    Surroundings,
    UsageSite,
)
from codeqa.code.imports import NONE
from codeqa.code.inheritance import is_abstract, overridden
from codeqa.code.names import language_name, related, same_named
from codeqa.languages import language_called
from codeqa.parsing.references import BARE_MEMBER
from codeqa.repository.classify import role_of
from codeqa.search.mentions import smallest_around
from codeqa.store import Tables
from codeqa.text.tokens import last_word
from codeqa.types import METHOD_KINDS, ROLES, TEXT_KINDS, Reference, Unit

THROUGH_BASE = 0.7
"""Upper limit for a call through a base class: the object decides which override runs."""
THROUGH_HEIR = 0.6
"""Upper limit for a call of an override of a method that has no code of its own."""
HEIR_OF_CONCRETE = 0.4
"""Upper limit for a call of an override of a method with code, which need not run."""
MOST_RELATED = 8
"""Methods of bases, and as many of heirs, whose calls count as calls of one method."""
MOST_JUDGED = 40
"""Definitions of one name that are weighed for one reference."""
_NO_USE = ("#", "//", "/*", "* ", "-- ", "import ", "from ", "use ", "using ", "package ")
"""Beginnings of comments and imports."""


def usages(
    tables: Tables, unit: Unit, *, alone: bool = False, reads: bool = False
) -> list[UsageSite]:
    """Find where `unit` is used, the surest first, source before tests.

    Unless `alone`, a method counts together with those of bases and interfaces that it overrides,
    and with those that override it, for the object decides which of them runs. With `reads` the
    code is searched for a member that is named without a call.
    """
    if unit.kind in TEXT_KINDS or not unit.name:
        return []
    # A constructor is called by the name of its class.
    of_class = unit.kind == "constructor" and unit.class_name
    name = last_word(unit.class_name) if of_class else unit.name
    tables = tables.around(unit.path)
    references = tables.references(name=[name], limit=MOST_EDGES)
    uncalled = reads_of(tables, name, references, unit) if reads else []
    references += uncalled
    around = Surroundings(tables, unit, name, references)
    sites = around.judged()
    relatives: list[tuple[Unit, Unit | None, float]] = []
    if references and not alone:
        most = THROUGH_HEIR if is_abstract(unit) else HEIR_OF_CONCRETE
        methods = overridden(tables, unit)[:MOST_RELATED]
        relatives += [(method, base, THROUGH_BASE) for method, base in methods]
        relatives += [(method, None, most) for method in around.overriding[:MOST_RELATED]]
    for method, base, most in relatives:
        others = Surroundings(tables, method, name, references, heirs=False).judged()
        for reference, site in others.items():
            confidence, own = min(site.confidence, most), sites.get(reference)
            surer = own is None or own.confidence < confidence
            if surer and _may_mean_other(reference, base):
                sites[reference] = UsageSite(reference, confidence, method.qualified_name)
    return sorted(sites.values(), key=_order)


def reads_of(
    tables: Tables, name: str, edges: Iterable[Reference], unit: Unit | None = None
) -> list[Reference]:
    """Return where the code names a member without a call, to read or set it: `w.area + 1`.

    The index holds few of these, `edges`, which are left out. `unit` is the member, if known: where
    the code around names its class, the object is taken to be of it.
    """
    if not name.isidentifier() or tables.catalogue().large:
        return []
    units, bare, naming = tables.holding(rf"(\.|->|::){name}\b", MOST_EDGES), "", set[str]()
    if unit is not None:
        if not unit.class_name or unit.kind not in {*METHOD_KINDS, "constant"}:
            return []
        owner = last_word(unit.class_name)
        naming = {edge.unit_id for edge in tables.references(name=[owner], limit=MOST_EDGES)}
        units = [other for other in units if related(other.language, unit.language)]
        if language_called(unit.language).implicit_self:
            units, bare = units + tables.in_file(unit.path), r"|(?<![\w@$:.\"'])"
    form = re.compile(rf"(?:([\w.]{{0,80}})[?!]{{0,2}}(?:\.|->|::){bare}){name}\b(?!\s*\()")
    reads = {(edge.path, edge.line, edge.column): edge for edge in edges}
    count = len(reads)
    for around in sorted(units, key=lambda other: other.end_line - other.start_line):
        own = unit is not None and (around.path, around.class_name) == (unit.path, unit.class_name)
        for read in _named_in(around, name, form):
            is_own = read.receiver in {"", *OWN_NAMES}
            if unit is not None and (own if is_own else around.id in naming):
                confidence = LIKELY if read.receiver else BARE_MEMBER
                read = replace(read, target=unit.id, confidence=confidence)
            if read.receiver or own:  # the innermost comes first
                reads.setdefault((read.path, read.line, read.column), read)
    return list(reads.values())[count:][:MOST_EDGES]


def _named_in(around: Unit, name: str, form: re.Pattern[str]) -> Iterator[Reference]:
    """Yield where the code of `around` names a member, without its definitions and comments."""
    lines = around.source_code.split("\n") if language_called(around.language).grammar else ()
    for number, line in enumerate(lines, around.start_line):
        text = line.strip()
        is_own = around.name == name and text in around.signature
        if name not in line or is_own or text.startswith(_NO_USE):
            continue
        for match in form.finditer(line):
            column, receiver = match.end() - len(name) + 1, match[1] or "…" * (match[1] == "")
            yield Reference(around.path, number, column, name, "use", around.id, receiver)


def _may_mean_other(reference: Reference, owner: Unit | None) -> bool:
    """Return whether a call of a related method may be a call of the unit's.

    A `super()` call names one class. A `self` call may mean an override only if it stands in a base
    class (`owner`).
    """
    if reference.receiver in SELF_NAMES - OWN_NAMES or reference.receiver.startswith("super("):
        return False
    if reference.receiver not in OWN_NAMES:
        return True
    if owner is None or owner.path != reference.path:
        return False
    return owner.start_line <= reference.line <= owner.end_line


def _order(usage: UsageSite) -> tuple[float, int, int, str, int, int]:
    reference = usage.reference
    role = ROLES.index(role_of(reference.path))
    is_import = reference.kind == "import"
    return -usage.confidence, is_import, role, reference.path, reference.line, reference.column


def meant_at(tables: Tables, path: str, line: int, name: str) -> list[tuple[Unit, float]]:
    """Return the definitions that `name` in a line of a file may mean, the likeliest first.

    Each has a confidence from 0 to 1. If some are likely, only these; [] for what is defined
    elsewhere.
    """
    tables, language = tables.around(path), language_name(path)
    references = [edge for edge in tables.references(path=[path]) if edge.name == name]
    references = [edge for edge in references if edge.line == line]
    if decided := tables.by_ids([edge.target for edge in references if edge.target]):
        return [(unit, 1.0) for unit in decided]
    if not references:  # it is defined there, or a name that is no reference, as a variable's
        units = [unit for unit in tables.in_file(path) if unit.name == name and unit.is_definition]
        if around := smallest_around(units, line):
            return [(around, 1.0)]
    rated: list[tuple[Unit, float]] = []
    namesakes = [unit for unit in same_named(tables, name) if related(unit.language, language)]
    for unit in namesakes[:MOST_JUDGED]:
        confidence = LEAST_CONFIDENCE
        if references:
            sites = Surroundings(tables, unit, name, references).judged().values()
            confidence = max((site.confidence for site in sites), default=NONE)
        rated.append((unit, confidence))
    least = LIKELY if any(confidence >= LIKELY for _, confidence in rated) else LEAST_CONFIDENCE
    rated = [pair for pair in rated if pair[1] >= least]
    return sorted(rated, key=lambda pair: (-pair[1], ROLES.index(pair[0].role), pair[0].is_stub))
