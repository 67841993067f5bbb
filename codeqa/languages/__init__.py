"""Which language a file is in, and what the parser needs to know about that language.

All of it is data: `languages.toml` and `queries/*.scm` (README.md explains both).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

CLASS_LIKE = frozenset({"class", "struct", "enum", "trait", "interface"})
"""Kinds whose functions are methods; a language adds to them with `class_like`."""

_CPP_HEADER = re.compile(
    rb"^[ \t]*(?:(?:class|enum class)\s+(?:[A-Z_]+\s+)?\w+(?:\s+final)?\s*(?:[{;]|:[^:])"
    rb"|namespace(?:\s+[\w:]+)?\s*\{|template\s*<|using\s+(?:namespace\s+\w|\w+\s*=|\w+(?:::\w+)+\s*;)"
    rb"|(?:public|private|protected)\s*:\s*$)"
    rb"|\bstd::\w|^\s*#\s*include\s*<(?:string|vector|map|memory|iostream|utility|functional)>",
    re.MULTILINE,
)
"""What only C++ has; a `.h` file without any of it is C."""

_SHEBANG = re.compile(rb"^#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?(?:\w+=\S*\s+)*)?(?:\S*/)?([\w+-]+)")
_VERSION = re.compile(r"[\d.]+$")
_SETS = {"class_like", "constructor_names", "self_names", "builtins"}


@dataclass(frozen=True, slots=True)
class Language:
    """One table of `languages.toml`."""

    key: str
    """Name of the table; `tsx` and `typescript` are two tables of one language."""
    name: str
    """What units, filters and code fences call it."""
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    grammar: str = ""
    """`module:function` that returns the grammar; '' when there is none."""
    queries: tuple[str, ...] = ()
    comment_nodes: tuple[str, ...] = ()
    attribute_nodes: tuple[str, ...] = ()
    separator: str = "."
    class_like: frozenset[str] = CLASS_LIKE
    constructor_names: frozenset[str] = frozenset()
    class_named_constructors: bool = False
    self_names: frozenset[str] = frozenset()
    implicit_self: bool = False
    import_separator: str = ""
    last_definition_wins: bool = False
    builtins: frozenset[str] = frozenset()
    prototypes: bool = False
    name_prefix: str = ""
    masks: tuple[list[str], ...] = ()
    item_macros: bool = False


@cache
def languages() -> Mapping[str, Language]:
    """Every language by the key of its table."""
    text = files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    for table in tables.values():
        if base := tables.get(table.pop("like", "")):
            own = {key: base.get(key, []) + table[key] for key in _SETS & table.keys()}
            table.update({**base, **table, **own})
    return {key: _language(key, table) for key, table in tables.items()}


def detect(path: str, data: bytes = b"") -> Language | None:
    """The language of a file by its name, its ending, then its first line.

    `data` is the beginning of the content (all of it for a `.h` file, which is C unless
    it plainly is C++); None when nothing tells.
    """
    names, endings, interpreters = _tables()
    name = PurePosixPath(path).name
    if found := names.get(name):
        return found
    suffix = PurePosixPath(path).suffix
    stem = name.split(".", 1)[0]
    if stem in ("Dockerfile", "Makefile") and suffix.lower() not in endings:  # Dockerfile.dev
        return names[stem]
    found = endings.get(suffix) or endings.get(suffix.lower())
    if found is not None:
        if suffix == ".h" and _CPP_HEADER.search(data):
            return languages()["cpp"]
        return found
    if match := _SHEBANG.match(data[:256]):
        interpreter = match.group(1).decode("ascii", "replace")
        return interpreters.get(interpreter) or interpreters.get(_VERSION.sub("", interpreter))
    return None


def query_text(language: Language) -> str:
    """The language's queries, joined, with a pattern for each comment and attribute node.

    Raises FileNotFoundError when a query file is missing.
    """
    folder = files(__package__).joinpath("queries")
    parts = [folder.joinpath(f"{name}.scm").read_text("utf-8") for name in language.queries]
    parts += [f"({node}) @comment" for node in language.comment_nodes]
    parts += [f"({node}) @attribute" for node in language.attribute_nodes]
    return "\n".join(parts)


@cache
def _tables() -> tuple[dict[str, Language], dict[str, Language], dict[str, Language]]:
    """File name, ending and interpreter → language; the first table of the file wins."""
    tables: tuple[dict[str, Language], ...] = ({}, {}, {})
    for language in languages().values():
        keys = (language.filenames, language.extensions, language.shebangs)
        for table, values in zip(tables, keys, strict=True):
            for value in values:
                table.setdefault(value, language)
    return tables  # type: ignore[return-value]


def _language(key: str, table: Mapping[str, Any]) -> Language:
    values = {"queries": [key] if "grammar" in table else (), **table}
    values["name"] = values.pop("language", key)
    for field, value in values.items():
        if isinstance(value, list):
            values[field] = frozenset(value) if field in _SETS else tuple(value)
    values["class_like"] = CLASS_LIKE | values.get("class_like", frozenset())
    return Language(key, **values)
