"""The context block: its grammar (`blocks`), what becomes a chunk and how chunks are packed."""

from codeqa.context.blocks import chunk_cost, chunk_id, format_block
from codeqa.context.packing import call_site_chunk, pack, span_chunk, unit_chunk

__all__ = [
    "call_site_chunk",
    "chunk_cost",
    "chunk_id",
    "format_block",
    "pack",
    "span_chunk",
    "unit_chunk",
]
