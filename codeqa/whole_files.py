"""Files that are sent whole: those that a question names, all of a small repository, and what
`/files` and `/all` ask for.

They are read from disk when they are sent, as `codeqa.files` reads them: indexed files alone, never
outside of the repository, secret-looking strings masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codeqa.context import chunk_id, format_block, pack, unit_chunk
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.files import Files
from codeqa.search import Query, SearchResult
from codeqa.search.channels import filter_of
from codeqa.search.resolve import WRITTEN_BY_HAND, resolve_query
from codeqa.store import FileRecord, Filter, Tables
from codeqa.types import ROLES, Chunk, ContextBlock

SOFT_BYTES = 100 * 1024
"""Of UTF-8, for `/files`: once more than that is taken, no further file is. Both limits are those
of Aye Chat, which answers from whole files."""
HARD_BYTES = 200 * 1024
"""More is never sent: a file that would exceed it is left out, and the next one tried."""
POOL = 300
"""Units that `/files` looks at: their files are the candidates, each as good as its best unit."""
SMALLEST_COST = 100
"""Characters that any file takes in the block: its header, its fences and a line."""
PARTS_SHARE = 0.5
"""Part of its room that a named file gets whose whole does not fit: what else answers the question
is as likely to stand elsewhere."""
LISTED = 20
"""Files left out that are named; of more, number and size are told."""

WHOLE = "whole file"
NAMED = "whole file, named in the question"
NAMED_PART = "of a file named in the question"
WHOLE_REPOSITORY = "The whole repository was sent: {} files."
ALL_LET_THROUGH = "All that the question's filters let through was sent: {} files."


@dataclass(frozen=True, slots=True)
class WholeFiles:
    """What is sent whole, and what could not be."""

    chunks: tuple[Chunk, ...] = ()
    left_out: tuple[FileRecord, ...] = ()
    """For lack of room."""
    unreadable: tuple[str, ...] = ()
    parts: tuple[Chunk, ...] = ()
    """Beginning and best units of each named file that is too long."""
    note: str = ""
    """What the reader should know, as sentences."""

    def beside(self, others: Iterable[Chunk], room: int, *, share: float) -> ContextBlock:
        """The block of these files and, in what they leave of `room` characters, of `others`,
        each of which gets at most the part `share` of that."""
        whole = {chunk.path for chunk in self.chunks}
        left = room - len(format_block(self.chunks))
        packed = pack([one for one in others if one.path not in whole], left, share=share)
        chunks = (*self.chunks, *packed.chunks)
        return ContextBlock(format_block(chunks), chunks, packed.dropped, self.note)

    def omissions(self) -> str:
        """Which files had no room, with their sizes, and which could not be read."""
        named = [f"{record.path} ({_size(record.size)})" for record in self.left_out[:LISTED]]
        if more := self.left_out[LISTED:]:
            size = sum(record.size for record in more)
            named.append(f"and {len(more):,} more ({_size(size)})")
        told = f" No room for {', '.join(named)}." if named else ""
        if self.unreadable:
            told += f" {len(self.unreadable):,} could not be read: {', '.join(self.unreadable)}."
        return told


def found_whole(
    tables: Tables, files: Files, result: SearchResult, room: int, *, small: bool
) -> WholeFiles:
    """What is sent whole of `result` in `room` characters: with `small` all that its filters let
    through and people wrote, where it fits; else the files that the question names."""
    everything = _everything(tables, files, result, room) if small else None
    return everything or _named(tables, files, result, room)


def asked_whole(
    tables: Tables,
    files: Files,
    query: Query,
    result: SearchResult | None,
    room: int,
    *,
    every: bool,
) -> ContextBlock:
    """The block of whole files in `room` characters: the best of `result`; with `every` all that
    the filters of `query` let through, those of `result` first where there is one.

    Empty where no file fits. Raises NotFoundError when `every` matches none.
    """
    if every:
        query = result.query if result else resolve_query(tables, query)[0]
        where = replace(filter_of(query) or Filter(), kinds=(), excluded_kinds=())
        records = _best_first(tables.indexed_files(where), result)
        if not records:
            raise NotFoundError("No indexed file matches.", "Another mask: /all src/**/*.py why?")
    else:
        paths = _ranked_paths(result)
        found = tables.files_at(paths)
        records = [found[path] for path in paths if path in found]
    taken = _take(files, records, room, soft=not every)
    size = sum(len(chunk.content.encode()) for chunk in taken.chunks)
    note = f"Sent whole: {len(taken.chunks):,} of {len(records):,} files, {_size(size)}."
    block = ContextBlock(format_block(taken.chunks), taken.chunks)
    return replace(block, note=f"{note}{taken.omissions()}" if records else "")


def within(result: SearchResult, block: ContextBlock) -> SearchResult:
    """`result` with the hits in files of `block` alone."""
    paths = {chunk.path for chunk in block.chunks}
    return replace(
        result,
        units=tuple(hit for hit in result.units if hit.unit.path in paths),
        files=tuple(file for file in result.files if file.path in paths),
    )


def _everything(tables: Tables, files: Files, result: SearchResult, room: int) -> WholeFiles | None:
    where = filter_of(result.query) or Filter()
    if where.kinds or where.excluded_kinds:
        return None
    most = room // SMALLEST_COST
    records = tables.indexed_files(replace(where, roles=WRITTEN_BY_HAND), limit=most + 1)
    if not records or len(records) > most or sum(record.size for record in records) > room:
        return None
    taken = _take(files, _best_first(records, result), room)
    if taken.left_out or not taken.chunks:
        return None
    told = ALL_LET_THROUGH if result.query.filtered else WHOLE_REPOSITORY
    return replace(taken, note=told.format(len(taken.chunks)) + taken.omissions())


def _named(tables: Tables, files: Files, result: SearchResult, room: int) -> WholeFiles:
    """The files that the question points at, which share the room: what a short one does not need
    goes to the longer ones."""
    named = [path for m in result.query.mentions if not m.lines for path in m.files]
    records = sorted(tables.files_at(named).values(), key=lambda record: record.size)
    whole: dict[str, Chunk] = {}
    parts: list[Chunk] = []
    for place, record in enumerate(records):
        share = room // (len(records) - place)
        if taken := _take(files, [record], share, why=NAMED).chunks:
            whole[record.path] = taken[0]
            room -= len(format_block(taken))
        else:
            parts += _parts(tables, result, record.path, int(share * PARTS_SHARE))
            room -= share
    return WholeFiles(tuple(whole[p] for p in named if p in whole), parts=tuple(parts))


def _parts(tables: Tables, result: SearchResult, path: str, room: int) -> list[Chunk]:
    """The beginning of a file, then those of its units that the search likes best."""
    units = [*tables.in_file(path)[:1], *(h.unit for h in result.units if h.unit.path == path)]
    return list(pack([unit_chunk(unit, NAMED_PART) for unit in units], room).chunks)


def _take(
    files: Files, records: Iterable[FileRecord], room: int, *, soft: bool = False, why: str = WHOLE
) -> WholeFiles:
    """As many of `records`, in that order, as the limits and `room` characters allow."""
    chunks: list[Chunk] = []
    left_out: list[FileRecord] = []
    unreadable: list[str] = []
    size = 0
    for record in records:
        if soft and size > SOFT_BYTES:
            break
        if size + record.size > HARD_BYTES:
            left_out.append(record)
            continue
        try:
            file = files.read(record.path)
        except CodeQAError:  # deleted since it was indexed, or no longer to be read
            unreadable.append(record.path)
            continue
        if not file.text.strip():
            continue
        content = file.text.removesuffix("\n")
        key, last = chunk_id(file.path, "", content), content.count("\n") + 1
        chunk = Chunk(key, file.path, 1, last, file.language, content, why=why, role=record.role)
        now = len(file.text.encode())
        cost = len(format_block([chunk]))  # with a header of its own: more than it takes
        if size + now > HARD_BYTES or cost > room:
            left_out.append(replace(record, size=now))
            continue
        chunks.append(chunk)
        size, room = size + now, room - cost
    return WholeFiles(tuple(chunks), tuple(left_out), tuple(unreadable))


def _ranked_paths(result: SearchResult | None) -> list[str]:
    """Files that the question points at, then those of the result, each by its best unit."""
    if result is None:
        return []
    named = (path for mention in result.query.mentions for path in mention.files)
    return list(dict.fromkeys((*named, *(hit.unit.path for hit in result.units))))


def _best_first(records: Sequence[FileRecord], result: SearchResult | None) -> list[FileRecord]:
    """`records` in the order of `result`, the others behind: source first."""
    rank = {path: place for place, path in enumerate(_ranked_paths(result))}
    return sorted(
        records,
        key=lambda one: (rank.get(one.path, len(rank)), ROLES.index(one.role), one.path),
    )


def _size(size: int) -> str:
    return f"{max(1, round(size / 1024)):,} KB"
