"""Where a definition is used: the edges of its name, ranked by the evidence for each.

Edges name what they refer to; across files the definition is decided here, when it is asked
for, so that editing one file never rewrites another's rows. A name that merely looks alike is
kept with a low confidence and a reason that says so, never presented as certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from codeqa.languages import detect
from codeqa.parsing.roles import role_of
from codeqa.structure.modules import NONE, import_evidence
from codeqa.tokens import name_key
from codeqa.types import METHOD_KINDS, ROLES, TEXT_KINDS, Reference, Unit

CANDIDATES = 2_000
"""Edges of one name that are looked at; of a name as common as `get` the rest is a count."""

TYPED = 0.85
"""The import gives the class of the receiver, or the receiver is called like that class."""
SUBCLASS = 0.8
"""Called on `self` inside a class that inherits from the owner; it may override it."""
SAME_PACKAGE = 0.85
"""Unqualified, in the same folder, in a language whose folders are packages."""
RE_EXPORTED = 0.85
"""Imported from a module that itself imports the definition."""
WILDCARD = 0.85
"""Unqualified, in a file that imports everything of the definition's file."""
ITS_MODULE = 0.6
"""On a receiver of unknown class that comes from the definition's file or package."""
RECEIVER_NAME = 0.6
"""The receiver is called like the owner."""
ONLY_ONE = 0.6
"""Nothing but the name, which only one definition of the repository has."""
ONLY_ONE_SHORT = 0.3
"""The same for names that every library has (`get`, `run`, `close`)."""
BARE_METHOD = 0.15
"""A method's name without a receiver."""
ONE_OF_MANY = 0.5
"""Shared among the definitions of that name."""
LEAST = 0.05
"""Below this a place is not taken for a use."""

MAX_FILES_READ = 100
"""Files whose imports are read for one answer, for wildcards and re-exports."""

OVERLOADED = 0.8
"""The file decides for one of several definitions of that qualified name."""

RESOLVED_LANGUAGES = frozenset(
    {"python", "javascript", "typescript", "go", "rust", "java", "kotlin", "scala"}
)
"""Languages whose imports are resolved to files."""
PACKAGE_FILES = {
    "python": ("__init__.py",),
    "typescript": ("index.ts", "index.tsx", "index.js"),
    "javascript": ("index.js", "index.jsx", "index.mjs", "index.ts"),
    "rust": ("mod.rs", "lib.rs"),
}
"""Files that stand for their folder, and may pass on what it holds."""

SHORT_NAME = 5
WHOLE_SPECIFIERS = frozenset({"javascript", "typescript", "go"})
"""An import names a file or folder there, never the class in it."""
PACKAGE_LANGUAGES = frozenset({"go", "java", "kotlin", "scala", "csharp", "swift"})
SELF_NAMES = frozenset({"self", "this", "cls", "super", "super()", "Self", "base", "parent"})
FAMILIES = (
    frozenset({"javascript", "typescript"}),
    frozenset({"c", "cpp"}),
    frozenset({"java", "kotlin", "scala"}),
)
"""Languages that call each other's definitions by name."""

_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_LAST_WORD = re.compile(r"(\w+)\W*$")


class Edges(Protocol):
    """What is asked of `store.Tables`."""

    def references_named(self, name: str, limit: int = 500) -> list[Reference]: ...
    def count_references(self, name: str) -> int: ...
    def named(self, keys: Sequence[str], limit: int = 200) -> list[Unit]: ...
    def references_in(self, path: str) -> list[Reference]: ...
    def by_ids(self, ids: Sequence[str]) -> list[Unit]: ...
    def in_file(self, path: str) -> list[Unit]: ...


@dataclass(frozen=True, slots=True)
class Usage:
    """One place, how sure it is that the definition is meant (0 to 1), and why."""

    reference: Reference
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Usages:
    """The surest uses of a definition, best first, and how many there are in all."""

    references: tuple[Usage, ...]
    total: int
    """Places taken for a use, `references` included."""
    complete: bool = True
    """Every place of that name was looked at."""


def usages(tables: Edges, unit: Unit, limit: int = 50) -> Usages:
    """Where `unit` is used: at most `limit` places, surest first, source before tests."""
    if unit.kind in TEXT_KINDS or not unit.name:
        return Usages((), 0)
    name = _called_name(unit)
    places = tables.references_named(name, CANDIDATES)
    found = judge(unit, places, _surroundings(tables, unit, name, places))
    found.sort(key=_order)
    complete = len(places) < CANDIDATES or tables.count_references(name) <= len(places)
    return Usages(tuple(found[:limit]), len(found), complete)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the index says beside the places themselves."""

    rivals: int = 1
    """Definitions of that name in languages that could be meant, this one included."""
    siblings: frozenset[str] = frozenset()
    """Ids of the other definitions of the unit's qualified name in its file (overloads)."""
    subclasses: frozenset[tuple[str, str]] = frozenset()
    """(path, qualified name) of classes that inherit from the owner, directly or not."""
    owners: dict[str, str] = field(default_factory=dict)
    """Unit id → the class that this unit belongs to."""
    exporters: frozenset[str] = frozenset()
    """Files that import the definition (or its class) from its file, and so hand it on."""
    go_module: str = ""
    imports: Callable[[str], list[Reference]] = lambda path: []
    """The import edges of a file."""


def judge(unit: Unit, places: Sequence[Reference], around: Surroundings) -> list[Usage]:
    """The places of the unit's name that are uses of it, each with its evidence."""
    found = []
    for place in places:
        if not _speaks(unit, place):
            continue
        confidence, reason = _evidence(unit, place, around)
        if confidence >= LEAST:
            found.append(Usage(place, round(confidence, 2), reason))
    return found


def _evidence(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    if place.target:
        if place.target == unit.id:
            return place.confidence, "defined in the same file"
        if place.target in around.siblings:
            return min(place.confidence, OVERLOADED), "one of several definitions in its file"
        return NONE, ""
    if place.module:
        language = _language(place.path)
        if language not in RESOLVED_LANGUAGES:
            return _received(unit, place, around) if place.receiver else _unqualified(
                unit, place, around
            )  # fmt: skip
        # Otherwise the file says that another module's name is meant.
        return _imported(unit, place, unit.path, around) or _passed_on(unit, place, around)
    if place.kind == "import":
        return NONE, ""
    if place.receiver:
        return _received(unit, place, around)
    return _unqualified(unit, place, around)


def _imported(
    unit: Unit, place: Reference, path: str, around: Surroundings
) -> tuple[float, str] | None:
    """Evidence that the place's import leads to `path`, and there to the unit."""
    language, owner = _language(place.path), _last(unit.class_name)

    def leads(module: str) -> float:
        return import_evidence(language, place.path, module, path, around.go_module)

    head, tail = _split(place.module)
    if owner and tail == owner and (sure := leads(head)):
        if place.receiver in ("", owner):
            return sure, f"imported from {head}"
        return min(sure, TYPED), f"{place.receiver} is a {owner}, imported from {head}"
    sure = leads(place.module)
    if not sure:
        return None
    reason = f"imported from {place.module}"
    if not _is_member(unit) or tail == owner or _last(place.receiver) == owner:
        return sure, reason
    if not place.receiver:
        return None  # a function of that module, not a member of its class
    if _alike(place.receiver, owner):
        return min(sure, TYPED), f"{place.receiver} is called like {owner} and {reason}"
    if language in WHOLE_SPECIFIERS:
        return min(sure, ITS_MODULE), f"{place.receiver} comes from {place.module}"
    return None


def _passed_on(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    """Evidence through one file that imports the definition and is itself imported."""
    for exporter in around.exporters:
        if exporter != place.path and (match := _imported(unit, place, exporter, around)):
            return min(match[0], RE_EXPORTED), f"{match[1]}, through {exporter}"
    return NONE, ""


def _received(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    if place.receiver in SELF_NAMES or place.receiver.startswith("super("):
        owner = around.owners.get(place.unit_id, "")
        if owner and (place.path, owner) in around.subclasses:
            return SUBCLASS, f"called in {owner}, which inherits from {_last(unit.class_name)}"
        return NONE, ""  # another class's own member
    if not unit.class_name:
        return _by_name(unit, around, 0.5)
    owner = _last(unit.class_name)
    if _alike(place.receiver, owner):
        return RECEIVER_NAME, f"{place.receiver} is called like {owner}"
    return _by_name(unit, around, 1.0)


def _unqualified(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    same_folder = PurePosixPath(place.path).parent == PurePosixPath(unit.path).parent
    if _is_member(unit):
        owner = around.owners.get(place.unit_id, "")
        if owner and (place.path, owner) in around.subclasses:
            return SUBCLASS, f"called in {owner}, which inherits from {_last(unit.class_name)}"
        return BARE_METHOD / around.rivals, "only the name is the same, without a receiver"
    if same_folder and unit.language in PACKAGE_LANGUAGES:
        return SAME_PACKAGE, "in the same package"
    for edge in around.imports(place.path):
        if edge.name == edge.module and import_evidence(
            _language(place.path), place.path, edge.module, unit.path, around.go_module
        ):
            return WILDCARD, f"everything of {edge.module} is imported"
    needs_import = _language(place.path) in RESOLVED_LANGUAGES
    return _by_name(unit, around, 0.5 if needs_import else 1.0)


def _by_name(unit: Unit, around: Surroundings, factor: float) -> tuple[float, str]:
    if around.rivals == 1:
        short = len(unit.name) < SHORT_NAME or (unit.name.islower() and len(unit.name) <= 6)
        sure = ONLY_ONE_SHORT if short else ONLY_ONE
        return sure * factor, "the only definition of that name here"
    share = ONE_OF_MANY / around.rivals
    return share * factor, f"one of {around.rivals} definitions of that name"


def _surroundings(
    tables: Edges, unit: Unit, name: str, places: Sequence[Reference]
) -> Surroundings:
    rivals = [
        one
        for one in tables.named([name_key(name)])
        if one.name == name
        and one.kind not in TEXT_KINDS
        and (one.kind != "module" or one.signature)  # a file is no definition
        and _related(one.language, unit.language)
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
        subclasses = _subclasses(tables, _last(unit.class_name))
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
        language = _language(edge.path)
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


def _import_reader(tables: Edges) -> Callable[[str], list[Reference]]:
    """Reads the imports of a file once; of at most `MAX_FILES_READ` files."""
    read: dict[str, list[Reference]] = {}

    def imports(path: str) -> list[Reference]:
        if path not in read:
            if len(read) >= MAX_FILES_READ:
                return []
            read[path] = [edge for edge in tables.references_in(path) if edge.kind == "import"]
        return read[path]

    return imports


def _subclasses(tables: Edges, name: str) -> frozenset[tuple[str, str]]:
    """Classes below the class called `name`; names are followed, at most 200 of them."""
    found: set[tuple[str, str]] = set()
    waiting, seen = [name], {name}
    while waiting and len(seen) < 200:
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
        return _last(unit.class_name)
    return unit.name


def _speaks(unit: Unit, place: Reference) -> bool:
    """The place's language could mean the unit, and its kind fits what the unit is."""
    if unit.kind in METHOD_KINDS and place.kind == "inherits":
        return False
    if unit.kind == "constructor" and place.kind != "call":
        return False
    return _related(_language(place.path), unit.language)


def _related(one: str, other: str) -> bool:
    return one == other or any(one in family and other in family for family in FAMILIES)


def _language(path: str) -> str:
    found = detect(path)
    return found.name if found is not None else ""


def _is_member(unit: Unit) -> bool:
    """Whether it is reached through its class or an object of it."""
    return unit.kind in METHOD_KINDS and bool(unit.class_name) and unit.kind != "constructor"


def _alike(receiver: str, owner: str) -> bool:
    """Whether a receiver is called like a class: `self.client`, `Client()`, `test_client`."""
    word = _LAST_WORD.search(receiver.removesuffix("()"))
    called, owner = name_key(word.group(1)) if word else "", name_key(owner)
    if len(called) < 3 or not owner:
        return bool(called) and called == owner
    return called in (owner, owner + "s") or owner.endswith(called) or called.endswith(owner)


def _split(module: str) -> tuple[str, str]:
    """An address without its last word, and that word."""
    for separator in ("::", "\\", "."):
        head, found, tail = module.rpartition(separator)
        if found:
            return head or separator, tail
    return "", module


def _last(qualified: str) -> str:
    return re.split(r"\.|::|\\", qualified)[-1]


def _order(usage: Usage) -> tuple[float, int, int, str, int, int]:
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
