"""Small readings of text: the tag, words, the text of a unit, Markdown, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_TAG = re.compile(r"(?<!\w)(?:@codebase\b)+", re.IGNORECASE)
"""A question that carries it is searched for; it is no part of an address or a longer word."""


def has_tag(text: str) -> bool:
    """Whether `@codebase` stands in `text`."""
    return _TAG.search(text) is not None


def strip_tag(text: str) -> str:
    """`text` without `@codebase` and the blanks it leaves."""
    return re.sub(r"[ \t]{2,}", " ", _TAG.sub(" ", text)).strip()


def some_of(items: Sequence[str], most: int, apart: str = ", ") -> str:
    """Join the first `most` items, and say how many more there are."""
    text, left = apart.join(items[:most]), len(items) - most
    return f"{text} and {left:,} more" if left > 0 else text


def counted(number: int, one: str, many: str = "") -> str:
    """`1 place`, `2 places`; 1,234 with its comma."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that `text` is; None for anything else, as what nests a thousand times."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
