"""Embeddings behind one interface. Nothing is sent anywhere unless `CODEQA_EMBEDDING` names a
provider: a key in the environment alone does nothing."""
