"""Select the code that a language model is sent, for a budget: what the user pinned, then hits.

A budget is filled with the ranked hits and the definitions that the best of them call; callers are
listed by name and line (`chat.reader`), and `whole_files` chooses whole files. At *normal* and
*deep*, where the model may look further, it has 12,000 characters; at *fast*, where it may not, it
has more, and begins with the best three methods and three classes.
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
"""Tokens of the block at *normal* and *deep*; *fast* counts characters. It is sent again with each
round of looks, and answers from 12,000 characters were judged no worse than those from 33,000."""
BUDGET_CHARACTERS_PER_TOKEN = 3.5
"""Characters of code per token: published counts give 3.3 to 3.6 for GPT, 2.2 to 3 for others. An
estimate will do for a budget: WINDOW_SHARE keeps within what the model takes at most."""
WINDOW_SHARE = 0.5
"""Part of a model's window that the block may take: instruction, history and answer need room,
and tokens are estimated."""
SMALLEST_CHARACTERS = 2_000
"""Characters for a model whose window is too small for anything: one function and a little more."""

FILE_WEIGHT = 1.0
"""Weight of the score of a unit's file; its own score has 1: of a file that answers the question
more than one unit is useful (+.03 of the questions' main targets on development and tune)."""
CLASS_SHARE = 0.9
"""Value of a class or text against a method of the same score: it takes more lines."""
CALLED_SHARE = 0.7
"""Value of a callee against the hit that calls it: what `wsgi_app` calls shows how a request is
dispatched, whatever words the question has. Costs nothing measurable at .7, .01 at .9."""
MOST_CALLING = 3
"""Best methods whose callees are candidates."""
MOST_CALLED = 12
"""Most callees of each."""
UNIT_SHARE = 0.35
"""Part of the budget that one unit may take while others wait."""
EARLIER_AFTER = 6
"""Chunks of an earlier question come after so many units: this question comes first."""
EARLIER_CHUNKS = 5
"""Most chunks of an earlier question on the same subject."""
UNITS_RANKED = 80
"""Units of a search that are candidates: more than any budget but the deepest holds."""

_ABOUT_IMPORTS = re.compile(r"\b(?:import|includ|requir|depend)")
_VALUE = re.compile(r"^(?!.*\brequire\b).*=|^\s*#\s*define\b", re.MULTILINE)
"""Matches a line of a file's head that sets a value, unlike an import."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a question: its effort, and the characters of the context block."""

    effort: Effort
    characters: int


def budget_of(effort: Effort, settings: Settings, window: int = 0) -> Budget:
    """Return the budget for `effort` and a model that takes `window` tokens (0: unknown).

    CODEQA_CONTEXT_TOKENS replaces the effort's own size; the window and the limit of whole files
    cap both.
    """
    characters = settings.context_characters
    if effort != "fast":
        tokens = settings.context_tokens or BUDGET_TOKENS
        characters = int(tokens * BUDGET_CHARACTERS_PER_TOKEN)
    return Budget(effort, min(characters, largest_block(window), HARD_BYTES))


def largest_block(window: int) -> int:
    """Return the most characters of a block for a model that takes `window` tokens (0: unknown)."""
    characters = int(window * WINDOW_SHARE * BUDGET_CHARACTERS_PER_TOKEN)
    return max(SMALLEST_CHARACTERS, characters) if window else sys.maxsize


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
    """Return the context block of `result` within `budget`.

    In this order: whole files (named ones and, except at *fast*, a small repository); `pinned`
    chunks; code that the question points at, which shares the room so that all of it fits; at
    *fast* the best methods and classes; other units by rank, with their callees.

    `most` is how many methods and classes *fast* takes in all, where the user did not ask for code.
    `earlier` are chunks of an earlier question on the same subject: its best come after the best of
    this one. Except for `pinned`, no chunk has a span in `excluded` (`Chunk.span`).
    """
    fast = budget.effort == "fast"
    files = Files(lambda: tables, settings.max_file_bytes)
    room = max(0, budget.characters - sum(map(chunk_cost, pinned)))
    whole, parts, note = select_whole(tables, files, result, room, small=not fast)
    best = [part for part in parts if part.span not in excluded]
    if fast:
        best += _three_and_three(result, settings, most)
    if most is None or not fast:
        best += _ranked(tables, result)
    by_unit = {hit.unit.id: unit_chunk(hit.unit, "; ".join(hit.why)) for hit in result.mentioned}
    mentioned = len(by_unit)
    for chunk in best:
        by_unit.setdefault(chunk.unit_id, chunk)
    chunks = list(by_unit.values())
    at = max(EARLIER_AFTER, mentioned)
    chunks[at:at] = [
        replace(chunk, why="found for an earlier question") for chunk in earlier[:EARLIER_CHUNKS]
    ]
    whole = [file for file in whole if file.span not in excluded]
    paths = {file.path for file in whole}
    chunks = list(pinned) + [chunk for chunk in chunks if chunk.span not in excluded]
    chunks = [chunk for chunk in chunks if chunk.path not in paths]
    packed = pack(
        chunks,
        budget.characters - len(format_block(whole)),
        share=min(UNIT_SHARE, 1 / max(1, mentioned + len(pinned))),
        words=list(map(form_pattern, result.query.words)),
    )
    return ContextBlock(tuple(whole) + packed.chunks, packed.dropped, note)


def _three_and_three(result: SearchResult, settings: Settings, most: int | None) -> list[Chunk]:
    """Return the best methods and classes, and the best hits among the members of those classes.

    Classes are not sent whole: the room holds their heads and their best members.
    """
    hits = result.methods[: settings.top_methods] + result.classes[: settings.top_classes]
    best = sorted(hits, key=lambda hit: -hit.score)[:most]
    classes = [hit.unit for hit in best if not hit.unit.is_method]
    by_unit = {hit.unit.id: hit for hit in best}
    for hit in result.units:
        if any(_is_member(hit.unit, around) for around in classes):
            by_unit[hit.unit.id] = hit
    chunks = (_chunk_of(result, hit) for hit in by_unit.values())
    return [chunk for chunk in chunks if chunk is not None]


def _is_member(unit: Unit, around: Unit) -> bool:
    """Return whether `unit` belongs to the class `around`, or to the file that it is the head of.

    A member may be written outside of its class.
    """
    if around.is_head:
        return unit.path == around.path
    if unit.class_name and unit.class_name == around.qualified_name:
        return unit.language == around.language
    return encloses(around, unit) and unit.id != around.id


def _chunk_of(result: SearchResult, hit: Hit) -> Chunk | None:
    """Return the chunk of a hit; None for a head without content.

    That is one of a class that holds its name alone, and one of a file that holds imports alone,
    unless it is the best hit or the question is about imports.
    """
    unit, why = hit.unit, "; ".join(hit.why)
    is_first = bool(result.units) and unit.id == result.units[0].unit.id
    if is_first and unit.kind in CLASS_KINDS and unit.signature and "symbol" in hit.channels:
        return span_chunk(unit, unit.start_line, unit.end_line, unit.qualified_name, why)
    chunk = unit_chunk(unit, why)
    if unit.kind not in CLASS_KINDS or unit.doc_comment:
        return chunk
    if unit.is_head:
        about_imports = is_first or _ABOUT_IMPORTS.search(result.query.text.lower())
        return chunk if about_imports or _VALUE.search(chunk.content) else None
    code = "".join(chunk.content.split()).rstrip("{:")
    cut_off = chunk.end_line < unit.end_line
    return None if cut_off and code.endswith("".join(unit.signature.split())) else chunk


def _ranked(tables: Tables, result: SearchResult) -> list[Chunk]:
    """Return the units by their own score and their file's, with callees of the best methods."""
    if not result.units:
        return []
    files = {file.path: file.score for file in result.files}
    best_file = max(files.values(), default=0.0) or 1.0
    best = result.units[0].score or 1.0
    valued: dict[str, tuple[float, Chunk]] = {}
    for hit in result.units:
        if (chunk := _chunk_of(result, hit)) is not None:
            value = hit.score / best + FILE_WEIGHT * files.get(hit.unit.path, 0.0) / best_file
            value *= 1.0 if hit.unit.is_method else CLASS_SHARE
            valued[hit.unit.id] = (value, chunk)
    for caller in [hit.unit for hit in result.units if hit.unit.is_method][:MOST_CALLING]:
        for call in callees(tables, caller, MOST_CALLED):
            unit, value = call.called, CALLED_SHARE * valued[caller.id][0]
            own_value = valued[unit.id][0] if unit.id in valued else 0.0
            if value > own_value:
                chunk = unit_chunk(unit, f"called by {caller.qualified_name}")
                valued[unit.id] = (value, chunk)
    ranked = sorted(valued.values(), key=lambda pair: -pair[0])
    return [chunk for _, chunk in ranked]
