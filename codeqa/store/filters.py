"""Conditions on units as SQL that no value can break out of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_GLOB = re.compile(r"[*?]")
_WILDCARD = re.compile(r"(\*\*/|\*\*|\*|\?)")
_MEANING = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

MOST_WILDCARDS = 32
"""Wildcards of one glob: each grows the automaton, and a thousand of them are refused."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which units a search may return; empty fields let everything through.

    A path without `*` and `?` is a prefix (`src/`, `src/app.py`); with them it is a glob
    over the whole path, in which `*` and `?` stay within a folder and `**` crosses them; those
    behind the first MOST_WILDCARDS are letters.
    """

    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    excluded_languages: tuple[str, ...] = ()
    excluded_kinds: tuple[str, ...] = ()

    def sql(self) -> str:
        """The condition, '' when there is none."""
        listed = (("language", self.languages), ("kind", self.kinds), ("role", self.roles))
        parts = [one_of(column, values) for column, values in listed if values]
        if self.paths:
            parts.append("(" + " OR ".join(map(_path, self.paths)) + ")")
        parts += [f"NOT ({_path(path)})" for path in self.excluded_paths]
        for column, values in (
            ("language", self.excluded_languages),
            ("kind", self.excluded_kinds),
        ):
            if values:
                parts.append(f"NOT ({one_of(column, values)})")
        return " AND ".join(parts)


def quote(value: str) -> str:
    """`value` as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str]) -> str:
    """`column IN (…)`; false when `values` is empty."""
    quoted = ", ".join(map(quote, values))
    return f"{column} IN ({quoted})" if quoted else "false"


def _path(pattern: str) -> str:
    if _GLOB.search(pattern):
        return f"regexp_like(path, {quote(glob_expression(pattern))})"
    return f"starts_with(path, {quote(pattern)})"


def glob_expression(pattern: str) -> str:
    """The regular expression of a glob, anchored at both ends."""
    parts = _WILDCARD.split(pattern, maxsplit=MOST_WILDCARDS)
    # Every other part is a wildcard.
    meant = [_MEANING[part] if place % 2 else re.escape(part) for place, part in enumerate(parts)]
    return "^" + "".join(meant) + "$"
