"""What stands around the definitions that are shown, in few lines each: where they are used, and
how what they call begins. Every chunk is exact lines of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from codeqa.code.usages import usages
from codeqa.context.blocks import call_site_chunk, chunk_cost, span_chunk
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.types import TEXT_KINDS, Chunk, Reference, Unit

USES_SHARE = 0.05
"""Part of the block for places of use: they show how something is used, the definitions what it
does. Five places at *normal*."""
MOST_USES = 50
"""In all, however large the block is."""
USES_EACH = 2
"""Of one definition: two tell how it is used, and there are others to be told of."""
USES_READ = 50
"""Surest places of a definition among which those are chosen."""
SURE_ENOUGH = 0.5
"""Least confidence of a place of use that is shown."""
READ_CLOSELY = 2
"""Definitions of which places in other files count: that takes about 10 ms for each."""

OUTLINES = 10
"""Beginnings of called definitions, at most: less than a twelfth of the block, on the mean of 120
questions a thirtieth."""
DOC_LINES = 2
"""Lines of a comment above a signature that are shown with it."""


def uses_of(tables: Tables, units: Sequence[Unit], characters: int) -> list[Chunk]:
    """Where `units` (best first) are used, source before tests, in their share of a block of so
    many characters. Each says how many places there are.

    Of the first READ_CLOSELY all evidence is read, of the others what their own files decide.
    """
    places: dict[str, list[Reference]] = {unit.id: [] for unit in units}
    totals = Counter[str]()
    for unit in units[:READ_CLOSELY]:
        found = usages(tables, unit)
        surest = found[:USES_READ]
        places[unit.id] = [o.reference for o in surest if o.confidence >= SURE_ENOUGH]
        totals[unit.id] = len(found)
    for place in tables.references_decided(units[READ_CLOSELY:]):
        if place.unit_id != place.target and place.confidence >= SURE_ENOUGH:
            places[place.target].append(place)
            totals[place.target] += 1
    uses = [(use, totals[of]) for of, held in places.items() for use in _best_uses(held)]
    uses = uses[:MOST_USES]
    around = {unit.id: unit for unit in tables.by_ids([place.unit_id for place, _ in uses])}
    shown: list[Chunk] = []
    room = int(characters * USES_SHARE)
    for place, total in uses:
        inside = around.get(place.unit_id)
        site = call_site_chunk(place, inside) if inside else None
        if site is not None and chunk_cost(site) <= room:
            told = f" (one of {total} places)" if total > 1 else ""
            shown.append(replace(site, why=site.why + told))
            room -= chunk_cost(site)
    return shown


def _best_uses(places: Sequence[Reference]) -> list[Reference]:
    """The surest (first) in source and, beside one of those at most, one of a test or the like."""
    source = [place for place in places if role_of(place.path) == "source"]
    others = [place for place in places if role_of(place.path) != "source"]
    return [*source[:USES_EACH], *others[:1]][:USES_EACH]


def outlines_of(called: Iterable[tuple[Unit, str]]) -> Iterator[Chunk]:
    """Signature and beginning of the doc comment of each, with its reason: at most OUTLINES.

    Packed before the bodies, an outline gives way to the body of its definition, and stays where
    that has no room.
    """
    spans = ((unit, _signature_span(unit), why) for unit, why in called)
    found = ((unit, span, why) for unit, span, why in spans if span)
    for unit, (start, end), why in islice(found, OUTLINES):
        first, last = unit.start_line + start, unit.start_line + end - 1
        yield span_chunk(unit, first, last, f"outline of {unit.qualified_name}", why)


def _signature_span(unit: Unit) -> tuple[int, int] | None:
    """Lines of the unit, 0-based and half-open, in which its signature stands with a short comment
    above it or the first line of the doc string below; None where it is not found, or is all."""
    code = unit.source_code
    found = re.search(r"\s+".join(map(re.escape, unit.signature.split())), code)
    if not found or not unit.signature or unit.kind in TEXT_KINDS:
        return None
    start, last = (code.count("\n", 0, at) for at in found.span())
    start = 0 if start <= DOC_LINES else start
    below = code[found.end() :].partition("\n")[2].lstrip(" \trRuUfF")
    end = last + (2 if below.startswith(('"""', "'''")) else 1)
    return None if end - start > code.count("\n") else (start, end)
