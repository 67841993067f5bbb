"""Text: the tag, words, Markdown, JSON, and the text of a unit."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from typing import Any

_TAG = re.compile(r"(?<!\w)(?:@codebase\b)+", re.IGNORECASE)
"""A question with it is searched for. It is no part of an address or a longer word."""

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def as_utf8(data: bytes) -> bytes:
    """Return a file that begins with a byte order mark as UTF-8 without it, others as they are."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def has_tag(text: str) -> bool:
    """Return whether `text` contains `@codebase`."""
    return _TAG.search(text) is not None


def strip_tag(text: str) -> str:
    """Return `text` without `@codebase` and the blanks around it."""
    return re.sub(r"[ \t]{2,}", " ", _TAG.sub(" ", text)).strip()


def some_of(items: Sequence[str], most: int, apart: str = ", ") -> str:
    """Join the first `most` items, and say how many more there are."""
    text, left = apart.join(items[:most]), len(items) - most
    return f"{text} and {left:,} more" if left > 0 else text


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 place`, `1,234 places`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def json_value(text: str | bytes) -> Any:
    """Parse JSON; None for anything else, also for what nests too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else."""
    value = json_value(text)
    return value if isinstance(value, dict) else None
