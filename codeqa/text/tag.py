"""The tag `@codebase`: a question that carries it is searched for."""

from __future__ import annotations

import re

_TAG = re.compile(r"(?<!\w)(?:@codebase\b)+", re.IGNORECASE)


def has_tag(text: str) -> bool:
    """Whether `@codebase` stands in `text`; not as a part of an address or a longer word."""
    return _TAG.search(text) is not None


def strip_tag(text: str) -> str:
    """`text` without `@codebase` and the blanks it leaves."""
    return re.sub(r"[ \t]{2,}", " ", _TAG.sub(" ", text)).strip()
