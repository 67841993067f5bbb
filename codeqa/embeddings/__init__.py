"""Embeddings behind one interface: the table that is shipped, and those of LanceDB's registry.

Importing this package is free. Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a
provider: a key in the environment alone does nothing.
"""
