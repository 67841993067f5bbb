"""Reads a context block back, strictly by its grammar."""

from __future__ import annotations

import json
import re

from codeqa.context.block import HEADER, format_block
from codeqa.types import Chunk

_CHUNK = re.compile(
    r"=== CHUNK [1-9][0-9]* ===\n"
    r"Id: (?P<id>ctx_[0-9a-f]{8})\n"
    r"Path: (?P<path>[^\n]*)\n"
    r"Lines: (?P<start>[0-9]+)-(?P<end>[0-9]+)\n"
    r"Language: (?P<language>[A-Za-z0-9_+#.-]*)\n"
    r"(?P<fence>`{3,})(?P=language)\n"
)


def parse_block(text: str) -> list[Chunk]:
    """Inverse of `format_block`: `format_block(parse_block(text)) == text`.

    What the text does not carry (`unit_id`, `why`) is empty. Raises ValueError for a text that
    does not follow the grammar.
    """
    chunks: list[Chunk] = []
    position = len(HEADER)
    while (head := _CHUNK.match(text, position)) is not None:
        closing = f"\n{head['fence']}\n\n"
        end = text.find(closing, head.end())
        if end < 0:
            break
        path = head["path"]
        chunks.append(
            Chunk(
                id=head["id"],
                path=str(json.loads(path)) if path.startswith('"') else path,
                start_line=int(head["start"]),
                end_line=int(head["end"]),
                language=head["language"],
                content=text[head.end() : end],
            )
        )
        position = end + len(closing)
    if format_block(chunks) != text:
        raise ValueError(f"the context block breaks its grammar after {len(chunks)} chunks")
    return chunks
