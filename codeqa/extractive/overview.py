"""What the repository as a whole is: its README, its folders and where it starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.extractive.excerpt import leading_doc
from codeqa.store import INDEXED, FileRecord, Filter, Tables
from codeqa.types import TEXT_KINDS, Unit

README_NAMES = ("README", "readme", "Readme")
README_UNITS = 2
"""Sections of the README that are quoted: the first says what it is, the next often how."""
FOLDERS = 12
DOMINANT = 0.6
"""A folder with more than this part of the source is opened rather than named: `src/x/`."""
DEEPEST = 4

_HEADS = ("__init__.py", "mod.rs", "lib.rs", "doc.go", "index.ts", "index.js", "package-info.java")
_ENTRY_NAMES = """
__main__.py main.py app.py cli.py manage.py wsgi.py main.go main.rs lib.rs main.c main.cpp
index.js index.ts main.ts main.js server.js server.ts Main.java Program.cs
"""
_ENTRIES = frozenset(_ENTRY_NAMES.split())


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its files, the language most of them are in, and its own words."""

    path: str
    files: int
    language: str
    about: Unit | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The repository in a page."""

    readme: tuple[Unit, ...]
    folders: tuple[Folder, ...]
    entries: tuple[Unit, ...]
    languages: tuple[tuple[str, int], ...]
    """Languages of the source files with their number, most first."""

    def units(self) -> list[Unit]:
        """All units that it quotes."""
        about = [folder.about for folder in self.folders if folder.about]
        return [*self.readme, *about, *self.entries]


def overview_of(tables: Tables) -> Overview:
    """What README, list of files and module heads say."""
    files = [record for record in tables.files() if record.status == INDEXED]
    source = [record for record in files if record.role == "source"] or files
    return Overview(
        readme=tuple(_readme(tables)),
        folders=tuple(_folders(tables, files, _opened(source))),
        entries=tuple(_entries(tables, source)),
        languages=tuple(Counter(r.language for r in source if r.language).most_common(6)),
    )


def _readme(tables: Tables) -> list[Unit]:
    """The first sections of the README at the root that hold a sentence."""
    units: list[Unit] = []
    for place in ("", "**/"):  # the root's, else the highest one that there is
        names = tuple(f"{place}{name}*" for name in README_NAMES)
        units = units or tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=names))
    if not units:
        return []
    first = min({unit.path for unit in units}, key=lambda p: (p.count("/"), len(p), p))
    told = [u for u in units if u.path == first and len(u.source_code.split()) > 8]
    return told[:README_UNITS]


def _opened(source: Sequence[FileRecord]) -> str:
    """The folder that holds most of the source, opened as long as one dominates."""
    prefix = ""
    for _ in range(DEEPEST):
        inside = [r.path[len(prefix) :] for r in source if r.path.startswith(prefix)]
        children = Counter(path.split("/", 1)[0] for path in inside if "/" in path)
        if not children:
            return prefix
        name, count = children.most_common(1)[0]
        if count <= DOMINANT * len(source) or count < len(inside) * DOMINANT:
            return prefix
        prefix += name + "/"
    return prefix


def _folders(tables: Tables, files: Iterable[FileRecord], prefix: str) -> list[Folder]:
    """Folders inside `prefix`, then those beside it, those with the most files first."""
    groups: dict[str, list[FileRecord]] = {}
    for record in files:
        base = prefix if record.path.startswith(prefix) else ""
        inside, slash, _ = record.path[len(base) :].partition("/")
        folder = base + inside + slash if slash else base
        groups.setdefault(folder or "./", []).append(record)
    chosen = sorted(groups, key=lambda path: (not path.startswith(prefix), -len(groups[path])))
    chosen = chosen[:FOLDERS]
    patterns = [f"{path}{src}{name}" for path in chosen for src in ("", "src/") for name in _HEADS]
    heads = tables.units(Filter(kinds=("module",), paths=tuple(patterns))) if chosen else []
    told = [unit for unit in heads if leading_doc(unit)]
    folders = []
    for path in chosen:
        own = [r for r in groups[path] if r.role == "source" and r.language] or groups[path]
        language = Counter(r.language for r in own).most_common(1)[0][0]
        about = next((unit for unit in told if _is_head(unit.path, path)), None)
        folders.append(Folder(path, len(groups[path]), language, about))
    return folders


def _is_head(path: str, folder: str) -> bool:
    """Whether a file speaks about `folder`: its `__init__.py`, `src/lib.rs`, …"""
    return path.startswith(folder) and "/" not in path.removeprefix(folder).removeprefix("src/")


def _entries(tables: Tables, source: Iterable[FileRecord]) -> list[Unit]:
    """The first unit of each file whose name says that a program starts there.

    Not those much deeper than the first: a `main.py` far down is a part of something.
    """
    paths = [r.path for r in source if r.path.rpartition("/")[2] in _ENTRIES]
    paths.sort(key=lambda path: (path.count("/"), path))
    paths = [path for path in paths if path.count("/") <= paths[0].count("/") + 1]
    first = [tables.in_file(path)[:1] for path in paths[:4]]
    return [unit for units in first for unit in units]
