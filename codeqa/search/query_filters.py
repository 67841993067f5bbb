"""`lang:`, `kind:` and `path:` in a question.

With `-` before it a filter leaves out what it names. Several of one kind are alternatives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from codeqa.languages import languages
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS

KINDS = METHOD_KINDS | CLASS_KINDS | TEXT_KINDS

_FILTER = re.compile(r"(?<!\S)(-?)(lang|language|path|file|kind):(?:\"([^\"\n]*)\"|(\S+))", re.I)
_SAME = {"language": "lang", "file": "path"}
_OTHER_KINDS = {"func": "function", "fn": "function", "def": "function", "doc": "document"}
_OTHER_LANGUAGES = {
    "c++": "cpp",
    "c#": "csharp",
    "golang": "go",
    "node": "javascript",
    "shell": "bash",
    "docker": "dockerfile",
    "make": "makefile",
    "terraform": "hcl",
}
"""Names in use that are neither ours nor a file ending (`lang:py` and `lang:rs` are)."""


@dataclass(slots=True)
class QueryFilters:
    """What the filters of a question ask for; a `-` before the key is a `-` before the name."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """`lang`, `-lang`, `kind`, … → values in order."""
    unknown_kinds: list[str] = field(default_factory=list)
    """Values of `kind:` that no unit has; they stay in the question as words."""

    def add(self, key: str, value: str) -> bool:
        """Note the filter `key`:`value`; False when it is none."""
        minus = "-" if key.startswith("-") else ""
        name = key.removeprefix("-").lower()
        name = _SAME.get(name, name)
        if not value.strip():
            return False
        if name == "kind":
            kind = kind_named(value)
            if not kind:
                self.unknown_kinds.append(value)
                return False
            value = kind
        elif name == "lang":
            value = language_named(value)
        values = self.values.setdefault(minus + name, [])
        if value not in values:
            values.append(value)
        return True

    def of(self, key: str) -> tuple[str, ...]:
        """The values of `key`."""
        return tuple(self.values.get(key, ()))


def take_filters(text: str) -> tuple[str, QueryFilters]:
    """`text` without its filters, and what they ask for."""
    found = QueryFilters()

    def take(match: re.Match[str]) -> str:
        return " " if found.add(match[1] + match[2], match[3] or match[4] or "") else match[0]

    return re.sub(r"\s+", " ", _FILTER.sub(take, text)).strip(), found


def kind_named(value: str) -> str:
    """The kind that is meant by `value` (`Classes` → `class`); '' for none."""
    low = value.lower()
    for one in (low, low.removesuffix("s"), low.removesuffix("es")):
        one = _OTHER_KINDS.get(one, one)
        if one in KINDS:
            return one
    return ""


def language_named(value: str) -> str:
    """The language that is meant by `value` (`JS` → `javascript`), else `value` in lower case."""
    low = value.lower()
    names = {key: language.name for key, language in languages().items()}
    if low in names or low in names.values():
        return names.get(low, low)
    ending = "." + low.removeprefix(".")
    found = [one.name for one in languages().values() if ending in one.extensions]
    return _OTHER_LANGUAGES.get(low) or (found[0] if found else low)
