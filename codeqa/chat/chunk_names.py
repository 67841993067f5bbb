"""Chunks that a model calls by number or Id, turned into citations of their lines.

The model is asked to refer to chunks so, but to a reader `[Chunk 2]`, `(Chunk 2)` or
`[ctx_3f9a01bc]` says nothing. They become `[path:12-34]` while the answer arrives: that can be
followed and is verified as any citation, and it means the same in a later turn, whose block
numbers other chunks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeqa.chat.citations import find_citations
from codeqa.types import Chunk

LONGEST_NAME = 80
"""Characters in brackets that may wait for their end: five chunks by Id."""

_ONE = r"(?:chunks?[ #]*\d{1,3}|(?:id: ?)?ctx_[0-9a-f]{8})"
_MORE = rf"(?: ?(?:[,;&/]|\band\b) ?(?:{_ONE}|#?\d{{1,3}}))*"
_NAMES = re.compile(rf"\[({_ONE}{_MORE})\]|\(({_ONE}{_MORE})\)", re.IGNORECASE)
_NAME = re.compile(r"ctx_[0-9a-f]{8}|\d+", re.IGNORECASE)
_BEGINNINGS = ("chunk", "ctx_", "id:")
_GOES_ON = re.compile(r"[\w ,;&/#:]*")
"""What may follow a bracket as long as it may still become names."""


class ChunkNames:
    """The names of `chunks`, the block's in its order, in an answer that comes in pieces.

    Names of chunks that are not in the block stay as they are.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._places: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            place = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
            if find_citations(place):  # a path may hold what would end it early
                self._places[str(number)] = self._places[chunk.id] = place
        self._held = ""

    def feed(self, text: str) -> str:
        """The answer as far as it can be told after `text`; a name that has begun waits."""
        text = self._held + text
        end = _begin_of_name(text)
        self._held = text[end:]
        return _NAMES.sub(self._cited, text[:end])

    def close(self) -> str:
        """What still waited when the answer ends."""
        rest, self._held = self._held, ""
        return rest

    def _cited(self, match: re.Match[str]) -> str:
        names = _NAME.findall(match[1] or match[2])
        places = [self._places.get(name.lower(), "") for name in names]
        if not all(places) or len(match[0]) > LONGEST_NAME:
            return match[0]
        listed = ", ".join(dict.fromkeys(places))
        return listed if match[1] else f"({listed})"


def _begin_of_name(text: str) -> int:
    """Where in `text` a name begins that what follows may complete; its length for nowhere."""
    at = max(text.rfind("["), text.rfind("("))
    begun = text[at + 1 :].lower()
    named = any(begun.startswith(one) or one.startswith(begun) for one in _BEGINNINGS)
    waits = at >= 0 and len(begun) < LONGEST_NAME and named and _GOES_ON.fullmatch(begun)
    return at if waits else len(text)
