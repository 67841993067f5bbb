"""Exact answers from the edges: which definition a place means."""

from codeqa.structure.usages import Usage, Usages, usages

__all__ = ["Usage", "Usages", "usages"]
