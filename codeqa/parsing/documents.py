"""Units of files without a grammar: sections, cells, tables, and chunks of lines.

Every non-blank line of a file lies in a unit (of a notebook: of its cells), every unit is
exactly its lines, and no unit lies inside the one before it. What a section of a file is
called is its path of headings or keys: `Guide > Install`, `tool.ruff`.

A notebook is JSON, and Jupyter writes each line of a cell on a line of its own. So the lines of
a cell are lines of the file, and the unit of a cell spans exactly those: line for line it is the
file's line, with JSON's quotes and escapes taken off. In a notebook that is written otherwise (all
on one line) a cell spans the lines that hold it, and its text has more lines than its span.
Outputs, images and metadata are not indexed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from codeqa.parsing.chunks import CHUNK_SIZE, line_spans, split_lines, trim
from codeqa.parsing.sections import SECTIONS, Section, clean_title
from codeqa.parsing.units import unit_ids
from codeqa.types import Unit

SEPARATOR = " > "
"""Between the headings of a qualified name."""

_DOCUMENTS = frozenset({"markdown", "rst", "text", "notebook", "asciidoc", "org", "tex"})
_CONFIGURATION = frozenset(
    {*SECTIONS, "xml", "gitignore", "cmake", "meson", "bazel", "hcl", "nix", "groovy"} - _DOCUMENTS
)

_HEADING = re.compile(r"(#{1,6})\s+(.+)")


def parse_document(path: str, text: str, language: str, role: str) -> tuple[Unit, ...]:
    """The units of a file that no grammar reads; () when it holds nothing but blanks.

    `language` is a name of `languages.toml`. Never raises on content: a file that is not
    laid out as its language says is cut by lines.
    """
    lines = split_lines(text)
    if trim(lines, 1, len(lines)) is None:
        return ()
    name = path[path.rfind("/") + 1 :]
    kind = "document" if language in _DOCUMENTS else "chunk"
    kind = "config" if language in _CONFIGURATION else kind
    new_id = unit_ids(path)
    units = []
    for section in _sections(lines, language):
        titles = section.titles or (name,)
        for first, last, content in _pieces(section, lines):
            unit = Unit(
                path=path,
                language=section.language or language,
                kind=kind,
                name=titles[-1],
                qualified_name=SEPARATOR.join(titles),
                source_code=content,
                start_line=first,
                end_line=last,
                class_name=SEPARATOR.join(titles[:-1]),
                role=role,
                id=new_id(SEPARATOR.join(titles)),
            )
            units.append(unit)
    return tuple(units)


def _sections(lines: list[str], language: str) -> list[Section]:
    if language == "notebook":
        try:
            return _notebook_sections(lines)
        except ValueError:
            pass
    # A file of configuration that fits one chunk is best read whole.
    elif language in SECTIONS and not (language in _CONFIGURATION and len(lines) <= CHUNK_SIZE):
        return SECTIONS[language](lines)
    return [Section(1, len(lines))]


def _pieces(section: Section, lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of each unit of a section."""
    span, before = trim(lines, section.first, section.last), 0
    if section.lines is not None:  # the text of a notebook's cell is not that of the file's lines
        lines, before = list(section.lines), section.first - 1
        span = (1, len(lines))
        if len(lines) != section.last - before:  # several of them on one of the file's
            yield section.first, section.last, "\n".join(lines).strip("\n")
            return
    for start, end in line_spans(lines, *span) if span else ():
        yield before + start, before + end, "\n".join(lines[start - 1 : end])


class _Piece(NamedTuple):
    """A string of the JSON text, as a value."""

    text: str
    offset: int
    """Of its opening quote."""


def _notebook_sections(lines: list[str]) -> list[Section]:
    """One section for each cell that holds anything. Raises ValueError when it is no notebook."""
    content = _decoded("\n".join(lines))
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no notebook of a format since 2015")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    language = _language(content)
    sections: list[Section] = []
    heading: tuple[str, ...] = ()
    for number, cell in enumerate((one for one in cells if isinstance(one, dict)), 1):
        pieces = _strings(cell)
        source = "".join(piece.text for piece in pieces)
        if not source.strip():
            continue
        own = "markdown" if _text(cell.get("cell_type")) == "markdown" else language
        if own == "markdown" and (match := _HEADING.match(source)):
            heading = (*heading[: len(match[1]) - 1], clean_title(match[2].splitlines()[0]))
        by_line: dict[int, str] = {}
        for piece in pieces:
            line = bisect_right(starts, piece.offset)
            by_line[line] = by_line.get(line, "") + piece.text
        first, last = min(by_line), max(by_line)
        shown = [by_line.get(line, "") for line in range(first, last + 1)]
        if all(text.find("\n") == len(text) - 1 for text in shown[:-1]) and (
            "\n" not in shown[-1][:-1]
        ):
            shown = [text.removesuffix("\n") for text in shown]
        else:
            shown = source.split("\n")
        sections.append(Section(first, last, (*heading, f"Cell {number}"), own, tuple(shown)))
    return sections


def _decoded(text: str) -> Any:
    """A JSON text whose string values are `_Piece`s. Raises ValueError for any other text."""

    def located(text: str, end: int, strict: bool) -> tuple[_Piece, int]:
        value, after = scanstring(text, end, strict)
        return _Piece(value, end - 1), after

    decoder = JSONDecoder(strict=False)
    decoder.parse_string = located  # type: ignore[attr-defined]
    decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _strings(cell: dict[str, Any]) -> list[_Piece]:
    source = cell.get("source")
    found = source if isinstance(source, list) else [source]
    return [piece for piece in found if isinstance(piece, _Piece)]


def _language(content: dict[str, Any]) -> str:
    """The notebook's own language."""
    metadata = content.get("metadata")
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        values = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(values, dict) and (found := _text(values.get(key))):
            return found.lower()
    return "python"


def _text(value: Any) -> str:
    return value.text if isinstance(value, _Piece) else ""
