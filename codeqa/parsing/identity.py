"""The identity of a unit: stable as long as its file, name and order among namesakes are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from codeqa.types import Unit


def unit_id(path: str, qualified_name: str, ordinal: int) -> str:
    """16 hexadecimal digits; `ordinal` counts the file's units of that qualified name from 0."""
    key = f"{path}\0{qualified_name}\0{ordinal}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def with_ids(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The units of one file, in order, each with its id."""
    seen: Counter[tuple[str, str]] = Counter()
    numbered = []
    for unit in units:
        key = (unit.path, unit.qualified_name)
        numbered.append(replace(unit, id=unit_id(*key, seen[key])))
        seen[key] += 1
    return tuple(numbered)
