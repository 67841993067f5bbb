"""Spans that the user has chosen for the context, to hold or to leave out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from codeqa.chat.values import AskOptions
from codeqa.context.block import ContextBlock, chunk_id
from codeqa.context.packing import pack
from codeqa.errors import NotFoundError, UsageError
from codeqa.repositories.files import Files
from codeqa.types import Chunk

MOST_SPANS = 200
"""Most spans that may be pinned, or excluded, at once: more than any context holds."""

_SPAN = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)


def check_spans(spans: Iterable[str]) -> tuple[str, ...]:
    """Return `spans`, each once. Raises UsageError for one that isn't a span, or too many."""
    distinct = tuple(dict.fromkeys(spans))
    if len(distinct) > MOST_SPANS:
        raise UsageError(f"More than {MOST_SPANS} locations were given.", "Give fewer.")
    for span in distinct:
        parse_span(span)
    return distinct


def parse_span(span: str) -> tuple[str, int, int]:
    """Return path, first and last line. Raises UsageError."""
    match = _SPAN.fullmatch(span)
    if match is None:
        raise UsageError(f"{span[:80]!r} is not a location.", "Write it as path:first-last.")
    return match[1], int(match[2]), int(match[3])


def choose_chunks(
    block: ContextBlock, options: AskOptions, files: Files, room: int
) -> ContextBlock:
    """Return `block` packed anew into `room` characters, with pinned and without excluded spans.

    The pinned ones come first and share the room. Raises as `read_span` does.
    """
    if not options.chooses_chunks:
        return block
    chunks = block.chunks + block.dropped
    pinned = read_pinned(files, options.pin, chunks)
    others = [chunk for chunk in chunks if chunk.span not in options.exclude]
    packed = pack(pinned + others, room, share=1 / max(2, len(pinned)))
    return replace(packed, note=block.note)


def read_pinned(files: Files, spans: Iterable[str], chunks: Sequence[Chunk] = ()) -> list[Chunk]:
    """Return the chunks at `spans`: those of `chunks`, else as their files are now."""
    by_span = {chunk.span: chunk for chunk in chunks}
    pinned = (by_span.get(span) or read_span(files, span) for span in spans)
    return [replace(chunk, why="pinned") for chunk in pinned]


def read_span(files: Files, span: str) -> Chunk:
    """Return the chunk at `span` as its file is now. Raises NotFoundError for missing lines."""
    path, start, end = parse_span(span)
    file = files.read(path)
    lines = file.text.split("\n")
    if not 1 <= start <= end <= len(lines):
        raise NotFoundError(
            f"{path} has no lines {start}-{end}.", f"It has {len(lines):,} lines now."
        )
    content = "\n".join(lines[start - 1 : end])
    return Chunk(chunk_id(path, span, content), path, start, end, file.language, content)
