"""Units of files without a grammar: sections, cells, tables, and chunks of lines.

Every non-blank line of a file lies in a unit (of a notebook: of its cells), every unit is
exactly its lines, and no unit lies inside the one before it. What a section of a file is
called is its path of headings or keys: `Guide > Install`, `tool.ruff`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from codeqa.parsing.chunks import CHUNK_SIZE, MAX_CHARACTERS, line_spans, split_lines, trim
from codeqa.parsing.config_sections import CONFIG_SECTIONS
from codeqa.parsing.notebooks import notebook_sections
from codeqa.parsing.sections import Section, markdown_sections, rst_sections, text_sections
from codeqa.parsing.units import unit_ids
from codeqa.types import Unit

SEPARATOR = " > "
"""Between the headings of a qualified name."""

_DOCUMENT_SECTIONS: dict[str, Callable[[list[str]], list[Section]]] = {
    "markdown": markdown_sections,
    "rst": rst_sections,
    "text": text_sections,
    "notebook": notebook_sections,
}
_DOCUMENTS = frozenset({*_DOCUMENT_SECTIONS, "asciidoc", "org", "tex"})
_CONFIGURATION = frozenset(
    {*CONFIG_SECTIONS, "xml", "gitignore", "cmake", "meson", "bazel", "hcl", "nix", "groovy"}
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
    kind = _kind(language)
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


def _kind(language: str) -> str:
    if language in _DOCUMENTS:
        return "document"
    return "config" if language in _CONFIGURATION else "chunk"


def _sections(lines: list[str], language: str) -> Iterable[Section]:
    whole = Section(1, len(lines))
    if language in CONFIG_SECTIONS:
        # A file that fits one chunk is best read whole.
        return CONFIG_SECTIONS[language](lines) if len(lines) > CHUNK_SIZE else [whole]
    find = _DOCUMENT_SECTIONS.get(language)
    if find is None:
        return [whole]
    try:
        return find(lines)
    except ValueError:
        return [whole]


def _pieces(section: Section, lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of each unit of a section."""
    if section.lines is not None:
        yield from _cell_pieces(section, section.lines)
        return
    span = trim(lines, section.first, section.last)
    if span is None:
        return
    first, last = span
    content = "\n".join(lines[first - 1 : last])
    if last - first < CHUNK_SIZE and len(content) <= MAX_CHARACTERS:
        yield first, last, content
        return
    for start, end in line_spans(lines, first, last):
        yield start, end, "\n".join(lines[start - 1 : end])


def _cell_pieces(section: Section, shown: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    """Pieces of a notebook's cell, whose text is not the text of the file's lines."""
    if len(shown) != section.last - section.first + 1:  # several of its lines on one of the file's
        yield section.first, section.last, "\n".join(shown).strip("\n")
        return
    cell = list(shown)
    for start, end in line_spans(cell):
        before = section.first - 1
        yield before + start, before + end, "\n".join(cell[start - 1 : end])
