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
    """Read README, manifest and module heads; no model of the code is needed for it."""
    files = [record for record in tables.files() if record.status == INDEXED]
    source = [record for record in files if record.role == "source"] or files
    prefix = _opened(source)
    folders = _folders(files, prefix)
    heads = (
        tables.units(
            Filter(
                kinds=("module",),
                paths=tuple(
                    pattern for folder in folders for pattern in _head_patterns(folder.path)
                ),
            )
        )
        if folders
        else []
    )
    told = [Folder(f.path, f.files, f.language, _about(f.path, heads)) for f in folders]
    return Overview(
        readme=tuple(_readme(tables)),
        folders=tuple(told),
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


def _folders(files: Iterable[FileRecord], prefix: str) -> list[Folder]:
    """Folders inside `prefix`, then those beside it, each with more than a file."""
    groups: dict[str, list[FileRecord]] = {}
    for record in files:
        base = prefix if record.path.startswith(prefix) else ""
        rest = record.path[len(base) :]
        folder = base + rest.split("/", 1)[0] + "/" if "/" in rest else base
        groups.setdefault(folder or "./", []).append(record)
    found = []
    for path, own in groups.items():
        code = [r for r in own if r.role == "source" and r.language] or own
        language = Counter(r.language for r in code).most_common(1)[0][0]
        found.append(Folder(path, len(own), language))
    if prefix:
        found.sort(key=lambda folder: (not folder.path.startswith(prefix), -folder.files))
    else:
        found.sort(key=lambda folder: -folder.files)
    return found[:FOLDERS]


def _head_patterns(folder: str) -> list[str]:
    base = folder.removeprefix("./")
    return [base + inner + name for inner in ("", "src/") for name in _HEADS]


def _about(folder: str, heads: Iterable[Unit]) -> Unit | None:
    """The module head that speaks about `folder`: of its `__init__.py`, `src/lib.rs`, …"""
    base = folder.removeprefix("./")
    for unit in heads:
        rest = unit.path.removeprefix(base).removeprefix("src/")
        if (
            base
            and unit.path.startswith(base)
            and "/" not in rest
            and unit.kind == "module"
            and leading_doc(unit)
        ):
            return unit
    return None


def _entries(tables: Tables, source: Iterable[FileRecord]) -> list[Unit]:
    """The first unit of each file whose name says that a program starts there.

    Not those much deeper than the first: a `main.py` far down is a part of something.
    """
    paths = [r.path for r in source if r.path.rpartition("/")[2] in _ENTRIES]
    paths.sort(key=lambda path: (path.count("/"), path))
    paths = [path for path in paths if path.count("/") <= paths[0].count("/") + 1]
    first = [tables.in_file(path)[:1] for path in paths[:4]]
    return [unit for units in first for unit in units]
