"""Markdown that is safe wherever it is opened: no HTML, no image, no link that runs anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from codeqa.render.code import normal

END = "codeqa-end"
_CODE_OR_DANGER = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|<|&|!(?=\[)|\](?=[(:])", re.DOTALL)
_DANGER = re.compile(r"<|&|!(?=\[)|\](?=[(:])")
_ESCAPES = {"<": "&lt;", "&": "&amp;", "!": "\\!", "]": "\\]"}
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SCHEMES = {"http", "https", "mailto"}


def inert_markdown(text: str) -> str:
    """`text`, which is Markdown, with HTML as text and images as links.

    Code keeps every character where a reader of Markdown can tell it from HTML. An open fence
    is closed, so that what is written below it is not code.
    """
    text = normal(text).rstrip()
    lines = text.split("\n")
    tokens = _parser().parse(text)
    alive = list(_alive_lines(tokens))
    blocks = [token.map for token in tokens if token.level == 0 and token.map]
    for first, last in reversed(blocks):
        if any(first <= line < last for line in alive):
            lines[first:last] = _harmless("\n".join(lines[first:last])).split("\n")
    text = "\n".join(lines)
    if alive and _is_alive(text):  # by a definition elsewhere
        text = _escaped(_DANGER, text)
    return _closed(text)


def _alive_lines(tokens: Iterable[Token]) -> Iterator[int]:
    """The first lines of the parts that hold what is no plain Markdown."""
    for token in tokens:
        children = token.children or ()
        if token.type == "html_block" or any(map(_does_something, children)):
            yield token.map[0] if token.map else 0


def _does_something(token: Token) -> bool:
    """Whether it is HTML, loads an image, or is a link that may do more than lead somewhere."""
    scheme = _SCHEME.match(str(token.attrs.get("href", "")))
    runs = scheme is not None and scheme[1].lower() not in _SCHEMES
    return token.type in ("html_inline", "image") or (token.type == "link_open" and runs)


def _is_alive(text: str) -> bool:
    return any(True for _ in _alive_lines(_parser().parse(text)))


def _harmless(block: str) -> str:
    """A block with everything escaped that may do something, outside of code where that will do."""
    outside = _escaped(_CODE_OR_DANGER, block)
    return _escaped(_DANGER, block) if _is_alive(outside) else outside


def _escaped(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: _ESCAPES.get(found[0], found[0]), text)


def _closed(text: str) -> str:
    """`text` with the fence closed that its end leaves open."""
    last: list[Token] = [token for token in _parser().parse(f"{text}\n\n{END}") if token.map]
    if last and last[-1].type == "fence" and last[-1].content.rstrip().endswith(END):
        return f"{text}\n{last[-1].markup}"
    return text


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
