"""The text of one file with its byte offsets, lines and columns."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

_AND_NEWLINE = (1).__add__


class Source:
    """UTF-8 bytes, decoded once; tree-sitter speaks of bytes, units of lines.

    Lines end at `\\n` alone, as they do for the grammars; form feeds and Unicode's line
    separators end none.
    """

    __slots__ = ("ascii", "data", "line_starts", "lines", "text")

    def __init__(self, data: bytes) -> None:
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

    def slice(self, start: int, end: int) -> str:
        """Text between two byte offsets."""
        return self.text[start:end] if self.ascii else self.data[start:end].decode("utf-8")

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def span(self, first: int, last: int) -> str:
        """Exact text of the lines `first`..`last`."""
        return "\n".join(self.lines[first - 1 : last])
