"""What of a search a language model is shown, for a budget: units, best first, and what the user
pinned; `whole_files` takes what is sent whole.

A budget is filled with the ranked list and with what the best hits call; what calls them is told by
name and line (`chat.reader`). *normal* and *deep*, whose model looks at what it needs beside, have
12,000 characters; *fast*, which may not, has more, and begins with the best three methods and three
classes, as questions about code were first answered with.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from codeqa.code.calls import callees
from codeqa.context.block import (
    ContextBlock,
    chunk_cost,
    format_block,
    span_chunk,
    unit_chunk,
)
from codeqa.context.packing import pack
from codeqa.repositories.files import Files
from codeqa.search.result import SearchResult
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.text.tokens import form_pattern
from codeqa.types import CLASS_KINDS, Chunk, Effort, Hit, Unit, encloses
from codeqa.whole_files import HARD_BYTES, select_whole

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
    whole, parts, note = select_whole(tables, files, result, room, small=not fast)
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
