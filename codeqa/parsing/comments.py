"""The text of comments and docstrings, without their marks."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

    Captures = dict[str, list[tree_sitter.Node]]

_MARKED = re.compile(r"/\*\*(?!/)|///(?!/)|//!|/\*!|--\[=*\[|---(?!-)")
"""How languages mark a comment as documentation; an unmarked neighbour is then left out."""

_OPEN = re.compile(
    r"^\s*(?:/\*[*!]*(?!/)|//[/!]*<?|#[#!:|]*|--\[=*\[|--+\|?|;+|<!--|\{-\|?|\(\*\*?|%+)[ \t]?"
)

_CLOSE = re.compile(r"(?:\*+/|\]=*\]|-->|-\}|\*\))$")

_LONGEST_CLOSE = 80
"""Characters at the end of a comment in which its closing mark is looked for."""

_DIRECTIVE = re.compile(
    r"^(?:go:\w+|\+build|nolint|noqa|type:\s*ignore|eslint-|@ts-|prettier-ignore|pylint:|mypy:"
    r"|fmt:|clang-format|NOLINT|istanbul|c8 |v8 |rubocop:|shellcheck |biome-ignore"
    r"|frozen_string_literal:|warn_indent:|typed:|-\*-|vim:|swiftlint:|swift-format|phpcs:|sqlfluff"
    r"|[-=*#/~_+]{3,}\s*$|!/)"
)
"""A line of a comment that speaks to a tool rather than to a reader, or a mere rule."""

_STRING = re.compile(r"""^[A-Za-z]{0,3}(\"\"\"|'''|"|')(.*?)(?:\1)?$""", re.DOTALL)

_XML_DOC = re.compile(r"<(?:summary|remarks|returns|param|inheritdoc|value|exception)\b")

_XML_VALUE = re.compile(r'<(?:see|seealso|paramref|typeparamref|inheritdoc)\s+\w+="([^"]*)"\s*/?>')

_XML_NAMED = re.compile(r'<(?:param|typeparam|exception)\s+\w+="([^"]*)"\s*>')

_XML_TAG = re.compile(
    r"</?(?:summary|remarks|returns|param|typeparam|exception|value|example|para|see|seealso|c|code"
    r"|list|listheader|item|term|description|inheritdoc|br)\b[^<>]*>"
)
"""Documentation in XML (C#): tags that mean nothing to a reader."""


def comment_text(parts: list[str]) -> str:
    """Text of adjacent comments without their markers; only the marked ones if any is."""
    parts = [part for part in parts if not part.startswith("#!/")]
    marked = [part for part in parts if _MARKED.match(part)]
    text = "\n".join(line for part in marked or parts for line in _bare_lines(part))
    if "<" in text and _XML_DOC.search(text):
        text = _XML_TAG.sub("", _XML_NAMED.sub(r"\1: ", _XML_VALUE.sub(r"\1", text)))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def docstring_text(literal: str) -> str:
    """Text of a string literal or comment inside a body, without quotes and indentation."""
    match = _STRING.match(literal)
    return cleandoc(match.group(2)).strip() if match else comment_text([literal])


def _bare_lines(comment: str) -> list[str]:
    block = comment.lstrip().startswith(("/*", "--[", "<!--", "{-", "(*"))
    if block:
        comment = comment.rstrip()
        head, tail = comment[:-_LONGEST_CLOSE], comment[-_LONGEST_CLOSE:]
        comment = (head + _CLOSE.sub("", tail)).rstrip()
    lines = comment.split("\n")
    bare = [_OPEN.sub("", lines[0])]
    starred = False
    for line in lines[1:]:
        if block:
            text = line.lstrip()
            if text.startswith("*") and not text.startswith("*/"):
                starred = True
                line = text[2:] if text[1:2] in (" ", "\t") else text[1:]
            bare.append(line)
        else:
            bare.append(_OPEN.sub("", line))
    if block and len(bare) > 1 and not starred:
        bare = [bare[0], *cleandoc("\n" + "\n".join(bare[1:])).split("\n")]
    return [line for line in bare if not _DIRECTIVE.match(line.strip())]
