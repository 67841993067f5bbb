"""The context block: what becomes a chunk, how chunks are packed and cut, the block's form."""
