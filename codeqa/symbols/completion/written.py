"""How a mention is written, so that it is read back as a whole."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\s\"“”`<>@]{1,300}")
_QUOTES = (('"', '"'), ("“", "”"))
LONGEST = 300


def as_mention(text: str) -> str:
    """What stands behind `@` for `text`: in quotes where it must, '' where nothing would do."""
    if _PLAIN.fullmatch(text):
        return text
    if not text or len(text) > LONGEST or "\n" in text:
        return ""
    return next((f"{a}{text}{z}" for a, z in _QUOTES if a not in text and z not in text), "")
