"""Which chunks enter the context: of a search's hits, of an earlier turn's, of what is pinned."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from codeqa.context import call_site_chunk, chunk_id, pack, unit_chunk
from codeqa.errors import NotFoundError, UsageError
from codeqa.files import Files
from codeqa.search import SearchResult
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.symbols import usages
from codeqa.types import TEXT_KINDS, Chunk, ContextBlock, Unit

CALL_SITE_UNITS = 2
CALL_SITES = 3
"""Units whose call sites enter the context, and call sites of each."""
SURE_ENOUGH = 0.5
"""Least confidence of a call site that enters the context."""
EARLIER = "found for an earlier question"
PINNED = "pinned"
PLACES = 20
"""Places that may be pinned, or excluded, at once: more than a context has room for."""

_PLACE = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)


def build_context(
    tables: Tables,
    result: SearchResult,
    settings: Settings,
    *,
    most: int | None = None,
    earlier: Sequence[Chunk] = (),
) -> ContextBlock:
    """The context block of `result`: what the question points at, its best methods and classes
    by rank, then call sites. What is pointed at shares the room, so that all of it is there.

    `most` is how many methods and classes there may be in all. `earlier` is what an earlier
    question of the same matter found: it takes the room that is left.
    """
    best = [*result.methods[: settings.top_methods], *result.classes[: settings.top_classes]]
    best.sort(key=lambda hit: -hit.score)
    best = best[:most]
    kept = list({hit.unit.id: hit for hit in (*result.mentioned, *best)}.values())
    chunks = [unit_chunk(hit.unit, "; ".join(hit.why)) for hit in kept]
    definitions = [hit.unit for hit in kept if hit.unit.kind not in TEXT_KINDS]
    for unit in definitions[:CALL_SITE_UNITS]:
        chunks.extend(_call_sites(tables, unit))
    sharing = max(2, len(result.mentioned))
    chunks.extend(replace(chunk, why=EARLIER) for chunk in earlier)
    return pack(chunks, settings.context_characters, share=1 / sharing)


def repack(
    chunks: Sequence[Chunk], pinned: Sequence[Chunk], excluded: Collection[str], budget: int
) -> ContextBlock:
    """What was found before, without what lies at a place of `excluded` (`path:12-34`) and with
    `pinned` first; what is pinned shares the room, so that all of it is there."""
    first = [replace(chunk, why=PINNED) for chunk in pinned]
    kept = [chunk for chunk in chunks if place_of(chunk) not in excluded]
    return pack([*first, *kept], budget, share=1 / max(2, len(first)))


def place_of(chunk: Chunk) -> str:
    """`path:first-last`, the form in which a chunk is pinned and excluded."""
    return f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"


def check_places(places: Iterable[str]) -> tuple[str, ...]:
    """`places` as they are, each once. Raises UsageError for one that is none, or too many."""
    checked = tuple(dict.fromkeys(places))
    if len(checked) > PLACES:
        raise UsageError(f"More than {PLACES} places were given.", "Give fewer.")
    for place in checked:
        _parse_place(place)
    return checked


def read_place(files: Files, place: str, known: Iterable[Chunk] = ()) -> Chunk:
    """The chunk of `place`, of `known` if it is among them, else as the file is now.

    Raises UsageError when it is no place, NotFoundError when the file does not have it.
    """
    for chunk in known:
        if place_of(chunk) == place:
            return chunk
    path, start, end = _parse_place(place)
    file = files.read(path)
    lines = file.text.split("\n")
    if not 1 <= start <= end <= len(lines):
        raise NotFoundError(
            f"{path} has no lines {start}-{end}.", f"It has {len(lines):,} lines now."
        )
    content = "\n".join(lines[start - 1 : end])
    return Chunk(chunk_id(path, place, content), path, start, end, file.language, content)


def _parse_place(place: str) -> tuple[str, int, int]:
    match = _PLACE.fullmatch(place)
    if match is None:
        raise UsageError(f"{place[:80]!r} is no place.", "Write it as path:first-last.")
    return match[1], int(match[2]), int(match[3])


def _call_sites(tables: Tables, unit: Unit) -> list[Chunk]:
    found = usages(tables, unit, limit=CALL_SITES).references[:CALL_SITES]
    sure = [use.reference for use in found if use.confidence >= SURE_ENOUGH]
    around = {inside.id: inside for inside in tables.by_ids([r.unit_id for r in sure])}
    sites = [call_site_chunk(r, around[r.unit_id]) for r in sure if r.unit_id in around]
    return [site for site in sites if site is not None]
