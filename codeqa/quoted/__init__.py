"""Quoted answers, without a language model: what the code itself says, cited."""
