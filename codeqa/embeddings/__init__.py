"""Embeddings behind one interface: the shipped table, providers, models that run here, and those of
LanceDB's registry.

Importing this package is free. Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a
provider: a key in the environment alone does nothing.
"""
