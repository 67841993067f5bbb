"""Pieces of Markdown in which repository text stays data.

Whatever a file holds, it cannot leave the piece that it is put into: fences are longer
than any run of backticks inside, quoted prose is escaped character by character except
for code spans and code blocks, and control characters do not reach the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PIECE_CHARACTERS = 240
"""Longest piece of the stream: stopping takes effect after at most this much text."""

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


def clean(text: str) -> str:
    """`text` without control characters, carriage returns and bidirectional overrides."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def escape(text: str) -> str:
    """`text` as literal Markdown: nothing in it is markup."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text))


def code_span(text: str) -> str:
    """Inline code that `text` cannot close, on one line."""
    text = " ".join(clean(text).split()) or " "
    ticks = fence_for(text, 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def code_block(code: str, language: str = "") -> str:
    """A fenced block that `code` cannot close."""
    code = _CONTROL.sub("\ufffd", code.replace("\r\n", "\n"))
    fence = fence_for(code)
    return f"{fence}{language}\n{code}\n{fence}"


def fence_for(content: str, least: int = 3) -> str:
    """The shortest run of backticks, of `least` at least, that `content` cannot close."""
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=0)
    return "`" * max(least, longest + 1)


def cite(path: str, start: int, end: int) -> str:
    """A citation as the page and the verifier read it; of a single line without its end.

    A path that could be read as something else (a tag, a link, code, another citation) is
    code, followed by the lines.
    """
    lines = f"{start}-{end}" if end > start else f"{start}"
    path = clean(path)
    return f"[{path}:{lines}]" if _CITABLE.fullmatch(path) else f"{code_span(path)} {lines}"


def block_quote(markdown: str) -> str:
    """`markdown` as a block quote."""
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))


def pieces(markdown: str) -> Iterator[str]:
    """`markdown` in pieces of a line or less that join to it again."""
    for line in markdown.splitlines(keepends=True):
        while len(line) > PIECE_CHARACTERS:
            cut = line.rfind(" ", 0, PIECE_CHARACTERS) + 1 or PIECE_CHARACTERS
            yield line[:cut]
            line = line[cut:]
        if line:
            yield line


def joined(blocks: Iterable[str]) -> str:
    """Blocks of Markdown, empty ones left out, with a blank line between them."""
    return "\n\n".join(filter(None, blocks))
