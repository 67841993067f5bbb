"""Cells of Jupyter notebooks (nbformat 3 and 4), with their true lines in the file.

A notebook is JSON, and Jupyter writes each line of a cell on a line of its own. So the
lines of a cell are lines of the file, and the unit of a cell spans exactly those: line for
line it is the file's line, with JSON's quotes and escapes taken off. In a notebook that is
written otherwise (all on one line) a cell spans the lines that hold it, and its text has
more lines than its span. Outputs, images and metadata are not indexed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codeqa.parsing.sections import Section, clean_title

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_NEWLINE = re.compile("\n")
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_SOURCE_KEYS = ("source", "input")


@dataclass(slots=True)
class _Cell:
    kind: str = ""
    language: str = ""
    level: int = 0
    pieces: list[tuple[int, str]] = field(default_factory=list)
    """Offset in the file and decoded text of each string of the source."""


def notebook_sections(lines: list[str]) -> list[Section]:
    """One section for each cell that holds anything. Raises ValueError when it is no notebook."""
    text = "\n".join(lines)
    cells, language = _cells(text)
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    sections: list[Section] = []
    heading: tuple[str, ...] = ()
    for number, cell in enumerate(cells, 1):
        source = "".join(piece for _, piece in cell.pieces)
        if not source.strip():
            continue
        if cell.kind in ("markdown", "heading"):
            match = _HEADING.match(source)
            if cell.kind == "heading" or match:
                title = clean_title(match[2].splitlines()[0] if match else source)
                heading = (*heading[: (len(match[1]) if match else cell.level or 1) - 1], title)
        first = bisect_right(starts, cell.pieces[0][0])
        last = bisect_right(starts, cell.pieces[-1][0])
        own = "markdown" if cell.kind in ("markdown", "heading") else cell.language or language
        shown = _cell_lines(cell, starts, first, last)
        sections.append(Section(first, last, (*heading, f"Cell {number}"), own, shown))
    return sections


def _cell_lines(cell: _Cell, starts: list[int], first: int, last: int) -> tuple[str, ...]:
    by_line: dict[int, str] = {}
    for offset, piece in cell.pieces:
        line = bisect_right(starts, offset)
        by_line[line] = by_line.get(line, "") + piece
    pieces = [by_line.get(line, "") for line in range(first, last + 1)]
    if (
        all(text.find("\n") == len(text) - 1 for text in pieces[:-1])
        and "\n" not in pieces[-1][:-1]
    ):
        return tuple(text.removesuffix("\n") for text in pieces)
    return tuple("".join(piece for _, piece in cell.pieces).split("\n"))


def _cells(text: str) -> tuple[list[_Cell], str]:
    """The cells in order and the notebook's language."""
    cells: dict[tuple[int | str, ...], _Cell] = {}
    language = ""
    for path, offset, raw in _strings(text):
        if path[:1] == ("metadata",) and path[1:] in (
            ("kernelspec", "language"),
            ("language_info", "name"),
        ):
            language = _decode(raw).lower()
            continue
        at = _cell_depth(path)
        if not at or len(path) == at:
            continue
        cell = cells.setdefault(path[:at], _Cell())
        key = path[at]
        if key in _SOURCE_KEYS and len(path) - at <= 2:
            cell.pieces.append((offset, _decode(raw)))
        elif key == "cell_type" and len(path) == at + 1:
            cell.kind = _decode(raw)
        elif key == "language" and len(path) == at + 1:
            cell.language = _decode(raw).lower()
    if not cells and not _is_notebook(text):
        raise ValueError("not a notebook")
    return list(cells.values()), language or "python"


def _cell_depth(path: tuple[int | str, ...]) -> int:
    """Length of the part of `path` that names a cell; 0 when it names none."""
    if path[:1] == ("cells",):
        return 2
    return 4 if path[:1] == ("worksheets",) and path[2:3] == ("cells",) else 0


def _is_notebook(text: str) -> bool:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "nbformat" in content


def _decode(raw: str) -> str:
    return str(json.loads(raw, strict=False))


def _strings(text: str) -> Iterator[tuple[tuple[int | str, ...], int, str]]:
    """Path, offset and raw form of every string value of a JSON text.

    Raises ValueError where brackets do not match.
    """
    stack: list[int | str | None] = []
    """For each open bracket: the index in an array, the key in an object, None before it."""
    pending: str | None = None
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            stack.append(0 if token == "[" else None)
        elif token in "}]":
            if not stack:
                raise ValueError("unbalanced brackets")
            stack.pop()
        elif token == ":":
            if stack and pending is not None:
                stack[-1] = _decode(pending)
        elif token == ",":
            if stack:
                top = stack[-1]
                stack[-1] = top + 1 if isinstance(top, int) else None
        elif stack:
            pending = token
            if stack[-1] is not None:
                yield tuple(part for part in stack if part is not None), match.start(), token
    if stack:
        raise ValueError("unbalanced brackets")
