"""Where a definition is used: the edges of its name, ranked by the evidence for each.

Edges name what they refer to; across files the definition is decided here, when it is asked
for, so that editing one file never rewrites another's rows. A name that merely looks alike is
kept with a low confidence and a reason that says so, never presented as certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from codeqa.repository.roles import role_of
from codeqa.store import Tables
from codeqa.symbols.evidence import (
    Surroundings,
    UsageSite,
    judge,
    language_name,
    related,
)
from codeqa.symbols.imports import import_evidence
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, ROLES, TEXT_KINDS, Reference, Unit

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


@dataclass(frozen=True, slots=True)
class Usages:
    """The surest uses of a definition, best first, and how many there are in all."""

    references: tuple[UsageSite, ...]
    total: int
    """Places taken for a use, `references` included."""


def usages(tables: Tables, unit: Unit, limit: int = 50) -> Usages:
    """Where `unit` is used: at most `limit` places, surest first, source before tests."""
    if unit.kind in TEXT_KINDS or not unit.name:
        return Usages((), 0)
    name = _called_name(unit)
    places = tables.references_named(name, CANDIDATES)
    found = judge(unit, places, _surroundings(tables, unit, name, places))
    found.sort(key=_order)
    return Usages(tuple(found[:limit]), len(found))


def _surroundings(
    tables: Tables, unit: Unit, name: str, places: Sequence[Reference]
) -> Surroundings:
    rivals = [
        one
        for one in tables.named([name_key(name)])
        if one.name == name
        and one.kind not in TEXT_KINDS
        and (one.kind != "module" or one.signature)  # a file is no definition
        and related(one.language, unit.language)
    ]
    siblings = {
        one.id
        for one in rivals
        if one.path == unit.path
        and one.id != unit.id
        and (one.qualified_name == unit.qualified_name or one.qualified_name == unit.class_name)
    }
    go_module = ""
    if unit.language == "go":
        text = "\n".join(part.source_code for part in tables.in_file("go.mod"))
        found = _GO_MODULE.search(text)
        go_module = found.group(1) if found else ""
    subclasses: frozenset[tuple[str, str]] = frozenset()
    owners: dict[str, str] = {}
    if unit.class_name and unit.kind in METHOD_KINDS:
        subclasses = _subclasses(tables, last_word(unit.class_name))
        if subclasses:
            inside = {path for path, _ in subclasses}
            ids = [place.unit_id for place in places if place.path in inside and place.unit_id]
            owners = {one.id: one.class_name for one in tables.by_ids(list(dict.fromkeys(ids)))}
    imports = _import_reader(tables)
    outer = unit.class_name.replace("::", ".").split(".", 1)[0] or name
    carriers = places if outer == name else tables.references_named(outer, CANDIDATES)
    exporters = _exporters(unit, carriers, imports, go_module)
    distinct = len({(one.path, one.qualified_name) for one in rivals}) or 1
    return Surroundings(
        distinct,
        frozenset(
            last_word(one.class_name)
            for one in rivals
            if (one.path, one.class_name) != (unit.path, unit.class_name)
        ),
        frozenset(siblings),
        subclasses,
        owners,
        exporters,
        go_module,
        imports,
    )


def _exporters(
    unit: Unit,
    carriers: Sequence[Reference],
    imports: Callable[[str], list[Reference]],
    go_module: str,
) -> frozenset[str]:
    """Files that import the definition by name, and packages around it that import it whole."""

    def leads(edge: Reference) -> bool:
        language = language_name(edge.path)
        return bool(import_evidence(language, edge.path, edge.module, unit.path, go_module))

    found = {
        edge.path for edge in carriers if edge.kind == "import" and edge.module and leads(edge)
    }
    folder = PurePosixPath(unit.path).parent
    for around in (folder, *folder.parents):
        for index in PACKAGE_FILES.get(unit.language, ()):
            path = str(around / index)
            if path != unit.path and any(e.name == e.module and leads(e) for e in imports(path)):
                found.add(path)
    found.discard(unit.path)
    return frozenset(found)


def _import_reader(tables: Tables) -> Callable[[str], list[Reference]]:
    """Reads the imports of a file once; of at most `MAX_FILES_READ` files."""
    read: dict[str, list[Reference]] = {}

    def imports(path: str) -> list[Reference]:
        if path not in read:
            if len(read) >= MAX_FILES_READ:
                return []
            read[path] = [edge for edge in tables.references_in(path) if edge.kind == "import"]
        return read[path]

    return imports


def _subclasses(tables: Tables, name: str) -> frozenset[tuple[str, str]]:
    """Classes below the class called `name`; each level by name."""
    found: set[tuple[str, str]] = set()
    waiting, seen = [name], {name}
    while waiting and len(seen) - len(waiting) <= MAX_CLASSES_FOLLOWED:
        places = tables.references_named(waiting.pop(), CANDIDATES)
        ids = [place.unit_id for place in places if place.kind == "inherits" and place.unit_id]
        for heir in tables.by_ids(list(dict.fromkeys(ids))):
            found.add((heir.path, heir.qualified_name))
            if heir.name not in seen:
                seen.add(heir.name)
                waiting.append(heir.name)
    return frozenset(found)


def _called_name(unit: Unit) -> str:
    """What a caller writes: a constructor is called by the name of its class."""
    if unit.kind == "constructor" and unit.class_name:
        return last_word(unit.class_name)
    return unit.name


def _order(usage: UsageSite) -> tuple[float, int, int, str, int, int]:
    place = usage.reference
    role = role_of(place.path, b"")
    return (
        -usage.confidence,
        place.kind == "import",
        ROLES.index(role) if role in ROLES else len(ROLES),
        place.path,
        place.line,
        place.column,
    )
