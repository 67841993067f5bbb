"""The text of a source file and its lines.

A line ends at `\\n` and nowhere else, for every part of CodeQA: a `\\r` stays at the end of
its line, and form feeds or Unicode's separators end none. So a line number means the same
in the index, in the file panel and in tree-sitter. The empty piece after a final newline is
no line of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codeqa.languages import Language

if TYPE_CHECKING:
    import tree_sitter

COMMENT, ATTRIBUTE, CONSTANT = "comment", "attribute", "constant"
SCOPE, NAMESPACE, FILE = "scope", "namespace", "file"
"""Kinds of what holds members without being a unit: an owner, a mere prefix of names,
a prefix that reaches to the end of the file."""
MAX_LINE = 5000
"""Characters of a line beyond which what begins on it is no unit: a unit is whole lines, and
hundreds of definitions on one line of packed code would each repeat all of it."""
MIN_CHUNK_LINES = 3
"""A gap between definitions with fewer lines that are not blank is no unit, unless one of
them assigns or calls something: `LIMIT = 10` is worth finding, a closing brace is not."""

CHUNK_SIZE = 50
"""Lines in one chunk."""

OVERLAP = 5
"""Lines that a chunk shares with the one before."""

MAX_CHARACTERS = 20_000
"""Characters in one chunk: 50 lines of 400, beyond which lines are data."""


class Source:
    """UTF-8 bytes, decoded once; tree-sitter speaks of bytes, units of lines."""

    def __init__(self, path: str, data: bytes, language: Language, role: str) -> None:
        self.path = path
        self.language = language
        self.role = role
        self.data = data
        self.text = data.decode("utf-8")
        self.ascii = len(self.text) == len(data)
        self.lines = split_lines(self.text)
        self.line_starts = [0, *(newline.end() for newline in re.finditer(b"\n", data))]
        """Byte offset of every line, and of the end after a final newline."""
        self.comment_spans: list[tuple[int, int]] = []
        """Byte spans of all comments, wherever they stand."""
        self._leading: dict[int, tuple[int, str, int, int]] = {}
        """Comments and attributes that begin their line, by the line on which they end."""

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end] if self.ascii else self.data[start:end].decode("utf-8")

    def text_of(self, node: tree_sitter.Node) -> str:
        return self.slice(node.start_byte, node.end_byte)

    def line_of(self, offset: int) -> int:
        """Return the line of a byte offset, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def span(self, first: int, last: int) -> str:
        return "\n".join(self.lines[first - 1 : last])

    def add_leading(self, kind: str, start: int, end: int) -> None:
        """Add a comment or an attribute of byte span `start`..`end`."""
        if kind == COMMENT:
            self.comment_spans.append((start, end))
        starts = self.line_starts
        first = last = bisect_right(starts, start)
        begin = starts[first - 1]
        if begin != start and not self.data[begin:start].isspace():
            return
        while end > start + 1 and self.data[end - 1] in b"\r\n":
            end -= 1  # some grammars count the newline to the comment
        if first < len(starts) and end > starts[first]:
            last = bisect_right(starts, end - 1)
        block = self._leading.get(last)
        if block is None or first < block[0]:  # an attribute inside another one
            self._leading[last] = (first, kind, start, end)

    def above(self, line: int, floor: int = 0) -> tuple[int, list[tuple[int, int]]]:
        """Return the first line of the comments and attributes directly above `line`.

        Also return the byte spans of these comments. Line `floor` and those above it do not count.
        """
        comments: list[tuple[int, int]] = []
        block = self._leading.get(line - 1)
        while block is not None and block[0] > floor:
            line = block[0]
            if block[1] == COMMENT:
                comments.append((block[2], block[3]))
            block = self._leading.get(line - 1)
        comments.reverse()
        return line, comments

    def without_comments(self, start: int, end: int) -> str:
        """Return the text between two offsets without the comments in it."""
        text, spans = "", self.comment_spans
        for index in range(bisect_left(spans, (start, 0)), len(spans)):
            first, last = spans[index]
            if first >= end:
                break
            text += self.slice(start, first) + ("\n" if "\n" in self.slice(first, last) else " ")
            start = max(start, min(last, end))
        return text + self.slice(start, end)

    def leading_comments(self) -> list[tuple[int, int, int]]:
        """Return (first line, start, end) of every comment that begins its line, in order."""
        blocks = self._leading.values()
        return sorted((line, start, end) for line, kind, start, end in blocks if kind == COMMENT)


def split_lines(text: str) -> list[str]:
    """Split `text` into lines, without their `\n`."""
    return text.removesuffix("\n").split("\n") if text else []


def line_spans(lines: list[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield spans of `CHUNK_SIZE` lines that cover the lines `first`..`last` with an `OVERLAP`.

    A span ends early rather than exceed `MAX_CHARACTERS`, unless it is a single line. Blank lines
    at its ends are cut off; a blank span, or one inside its predecessor, is dropped.
    """
    covered = first - 1
    start = first
    while start <= last:
        end, characters = start, len(lines[start - 1])
        while end < min(start + CHUNK_SIZE - 1, last):
            characters += len(lines[end]) + 1
            if characters > MAX_CHARACTERS:
                break
            end += 1
        trimmed = trim(lines, start, end)
        if trimmed is not None and trimmed[1] > covered:
            covered = trimmed[1]
            yield trimmed
        # A short span of long lines overlaps by proportionally less.
        start = end + 1 - (end + 1 - start) * OVERLAP // CHUNK_SIZE


def trim(lines: list[str], first: int, last: int) -> tuple[int, int] | None:
    """Return the span without blank lines at its ends; None when all are blank."""
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= last else None
