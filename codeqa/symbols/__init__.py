"""Exact answers from the edges: which definition a place means."""

from codeqa.symbols.usages import Usages, UsageSite, usages

__all__ = ["UsageSite", "Usages", "usages"]
