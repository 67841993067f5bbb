"""Where a definition is used, in words: what reads that which it registers, then the source that
calls it, then tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codeqa.extractive.doc_comment import inline
from codeqa.repository.roles import role_of
from codeqa.store import Tables
from codeqa.symbols import UsageSite, usages
from codeqa.symbols.registered import Reader, readers
from codeqa.symbols.surroundings import CANDIDATES
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_span
from codeqa.types import TEXT_KINDS, Hit

USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
TESTS = 3
"""Tests among them, unless there is little else."""
_SURE = ((0.9, "certain"), (0.6, "likely"), (0.0, "possible"))
"""Confidence from which a place of use is called so."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Places that use a definition."""

    sites: tuple[tuple[UsageSite, str], ...] = ()
    """The surest, source before tests, each with the name of the unit around it, '' for none."""
    total: int = 0
    in_tests: int = 0
    """Lines, and those of them that are in tests."""
    readers: tuple[Reader, ...] = ()
    """What goes through the collection that it puts its parameters in."""

    def spans(self) -> list[ShownLines]:
        """The lines that are cited."""
        places = [(site.reference.path, site.reference.line, inside) for site, inside in self.sites]
        places += [(one.unit.path, one.line, one.unit.qualified_name) for one in self.readers]
        return [ShownLines(path, line, line, inside) for path, line, inside in places]


def find_uses(tables: Tables, hit: Hit, *, asked: bool, listed: bool) -> Uses:
    """Where `hit` is used: how often, and where `listed`, in which places."""
    # Two uses on one line are one place to read.
    lines: dict[tuple[str, int], UsageSite] = {}
    for site in usages(tables, hit.unit, limit=CANDIDATES).references:
        lines.setdefault((site.reference.path, site.reference.line), site)
    roles = [(role_of(path), site) for (path, _), site in lines.items()]
    tests = [site for role, site in roles if role == "test"]
    if not listed:
        return Uses(total=len(lines), in_tests=len(tests))
    # What calls it before what only imports it, source before examples.
    roles.sort(key=lambda one: (one[0] != "source", one[1].reference.kind == "import"))
    source = [site for role, site in roles if role != "test"]
    kept = source[: USES_ASKED if asked else USES]
    kept += tests[: max(TESTS, 0 if source else USES)]
    around = {
        unit.id: unit.qualified_name
        for unit in tables.by_ids([site.reference.unit_id for site in kept])
        if unit.kind not in TEXT_KINDS
    }
    sites = tuple((site, around.get(site.reference.unit_id, "")) for site in kept)
    read = tuple(readers(tables, hit.unit)) if asked else ()
    return Uses(sites, len(lines), len(tests), read)


def uses_section(uses: Uses, *, asked: bool) -> str:
    """Markdown of `uses`; '' where there are none and they were not `asked` for."""
    blocks = _read(uses.readers)
    times = f"{uses.total:,} place{'s' if uses.total != 1 else ''}"
    if uses.in_tests:
        all_of = uses.in_tests == uses.total
        times += ", in tests" if all_of else f", {uses.in_tests:,} of them in tests"
    if not uses.total:
        blocks += ["No place that uses it was found."] if asked and not blocks else []
    elif not uses.sites:
        blocks.append(f"Used in {times}.")
    else:
        more = uses.total - len(uses.sites)
        items = [_site(site, inside) for site, inside in uses.sites]
        shown = sum(role_of(site.reference.path) == "test" for site, _ in uses.sites)
        tests = ", in tests" if more == uses.in_tests - shown else ""
        items += [f"- and {more:,} more{tests}"] if more else []
        blocks.append(f"**Used in {times}**:\n\n" + "\n".join(items))
    return "\n\n".join(blocks)


def _read(found: Sequence[Reader]) -> list[str]:
    if not found:
        return []
    names = ", ".join(code_span(name) for name in dict.fromkeys(one.name for one in found))
    items = []
    for one in found:
        unit = one.unit
        line = unit.source_code.split("\n")[one.line - unit.start_line].strip()
        place = cite(unit.path, one.line, one.line)
        items.append(f"- {place} in {code_span(unit.qualified_name)}: {code_span(line)}")
    title = f"**It keeps what it is given in {names}, which is read in**"
    return [f"{title}:\n\n" + "\n".join(items)]


def _site(site: UsageSite, inside: str) -> str:
    place = cite(site.reference.path, site.reference.line, site.reference.line)
    around = f" in {code_span(inside)}" if inside else ""
    sure = next(word for least, word in _SURE if site.confidence >= least)
    return f"- {place}{around}, {sure}: {inline(site.reason)}"
