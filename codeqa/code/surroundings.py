"""What the index says about a definition beside the places that its name stands in."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache, lru_cache
from pathlib import PurePosixPath

from codeqa.code.imports import import_evidence
from codeqa.languages import detect
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Reference, Unit

CANDIDATES = 2_000
"""Edges of one name that are looked at; of a name as common as `get` the rest is left out."""
MAX_FILES_READ = 100
"""Files whose imports are read for one answer, for wildcards and re-exports."""
PACKAGE_FILES = {
    "python": ("__init__.py",),
    "typescript": ("index.ts", "index.tsx", "index.js"),
    "javascript": ("index.js", "index.jsx", "index.mjs", "index.ts"),
    "rust": ("mod.rs", "lib.rs"),
}
"""Files that stand for their folder, and may pass on what it holds."""
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
MAX_CLASSES_FOLLOWED = 30
"""Classes whose heirs are looked up for one answer."""
FAMILIES = (
    frozenset({"javascript", "typescript"}),
    frozenset({"c", "cpp"}),
    frozenset({"java", "kotlin", "scala"}),
)
"""Languages that call each other's definitions by name."""


class Surroundings:
    """All that decides whether a place of the name `name` means `unit`."""

    def __init__(
        self,
        tables: Tables,
        unit: Unit,
        name: str,
        places: Sequence[Reference],
        heirs: bool = True,
    ) -> None:
        self._tables, self._unit = tables, unit
        # Of one file after another, for wildcards and re-exports.
        self.imports = cache(self._imports)
        self._files_read = 0
        namesakes = [
            one
            for one in tables.named([name_key(name)])
            if one.name == name
            and one.kind not in TEXT_KINDS
            and (one.kind != "module" or one.signature)  # a file is no definition
            and related(one.language, unit.language)
        ]
        self.rivals = len({(one.path, one.qualified_name) for one in namesakes}) or 1
        """Definitions of that name in languages that could be meant, this one included."""
        self.rival_owners = {
            last_word(one.class_name)
            for one in namesakes
            if (one.path, one.class_name) != (unit.path, unit.class_name)
        }
        """Names of the classes that have a member of that name, but for the unit's own class."""
        self.siblings = {
            one.id
            for one in namesakes
            if one.path == unit.path
            and one.id != unit.id
            and (one.kind != unit.kind or one.kind not in ("lambda", "class"))
            # for those are bound twice, in two places that see one each
            and one.qualified_name in (unit.qualified_name, unit.class_name)
        }
        """Ids of the other definitions of the unit's qualified name in its file (overloads)."""
        holder = unit.qualified_name.removesuffix(unit.name).rstrip(".:")
        self.enclosed = holder != unit.class_name and any(
            one.kind in METHOD_KINDS and one.qualified_name == holder
            for one in tables.in_file(unit.path)
        )
        """Whether it is defined inside of a function, where no import reaches."""
        found = None
        if unit.language == "go":
            text = "\n".join(part.source_code for part in tables.in_file("go.mod"))
            found = _GO_MODULE.search(text)
        self.go_module = found.group(1) if found else ""
        is_member = bool(unit.class_name) and unit.kind in METHOD_KINDS
        overriding = {(one.path, one.class_name) for one in namesakes}
        self._subclasses: set[tuple[str, str]] = set()
        """(path, qualified name) of classes that inherit the member, directly or not."""
        self._overriding: set[tuple[str, str]] = set()
        """The same of classes that inherit it, and have one of their own."""
        if is_member and heirs:
            self._find_heirs(last_word(unit.class_name), overriding)
        self.overriding = [
            one for one in namesakes if (one.path, one.class_name) in self._overriding
        ]
        """The methods that override the unit, in the nearest heirs."""
        inside = {path for path, _ in self._subclasses | self._overriding}
        ids = [place.unit_id for place in places if place.path in inside and place.unit_id]
        self._owners = {one.id: one.class_name for one in tables.by_ids(list(dict.fromkeys(ids)))}
        """Unit id → the class that this unit belongs to."""
        outer = unit.class_name.replace("::", ".").split(".", 1)[0] or name
        carriers = places if outer == name else tables.references_named(outer, CANDIDATES)
        self.exporters = self._exporters(carriers)

    def leads(self, place: Reference, module: str, path: str) -> float:
        """How surely `module`, imported where `place` is, is the file `path`."""
        return import_evidence(language_name(place.path), place.path, module, path, self.go_module)

    def is_heir(self, name: str) -> bool:
        """Whether a class called `name` inherits from the owner."""
        return any(name == last_word(heir) for _, heir in self._subclasses)

    def is_in_heir(self, place: Reference, *, of_base: bool = False) -> bool:
        """Whether the class around `place` inherits the member, or, `of_base`, overrides it."""
        at = (place.path, self._owners.get(place.unit_id, ""))
        return at in self._subclasses or (of_base and at in self._overriding)

    def _imports(self, path: str) -> list[Reference]:
        """The import edges of a file; none once `MAX_FILES_READ` files were read."""
        self._files_read += 1
        if self._files_read > MAX_FILES_READ:
            return []
        return [edge for edge in self._tables.references_in(path) if edge.kind == "import"]

    def _exporters(self, carriers: Sequence[Reference]) -> set[str]:
        """Files that import the definition (or its class) from its file, and so hand it on:
        by name, or packages around it whole."""
        unit = self._unit
        found = {
            edge.path
            for edge in carriers
            if edge.kind == "import" and edge.module and self.leads(edge, edge.module, unit.path)
        }
        folder = PurePosixPath(unit.path).parent
        for around in (folder, *folder.parents):
            for index in PACKAGE_FILES.get(unit.language, ()):
                path = str(around / index)
                whole = (edge for edge in self.imports(path) if edge.name == edge.module)
                if any(self.leads(edge, edge.module, unit.path) for edge in whole):
                    found.add(path)
        return found - {unit.path}

    def _find_heirs(self, name: str, overriding: Set[tuple[str, str]]) -> None:
        """Note the classes below the class called `name`, each level by name, down to those that
        have a member of their own in its place."""
        waiting, seen = [name], {name}
        while waiting and len(seen) - len(waiting) <= MAX_CLASSES_FOLLOWED:
            places = self._tables.references_named(waiting.pop(), CANDIDATES)
            ids = [place.unit_id for place in places if place.kind == "inherits" and place.unit_id]
            for heir in self._tables.by_ids(list(dict.fromkeys(ids))):
                at = (heir.path, heir.qualified_name)
                if at in overriding:
                    self._overriding.add(at)
                    continue
                self._subclasses.add(at)
                if heir.name not in seen:
                    seen.add(heir.name)
                    waiting.append(heir.name)


def related(one: str, other: str) -> bool:
    """Whether code in the language `one` may call definitions in `other`."""
    return one == other or any(one in family and other in family for family in FAMILIES)


@lru_cache(maxsize=4_096)  # a name stands many times in a file
def language_name(path: str) -> str:
    found = detect(path)
    return found.name if found is not None else ""
