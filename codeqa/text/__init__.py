"""Small readings of text: the tag, words, the text of a unit, and Markdown."""

from __future__ import annotations

import re

_TAG = re.compile(r"(?<!\w)(?:@codebase\b)+", re.IGNORECASE)
"""A question that carries it is searched for; it is no part of an address or a longer word."""


def has_tag(text: str) -> bool:
    """Whether `@codebase` stands in `text`."""
    return _TAG.search(text) is not None


def strip_tag(text: str) -> str:
    """`text` without `@codebase` and the blanks it leaves."""
    return re.sub(r"[ \t]{2,}", " ", _TAG.sub(" ", text)).strip()


def counted(number: int, one: str, many: str = "") -> str:
    """`1 place`, `2 places`; 1,234 with its comma."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
