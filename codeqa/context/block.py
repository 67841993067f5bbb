r"""Format the context block, which can be read back exactly, and make its chunks.

::

    [CONTEXT]

    === CHUNK 1 ===
    Id: ctx_3f9a01bc
    Path: src/flask/app.py
    Lines: 109-112
    Language: python
    ```python
    class Flask(App):
    …
    ```

    === CHUNK 2 ===
    …

Lines end with `\n` and nothing else: carriage returns, form feeds and U+2028 are content.
One blank line follows the header and every closing fence, the last one included. A fence
is one backtick longer than any run of backticks in its content, three at least, so that
content can never close it. A path that could break its line is written as a JSON string.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from codeqa.text.markdown import fence_for
from codeqa.types import CLASS_KINDS, Chunk, Unit

HEADER = "[CONTEXT]\n\n"

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]*")
_UNSAFE_PATH = re.compile('[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|^[\\s"]|\\s$')

LONG_CLASS_LINES = 80
"""A class longer than this enters by its head: its members are units of their own and come in by
themselves when they matter, while all of them together would fill the budget."""


def chunk_id(path: str, symbol: str, content: str) -> str:
    """Return `ctx_` and eight hex digits, the same for the same path, symbol and content."""
    text = "\0".join((path, symbol, content)).encode("utf-8", "surrogatepass")
    return "ctx_" + hashlib.blake2b(text, digest_size=4).hexdigest()


def format_chunk(number: int, chunk: Chunk) -> str:
    """Return one chunk of the block. Raises ValueError for lines that do not match the content."""
    if chunk.content.count("\n") != chunk.end_line - chunk.start_line:
        raise ValueError(f"{chunk.span}: the content is not these lines")
    if not _LANGUAGE.fullmatch(chunk.language):
        raise ValueError(f"{chunk.path}: {chunk.language!r} is no language name")
    fence, path = fence_for(chunk.content), chunk.path
    path = json.dumps(path) if not path or _UNSAFE_PATH.search(path) else path
    return (
        f"=== CHUNK {number} ===\n"
        f"Id: {chunk.id}\n"
        f"Path: {path}\n"
        f"Lines: {chunk.start_line}-{chunk.end_line}\n"
        f"Language: {chunk.language}\n"
        f"{fence}{chunk.language}\n"
        f"{chunk.content}\n"
        f"{fence}\n"
        "\n"
    )


def chunk_cost(chunk: Chunk) -> int:
    """Return the characters that it takes in a block, at most."""
    return len(format_chunk(_WIDEST_NUMBER, chunk))


def format_block(chunks: Iterable[Chunk]) -> str:
    """Return the whole block, chunks numbered from 1; '' for no chunks."""
    parts = [format_chunk(number, chunk) for number, chunk in enumerate(chunks, 1)]
    return HEADER + "".join(parts) if parts else ""


@dataclass(frozen=True)
class ContextBlock:
    """A packed context: its chunks in order, and the text to send."""

    chunks: tuple[Chunk, ...]
    dropped: tuple[Chunk, ...] = ()
    """Chunks that did not fit the budget."""
    note: str = ""
    """Sentences about it for the reader."""

    @cached_property
    def text(self) -> str:
        """Return the text to send; made on demand, for stored turns seldom need it."""
        return format_block(self.chunks)


NO_CONTEXT = ContextBlock(())


def span_chunk(unit: Unit, start: int, end: int, symbol: str, why: str = "") -> Chunk:
    """Return the chunk of lines `start`..`end` (1-based, inclusive) of `unit`, cut to it."""
    lines = unit.source_code.split("\n")
    start = max(start, unit.start_line)
    end = min(end, unit.start_line + len(lines) - 1)
    content = "\n".join(lines[start - unit.start_line : end - unit.start_line + 1])
    return Chunk(
        id=chunk_id(unit.path, symbol, content),
        path=unit.path,
        start_line=start,
        end_line=end,
        language=unit.language,
        content=content,
        unit_id=unit.id,
        why=why,
        name=unit.name,
        kind=unit.kind,
        role=unit.role,
        signature=unit.signature,
    )


def unit_chunk(unit: Unit, why: str = "") -> Chunk:
    """Return the chunk of a unit: all of it, or the head of a class of more than 80 lines."""
    end = unit.end_line
    long = unit.end_line - unit.start_line + 1 > LONG_CLASS_LINES
    if long and unit.kind in CLASS_KINDS and unit.start_line <= unit.head_end_line < end:
        end = unit.head_end_line
    return span_chunk(unit, unit.start_line, end, unit.qualified_name, why)


def span_of(chunk: Chunk, start: int, end: int) -> Chunk:
    """Return the chunk of the lines `start` to `end` of `chunk`, 0-based and half-open."""
    content = "\n".join(chunk.content.split("\n")[start:end])
    first, last = chunk.start_line + start, chunk.start_line + end - 1
    key = chunk_id(chunk.path, chunk.id, content)
    return replace(chunk, id=key, start_line=first, end_line=last, content=content)
