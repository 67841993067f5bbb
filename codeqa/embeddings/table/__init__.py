"""The table of vectors that CodeQA brings along: pieces of words, fields, encoder, weights."""
