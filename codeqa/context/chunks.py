"""What a unit, and a place that uses it, contribute to the context."""

from __future__ import annotations

from codeqa.context.blocks import chunk_id
from codeqa.types import CLASS_KINDS, Chunk, Reference, Unit

LONG_CLASS_LINES = 80
"""A class longer than this enters by its head: its members are units of their own and come
in by themselves when they matter, while all of them together would fill the budget."""

CALL_SITE_MARGIN = 2
"""Lines shown before and after the line that uses a unit: enough to read the statement."""


def span_chunk(unit: Unit, start: int, end: int, symbol: str, why: str = "") -> Chunk:
    """The chunk of lines `start`..`end` (1-based, inclusive) of `unit`, cut to the unit."""
    lines = unit.source_code.split("\n")
    start = max(start, unit.start_line)
    end = min(end, unit.start_line + len(lines) - 1)
    content = "\n".join(lines[start - unit.start_line : end - unit.start_line + 1])
    return Chunk(
        id=chunk_id(unit.path, symbol, content),
        path=unit.path,
        start_line=start,
        end_line=end,
        language=unit.language,
        content=content,
        unit_id=unit.id,
        why=why,
        name=unit.name,
        kind=unit.kind,
        role=unit.role,
        signature=unit.signature,
    )


def unit_chunk(unit: Unit, why: str = "") -> Chunk:
    """The chunk of a unit: all of it, or the head of a class of more than 80 lines."""
    end = unit.end_line
    long = unit.end_line - unit.start_line + 1 > LONG_CLASS_LINES
    if long and unit.kind in CLASS_KINDS and unit.start_line <= unit.head_end_line < end:
        end = unit.head_end_line
    return span_chunk(unit, unit.start_line, end, unit.qualified_name, why)


def call_site_chunk(reference: Reference, inside: Unit) -> Chunk | None:
    """The lines around `reference`, read from the unit `inside` that it lies in.

    None when the unit does not cover the line (the file was indexed anew in between).
    """
    last = inside.start_line + inside.source_code.count("\n")
    if inside.path != reference.path or not inside.start_line <= reference.line <= last:
        return None
    return span_chunk(
        inside,
        reference.line - CALL_SITE_MARGIN,
        reference.line + CALL_SITE_MARGIN,
        f"{reference.kind} {reference.name}",
        why=f"uses {reference.name}",
    )
