"""Follow a definition through the files that hand it on, perhaps under another name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import PurePosixPath

from codeqa.code.imports import file_names, import_evidence, without_class
from codeqa.code.names import language_name
from codeqa.languages import language_called
from codeqa.parsing.references import WILDCARD
from codeqa.store import Tables
from codeqa.store.catalogue import file_word
from codeqa.types import Reference, Unit

WHOLE_NAMES = frozenset({"default", "exports", "="})
"""Names of an export that whoever imports the whole file gets, under a name of its own."""
MOST_LEVELS = 5
"""Files that hand a definition on one after another."""
MOST_PASSED = 100
"""Files and names followed from each level to the next."""

Export = tuple[str, str]
"""A path, and a name by which the definition is exported there."""


class Exports:
    """The names of one definition in the files that import it, and in those that export it."""

    def __init__(
        self,
        tables: Tables,
        carriers: Sequence[Reference],
        name: str,
        paths: Set[str],
        *,
        leads: Callable[[Reference, str, str], float],
        imports: Callable[[str], list[Reference]],
    ) -> None:
        self._tables, self.name = tables, name
        self._leads, self._imports = leads, imports
        self._exported: dict[str, set[str]] = {path: {name} for path in paths}
        self._local: dict[str, set[str]] = {}
        self._follow({(path, name) for path in paths}, carriers)

    @property
    def paths(self) -> Set[str]:
        """Return the file of the definition, and those that export it again."""
        return self._exported.keys()

    def exported(self, path: str) -> Set[str]:
        """Return the names by which `path` exports the definition."""
        return self._exported.get(path, frozenset())

    def local(self, path: str) -> Set[str]:
        """Return the names other than its own by which a file knows the definition."""
        return self._local.get(path, frozenset()) - {self.name}

    def sources(self, reference: Reference) -> list[str]:
        """Return the files from which it may have the definition by another name than its own."""
        if reference.name == self.name:
            return []
        here = reference.name in self.local(reference.path)
        return [path for path, names in self._exported.items() if here or reference.name in names]

    def renamed(self, limit: int) -> list[Reference]:
        """Return references that may mean the definition by another name than its own."""
        files = [path for path in self._local if self.local(path)]
        names = sorted(set().union(*map(self.local, files)))
        edges = self._tables.references(name=names, path=files, limit=limit) if names else []
        others = set().union(*self._exported.values()) - {self.name, *WHOLE_NAMES}
        if others:
            edges += self._tables.references(name=sorted(others), limit=limit)
        return list(dict.fromkeys(edges))

    def _follow(self, fresh: set[Export], edges: Sequence[Reference]) -> None:
        for _ in range(MOST_LEVELS):
            paths_by_name: dict[str, set[str]] = {}
            for path, name in fresh:
                paths_by_name.setdefault(name, set()).add(path)
            exported = {(path, name) for path, names in self._exported.items() for name in names}
            passed = self._by_name(paths_by_name, edges) | self._as_a_whole(fresh)
            fresh = set(sorted(passed - exported)[:MOST_PASSED])
            if not fresh:
                return
            for path, name in fresh:
                self._exported.setdefault(path, set()).add(name)
            names = sorted({name for _, name in fresh})
            edges = self._tables.references(name=names, limit=20 * MOST_PASSED)

    def _by_name(
        self, paths_by_name: Mapping[str, Set[str]], edges: Iterable[Reference]
    ) -> set[Export]:
        """Note who imports one of these names, and return what is exported so anew."""
        passed: set[Export] = set()
        for edge in edges:
            paths = paths_by_name.get(edge.name, frozenset())
            if edge.kind != "import" or not paths:
                continue
            if not edge.module:
                if edge.path in paths:
                    passed.add((edge.path, edge.receiver))
            elif any(self._leads(edge, edge.module, path) for path in paths):
                local = edge.receiver or edge.name
                self._local.setdefault(edge.path, set()).update((local, edge.name))
                language = language_called(language_name(edge.path))
                if language.import_rule == "relative":
                    passed |= self._exports_of(edge.path, {local, edge.name})
                elif edge.receiver or PurePosixPath(edge.path).name in language.package_files:
                    passed.add((edge.path, local))
        return passed

    def _as_a_whole(self, fresh: Iterable[Export]) -> set[Export]:
        """Note who imports the whole of an exporting file, and return what is exported so anew."""
        passed: set[Export] = set()
        for path, name in fresh:
            if language_called(language_name(path)).import_rule != "relative":
                continue
            imports = self._tables.catalogue().whole_imports
            words = {file_word(path), file_word(str(PurePosixPath(path).parent)), ""}
            for edge in (edge for word in sorted(words) for edge in imports.get(word, ())):
                if not self._leads(edge, edge.module, path):
                    continue
                handed_on = self._exports_of(edge.path, {edge.receiver})
                if handed_on or edge.receiver == WILDCARD:
                    passed.add((edge.path, name))
                if edge.receiver == WILDCARD:
                    continue
                local = self._local.setdefault(edge.path, set())
                local.add(name)
                if name in WHOLE_NAMES:
                    local.update((edge.receiver, edge.name))
                    passed |= handed_on
        return passed

    def _exports_of(self, path: str, names: Set[str]) -> set[Export]:
        """Return the names by which a file exports one of the `names` that it has imported."""
        exports = (edge for edge in self._imports(path) if not edge.module)
        return {(path, edge.receiver) for edge in exports if edge.name in names}


def handed_on(tables: Tables, call: Reference, edges: Iterable[Reference]) -> list[Unit]:
    """Return what a file imports as `call.name` through others, perhaps from another name.

    `edges` are those of the file.
    """
    whole = any(edge.receiver == call.name and edge.name == edge.module for edge in edges)
    first = (call.name, *(WHOLE_NAMES if whole else ()))
    steps = [(call.path, without_class(call.module), name) for name in first]
    units: list[Unit] = []
    for importer, module, name in steps:  # which grows
        for path in _files_at(tables, importer, module):
            imports = [edge for edge in tables.references(path=[path]) if edge.kind == "import"]
            exports = [edge.name for edge in imports if not edge.module and edge.receiver == name]
            names = {name, *exports}
            top = (unit for unit in tables.in_file(path) if unit.name == unit.qualified_name)
            units += [unit for unit in top if unit.is_definition and unit.name in names]
            for edge in imports if len(steps) < MOST_PASSED else ():
                is_whole, everything = edge.name == edge.module, edge.receiver == WILDCARD
                if edge.module and (everything or (edge.receiver or edge.name) in names):
                    known_as = "default" if is_whole else edge.name
                    step = (path, edge.module, name if everything else known_as)
                    if step not in steps:
                        steps.append(step)
    return list(dict.fromkeys(units))


def _files_at(tables: Tables, importer: str, module: str) -> list[str]:
    language, files = language_name(importer), tables.catalogue().by_file_name
    if language_called(language).import_rule not in ("relative", "dotted"):
        return []
    paths = [path for name in file_names(language, module) for path in files.get(name, ())]
    return [path for path in paths if import_evidence(language, importer, module, path)]
