"""Choose the files that a language model is sent whole.

These are the files that a question names, all of a small repository, and those of `/files` and
`/all`, as they are on disk now, secret-looking strings masked (`repositories.files`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from codeqa.context.block import ContextBlock, chunk_id, format_block, unit_chunk
from codeqa.context.packing import pack
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.languages import language_called
from codeqa.repositories.files import Files
from codeqa.search.channels import WRITTEN_BY_HAND, filter_of, near_path, resolve_query
from codeqa.search.query import Query
from codeqa.search.result import SearchResult
from codeqa.store import FileRecord, Filter, Tables
from codeqa.types import ROLES, Chunk

SOFT_BYTES = 100 * 1024
"""Bytes of UTF-8 after which `/files` adds no further file. Both limits are Aye Chat's."""
HARD_BYTES = 200 * 1024
"""Most bytes that are sent: a file that would exceed it is left out, and the next one tried."""
BLOCK_CHARACTERS = 256 * 1024
"""Most characters of the block: many small files have longer headings than contents."""
CANDIDATE_UNITS = 300
"""Units that `/files` considers: their files are the candidates, each as good as its best unit."""
FILE_COST = 200
"""Characters of the block that a file takes beside its content, with a long path."""
MOST_LISTED = 20
"""Most files left out that are listed; of further ones the note gives the number."""


def select_whole(
    tables: Tables, files: Files, result: SearchResult, room: int, *, small: bool
) -> tuple[Sequence[Chunk], Sequence[Chunk], str]:
    """Return the whole files for `result`, parts of files too long for `room`, and a note.

    With `small`, these are all files that the filters let through and people wrote, where they fit
    `room` characters; else the files that the question names, and of each too long one its
    beginning and best units.
    """
    where = filter_of(result.query) or Filter()
    if small and not where.kinds and not where.excluded_kinds:
        by_hand = replace(where, roles=WRITTEN_BY_HAND)
        records = tables.indexed_files(by_hand, limit=room // FILE_COST + 1)
        if 0 < sum(record.size + FILE_COST for record in records) <= room:
            block = _whole(files, _best_first(records, _ranked_paths(result)), room)
            return block.chunks, (), block.note
    chunks, parts = _named(tables, files, result, room)
    return chunks, parts, ""


def best_files(tables: Tables, files: Files, result: SearchResult, room: int) -> ContextBlock:
    """Return the block of the best files of `result` that fit `room` characters, maybe none."""
    paths = _ranked_paths(result)
    return _whole(files, _best_first(tables.files_at(paths).values(), paths), room, soft=True)


def every_file(tables: Tables, files: Files, query: Query, room: int) -> ContextBlock:
    """Return the block of all files that the filters of `query` let through, source first.

    It is empty where none fits `room` characters. Raises NotFoundError when no file matches.
    """
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
    """Return the files that the question points at, and parts of those too long for their share.

    The files share the room: what a short one does not need goes to the longer ones.
    """
    paths: list[str] = []
    for mention in result.query.mentions:
        if not mention.lines:
            paths += mention.files
    records = sorted(tables.files_at(paths).values(), key=lambda record: record.size)
    whole: dict[str, Chunk] = {}
    parts: list[Chunk] = []
    for index, record in enumerate(records):
        share = room // (len(records) - index)
        block = _whole(files, [record], share)
        if block.chunks:
            whole[record.path] = block.chunks[0]
        else:  # its beginning and best hits; half of the share is for other code
            units = tables.in_file(record.path)[:1]
            units += [hit.unit for hit in result.units if hit.unit.path == record.path]
            best = [unit_chunk(unit, "of a file that the question names") for unit in units]
            parts += pack(best, share // 2).chunks
        room -= len(block.text) or share
    return [whole[path] for path in paths if path in whole], parts


def _whole(
    files: Files, records: Iterable[FileRecord], room: int, *, soft: bool = False
) -> ContextBlock:
    """Return the block of as many of `records`, in order, as the limits and `room` allow.

    Its note says how many files it holds, and which are left out.
    """
    chunks: list[Chunk] = []
    left_out: list[str] = []
    nonempty = [record for record in records if record.size]
    size, room = 0, min(room, BLOCK_CHARACTERS)
    for record in nonempty:
        if soft and size > SOFT_BYTES:
            break
        if size + record.size <= HARD_BYTES and record.size + FILE_COST <= room:
            try:
                content = files.read(record.path).text.removesuffix("\n")
            except CodeQAError:  # deleted since it was indexed, or no longer readable
                left_out.append(f"{record.path} (could not be read)")
                continue
            key, last = chunk_id(record.path, "", content), content.count("\n") + 1
            chunk = Chunk(key, record.path, 1, last, record.language, content, "", "whole file")
            cost = len(format_block([chunk]))  # with a heading of its own: an upper bound
            if cost <= room:
                chunks.append(replace(chunk, role=record.role))
                size, room = size + record.size, room - cost
                continue
        left_out.append(f"{record.path} ({_kilobytes(record.size)})")
    if len(left_out) > MOST_LISTED:
        left_out[MOST_LISTED:] = [f"{len(left_out) - MOST_LISTED:,} more"]
    note = f"Sent whole: {len(chunks):,} of {len(nonempty):,} files, {_kilobytes(size)}."
    note += f" Left out: {', '.join(left_out)}." if left_out else ""
    return ContextBlock(tuple(chunks), note=note if nonempty else "")


def _ranked_paths(result: SearchResult) -> list[str]:
    """Return the files that the question points at, then those of the result, best first."""
    paths: list[str] = []
    for mention in result.query.mentions:
        paths += mention.files
    paths += [hit.unit.path for hit in result.units]
    return list(dict.fromkeys(paths))


def _best_first(records: Iterable[FileRecord], ranked: Sequence[str]) -> list[FileRecord]:
    """Sort `records` by their place in `ranked`, then the others by role, source first.

    Settings and data come after documents.
    """
    rank = {path: index - len(ranked) for index, path in enumerate(ranked)}

    def order(record: FileRecord) -> tuple[int, int, bool, str]:
        settings = record.role == "source" and language_called(record.language).holds == "settings"
        role = ROLES.index("document" if settings else record.role)
        return rank.get(record.path, 0), role, settings, record.path

    return sorted(records, key=order)


def _kilobytes(size: int) -> str:
    return f"{-(-size // 1024):,} KB"
