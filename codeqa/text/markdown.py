"""Pieces of Markdown that text of a repository cannot leave.

Fences are longer than any run of backticks inside them, prose is escaped except for its code, and
control characters are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PIECE_CHARACTERS = 240
"""Characters of the longest piece of a stream: an answer stops after at most so many."""

CITATION = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+):(\d{1,9})(?:-(\d{1,9}))?\]")
"""`[path:12-34]`; groups: path, first line, last line if it is another."""
CODE_LOCATION = re.compile(r"([^\s:`]+):(\d{1,9})(?:-(\d{1,9}))?")
"""`path:12-34` with the same groups, to be matched with a whole code span."""

MOST_NODES = 30
"""Most nodes of a diagram: one of more cannot be read."""
LONGEST_LABEL = 60
"""Characters of a node's label."""

_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(
    r"[\\`*\[\]<]"  # always markup
    r"|(?<![^\W_])_|_(?![^\W_])"  # not inside a snake_case name
    r"|~(?=~)|(?<=~)~|&(?=[#\w]+;)"  # strike-through and entities
    r"|^(?=[#>+=|-])",  # what begins a block
    re.MULTILINE,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CITABLE = re.compile(r"(?:[^\[\]`<>\n]|\[[^\[\]`<>:\n]*\](?!\())+")
_LABEL_MARKUP = str.maketrans({'"': "#quot;", "#": "\u266f", "`": "'", "<": "\u2039", ">": "\u203a",
                          "&": "\uff06", "|": "/", ";": ","})  # fmt: skip
"""What ends a label or is markup in one, and the character that replaces it."""


def clean(text: str) -> str:
    """Remove control characters, carriage returns and bidirectional overrides."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def escape(text: str) -> str:
    """Escape `text`, so that nothing in it is markup."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text))


def code_span(text: str) -> str:
    """Return `text` on one line as inline code that it cannot close."""
    text = " ".join(clean(text).split()) or " "
    ticks = fence_for(text, 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def code_block(code: str, language: str = "", span: str = "") -> str:
    """Return a fenced block that `code` cannot close.

    Our page numbers the lines by `span` (`path:12-34`), which other viewers of Markdown ignore.
    """
    code = _CONTROL.sub("\ufffd", code.replace("\r\n", "\n"))
    fence = fence_for(code)
    info = language
    if language and "`" not in span and "\n" not in span:
        info = f"{language} {clean(span)}".rstrip()
    return f"{fence}{info}\n{code}\n{fence}"


def fence_for(content: str, least: int = 3) -> str:
    """Return the shortest run of at least `least` backticks that `content` cannot close."""
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=0)
    return "`" * max(least, longest + 1)


def cite(path: str, start: int, end: int) -> str:
    """Return the citation `[path:start-end]`, or `[path:start]` for a single line.

    A path that could be read as a tag, a link, code or another citation is code, with the lines
    after it.
    """
    lines = f"{start}-{end}" if end > start else f"{start}"
    path = clean(path)
    return f"[{path}:{lines}]" if _CITABLE.fullmatch(path) else f"{code_span(path)} {lines}"


def block_quote(markdown: str) -> str:
    """Return `markdown` as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))


def pieces(markdown: str) -> Iterator[str]:
    """Yield `markdown` in pieces of a line or less."""
    for line in markdown.splitlines(keepends=True):
        while len(line) > PIECE_CHARACTERS:
            cut = line.rfind(" ", 0, PIECE_CHARACTERS) + 1 or PIECE_CHARACTERS
            yield line[:cut]
            line = line[cut:]
        if line:
            yield line


def joined(blocks: Iterable[str]) -> str:
    """Join blocks of Markdown by blank lines, without the empty ones."""
    return "\n\n".join(filter(None, blocks))


def flowchart(edges: Iterable[tuple[str, str, str]]) -> str:
    """Draw arrows (from, to, words beside it) with Mermaid; '' for none.

    Arrows that would lead to more than MOST_NODES nodes are left out. Names may hold anything.
    """
    numbers: dict[str, int] = {}
    arrows: list[str] = []
    for start, end, label in edges:
        if len(numbers.keys() | {start, end}) > MOST_NODES:
            continue
        for name in (start, end):
            numbers.setdefault(name, len(numbers) + 1)
        beside = f"|{_label(label)}|" if label else ""
        arrows.append(f"n{numbers[start]} -->{beside} n{numbers[end]}")
    if not arrows:
        return ""
    nodes = [f'n{number}["{_label(name)}"]' for name, number in numbers.items()]
    return "\n".join(["flowchart LR"] + nodes + list(dict.fromkeys(arrows)))


def _label(text: str) -> str:
    text = " ".join(text.split()) or "?"
    if len(text) > LONGEST_LABEL:
        text = f"{text[: LONGEST_LABEL - 3]}..."
    return clean(text).translate(_LABEL_MARKUP)
