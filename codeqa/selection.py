"""What of a search a language model is shown, for a budget: units, best first, whole files, and
what the user pinned.

A budget is filled with the ranked list and with what the best hits call; what calls them is told by
name and line (`chat.reader`). *normal* and *deep*, whose model looks at what it needs beside, have
12,000 characters; *fast*, which may not, has more, and begins with the best three methods and three
classes, as questions about code were first answered with.

Files are sent whole that a question names, all of a small repository, and what `/files` and `/all`
ask for: as they are on disk now, secret-looking strings masked (`repositories.files` reads them).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from codeqa.code.calls import callees
from codeqa.context.block import (
    ContextBlock,
    chunk_cost,
    chunk_id,
    format_block,
    span_chunk,
    unit_chunk,
)
from codeqa.context.packing import pack
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.languages import language_called
from codeqa.repositories.files import Files
from codeqa.search.channels import WRITTEN_BY_HAND, filter_of, near_path, resolve_query
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.settings import Settings
from codeqa.store import FileRecord, Filter, Tables
from codeqa.text.tokens import form_pattern
from codeqa.types import CLASS_KINDS, ROLES, Chunk, Effort, Hit, Unit, encloses

BUDGET_TOKENS = 3_500
"""Of the block at *normal* and *deep*; *fast* counts characters. It is sent again with each round
of looks, and answers from 12,000 characters were judged no worse than those from 33,000."""
BUDGET_CHARACTERS_PER_TOKEN = 3.5
"""Of code, at most tokenizers: published counts give 3.3 to 3.6 for GPT, 2.2 to 3 for others. A
budget is no limit: what the model takes at most is kept to by WINDOW_SHARE."""
WINDOW_SHARE = 0.5
"""Part of a model's window that the block may take: instruction, history and answer need room,
and tokens are estimated."""
SMALLEST_CHARACTERS = 2_000
"""Block for a model whose window is too small for anything: one function and a little more."""

FILE_WEIGHT = 1.0
"""A unit counts by its own score and by its file's, alike: of a file that answers the question
more than one unit is wanted (+.03 of the questions' main targets on development and tune)."""
CLASS_SHARE = 0.9
"""A class or text against a method of the same score: it costs more lines an answer."""
CALLED_SHARE = 0.7
"""What one of the best hits calls, against that hit: how a request is dispatched is told by what
`wsgi_app` calls, whatever words the question has. Costs nothing measurable at .7, .01 at .9."""
CALLING = 3
"""Best methods whose callees come into question."""
CALLED = 12
"""Callees of each that do."""
LARGEST_SHARE = 0.35
"""Part of the budget that one unit may take while others wait."""
BESIDE_AFTER = 6
"""Chunks of an earlier question stand behind so many units: what is asked about comes first."""
EARLIER_KEPT = 5
"""Chunks of an earlier question of the same matter that stand there."""
UNITS_RANKED = 80
"""Units of a search that come into question: more than any budget but the deepest holds."""

_ABOUT_IMPORTS = re.compile(r"\b(?:import|includ|requir|depend)")
_VALUE = re.compile(r"^(?!.*\brequire\b).*=|^\s*#\s*define\b", re.MULTILINE)
"""A line of a file's head that sets something, beside its imports."""

SOFT_BYTES = 100 * 1024
"""Of UTF-8: once `/files` has taken more, no further file is. Both limits are Aye Chat's."""
HARD_BYTES = 200 * 1024
"""More is never sent: a file that would exceed it is left out, and the next one tried."""
BLOCK_CHARACTERS = 256 * 1024
"""Most of the block: the headings of many small files take more than what is in them."""
POOL = 300
"""Units that `/files` looks at: their files are the candidates, each as good as its best unit."""
FILE_COST = 200
"""Characters of the block that a file takes beside its content, with a long path."""
LISTED = 20
"""Files left out that are named; where there are more, their number is told."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be sent: the effort, and characters of the block."""

    effort: Effort
    characters: int


def budget_of(effort: Effort, settings: Settings, window: int = 0) -> Budget:
    """The budget for `effort` and a model that takes `window` tokens (0: unknown, taken for
    enough). CODEQA_CONTEXT_TOKENS goes before the effort's own size, the window before both, and
    the limit of whole files guards all."""
    characters = settings.context_characters
    if effort != "fast":
        tokens = settings.context_tokens or BUDGET_TOKENS
        characters = int(tokens * BUDGET_CHARACTERS_PER_TOKEN)
    return Budget(effort, min(characters, largest_block(window), HARD_BYTES))


def largest_block(window: int) -> int:
    """Characters of the largest block for a model that takes `window` tokens; 0 is unknown."""
    fitting = int(window * WINDOW_SHARE * BUDGET_CHARACTERS_PER_TOKEN)
    return max(SMALLEST_CHARACTERS, fitting) if window else sys.maxsize


def build_context(
    tables: Tables,
    result: SearchResult,
    settings: Settings,
    budget: Budget,
    *,
    most: int | None = None,
    earlier: Sequence[Chunk] = (),
    pinned: Sequence[Chunk] = (),
    excluded: Collection[str] = (),
) -> ContextBlock:
    """The context block of `result` within `budget`: what the question points at, which shares
    the room so that all of it is there, at *fast* the best methods and classes of each table, then
    units by rank and what the best of them call. Named files and, but at *fast*, a small
    repository are sent whole.

    `most` is how many methods and classes *fast* takes in all, where nobody asked for code.
    `earlier` is what an earlier question of the same matter found: its best stand behind the best
    of this one. `pinned` come before all else, which must not hold the places `excluded`
    (`Chunk.place`).
    """
    fast = budget.effort == "fast"
    files = Files(lambda: tables, settings.max_file_bytes)
    room = max(0, budget.characters - sum(map(chunk_cost, pinned)))
    whole, parts, note = found_whole(tables, files, result, room, small=not fast)
    best = [part for part in parts if part.place not in excluded]
    if fast:
        best += _three_and_three(result, settings, most)
    if most is None or not fast:
        best += _ranked(tables, result)
    mentioned = {hit.unit.id: unit_chunk(hit.unit, "; ".join(hit.why)) for hit in result.mentioned}
    shown = dict(mentioned)
    for chunk in best:
        shown.setdefault(chunk.unit_id, chunk)
    chunks = [*shown.values()]
    at = max(BESIDE_AFTER, len(mentioned))
    beside = [replace(chunk, why="found for an earlier question") for chunk in earlier]
    chunks = [*chunks[:at], *beside[:EARLIER_KEPT], *chunks[at:]]
    whole = [file for file in whole if file.place not in excluded]
    paths = {file.path for file in whole}
    chunks = [*pinned, *(chunk for chunk in chunks if chunk.place not in excluded)]
    chunks = [chunk for chunk in chunks if chunk.path not in paths]
    first = len(mentioned) + len(pinned)
    packed = pack(
        chunks,
        budget.characters - len(format_block(whole)),
        share=min(LARGEST_SHARE, 1 / max(1, first)),
        words=[form_pattern(word) for word in result.query.words],
    )
    return ContextBlock((*whole, *packed.chunks), packed.dropped, note)


def _three_and_three(result: SearchResult, settings: Settings, most: int | None) -> list[Chunk]:
    """The best methods and classes, and of those classes the members that the search likes best:
    where whole classes were sent once, the room holds their heads and what matters of them."""
    classes = [hit.unit for hit in result.classes[: settings.top_classes]]
    best = [*result.methods[: settings.top_methods], *result.classes[: settings.top_classes]]
    best = sorted(best, key=lambda hit: -hit.score)[:most]
    chosen = {hit.unit.id for hit in best}
    classes = [unit for unit in classes if unit.id in chosen]
    members = [h for h in result.units if any(_is_member(h.unit, around) for around in classes)]
    hits = {hit.unit.id: hit for hit in (*best, *members)}.values()
    return [chunk for hit in hits if (chunk := _shown(result, hit)) is not None]


def _is_member(unit: Unit, around: Unit) -> bool:
    """Whether it belongs to a class, wherever it is written; the head of a file stands for it."""
    if around.is_head:
        return unit.path == around.path
    if unit.class_name and unit.class_name == around.qualified_name:
        return unit.language == around.language
    return encloses(around, unit) and unit.id != around.id


def _shown(result: SearchResult, hit: Hit) -> Chunk | None:
    """The chunk of a hit; None for a head that says nothing: one of a class that holds its name
    alone, one of a file that holds imports alone where others are better and none is asked for."""
    unit, why = hit.unit, "; ".join(hit.why)
    first = hit.unit.id == result.units[0].unit.id if result.units else False
    if first and unit.kind in CLASS_KINDS and unit.signature and "symbol" in hit.channels:
        return span_chunk(unit, unit.start_line, unit.end_line, unit.qualified_name, why)
    chunk = unit_chunk(unit, why)
    if unit.kind not in CLASS_KINDS or unit.doc_comment:
        return chunk
    if unit.is_head:
        asked = first or _ABOUT_IMPORTS.search(result.query.text.lower())
        return chunk if asked or _VALUE.search(chunk.content) else None
    bare = "".join(chunk.content.split()).rstrip("{:")
    cut_off = chunk.end_line < unit.end_line
    return None if cut_off and bare.endswith("".join(unit.signature.split())) else chunk


def _ranked(tables: Tables, result: SearchResult) -> list[Chunk]:
    """Units by their own score and their file's; behind each of the first what it calls."""
    if not result.units:
        return []
    files = {file.path: file.score for file in result.files}
    best_file = max(files.values(), default=0.0) or 1.0
    best = result.units[0].score or 1.0

    def value(unit: Unit, score: float) -> float:
        own = score / best + FILE_WEIGHT * files.get(unit.path, 0.0) / best_file
        return own if unit.is_method else CLASS_SHARE * own

    found = {
        hit.unit.id: (value(hit.unit, hit.score), chunk)
        for hit in result.units
        if (chunk := _shown(result, hit)) is not None
    }
    for by in [hit.unit for hit in result.units if hit.unit.is_method][:CALLING]:
        for call in callees(tables, by, CALLED):
            unit, worth = call.called, CALLED_SHARE * found[by.id][0]
            if worth > found.get(unit.id, (0.0,))[0]:
                found[unit.id] = (worth, unit_chunk(unit, f"called by {by.qualified_name}"))
    ranked = sorted(found.values(), key=lambda one: -one[0])
    return [chunk for _, chunk in ranked]


# Whole files


def found_whole(
    tables: Tables, files: Files, result: SearchResult, room: int, *, small: bool
) -> tuple[Sequence[Chunk], Sequence[Chunk], str]:
    """What is sent whole of `result` in `room` characters: with `small` all that its filters let
    through and people wrote, where it fits; else the files that the question names.

    The files, beginning and best units of each named one that is too long, and what the reader
    should know.
    """
    where = filter_of(result.query) or Filter()
    if small and not (where.kinds or where.excluded_kinds):
        by_hand = replace(where, roles=WRITTEN_BY_HAND)
        records = tables.indexed_files(by_hand, limit=room // FILE_COST + 1)
        if 0 < sum(record.size + FILE_COST for record in records) <= room:
            block = _whole(files, _best_first(records, _ranked_paths(result)), room)
            return block.chunks, (), block.note
    return *_named(tables, files, result, room), ""


def best_files(tables: Tables, files: Files, result: SearchResult, room: int) -> ContextBlock:
    """The block, in `room` characters, of the best files of `result`; empty where none fits."""
    paths = _ranked_paths(result)
    return _whole(files, _best_first(tables.files_at(paths).values(), paths), room, soft=True)


def every_file(tables: Tables, files: Files, query: Query, room: int) -> ContextBlock:
    """The block, in `room` characters, of all files that the filters of `query` let through, source
    first; empty where none fits. Raises NotFoundError when there is none."""
    where = filter_of(resolve_query(tables, query)[0]) or Filter()
    records = tables.indexed_files(replace(where, kinds=(), excluded_kinds=()))
    if not records:
        hints = filter(None, (near_path(tables, path) for path in query.filters.paths))
        hint = next(hints, "Try another mask: /all src/**/*.py why?")
        raise NotFoundError("No indexed file matches.", hint)
    return _whole(files, _best_first(records, ()), room)


def _named(
    tables: Tables, files: Files, result: SearchResult, room: int
) -> tuple[list[Chunk], list[Chunk]]:
    """The files that the question points at, which share the room: what a short one does not need
    goes to the longer ones."""
    named = [path for m in result.query.mentions if not m.lines for path in m.files]
    records = sorted(tables.files_at(named).values(), key=lambda record: record.size)
    whole: dict[str, Chunk] = {}
    parts: list[Chunk] = []
    for place, record in enumerate(records):
        share = room // (len(records) - place)
        block = _whole(files, [record], share)
        if block.chunks:
            whole[record.path] = block.chunks[0]
        else:  # its beginning and what the search likes best of it; half is for what else there is
            hits = [hit.unit for hit in result.units if hit.unit.path == record.path]
            units = [*tables.in_file(record.path)[:1], *hits]
            best = [unit_chunk(unit, "of a file that the question names") for unit in units]
            parts += pack(best, share // 2).chunks
        room -= len(block.text) or share
    return [whole[path] for path in named if path in whole], parts


def _whole(
    files: Files, records: Iterable[FileRecord], room: int, *, soft: bool = False
) -> ContextBlock:
    """The block of as many of `records`, in that order, as the limits and `room` characters allow,
    with a note that says how many, and which had to be left out."""
    chunks: list[Chunk] = []
    left_out: list[str] = []
    wanted = [record for record in records if record.size]
    taken, room = 0, min(room, BLOCK_CHARACTERS)
    for record in wanted:
        if soft and taken > SOFT_BYTES:
            break
        if taken + record.size <= HARD_BYTES and record.size + FILE_COST <= room:
            try:
                content = files.read(record.path).text.removesuffix("\n")
            except CodeQAError:  # deleted since it was indexed, or not to be read any more
                left_out.append(f"{record.path} (could not be read)")
                continue
            key, last = chunk_id(record.path, "", content), content.count("\n") + 1
            chunk = Chunk(key, record.path, 1, last, record.language, content, "", "whole file")
            cost = len(format_block([chunk]))  # with a heading of its own: more than it takes
            if cost <= room:
                chunks.append(replace(chunk, role=record.role))
                taken, room = taken + record.size, room - cost
                continue
        left_out.append(f"{record.path} ({_kilobytes(record.size)})")
    if (more := len(left_out) - LISTED) > 0:
        left_out[LISTED:] = [f"{more:,} more"]
    note = f"Sent whole: {len(chunks):,} of {len(wanted):,} files, {_kilobytes(taken)}."
    note += f" Left out: {', '.join(left_out)}." if left_out else ""
    return ContextBlock(tuple(chunks), note=note if wanted else "")


def _ranked_paths(result: SearchResult) -> list[str]:
    """Files that the question points at, then those of the result, each by its best unit."""
    named = (path for mention in result.query.mentions for path in mention.files)
    return list(dict.fromkeys((*named, *(hit.unit.path for hit in result.units))))


def _best_first(records: Iterable[FileRecord], ranked: Sequence[str]) -> list[FileRecord]:
    """`records` in the order of the paths `ranked`, the others behind: source first, settings and
    data behind the documents."""
    rank = {path: place - len(ranked) for place, path in enumerate(ranked)}

    def place(record: FileRecord) -> tuple[int, int, bool, str]:
        settings = record.role == "source" and language_called(record.language).holds == "settings"
        role = ROLES.index("document" if settings else record.role)
        return rank.get(record.path, 0), role, settings, record.path

    return sorted(records, key=place)


def _kilobytes(size: int) -> str:
    return f"{-(-size // 1024):,} KB"
