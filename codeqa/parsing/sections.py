"""Sections of documents: what is one, and where Markdown and reStructuredText begin theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_TITLE = 120
"""Characters of a heading that are kept in names."""

_LINK = re.compile(r"!?\[([^\]\[]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])")
_MARKUP = re.compile(r"<[^<>]{1,200}>|[*`]+|(?<!\w)_+|_+(?!\w)|\{[#.:][^{}]*\}")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNESCAPE = {0xE000 + code: code for code in range(0x21, 0x7F)}
"""Escaped characters wait in Unicode's private area until the markup is gone."""

_ADORNMENT = re.compile(r"""([!"#$%&'()*+,./:;<=>?@\[\\\]^_`{|}~-])\1*\s*""")
_RST_ESCAPE = re.compile(r"\\(?: |(\S))")
_DIRECTIVE = re.compile(r"\.\. (?:[\w-]+:{1,2}|_[^:]+:|\[)")
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)\s*(?:<[^`>]*>)?`|`+([^`]*)`+_*|\*+([^*]+)\*+")


@dataclass(frozen=True, slots=True)
class Section:
    """Lines `first`..`last` (1-based, inclusive) below `titles`, outermost first."""

    first: int
    last: int
    titles: tuple[str, ...] = ()
    language: str = ""
    """The section's own language, where it differs from the file's."""
    lines: tuple[str, ...] | None = None
    """What the section reads as, where that is not the file's own lines (notebooks)."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: the line that its section begins on, its depth from 1, its text."""

    line: int
    level: int
    title: str


def sections_below(headings: Sequence[Heading], lines: list[str]) -> list[Section]:
    """One section for what stands before the first heading and one from each to the next.

    A heading with nothing below it but a deeper heading joins that heading's section, so that
    no section is a bare title.
    """
    sections: list[Section] = []
    if not headings or headings[0].line > 1:
        sections.append(Section(1, headings[0].line - 1 if headings else len(lines)))
    stack: list[Heading] = []
    begin = 0
    for number, heading in enumerate(headings):
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        begin = begin or heading.line
        following = headings[number + 1] if number + 1 < len(headings) else None
        last = following.line - 1 if following else len(lines)
        if following and following.level > heading.level and _is_bare(lines, heading.line, last):
            continue
        sections.append(Section(begin, last, tuple(entry.title for entry in stack if entry.title)))
        begin = 0
    return sections


def _is_bare(lines: list[str], first: int, last: int) -> bool:
    """Whether the lines hold a title, its adornments and blanks only."""
    written = [line for line in lines[first - 1 : last] if any(map(str.isalnum, line))]
    return len(written) <= 1


def clean_title(text: str) -> str:
    """`text` on one line, at most `MAX_TITLE` characters."""
    return " ".join(text.split())[:MAX_TITLE].rstrip()


def markdown_sections(lines: list[str]) -> list[Section]:
    """Sections by ATX and setext headings as CommonMark has them.

    What looks like a heading inside a fence, an HTML block, a list or the front matter
    is none. The front matter is the beginning of the first section.
    """
    body = _front_matter_end(lines)
    # A lone carriage return ends a line for CommonMark, but not here.
    text = "\n".join(["" if n < body else line.replace("\r", " ") for n, line in enumerate(lines)])
    if "#" not in text and "==" not in text and "--" not in text:
        return sections_below([], lines)
    headings = []
    tokens = _markdown().parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = _plain_markdown(inline.content)
            headings.append(Heading(token.map[0] + 1, int(token.tag[1]), title))
    return sections_below(headings, lines)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")  # headings need no inline parsing


def _front_matter_end(lines: list[str]) -> int:
    """Number of lines that a YAML (`---`) or TOML (`+++`) front matter takes."""
    mark = lines[0].strip("\ufeff \r") if lines else ""
    if mark not in ("---", "+++"):
        return 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == mark or (mark == "---" and line.rstrip() == "..."):
            return number + 1
    return 0


def _plain_markdown(text: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(0xE000 + ord(match[1])), text)
    for _ in range(2):  # a linked badge is an image inside a link
        text = _LINK.sub(r"\1", text)
    return clean_title(_MARKUP.sub("", text).translate(_UNESCAPE))


def rst_sections(lines: list[str]) -> list[Section]:
    """Sections by adorned titles; the styles rank in the order of their first use."""
    headings = []
    styles: list[tuple[str, bool]] = []
    number = 0
    while number < len(lines):
        title = _rst_title(lines, number)
        if title is None:
            number += 1
            continue
        style, text, taken = title
        if style not in styles:
            styles.append(style)
        headings.append(Heading(number + 1, styles.index(style) + 1, _plain_rst(text)))
        number += taken
    return sections_below(headings, lines)


def text_sections(lines: list[str]) -> list[Section]:
    """Sections of a `.txt` file that is reStructuredText, as whole manuals are; else one."""
    directives = sum(1 for line in lines if line.startswith(".. ") and _DIRECTIVE.match(line))
    sections = rst_sections(lines)
    titled = sum(1 for section in sections if section.titles)
    return sections if titled > 2 or (titled and directives) else sections_below([], lines)


def _rst_title(lines: list[str], at: int) -> tuple[tuple[str, bool], str, int] | None:
    """Style, text and number of lines of the title that begins at index `at`."""
    if at and not (lines[at - 1].isspace() or not lines[at - 1] or lines[at - 1].startswith("..")):
        return None
    over = _adornment(lines, at)
    if over is not None:
        text = lines[at + 1].rstrip() if at + 1 < len(lines) else ""
        under = _adornment(lines, at + 2)
        if (
            text.strip()
            and under == over
            and len(text) <= over[1]
            and _adornment(lines, at + 1) is None
        ):
            return (over[0], True), text.strip(), 3
    text = lines[at].rstrip()
    under = _adornment(lines, at + 1)
    if not text or text[0].isspace() or under is None or over is not None:
        return None
    # docutils takes a short underline for one only from four characters on.
    if under[1] < len(text) and under[1] < 4:
        return None
    return (under[0], False), text, 2


def _adornment(lines: list[str], at: int) -> tuple[str, int] | None:
    """Character and length of the adornment at index `at`."""
    if not 0 <= at < len(lines):
        return None
    match = _ADORNMENT.fullmatch(lines[at])
    return (match[1], len(lines[at].rstrip())) if match else None


def _plain_rst(text: str) -> str:
    text = _ROLE.sub(lambda match: next(filter(None, match.groups()), ""), text)
    return clean_title(_RST_ESCAPE.sub(r"\1", text))
