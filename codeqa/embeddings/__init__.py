"""Embed texts with one of several embeddings that share an interface.

Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a provider: a key in the environment alone
does nothing.
"""
