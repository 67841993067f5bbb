"""Exact answers from the edges: which definition a place means."""

from codeqa.symbols.evidence import UsageSite
from codeqa.symbols.usages import Usages, usages

__all__ = ["UsageSite", "Usages", "usages"]
