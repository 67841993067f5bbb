"""One source file: its text with byte offsets, lines and columns, and the comments in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from codeqa.languages import Language

if TYPE_CHECKING:
    import tree_sitter

COMMENT, ATTRIBUTE = "comment", "attribute"

_AND_NEWLINE = (1).__add__


class Source:
    """UTF-8 bytes, decoded once; tree-sitter speaks of bytes, units of lines.

    Lines end at `\\n` alone, as they do for the grammars; form feeds and Unicode's line
    separators end none.
    """

    __slots__ = (
        "_leading", "ascii", "comment_spans", "data", "language", "line_starts", "lines", "path",
        "role", "text",
    )  # fmt: skip

    def __init__(self, path: str, data: bytes, language: Language, role: str) -> None:
        self.path = path
        self.language = language
        self.role = role
        self.data = data
        self.text = data.decode("utf-8")
        self.ascii = len(self.text) == len(data)
        self.lines = self.text.split("\n")
        pieces = self.lines if self.ascii else data.split(b"\n")
        self.line_starts = list(accumulate(map(_AND_NEWLINE, map(len, pieces)), initial=0))
        """Byte offset of every line, and of the end after a final newline."""
        self.line_starts.pop()
        if self.lines[-1] == "" and len(self.lines) > 1:
            self.lines.pop()
        self.comment_spans: list[tuple[int, int]] = []
        """Byte spans of all comments, wherever they stand."""
        self._leading: dict[int, tuple[int, str, int, int]] = {}
        """Comments and attributes that begin their line, by the line on which they end."""

    def slice(self, start: int, end: int) -> str:
        """Text between two byte offsets."""
        return self.text[start:end] if self.ascii else self.data[start:end].decode("utf-8")

    def text_of(self, node: tree_sitter.Node) -> str:
        return self.slice(node.start_byte, node.end_byte)

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def span(self, first: int, last: int) -> str:
        """Exact text of the lines `first`..`last`."""
        return "\n".join(self.lines[first - 1 : last])

    def add_leading(self, kind: str, start: int, end: int) -> None:
        """Take in a comment or an attribute of byte span `start`..`end`."""
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
        known = self._leading.get(last)
        if known is None or first < known[0]:  # an attribute inside another one
            self._leading[last] = (first, kind, start, end)

    def above(self, line: int, floor: int = 0) -> tuple[int, list[tuple[int, int]]]:
        """First line of what stands directly above `line`, and its comments' byte spans.

        Nothing above or on line `floor` is taken.
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
        """Text between two offsets without the comments in it."""
        kept, spans = "", self.comment_spans
        for index in range(bisect_left(spans, (start, 0)), len(spans)):
            first, last = spans[index]
            if first >= end:
                break
            kept += self.slice(start, first) + ("\n" if "\n" in self.slice(first, last) else " ")
            start = max(start, min(last, end))
        return kept + self.slice(start, end)

    def leading_comments(self) -> list[tuple[int, int, int]]:
        """(first line, start, end) of every comment that begins its line, in order."""
        return sorted((b[0], b[2], b[3]) for b in self._leading.values() if b[1] == COMMENT)
