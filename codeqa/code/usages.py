"""Find where a definition is used: the edges of its name, ranked by the evidence for each.

A method counts together with those that it overrides (`inheritance.py`). Edges have only a name.
Which definition in another file it means is decided here, at the time of a question, so that
editing one file never rewrites another's rows. A name that merely looks alike has a low confidence
and is never presented as certain.
"""

from __future__ import annotations

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
from codeqa.repository.classify import role_of
from codeqa.search.mentions import smallest_around
from codeqa.store import Tables
from codeqa.text.tokens import last_word
from codeqa.types import ROLES, TEXT_KINDS, Reference, Unit

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


def usages(tables: Tables, unit: Unit, *, alone: bool = False) -> list[UsageSite]:
    """Find where `unit` is used, the surest first, source before tests.

    Unless `alone`, a method counts together with those of bases and interfaces that it overrides,
    and with those that override it, for the object decides which of them runs.
    """
    if unit.kind in TEXT_KINDS or not unit.name:
        return []
    # A constructor is called by the name of its class.
    of_class = unit.kind == "constructor" and unit.class_name
    name = last_word(unit.class_name) if of_class else unit.name
    tables = tables.around(unit.path)
    references = tables.references(name=[name], limit=MOST_EDGES)
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
