"""Look up definitions by their exact name, and tell which languages may mean each other's names."""

from __future__ import annotations

from functools import lru_cache

from codeqa.languages import detect, language_called
from codeqa.store import Tables
from codeqa.text.tokens import name_key
from codeqa.types import CLASS_KINDS, Unit

MOST_NAMED = 20_000
TYPES = CLASS_KINDS - {"module"}


def same_named(tables: Tables, name: str, limit: int = MOST_NAMED) -> list[Unit]:
    """Return the definitions that are called exactly `name`."""
    units = tables.named([name_key(name)], limit)
    return [unit for unit in units if unit.name == name and unit.is_definition]


def related(language: str, other: str) -> bool:
    """Return whether code in `language` may call definitions in the language `other`."""
    family = language_called(language).family
    return language == other or (family != "" and family == language_called(other).family)


@lru_cache(maxsize=4_096)  # a name stands many times in a file
def language_name(path: str) -> str:
    """Return the language of a path, '' for none."""
    language = detect(path)
    return language.name if language is not None else ""


def holder_name(unit: Unit) -> str:
    """Return what it is defined in: its class, or the function around it."""
    return unit.qualified_name.removesuffix(unit.name).rstrip(".:")


def types_called(tables: Tables, name: str) -> list[Unit]:
    """Return the classes, interfaces and other types of exactly that name."""
    return [unit for unit in same_named(tables, name) if unit.kind in TYPES]
