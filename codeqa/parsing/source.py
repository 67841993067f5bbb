"""The text of one source file: its lines and spans of them, its comments and what these say.

A line ends at `\\n` and nowhere else, for every part of CodeQA: a `\\r` stays at the end of
its line, and form feeds or Unicode's separators end none. So a line number means the same
in the index, in the file panel and in tree-sitter. The empty piece after a final newline is
no line of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from inspect import cleandoc
from itertools import accumulate
from typing import TYPE_CHECKING

from codeqa.languages import Language

if TYPE_CHECKING:
    import tree_sitter

COMMENT, ATTRIBUTE = "comment", "attribute"

CHUNK_SIZE = 50
"""Lines in one chunk."""
OVERLAP = 5
"""Lines that a chunk shares with the one before."""
MAX_CHARACTERS = 20_000
"""Characters in one chunk: 50 lines of 400, beyond which lines are data."""

_AND_NEWLINE = (1).__add__

_MARKED = re.compile(r"/\*\*(?!/)|///(?!/)|//!|/\*!|--\[=*\[|---(?!-)")
"""How languages mark a comment as documentation; an unmarked neighbour is then left out."""

_OPEN = re.compile(
    r"^\s*(?:/\*[*!]*(?!/)|//[/!]*<?|#[#!:|]*|--\[=*\[|--+\|?|;+|<!--|\{-\|?|\(\*\*?|%+)[ \t]?"
)
_CLOSE = re.compile(r"(?:\*+/|\]=*\]|-->|-\}|\*\))$")
_LONGEST_CLOSE = 80
"""Characters at the end of a comment in which its closing mark is looked for."""
_DIRECTIVE = re.compile(
    r"^(?:go:\w+|\+build|nolint|noqa|type:\s*ignore|eslint-|@ts-|prettier-ignore|pylint:|mypy:"
    r"|fmt:|clang-format|NOLINT|istanbul|c8 |v8 |rubocop:|shellcheck |biome-ignore"
    r"|frozen_string_literal:|warn_indent:|typed:|-\*-|vim:|swiftlint:|swift-format|phpcs:|sqlfluff"
    r"|[-=*#/~_+]{3,}\s*$|!/)"
)
"""A line of a comment that speaks to a tool rather than to a reader, or a mere rule."""
_LICENCE = re.compile(
    r"copyright|licen[sc]e|\bSPDX\b|all rights reserved|permission is hereby granted", re.I
)
_STRING = re.compile(r"""^[A-Za-z]{0,3}(\"\"\"|'''|"|')(.*?)(?:\1)?$""", re.DOTALL)

_XML_DOC = re.compile(r"<(?:summary|remarks|returns|param|inheritdoc|value|exception)\b")
_XML_VALUE = re.compile(r'<(?:see|seealso|paramref|typeparamref|inheritdoc)\s+\w+="([^"]*)"\s*/?>')
_XML_NAMED = re.compile(r'<(?:param|typeparam|exception)\s+\w+="([^"]*)"\s*>')
_XML_TAG = re.compile(
    r"</?(?:summary|remarks|returns|param|typeparam|exception|value|example|para|see|seealso|c|code"
    r"|list|listheader|item|term|description|inheritdoc|br)\b[^<>]*>"
)
"""Documentation in XML (C#): tags that mean nothing to a reader."""


class Source:
    """UTF-8 bytes, decoded once; tree-sitter speaks of bytes, units of lines."""

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
        return self.text[start:end] if self.ascii else self.data[start:end].decode("utf-8")

    def text_of(self, node: tree_sitter.Node) -> str:
        return self.slice(node.start_byte, node.end_byte)

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def span(self, first: int, last: int) -> str:
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


# Lines.


def split_lines(text: str) -> list[str]:
    """The lines of `text`, without their `\\n`."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_spans(lines: list[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Spans (first line, last line) of `CHUNK_SIZE` lines that cover every line of `first`..`last`
    that is not blank, and overlap by `OVERLAP`.

    A span ends early rather than exceed `MAX_CHARACTERS`, unless it is a single line. Blank lines
    at its ends are cut off; one inside the one before it, or with nothing but blanks, is dropped.
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
    """The span without the blank lines at its ends; None when all are blank."""
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= last else None


# What comments say.


def comment_text(parts: list[str]) -> str:
    """Text of adjacent comments without their markers; only the marked ones if any is."""
    parts = [part for part in parts if not part.startswith("#!/")]
    marked = [part for part in parts if _MARKED.match(part)]
    text = "\n".join(line for part in marked or parts for line in _bare_lines(part))
    if "<" in text and _XML_DOC.search(text):
        text = _XML_TAG.sub("", _XML_NAMED.sub(r"\1: ", _XML_VALUE.sub(r"\1", text)))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def docstring_text(literal: str) -> str:
    """Text of a string literal or comment inside a body, without quotes and indentation."""
    match = _STRING.match(literal)
    return cleandoc(match.group(2)).strip() if match else comment_text([literal])


def is_licence(text: str) -> bool:
    """Whether a comment at the head of a file is a notice of rights."""
    return bool(_LICENCE.search(text))


def _bare_lines(comment: str) -> list[str]:
    block = comment.lstrip().startswith(("/*", "--[", "<!--", "{-", "(*"))
    if block:
        comment = comment.rstrip()
        head, tail = comment[:-_LONGEST_CLOSE], comment[-_LONGEST_CLOSE:]
        comment = (head + _CLOSE.sub("", tail)).rstrip()
    lines = comment.split("\n")
    bare = [_OPEN.sub("", lines[0])]
    starred = False
    for line in lines[1:]:
        if block:
            text = line.lstrip()
            if text.startswith("*") and not text.startswith("*/"):
                starred = True
                line = text[2:] if text[1:2] in (" ", "\t") else text[1:]
            bare.append(line)
        else:
            bare.append(_OPEN.sub("", line))
    if block and len(bare) > 1 and not starred:
        bare = [bare[0], *cleandoc("\n" + "\n".join(bare[1:])).split("\n")]
    return [line for line in bare if not _DIRECTIVE.match(line.strip())]
