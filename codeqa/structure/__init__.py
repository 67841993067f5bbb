"""Exact answers from the edges: which definition a place means."""

from codeqa.structure.evidence import Usage
from codeqa.structure.usages import Usages, usages

__all__ = ["Usage", "Usages", "usages"]
