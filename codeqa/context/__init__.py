"""The context block: what becomes a chunk, how chunks are packed and cut, and the block's form."""
