"""The grammar of the context block, which can be read back exactly.

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

from codeqa.text.markdown import fence_for
from codeqa.types import Chunk

HEADER = "[CONTEXT]\n\n"

_WIDEST_NUMBER = 999
"""Chunks are measured with a three-digit number; a block holds fewer than a thousand."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]*")
_UNSAFE_PATH = re.compile('[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|^[\\s"]|\\s$')


def chunk_id(path: str, symbol: str, content: str) -> str:
    """`ctx_` and eight hex digits, the same for the same path, symbol and content."""
    text = "\0".join((path, symbol, content)).encode("utf-8", "surrogatepass")
    return "ctx_" + hashlib.blake2b(text, digest_size=4).hexdigest()


def format_chunk(number: int, chunk: Chunk) -> str:
    """One chunk of the block, its closing blank line included.

    Raises ValueError when the lines do not match the content or a field cannot be written.
    """
    if chunk.content.count("\n") != chunk.end_line - chunk.start_line:
        raise ValueError(f"{chunk.path}: the content is not lines {_lines(chunk)}")
    if not _LANGUAGE.fullmatch(chunk.language):
        raise ValueError(f"{chunk.path}: {chunk.language!r} is no language name")
    fence, path = fence_for(chunk.content), chunk.path
    path = json.dumps(path) if not path or _UNSAFE_PATH.search(path) else path
    return (
        f"=== CHUNK {number} ===\n"
        f"Id: {chunk.id}\n"
        f"Path: {path}\n"
        f"Lines: {_lines(chunk)}\n"
        f"Language: {chunk.language}\n"
        f"{fence}{chunk.language}\n"
        f"{chunk.content}\n"
        f"{fence}\n"
        "\n"
    )


def chunk_cost(chunk: Chunk) -> int:
    """Characters that it takes in a block, at most."""
    return len(format_chunk(_WIDEST_NUMBER, chunk))


def format_block(chunks: Iterable[Chunk]) -> str:
    """The whole block, chunks numbered from 1; '' for no chunks."""
    parts = [format_chunk(number, chunk) for number, chunk in enumerate(chunks, 1)]
    return HEADER + "".join(parts) if parts else ""


def _lines(chunk: Chunk) -> str:
    return f"{chunk.start_line}-{chunk.end_line}"
