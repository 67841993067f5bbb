"""Completion of what is typed after `@`."""
