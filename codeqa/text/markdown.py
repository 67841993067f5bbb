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

CITATION = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+):(\d{1,9})(?:-(\d{1,9}))?\]")
"""`[path:12-34]`; groups: path, first line, last line when it is another one."""
CODE_LOCATION = re.compile(r"([^\s:`]+):(\d{1,9})(?:-(\d{1,9}))?")
"""`path:12-34` with the same groups; to be matched against the whole of a code span."""

MOST_NODES = 30
"""A diagram of more is no picture."""
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
"""What would end a label, or is markup in one, gives way to what looks like it."""


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


def code_block(code: str, language: str = "", place: str = "") -> str:
    """A fenced block that `code` cannot close. `place` (`path:12-34`) is where it stands: other
    readers of Markdown show nothing of it, ours the numbers of the lines."""
    code = _CONTROL.sub("\ufffd", code.replace("\r\n", "\n"))
    fence = fence_for(code)
    place = f" {clean(place)}" if language and "`" not in place and "\n" not in place else ""
    return f"{fence}{language}{place.rstrip()}\n{code}\n{fence}"


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


def flowchart(edges: Iterable[tuple[str, str, str]]) -> str:
    """The arrows (from, to, words beside it) from left to right, in the part of Mermaid that every
    reader knows; as far as MOST_NODES lead, '' for none. Names may hold anything."""
    numbers: dict[str, int] = {}
    arrows: list[str] = []
    for start, end, label in edges:
        new = [name for name in dict.fromkeys((start, end)) if name not in numbers]
        if len(numbers) + len(new) > MOST_NODES:
            continue
        for name in new:
            numbers[name] = len(numbers) + 1
        beside = f"|{_label(label)}|" if label else ""
        arrows.append(f"n{numbers[start]} -->{beside} n{numbers[end]}")
    nodes = [f'n{number}["{_label(name)}"]' for name, number in numbers.items()]
    return "\n".join(["flowchart LR", *nodes, *dict.fromkeys(arrows)]) if arrows else ""


def _label(text: str) -> str:
    text = " ".join(text.split()) or "?"
    text = text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 3]}..."
    return clean(text).translate(_LABEL_MARKUP)
