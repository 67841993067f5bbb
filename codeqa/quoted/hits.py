"""Compare units by their places, words and parts of names."""

from __future__ import annotations

from collections.abc import Iterable

from codeqa.text.tokens import split_identifier, stem, written_forms
from codeqa.types import Hit, Unit

SAME_NAME = 20
"""Definitions of one name that are read."""
LINE_CHARACTERS = 120
"""Most characters of a line of code that is quoted by itself."""


def repeats(unit: Unit, hits: Iterable[Hit]) -> bool:
    """Return whether it lies in one of `hits` or around it.

    A member beside its long class does not: of the class only the head is shown.
    """
    for hit in hits:
        alike = hit.unit.path == unit.path and hit.unit.is_method == unit.is_method
        if alike and hit.unit.start_line <= unit.end_line and unit.start_line <= hit.unit.end_line:
            return True
    return False


def held_words(unit: Unit, words: Iterable[str]) -> frozenset[str]:
    """Return those of `words` that the unit holds in some form."""
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in words if any(form in text for form in written_forms(w)))


def name_parts(names: Iterable[str]) -> frozenset[str]:
    """Return the stems of the names and of their parts."""
    parts: list[str] = []
    for name in names:
        parts += [name.lower()] + split_identifier(name)
    return frozenset(map(stem, parts))
