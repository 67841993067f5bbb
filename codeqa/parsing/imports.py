"""What a file imports, and which of its names mean something from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeqa.languages import Language
from codeqa.parsing.source import Source

if TYPE_CHECKING:
    from codeqa.parsing.grammar import Captures

WILDCARD = "*"

_QUOTES = "\"'`<>"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `name` of `module`, known here as `local`."""

    offset: int
    """Byte offset of the name, or of the module when the whole module is imported."""
    module: str
    name: str
    """'' for the module itself, `*` for everything in it."""
    local: str


class ImportCollector:
    """Takes in the matches that import something, in any order."""

    __slots__ = ("_found", "_groups", "_separator", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._separator = source.language.import_separator
        self._groups: list[tuple[int, int, str]] = []
        self._found: dict[int, tuple[int, str, str, str]] = {}

    def add(self, captures: Captures) -> None:
        """Take in one match of an import's pattern."""
        text = {
            key: self._source.text_of(nodes[0])
            for key, nodes in captures.items()
            if key not in ("import", "import.group")
        }
        if len(modules := captures.get("import.module", ())) > 1:  # Scala: one node per word
            text["import.module"] = self._separator.join(map(self._source.text_of, modules))
        module = "".join(text.get("import.module", "").split()).strip(_QUOTES)
        if group := captures.get("import.group"):
            self._groups.append((group[0].start_byte, group[0].end_byte, module))
            return
        name = text.get("import.name", "").strip(_QUOTES)
        alias = text.get("import.alias", "")
        if path := "".join(text.get("import.path", "").split()):
            module, _, name = path.rpartition(self._separator or ".")
        if "import.wildcard" in captures:
            name = WILDCARD
        node = next(
            (captures[key][0] for key in ("import.name", "import.path", "import.wildcard",
                                          "import.module", "import.alias") if key in captures),
            None,
        )  # fmt: skip
        if node is None or not (module or name):
            return
        start = node.start_byte
        if "import.path" in captures and name:
            start = node.end_byte - len(name.encode())
        known = self._found.get(start)
        if known is None or (alias and not known[3]) or (name and not known[2]):
            self._found[start] = (start, module, name, alias)

    def imports(self) -> Iterator[Import]:
        """Every import with the modules of the groups around it, in source order."""
        separator = self._separator
        groups = iter(sorted(self._groups))
        upcoming = next(groups, None)
        around: list[tuple[int, str]] = []
        """End and prefix of the groups that are open, outer before inner."""
        for start, module, name, alias in sorted(self._found.values()):
            while upcoming is not None and upcoming[0] <= start:
                _leave(around, upcoming[0])
                around.append(upcoming[1:])
                upcoming = next(groups, None)
            _leave(around, start)
            parts = [prefix for _, prefix in around]
            if name in ("self", "this") and parts and not module:  # Rust: `use a::{self}`
                module, _, name = separator.join(parts).rpartition(separator)
            else:
                module = separator.join([*parts, module] if module else parts) or module
            local = alias or name or _last_word(module, separator)
            yield Import(start, module, name, local)


class Bindings:
    """The names of one file that an import binds."""

    __slots__ = ("_join", "_roots", "names")

    def __init__(self, imports: list[Import], language: Language) -> None:
        self._join = language.import_separator
        self.names: dict[str, tuple[str, str]] = {}
        """Bound name → module and original name, or ''."""
        self._roots: set[str] = set()
        for imported in imports:
            if imported.name == WILDCARD or imported.local == "_":
                continue
            if imported.local:
                self.names[imported.local] = (imported.module, imported.name)
            else:
                # Where modules are addresses (`require("../")`) there are no parts, only the whole.
                root = imported.module.split(self._join, 1)[0] if self._join else imported.module
                self._roots.add(root)

    def receiver(self, receiver: str) -> str:
        """The imported address that a receiver stands for, or ''.

        `np.linalg` after `import numpy as np` is `numpy.linalg`; `Client` after
        `from a import Client` is `a.Client`.
        """
        separator = self._join or "."
        root, _, rest = receiver.partition(separator)
        bound = self.names.get(root)
        if bound is None:
            return receiver if root in self._roots else ""
        module, name = bound
        if not self._join:
            return module
        if name:
            return f"{module}{self._join}{name}" if module else name
        return f"{module}{self._join}{rest}" if rest else module


def _leave(groups: list[tuple[int, str]], offset: int) -> None:
    """Drop the groups that end before `offset`."""
    while groups and groups[-1][0] <= offset:
        groups.pop()


def _last_word(module: str, separator: str) -> str:
    """The word by which a module is known when nothing else names it.

    '' for a module of several words in a language that writes them all (`import a.b`).
    """
    if separator:
        return "" if separator in module else module
    parts = [part for part in module.split("/") if part]
    if len(parts) > 1 and parts[-1][0] == "v" and parts[-1][1:].isdigit():  # Go: …/jwt/v5
        parts.pop()
    return parts[-1].split(".", 1)[0] if parts else module
