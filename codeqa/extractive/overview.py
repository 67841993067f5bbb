"""The repository in a page: its README, its folders and what they depend on, the definitions that
the most files use, and where it starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath

from codeqa.extractive.excerpt import leading_doc
from codeqa.store import INDEXED, FileRecord, Filter, Tables
from codeqa.symbols.imports import IMPORTED, import_evidence
from codeqa.symbols.surroundings import PACKAGE_FILES, language_name
from codeqa.text.tokens import name_key
from codeqa.types import TEXT_KINDS, Unit

README_NAMES = ("README", "readme", "Readme")
README_UNITS = 2
"""Sections of the README that are quoted: the first says what it is, the next often how."""
FOLDERS = 12
DOMINANT = 0.6
"""A folder with more than this part of the source is opened rather than named: `src/x/`."""

_HEADS = ("__init__.py", "mod.rs", "lib.rs", "doc.go", "index.ts", "index.js", "package-info.java")
_ENTRY_NAMES = """
__main__.py main.py app.py cli.py manage.py wsgi.py main.go main.rs lib.rs main.c main.cpp
index.js index.ts main.ts main.js server.js server.ts Main.java Program.cs
"""
_ENTRIES = frozenset(_ENTRY_NAMES.split())


OFTEN = 200
"""Names that the most files import, among which are those of libraries."""
CENTRAL = 8
"""Definitions named that many files import."""
NEEDS = 5
"""Folders named that a folder depends on."""
MOST_IMPORTS = 200_000
Import = tuple[str, str, str]
"""The file that imports, the name, and the module that it is from."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its files, the language most of them are in, and its own words."""

    path: str
    files: int
    language: str
    about: Unit | None = None
    needs: tuple[tuple[str, int], ...] = ()
    """Other folders that its source imports from, and how many of its files do."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The repository in a page."""

    readme: tuple[Unit, ...]
    folders: tuple[Folder, ...]
    entries: tuple[Unit, ...]
    languages: tuple[tuple[str, int], ...]
    """Languages of the source files with their number, most first."""
    central: tuple[tuple[Unit, int], ...] = ()
    """The definitions that the most source files import, and how many do."""

    def units(self) -> list[Unit]:
        """All that is cited."""
        about = (folder.about for folder in self.folders)
        central = (unit for unit, _ in self.central)
        return [*self.readme, *filter(None, about), *central, *self.entries]


def overview_of(tables: Tables) -> Overview:
    """What README, list of files and module heads say."""
    files = [record for record in tables.files() if record.status == INDEXED]
    source = [record for record in files if record.role == "source"] or files
    prefix = _opened(source)
    folders = _folders(tables, files, prefix)
    imports = {(path, name, module) for path, name, module in tables.imported(MOST_IMPORTS)}
    imports &= {one for one in imports if one[0] in {record.path for record in source}}
    return Overview(
        readme=tuple(_readme(tables)),
        folders=tuple(_with_needs(folders, imports, [record.path for record in source])),
        entries=tuple(_entries(tables, source, prefix)),
        languages=tuple(Counter(r.language for r in source if r.language).most_common(6)),
        central=tuple(_central(tables, imports)),
    )


def _with_needs(
    folders: Sequence[Folder], imports: Iterable[Import], source: Sequence[str]
) -> Iterator[Folder]:
    """`folders` with those of them that their files import from."""
    called: dict[str, list[str]] = {}
    for path in source:
        folder, _, name = path.rpartition("/")
        for word in (name.partition(".")[0], folder.rpartition("/")[2]):
            called.setdefault(word, []).append(path)

    @cache
    def folder_of(path: str) -> str:
        inside = [one.path for one in folders if path.startswith(one.path)]
        return max(inside, key=len, default="")

    @cache
    def target(path: str, module: str) -> str:
        """The folder of the file that `module`, imported in `path`, surely leads to."""
        words = [word for word in re.split(r"\W+", module) if word][-2:]
        near = dict.fromkeys(one for word in words for one in called.get(word, ()))
        language = language_name(path)
        sure = (o for o in near if import_evidence(language, path, module, o) >= IMPORTED)
        return folder_of(next(sure, ""))

    needs: dict[str, dict[str, set[str]]] = {}
    for path, _, module in imports:
        own, other = folder_of(path), target(path, module)
        if own and other and own != other:
            needs.setdefault(own, {}).setdefault(other, set()).add(path)
    for folder in folders:
        counted = Counter({one: len(files) for one, files in needs.get(folder.path, {}).items()})
        yield replace(folder, needs=tuple(counted.most_common(NEEDS)))


def _central(tables: Tables, imports: Iterable[Import]) -> list[tuple[Unit, int]]:
    """The definitions that the most files import, from their file or a package around it."""
    named: dict[str, set[tuple[str, str]]] = {}
    for path, name, module in imports:
        named.setdefault(name, set()).add((path, module))
    often = sorted(named, key=lambda name: (-len(named[name]), name))[:OFTEN]
    keys, source = [name_key(name) for name in often], Filter(roles=("source",))
    units = tables.named(keys, 10 * OFTEN, source)
    modules = {unit.name for unit in units if unit.kind == "module"}
    best: dict[str, tuple[int, int, Unit]] = {}
    for unit in units:
        if unit.name in named and not unit.class_name and unit.name not in modules:
            folders = PurePosixPath(unit.path).parents
            packages = PACKAGE_FILES.get(unit.language, ())
            own = _importing(unit, named[unit.name], [unit.path])
            handed_on = [str(folder / name) for folder in folders for name in packages]
            every = own | _importing(unit, named[unit.name], handed_on)
            known = best.get(unit.name, (0, 0, unit))
            if (len(own), len(every)) > known[:2]:
                best[unit.name] = (len(own), len(every), unit)
    found = [(unit, number) for _, number, unit in best.values() if number > 1]
    found.sort(key=lambda one: (-one[1], one[0].path))
    return found[:CENTRAL]


def _importing(unit: Unit, imports: Iterable[tuple[str, str]], files: Sequence[str]) -> set[str]:
    """Files whose import, one of `imports` (path, module), surely leads to one of `files`."""
    return {
        path
        for path, module in imports
        for file in files
        if path != unit.path and import_evidence(unit.language, path, module, file) >= IMPORTED
    }


def _readme(tables: Tables) -> list[Unit]:
    """The first sections of the highest README that hold a sentence."""
    names = tuple(f"{place}{name}*" for place in ("", "**/") for name in README_NAMES)
    units = tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=names))
    first = min({unit.path for unit in units}, key=lambda p: (p.count("/"), len(p), p), default="")
    told = [u for u in units if u.path == first and len(u.source_code.split()) > 8]
    return told[:README_UNITS]


def _opened(source: Sequence[FileRecord]) -> str:
    """The folder that holds most of the source, opened as long as one dominates."""
    prefix = ""
    while True:
        inside = [r.path[len(prefix) :] for r in source if r.path.startswith(prefix)]
        children = Counter(path.split("/", 1)[0] for path in inside if "/" in path)
        name, count = max(children.items(), key=lambda child: child[1], default=("", 0))
        if count <= DOMINANT * len(source):
            return prefix
        prefix += name + "/"


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


def _entries(tables: Tables, source: Iterable[FileRecord], prefix: str) -> list[Unit]:
    """The first unit of each file whose name says that a program starts there, those inside
    `prefix` first.

    Not those much deeper than the first: a `main.py` far down is a part of something.
    """
    paths = [r.path for r in source if r.path.rpartition("/")[2] in _ENTRIES]
    paths.sort(key=lambda path: (not path.startswith(prefix), path.count("/"), path))
    paths = [path for path in paths if path.count("/") <= paths[0].count("/") + 1]
    first = [tables.in_file(path)[:1] for path in paths[:4]]
    return [unit for units in first for unit in units]
