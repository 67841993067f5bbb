"""Reviews of issues, with or without a language model."""
