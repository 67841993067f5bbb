"""Units of files without a grammar: sections, cells, tables, and chunks of lines.

Every non-blank line of a file lies in a unit (of a notebook: of its cells), every unit is
exactly its lines, and no unit lies inside the one before it. What a part of a file is
called is its path of headings or keys: `Guide > Install`, `tool.ruff`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from codeqa.parsing.chunks import CHUNK_SIZE, MAX_CHARACTERS, line_spans, split_lines, trim
from codeqa.parsing.config_parts import CONFIG_PARTS
from codeqa.parsing.identity import with_ids
from codeqa.parsing.notebooks import notebook_parts
from codeqa.parsing.parts import Part
from codeqa.parsing.sections import markdown_parts, rst_parts, text_parts
from codeqa.types import Unit

SEPARATOR = " > "
"""Between the headings of a qualified name."""

_DOCUMENT_PARTS: dict[str, Callable[[list[str]], list[Part]]] = {
    "markdown": markdown_parts,
    "rst": rst_parts,
    "text": text_parts,
    "notebook": notebook_parts,
}
_DOCUMENTS = frozenset({*_DOCUMENT_PARTS, "asciidoc", "org", "tex"})
_CONFIGURATION = frozenset(
    {*CONFIG_PARTS, "xml", "gitignore", "cmake", "meson", "bazel", "hcl", "nix", "groovy"}
)


def parse_document(path: str, text: str, language: str, role: str) -> tuple[Unit, ...]:
    """The units of a file that no grammar reads; () when it holds nothing but blanks.

    `language` is a name of `languages.toml`. Never raises on content: a file that is not
    laid out as its language says is cut by lines.
    """
    lines = split_lines(text)
    if trim(lines, 1, len(lines)) is None:
        return ()
    name = path[path.rfind("/") + 1 :]
    make = partial(_unit, path, name, _kind(language), language, role)
    return with_ids(
        make(part, first, last, content)
        for part in _parts(lines, language)
        for first, last, content in _pieces(part, lines)
    )


def _kind(language: str) -> str:
    if language in _DOCUMENTS:
        return "document"
    return "config" if language in _CONFIGURATION else "chunk"


def _parts(lines: list[str], language: str) -> Iterable[Part]:
    whole = Part(1, len(lines))
    if language in CONFIG_PARTS:
        # A file that fits one chunk is best read whole.
        return CONFIG_PARTS[language](lines) if len(lines) > CHUNK_SIZE else [whole]
    find = _DOCUMENT_PARTS.get(language)
    if find is None:
        return [whole]
    try:
        return find(lines)
    except ValueError:
        return [whole]


def _pieces(part: Part, lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of each unit of a part."""
    if part.lines is not None:
        yield from _cell_pieces(part, part.lines)
        return
    span = trim(lines, part.first, part.last)
    if span is None:
        return
    first, last = span
    content = "\n".join(lines[first - 1 : last])
    if last - first < CHUNK_SIZE and len(content) <= MAX_CHARACTERS:
        yield first, last, content
        return
    for start, end in line_spans(lines, first, last):
        yield start, end, "\n".join(lines[start - 1 : end])


def _cell_pieces(part: Part, shown: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    """Pieces of a notebook's cell, whose text is not the text of the file's lines."""
    if len(shown) != part.last - part.first + 1:  # several of its lines on one of the file's
        yield part.first, part.last, "\n".join(shown).strip("\n")
        return
    cell = list(shown)
    for start, end in line_spans(cell):
        before = part.first - 1
        yield before + start, before + end, "\n".join(cell[start - 1 : end])


def _unit(
    path: str,
    file_name: str,
    kind: str,
    language: str,
    role: str,
    part: Part,
    first: int,
    last: int,
    content: str,
) -> Unit:
    titles = part.titles or (file_name,)
    return Unit(
        path=path,
        language=part.language or language,
        kind=kind,
        name=titles[-1],
        qualified_name=SEPARATOR.join(titles),
        source_code=content,
        start_line=first,
        end_line=last,
        class_name=SEPARATOR.join(titles[:-1]),
        role=role,
    )
