"""Markdown that is safe wherever it is opened: no HTML, no image, no link that runs anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from codeqa.render.code import normal

END = "codeqa-end"
ROUNDS = 20
"""Places of one block that are made harmless one by one; beyond that all of it is."""
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>#!|~&$])")
_DANGEROUS = re.compile(r"<|&|!(?=\[)|\](?=[(:])")
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
    blocks = [token.map for token in tokens if token.level == 0 and token.map]
    alive = [place for place, _ in _alive(tokens)]
    for first, last in reversed(blocks):
        if any(first <= line < last for line in alive):
            lines[first:last] = _harmless("\n".join(lines[first:last])).split("\n")
    text = "\n".join(lines)
    if alive and any(True for _ in _alive(_parser().parse(text))):  # by a definition elsewhere
        text = _all_harmless(text)
    return _closed(text)


def plain_in_markdown(text: str) -> str:
    """One line of text that means nothing but itself in Markdown."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(normal(text).split()))


def code_in_markdown(text: str) -> str:
    """`text` as a code span."""
    text = " ".join(normal(text).splitlines())
    mark = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{mark}{pad}{text}{pad}{mark}"


def _alive(tokens: Iterable[Token]) -> Iterator[tuple[int, str]]:
    """Line of the part that holds what is no plain Markdown, and how that begins."""
    for token in tokens:
        line = token.map[0] if token.map else 0
        if token.type == "html_block":
            yield line, "<"
        for child in token.children or ():
            if child.type == "html_inline":
                yield line, child.content
            elif child.type == "image":
                yield line, "!["
            elif child.type == "link_open" and _runs(str(child.attrs.get("href", ""))):
                yield line, "<" if child.markup == "autolink" else "]("


def _runs(address: str) -> bool:
    """Whether a link may do more than lead somewhere."""
    scheme = _SCHEME.match(address)
    return scheme is not None and scheme[1].lower() not in _SCHEMES


def _harmless(block: str) -> str:
    """A block with everything in it escaped that is alive."""
    for _ in range(ROUNDS):
        found = [sign for _, sign in _alive(_parser().parse(block))]
        if not found:
            return block
        changed = _without(block, found[0], len(found))
        if changed is None:
            break
        block = changed
    return _all_harmless(block)


def _without(block: str, sign: str, count: int) -> str | None:
    """`block` with `sign` escaped where that leaves less than `count` alive."""
    for found in re.finditer(re.escape(sign), block):
        cut = found.start()
        changed = block[:cut] + _ESCAPES[block[cut]] + block[cut + 1 :]
        if sum(1 for _ in _alive(_parser().parse(changed))) < count:
            return changed
    return None


def _all_harmless(text: str) -> str:
    return _DANGEROUS.sub(lambda found: _ESCAPES[found[0]], text)


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
