"""Cutting text by lines.

A line ends at `\\n` and nowhere else, for every part of CodeQA: a `\\r` stays at the end of
its line, and form feeds or Unicode's separators end none. So a line number means the same
in the index, in the file panel and in tree-sitter. The empty piece after a final newline is
no line of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_SIZE = 50
"""Lines in one chunk."""
OVERLAP = 5
"""Lines that a chunk shares with the one before."""

MAX_CHARACTERS = 20_000
"""Characters in one chunk: 50 lines of 400, beyond which lines are data."""


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Some lines of a text; `start_line` and `end_line` are 1-based and inclusive."""

    content: str
    start_line: int
    end_line: int


def chunk_by_lines(
    content: str, chunk_size: int = CHUNK_SIZE, overlap: int = OVERLAP
) -> list[LineChunk]:
    """Chunks of `chunk_size` lines that overlap, to the letter as the source system has them.

    That includes a last chunk that lies wholly inside the one before it, the empty line
    after a final newline, and one empty chunk for an empty text; the index uses
    `line_spans`, which has none of them. Raises ValueError when the chunks would not
    advance.
    """
    if not 0 <= overlap < chunk_size:
        raise ValueError(f"overlap {overlap} must be at least 0 and less than {chunk_size}")
    lines = content.split("\n")
    return [
        LineChunk(
            "\n".join(lines[start : start + chunk_size]),
            start + 1,
            min(start + chunk_size, len(lines)),
        )
        for start in range(0, len(lines), chunk_size - overlap)
    ]


def split_lines(text: str) -> list[str]:
    """The lines of `text`, without their `\\n`."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_spans(
    lines: list[str],
    first: int = 1,
    last: int | None = None,
    chunk_size: int = CHUNK_SIZE,
    overlap: int = OVERLAP,
    max_characters: int = MAX_CHARACTERS,
) -> Iterator[tuple[int, int]]:
    """Spans (first line, last line) that cover every non-blank line of `first`..`last`.

    A span ends early rather than exceed `max_characters`, unless it is a single line.
    Blank lines at its ends are cut off; a span inside the one before it, or with nothing
    but blanks, is dropped.
    """
    last = len(lines) if last is None else last
    covered = first - 1
    start = first
    while start <= last:
        end, characters = start, len(lines[start - 1])
        while end < min(start + chunk_size - 1, last):
            characters += len(lines[end]) + 1
            if characters > max_characters:
                break
            end += 1
        trimmed = trim(lines, start, end)
        if trimmed is not None and trimmed[1] > covered:
            covered = trimmed[1]
            yield trimmed
        # A short span of long lines overlaps by proportionally less.
        start = end + 1 - (end + 1 - start) * overlap // chunk_size


def trim(lines: list[str], first: int, last: int) -> tuple[int, int] | None:
    """The span without the blank lines at its ends; None when all are blank."""
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= last else None
