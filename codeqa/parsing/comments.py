"""The text of comments and docstrings, without their marks."""

from __future__ import annotations

import re
from functools import cache
from inspect import cleandoc

from codeqa.languages import comment_marks

_LONGEST_CLOSE = 80
"""Characters at the end of a comment in which its closing mark is looked for."""

_STRING = re.compile(r"""^[A-Za-z]{0,3}(\"\"\"|'''|"|')(.*?)(?:\1)?$""", re.DOTALL)

_XML_VALUE = re.compile(r'<(?:see|seealso|paramref|typeparamref|inheritdoc)\s+\w+="([^"]*)"\s*/?>')

_XML_NAMED = re.compile(r'<(?:param|typeparam|exception)\s+\w+="([^"]*)"\s*>')


@cache
def _form(name: str, before: str = "", after: str = "") -> re.Pattern[str]:
    """Compile the marks under `name` in `comments.toml`, between two expressions."""
    return re.compile(f"{before}(?:{'|'.join(comment_marks()[name])}){after}")


def comment_text(parts: list[str]) -> str:
    """Strip the marks of adjacent comments; if any is documentation, only those count."""
    parts = [part for part in parts if not part.startswith("#!/")]
    documentation = _form("documentation")
    marked = [part for part in parts if documentation.match(part)]
    text = "\n".join(line for part in marked or parts for line in _bare_lines(part))
    if "<" in text and _form("xml_documentation", "<", r"\b").search(text):
        tag = _form("xml_tag", "</?", r"\b[^<>]*>")
        text = tag.sub("", _XML_NAMED.sub(r"\1: ", _XML_VALUE.sub(r"\1", text)))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def docstring_text(literal: str) -> str:
    """Strip quotes and indentation of a string literal or comment inside a body."""
    match = _STRING.match(literal)
    return cleandoc(match.group(2)).strip() if match else comment_text([literal])


def _bare_lines(comment: str) -> list[str]:
    block = _form("block").match(comment.lstrip()) is not None
    opening, directive = _form("opening", r"^\s*", r"[ \t]?"), _form("directive")
    if block:
        comment = comment.rstrip()
        head, tail = comment[:-_LONGEST_CLOSE], comment[-_LONGEST_CLOSE:]
        comment = (head + _form("closing", after="$").sub("", tail)).rstrip()
    lines = comment.split("\n")
    bare = [opening.sub("", lines[0])]
    starred = False
    for line in lines[1:]:
        if block:
            text = line.lstrip()
            if text.startswith("*") and not text.startswith("*/"):
                starred = True
                line = text[2:] if text[1:2] in (" ", "\t") else text[1:]
            bare.append(line)
        else:
            bare.append(opening.sub("", line))
    if block and len(bare) > 1 and not starred:
        bare = [bare[0], *cleandoc("\n" + "\n".join(bare[1:])).split("\n")]
    return [line for line in bare if not directive.match(line.strip())]
