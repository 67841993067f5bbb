"""Answers without a language model: what the code itself says, quoted and cited."""
