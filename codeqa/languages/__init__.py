"""Detect the language of a file, and describe languages to the parser.

All of it is data: `languages.toml` and `queries/*.scm` (README.md explains both).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

CLASS_LIKE = frozenset({"class", "struct", "enum", "trait", "interface"})
"""Kinds whose functions are methods; a language adds to them with `class_like`."""

_SHEBANG = re.compile(rb"^#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?(?:\w+=\S*\s+)*)?(?:\S*/)?([\w+-]+)")
_VERSION = re.compile(r"[\d.]+$")
_SETS = {"class_like", "constructor_names", "self_names", "builtins", "standard_packages"}
_JOINED = {*_SETS, "masks"}


@dataclass(frozen=True, slots=True)
class Language:
    """One table of `languages.toml`; README.md explains its keys."""

    key: str
    """Name of the table; `tsx` and `typescript` are two tables of one language."""
    name: str
    """Its name in units, filters and code fences."""
    aliases: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    grammar: str = ""
    """`module:function` that returns the grammar; '' when there is none."""
    queries: tuple[str, ...] = ()
    rare_queries: tuple[list[str], ...] = ()
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
    masks: tuple[list[Any], ...] = ()
    repairs: tuple[list[Any], ...] = ()
    code: str = ""
    item_macros: bool = False
    claims: tuple[list[str], ...] = ()
    family: str = ""
    extension: str = ""
    import_rule: str = ""
    import_files: tuple[str, ...] = ()
    compiled_from: Mapping[str, list[str]] = field(default_factory=dict)
    source_folders: tuple[str, ...] = ()
    standard_packages: frozenset[str] = frozenset()
    own_module: tuple[str, ...] = ()
    package_files: tuple[str, ...] = ()
    package_heads: tuple[str, ...] = ()
    folder_is_package: bool = False
    spread_classes: bool = False
    implicit_interfaces: bool = False
    implemented_for: str = ""
    test_names: str = r"test(?=[_A-Z\d]|$)"
    holds: str = ""
    headings: str = ""
    section: tuple[str, ...] = ()
    cell_language: str = ""
    lexer: str = ""


@cache
def languages() -> Mapping[str, Language]:
    """Return every language by the key of its table."""
    text = files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    for table in tables.values():
        if base := tables.get(table.pop("like", "")):
            own = {key: base.get(key, []) + table[key] for key in _JOINED & table.keys()}
            table.update({**base, **table, **own})
    return {key: _language(key, table) for key, table in tables.items()}


def detect(path: str, data: bytes = b"") -> Language | None:
    """Detect the language of a file by its name, its ending, then its first line.

    `data` is the beginning of the content (all of it for a `.h` file, which is C unless
    it is clearly C++: `claims`). Return None for an unknown language.
    """
    names, endings, interpreters = _tables()
    name = PurePosixPath(path).name
    if language := names.get(name):
        return language
    suffix = PurePosixPath(path).suffix
    stem = name.split(".", 1)[0]
    if stem in ("Dockerfile", "Makefile") and suffix.lower() not in endings:  # Dockerfile.dev
        return names[stem]
    language = endings.get(suffix) or endings.get(suffix.lower())
    if language is not None:
        claims = _claims().get(suffix, ())
        return next((other for other, form in claims if form.search(data)), language)
    if match := _SHEBANG.match(data[:256]):
        interpreter = match.group(1).decode("ascii", "replace")
        return interpreters.get(interpreter) or interpreters.get(_VERSION.sub("", interpreter))
    return None


def language_called(name: str) -> Language:
    """Return the language that has `name` as its name, key or alias; else one without any keys."""
    return _names().get(name) or Language("", name)


@cache
def package_heads() -> frozenset[str]:
    """Return the names of files that describe their folder, of all languages."""
    return frozenset(name for language in languages().values() for name in language.package_heads)


@cache
def comment_marks() -> Mapping[str, list[str]]:
    """Return the lists of `comments.toml`."""
    return tomllib.loads(files(__package__).joinpath("comments.toml").read_text(encoding="utf-8"))


def query_text(language: Language, name: str = "") -> str:
    """Join the language's queries, with a pattern for each comment and attribute node.

    With the `name` of a rare query, return its text alone. Raises FileNotFoundError when a query
    file is missing.
    """
    folder = files(__package__).joinpath("queries")
    if name:
        return folder.joinpath(f"{name}.scm").read_text("utf-8")
    parts = [folder.joinpath(f"{name}.scm").read_text("utf-8") for name in language.queries]
    parts += [f"({node}) @comment" for node in language.comment_nodes]
    parts += [f"({node}) @attribute" for node in language.attribute_nodes]
    return "\n".join(parts)


@cache
def _names() -> Mapping[str, Language]:
    every = list(languages().values())
    aliases = {alias: language for language in every for alias in language.aliases}
    # If two tables have one name, the first counts.
    names = {language.name: language for language in reversed(every)}
    return aliases | names | dict(languages())


@cache
def _claims() -> Mapping[str, list[tuple[Language, re.Pattern[bytes]]]]:
    """Return ending of another language → (language, pattern in the file) that claim it."""
    forms: dict[str, list[tuple[Language, re.Pattern[bytes]]]] = {}
    for language in languages().values():
        for ending, form in language.claims:
            forms.setdefault(ending, []).append((language, re.compile(form.encode())))
    return forms


@cache
def _tables() -> tuple[dict[str, Language], dict[str, Language], dict[str, Language]]:
    """Return file name, ending and interpreter → language; the first table in the file wins."""
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
    for key_of_table, value in values.items():
        if isinstance(value, list):
            many = frozenset if key_of_table in _SETS else tuple
            values[key_of_table] = many(value)
    values["class_like"] = CLASS_LIKE | values.get("class_like", frozenset())
    return Language(key, **values)
