"""The context block: its grammar (`blocks`), what becomes a chunk (`chunks`), the packing."""

from codeqa.context.blocks import chunk_id, format_block, parse_block
from codeqa.context.chunks import call_site_chunk, unit_chunk
from codeqa.context.packing import pack

__all__ = [
    "call_site_chunk",
    "chunk_id",
    "format_block",
    "pack",
    "parse_block",
    "unit_chunk",
]
