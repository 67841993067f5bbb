"""Cut files without a grammar into units: sections, cells, and chunks of lines.

Every line of a file that is not blank lies in a unit (of a notebook: of its cells), every unit is
exactly its lines, and no unit lies inside the one before it. The name of a section is its path
of headings or keys: `Guide > Install`, `tool.ruff`. A section of configuration is only what a line
pattern shows with certainty; a file with another layout is cut by lines.

Jupyter writes each line of a cell on a line of its own, so the unit of a cell is line for line the
file's, with JSON's quotes and escapes taken off. Of a notebook on one line a cell spans that line,
and its text has more. Outputs, images and metadata are not indexed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, pairwise
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, NamedTuple

from codeqa.languages import Language, language_called
from codeqa.parsing.source import CHUNK_SIZE, line_spans, split_lines, trim
from codeqa.parsing.units import unit_ids
from codeqa.types import Unit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

SEPARATOR = " > "
"""Between the headings of a qualified name."""
MAX_TITLE = 120
"""Characters of a heading that are kept in names."""

MIN_LINES = 8
"""A shorter section of configuration is joined with the next one: single keys say little."""

_LINK = re.compile(r"!?\[([^\]\[]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])")
_MARKUP = re.compile(r"<[^<>]{1,200}>|[*`]+|(?<!\w)_+|_+(?!\w)|\{[#.:][^{}]*\}")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNESCAPE = {0xE000 + code: code for code in range(0x21, 0x7F)}
"""Escaped characters wait in Unicode's private area until the markup is gone."""

_ADORNMENT = re.compile(r"""([!"#$%&'()*+,./:;<=>?@\[\\\]^_`{|}~-])\1*\s*""")
_RST_ESCAPE = re.compile(r"\\(?: |(\S))")
_DIRECTIVE = re.compile(r"\.\. (?:[\w-]+:{1,2}|_[^:]+:|\[)")
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)\s*(?:<[^`>]*>)?`|`+([^`]*)`+_*|\*+([^*]+)\*+")

_YAML_KEY = re.compile(
    r"""-\s+(?:name|id|alert|job_name)\s*:\s*(.+)|(["']?[\w$@./][\w$@./ -]*["']?)\s*:(?:\s|$)"""
)
_YAML_SCALAR = re.compile(r":\s+[|>][-+0-9]{0,2}\s*(?:#.*)?$")
_JSON_KEY = re.compile(r'([ \t]+)"((?:[^"\\]|\\.)*)"\s*:')
_HEADING = re.compile(r"(#{1,6})\s+(.+)")


class Section(NamedTuple):
    """Lines `first`..`last` (1-based, inclusive) below `titles`, outermost first."""

    first: int
    last: int
    titles: tuple[str, ...] = ()
    language: str = ""
    """The section's language, if it is not the file's."""
    lines: tuple[str, ...] | None = None
    """The text of the section, if it is not the file's own lines (notebooks)."""


class Heading(NamedTuple):
    """The first line of a section, its depth from 1, its title."""

    line: int
    level: int
    title: str


def parse_document(path: str, text: str, language: str, role: str) -> tuple[Unit, ...]:
    """Cut a file that no grammar reads into units; () when it holds nothing but blanks.

    `language` is a name of `languages.toml`. Never raises on content: a file without
    the layout of its language is cut by lines.
    """
    lines, spec = split_lines(text), language_called(language)
    kind = {"documents": "document", "settings": "config"}.get(spec.holds, "chunk")
    new_id = unit_ids(path)
    units = []
    for section in _sections(lines, spec):
        titles = section.titles or (path[path.rfind("/") + 1 :],)
        name = SEPARATOR.join(titles)
        for first, last, content in _pieces(section, lines):
            units.append(Unit(
                path, section.language or language, kind, titles[-1], name, content, first, last,
                SEPARATOR.join(titles[:-1]), role=role, id=new_id(name),
            ))  # fmt: skip
    return tuple(units)


def _sections(lines: list[str], language: Language) -> list[Section]:
    whole, settings = [Section(1, len(lines))], language.holds == "settings"
    if language.headings == "cells":
        with suppress(AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return _notebook_sections(lines, language.cell_language)
        return whole
    # A file of configuration that fits one chunk is best read whole.
    if settings and len(lines) <= CHUNK_SIZE:
        return whole
    if language.section:
        form, marks = language.section
        headings = _by_line(lines, form, marks)
    elif language.headings:
        headings = HEADINGS[language.headings](lines)
    else:
        return whole
    sections = sections_below(headings, lines)
    if settings:
        sections = _join_short(sections)
    braced = language.headings == "quoted_keys"
    if braced and len(sections) > 1 and not sections[0].titles:  # its brace
        sections[:2] = [Section(sections[0].first, sections[1].last, sections[1].titles)]
    return sections


def _pieces(section: Section, lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield first line, last line and text of each unit of a section."""
    span, before = trim(lines, section.first, section.last), 0
    if section.lines is not None:
        lines, before = list(section.lines), section.first - 1
        span = (1, len(lines))
        if len(lines) != section.last - before:  # several of them on one of the file's
            yield section.first, section.last, "\n".join(lines).strip("\n")
            return
    if span:
        for start, end in line_spans(lines, span[0], span[1]):
            yield before + start, before + end, "\n".join(lines[start - 1 : end])


def sections_below(headings: Sequence[Heading], lines: list[str]) -> list[Section]:
    """Return a section for the lines before the first heading and one for each heading.

    A heading with nothing below it but a deeper heading joins that heading's section, so that
    no section is a bare title.
    """
    sections: list[Section] = []
    bounds = list(headings)
    bounds.append(Heading(len(lines) + 1, 0, ""))
    if bounds[0].line > 1:
        sections.append(Section(1, bounds[0].line - 1))
    stack: list[Heading] = []
    begin = 0
    for heading, following in pairwise(bounds):
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        begin = begin or heading.line
        text = lines[heading.line - 1 : following.line - 1]
        written = [line for line in text if any(map(str.isalnum, line))]
        if following.level > heading.level and len(written) <= 1:
            continue
        titles = tuple(entry.title for entry in stack if entry.title)
        sections.append(Section(begin, following.line - 1, titles))
        begin = 0
    return sections


def clean_title(text: str) -> str:
    """Return `text` on one line of at most `MAX_TITLE` characters."""
    return " ".join(text.split())[:MAX_TITLE].rstrip()


def _markdown_headings(lines: list[str]) -> list[Heading]:
    """Return ATX and setext headings, as CommonMark defines them.

    What looks like a heading inside a fence, an HTML block, a list or the front matter
    is none. The front matter is the beginning of the first section.
    """
    body = _front_matter_end(lines)
    # A lone carriage return ends a line for CommonMark, but not here.
    text = "\n".join(["" if n < body else line.replace("\r", " ") for n, line in enumerate(lines)])
    if "#" not in text and "==" not in text and "--" not in text:
        return []
    return [
        Heading(token.map[0] + 1, int(token.tag[1]), _plain_markdown(inline.content))
        for token, inline in pairwise(_markdown().parse(text))
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")  # headings need no inline parsing


def _front_matter_end(lines: list[str]) -> int:
    """Count the lines that a YAML (`---`) or TOML (`+++`) front matter takes."""
    mark = lines[0].strip("\ufeff \r") if lines else ""
    ends = {"---": ("---", "..."), "+++": ("+++",)}.get(mark, ())
    return next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() in ends), 0)


def _plain_markdown(text: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(0xE000 + ord(match[1])), text)
    for _ in range(2):  # a linked badge is an image inside a link
        text = _LINK.sub(r"\1", text)
    return clean_title(_MARKUP.sub("", text).translate(_UNESCAPE))


def _rst_headings(lines: list[str]) -> list[Heading]:
    """Return the adorned titles; their styles rank in the order of first use."""
    headings = []
    styles: list[tuple[str, bool]] = []
    """Character of the adornment, and whether it is above the title as well."""
    at = 0
    while at < len(lines):
        height, style, title = 1, ("", False), ""
        if at == 0 or not lines[at - 1].strip() or lines[at - 1].startswith(".."):
            over, under = _adornment(lines, at), _adornment(lines, at + 1)
            if over is None and under is not None:
                title = lines[at].rstrip()
                # docutils takes a short underline for one only from four characters on.
                if title and not title[0].isspace() and under[1] >= min(len(title), 4):
                    height, style = 2, (under[0], False)
            elif over is not None and under is None and _adornment(lines, at + 2) == over:
                title = lines[at + 1].rstrip()
                if title and len(title) <= over[1]:
                    height, style = 3, (over[0], True)
        if height > 1:
            if style not in styles:
                styles.append(style)
            headings.append(Heading(at + 1, styles.index(style) + 1, _plain_rst(title.strip())))
        at += height
    return headings


def _text_headings(lines: list[str]) -> list[Heading]:
    """Return the headings of a `.txt` file that is a manual in reStructuredText; else none."""
    headings = _rst_headings(lines)
    titled = sum(1 for section in sections_below(headings, lines) if section.titles)
    return headings if titled > 2 or (titled and any(map(_DIRECTIVE.match, lines))) else []


def _adornment(lines: list[str], at: int) -> tuple[str, int] | None:
    """Return character and length of the adornment at index `at`."""
    match = _ADORNMENT.fullmatch(lines[at]) if at < len(lines) else None
    return (match[1], len(lines[at].rstrip())) if match else None


def _plain_rst(text: str) -> str:
    text = _ROLE.sub(lambda match: next(filter(None, match.groups()), ""), text)
    return clean_title(_RST_ESCAPE.sub(r"\1", text))


def _by_line(lines: list[str], form: str, marks: str) -> list[Heading]:
    """Return a heading for each line of the form `form`, whose last group is the title.

    It begins with the comment above it, whose lines begin with one of `marks`.
    """
    pattern = re.compile(form)
    return [
        Heading(_with_comments(lines, number, marks), 1, clean_title(match[match.lastindex or 0]))
        for number, line in enumerate(lines, 1)
        if (match := pattern.match(line.rstrip("\r")))
    ]


def _with_comments(lines: list[str], line: int, marks: str) -> int:
    """Return the first line of the comment directly above `line`, or `line` itself."""
    while line > 1 and lines[line - 2].startswith(tuple(marks)):
        line -= 1
    return line


def _join_short(sections: list[Section]) -> list[Section]:
    """Join short neighbours below one key into a section with up to three of their names."""
    joined: list[Section] = []
    names: tuple[str, ...] = ()
    for section in sections:
        first, last, titles = section[:3]
        before = joined[-1] if joined else Section(1, MIN_LINES)
        if before.last - before.first + 1 < MIN_LINES and before.titles[:-1] == titles[:-1]:
            first = joined.pop().first
        else:
            names = ()
        names += titles[-1:]
        title = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        joined.append(Section(first, last, titles[:-1] + (clean_title(title),) if names else ()))
    return joined


def _by_keys(lines: list[str], keys: list[Heading]) -> list[Heading]:
    """Return the outermost keys, and the keys below where one of them is long.

    The level of a key is its indentation.
    """
    groups: list[list[Heading]] = []
    for key in keys:
        if key.level == keys[0].level:
            groups.append([])
        groups[-1].append(key)
    ends = [group[0].line for group in groups[1:]]
    ends.append(len(lines) + 1)
    headings: list[Heading] = []
    for group, end in zip(groups, ends, strict=False):
        key, below = group[0], group[1:]
        headings.append(Heading(_with_comments(lines, key.line, "#"), 1, key.title))
        if end - key.line > CHUNK_SIZE:
            headings += [
                Heading(_with_comments(lines, inner.line, "#"), 2, inner.title)
                for inner in below
                if inner.level == below[0].level
            ]
    return headings


def _yaml_headings(lines: list[str]) -> list[Heading]:
    keys = []
    scalar = -1
    """Indentation of the key whose value is a block scalar, while inside of it."""
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if scalar >= 0 and (indent > scalar or not text.strip()):
            continue
        scalar = indent if _YAML_SCALAR.search(line) else -1
        if match := _YAML_KEY.match(text):
            title = clean_title((match[1] or match[2]).strip("\"' \r"))
            # An item of a list lies below the key, even where it is not indented.
            keys.append(Heading(number, indent + (1 if match[1] else 0), title))
    return _by_keys(lines, keys)


def _json_headings(lines: list[str]) -> list[Heading]:
    """Return the keys of a file that begins with an object and is indented evenly."""
    if not lines or lines[0].strip("\ufeff \r") != "{":
        return []
    keys = [
        Heading(number, len(match[1]), clean_title(match[2]))
        for number, line in enumerate(lines, 1)
        if (match := _JSON_KEY.match(line))
    ]
    return _by_keys(lines, keys)


HEADINGS: dict[str, Callable[[list[str]], list[Heading]]] = {
    "commonmark": _markdown_headings,
    "adornments": _rst_headings,
    "adornments_of_manuals": _text_headings,
    "indented_keys": _yaml_headings,
    "quoted_keys": _json_headings,
}
"""Layout in `languages.toml` → function that finds its headings."""


# Notebooks.


class _Piece(str):
    """A string of the JSON text."""

    offset = 0
    """Position of its opening quote."""


def _notebook_sections(lines: list[str], usual: str) -> list[Section]:
    """Return one section for each cell with text; code is in the notebook's language or `usual`.

    Raises one of several errors unless it is a notebook of a format since 2015.
    """
    content = _decoded("\n".join(lines))
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    language = _language(content) or usual
    sections: list[Section] = []
    heading: tuple[str, ...] = ()
    for number, cell in enumerate(content["cells"], 1):
        pieces = cell["source"] if isinstance(cell["source"], list) else [cell["source"]]
        source = "".join(pieces)
        if not source.strip():
            continue
        own = "markdown" if cell["cell_type"] == "markdown" else language
        if own == "markdown" and (match := _HEADING.match(source)):
            heading = heading[: len(match[1]) - 1] + (clean_title(match[2].splitlines()[0]),)
        by_line: dict[int, str] = {}
        for piece in pieces:
            line = bisect_right(starts, piece.offset)
            by_line[line] = by_line.get(line, "") + piece
        first, last = min(by_line), max(by_line)
        texts = [by_line.get(line, "") for line in range(first, last + 1)]
        is_line_by_line = all(text.find("\n") == len(text) - 1 for text in texts[:-1])
        if is_line_by_line and "\n" not in texts[-1][:-1]:
            texts = [text.removesuffix("\n") for text in texts]
        else:
            texts = source.split("\n")
        sections.append(Section(first, last, heading + (f"Cell {number}",), own, tuple(texts)))
    return sections


def _decoded(text: str) -> Any:
    """Decode a JSON text, its string values as `_Piece`s. Raises ValueError, RecursionError."""

    def located(text: str, end: int, strict: bool) -> tuple[_Piece, int]:
        value, after = scanstring(text, end, strict)
        piece = _Piece(value)
        piece.offset = end - 1
        return piece, after

    decoder = JSONDecoder(strict=False)
    decoder.parse_string = located  # type: ignore[attr-defined]
    decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder.decode(text)


def _language(content: dict[str, Any]) -> str:
    metadata = content.get("metadata", {})
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        if language := (metadata.get(name) or {}).get(key):
            return str(language).lower()
    return ""
