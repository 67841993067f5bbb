"""What units share: places, words, parts of names."""

from __future__ import annotations

from collections.abc import Iterable

from codeqa.text.tokens import split_identifier, stem, written_forms
from codeqa.types import Hit, Unit

SAME_NAME = 20
"""Definitions of one name that are looked at."""
LINE_CHARACTERS = 120
"""Of a line of code that is told by itself."""


def repeats(unit: Unit, shown: Iterable[Hit]) -> bool:
    """Tell whether it lies in one of `shown` or around it. A member beside its long class does not:
    of the class only the head is shown."""
    alike = (hit.unit for hit in shown if hit.unit.is_method == unit.is_method)
    return any(one.path == unit.path and one.start_line <= unit.end_line
               and unit.start_line <= one.end_line for one in alike)  # fmt: skip


def held_words(unit: Unit, asked: Iterable[str]) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in asked if any(form in text for form in written_forms(w)))


def name_parts(names: Iterable[str]) -> frozenset[str]:
    """Stem names and their parts."""
    return frozenset(stem(p) for name in names for p in (name.lower(), *split_identifier(name)))
