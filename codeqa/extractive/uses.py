"""Where a definition is used, in words: the source that calls it, then tests."""

from __future__ import annotations

from codeqa.code import UsageSite, usages
from codeqa.code.cited import NOTHING, Cited, cited_list, line_item
from codeqa.code.surroundings import CANDIDATES
from codeqa.repository.roles import role_of
from codeqa.store import Tables
from codeqa.text import counted
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import code_span
from codeqa.types import TEXT_KINDS, Unit

USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
TESTS = 3
"""Tests among them, unless there is little else."""


def uses_section(tables: Tables, unit: Unit, *, listed: bool, asked: bool = False) -> Cited:
    """How often `unit` is used, and where `listed` in which places: the surest, source before
    tests. '' for nowhere, unless that was `asked` for."""
    sites = _sites(tables, unit)
    tests = [site for site in sites if role_of(site.reference.path) == "test"]
    times = counted(len(sites), "place")
    if tests:
        times += ", in tests" if len(tests) == len(sites) else f", {len(tests):,} of them in tests"
    if not sites:
        return Cited("No place that uses it was found.") if asked else NOTHING
    if not listed:
        return Cited(f"Used in {times}.")
    # What calls it before what only imports it, source before examples.
    source = [site for site in sites if role_of(site.reference.path) != "test"]
    source.sort(key=lambda o: (role_of(o.reference.path) != "source", o.reference.kind == "import"))
    source_shown = source[: USES_ASKED if asked else USES]
    shown = [*source_shown, *tests[: TESTS if source else USES]]
    around = {
        one.id: one.qualified_name
        for one in tables.by_ids([site.reference.unit_id for site in shown])
        if one.kind not in TEXT_KINDS
    }
    items = [_item(site, around.get(site.reference.unit_id, "")) for site in shown]
    note = ", in tests" if len(source_shown) == len(source) else ""
    return cited_list(f"**Used in {times}**:", items, len(sites) - len(shown), note)


def _sites(tables: Tables, unit: Unit) -> list[UsageSite]:
    """The places of use; two uses on one line are one place to read."""
    lines: dict[tuple[str, int], UsageSite] = {}
    for site in usages(tables, unit, limit=CANDIDATES).references:
        lines.setdefault((site.reference.path, site.reference.line), site)
    return list(lines.values())


def _item(site: UsageSite, inside: str) -> Cited:
    around = f" in {code_span(inside)}" if inside else ""
    told = f"{around}, {site.sureness}: {inline(site.reason)}"
    return line_item(site.reference.path, site.reference.line, told, inside)
