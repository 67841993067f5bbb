"""Conditions on units as SQL that no value can break out of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_GLOB = re.compile(r"[*?]")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which units a search may return; empty fields let everything through.

    A path without `*` and `?` is a prefix (`src/`, `src/app.py`); with them it is a glob
    over the whole path, in which `*` and `?` stay within a folder and `**` crosses them.
    """

    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def sql(self) -> str:
        """The condition, '' when there is none."""
        parts = [
            one_of(column, values)
            for column, values in (
                ("language", self.languages),
                ("kind", self.kinds),
                ("role", self.roles),
            )
            if values
        ]
        if self.paths:
            parts.append("(" + " OR ".join(map(_path, self.paths)) + ")")
        parts.extend(f"NOT ({_path(path)})" for path in self.excluded_paths)
        return " AND ".join(parts)


def quote(value: str) -> str:
    """`value` as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str]) -> str:
    """`column IN (…)`; false when `values` is empty."""
    quoted = ", ".join(map(quote, values))
    return f"{column} IN ({quoted})" if quoted else "false"


def both(first: str, second: str) -> str:
    """Join two conditions, either of which may be ''."""
    return f"({first}) AND ({second})" if first and second else first or second


def _path(pattern: str) -> str:
    if _GLOB.search(pattern):
        return f"regexp_like(path, {quote(glob_expression(pattern))})"
    return f"starts_with(path, {quote(pattern)})"


def glob_expression(pattern: str) -> str:
    """The regular expression of a glob, anchored at both ends."""
    parts: Sequence[str] = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "^" + "".join(meaning.get(part) or re.escape(part) for part in parts) + "$"
