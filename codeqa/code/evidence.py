"""Judge how surely a reference means a definition: a confidence from 0 to 1.

| rule | confidence | example |
|---|---|---|
| the file itself decides | that of its edge | a call of a function defined in the same file |
| the import leads to the definition | `imports.py` | `from shop.cart import Cart`, then `Cart()` |
| the import leads to its class | TYPED | `cart: Cart`, then `cart.total()` |
| no import, in the same folder | TYPED | Go, where a folder is a package |
| the file imports everything | TYPED | `from shop.cart import *`, then `total()` |
| the file renames it | `imports.py` | `import Tray from "./cart"`, then `new Tray()` |
| another module hands it on | TYPED | `from shop import Cart`: `shop/__init__.py` imports it |
| `self`, in a subclass of its class | SUBCLASS | `self.total()` in `class Basket(Cart)` |
| the receiver has its class's name | RECEIVER_NAME | `cart.total()`: only `Cart` has a `total` |
| the name alone, defined once | ONLY_ONE | `x.total()` |
| its module is imported, not its class | ITS_MODULE | `c = require("./cart")`, then `c.total()` |
| the name alone, defined n times | ONE_OF_MANY / n | `x.total()` |
| a test's definition, in source code | OTHER_CLASS | `entry.cancel()`, where a mock has one |
| a class without such a member | OTHER_CLASS | `shelf.total()`, where `Shelf` has none |

Only their order matters; they are not probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import PurePosixPath

from codeqa.code.exports import Exports
from codeqa.code.imports import NONE, import_evidence, resolves_imports, split_address
from codeqa.code.inheritance import MAX_CLASSES_FOLLOWED
from codeqa.code.names import holder_name, language_name, related, same_named
from codeqa.languages import language_called
from codeqa.parsing.references import CLASS_MARK
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, Reference, Unit

TYPED = 0.85
SUBCLASS = 0.8
ITS_MODULE = 0.5
RECEIVER_NAME = 0.6
ONLY_ONE = 0.6
ONLY_ONE_SHORT = 0.3
"""ONLY_ONE for names that every library has (`get`, `run`, `close`)."""
OTHER_CLASS = 0.15
"""The class may be an interface. Also for the name of a method without a receiver."""
ONE_OF_MANY = 0.5
LEAST_CONFIDENCE = 0.05
"""Below this a reference does not count as a use."""
OVERLOADED = 0.8
"""The file names one of several overloads."""
SHORT_NAME = 5
OWN_NAMES = frozenset({"self", "this", "cls", "Self"})
SELF_NAMES = OWN_NAMES | {"super", "super()", "base", "parent"}
LIKELY = 0.6
SURENESS = ((0.9, "certain"), (LIKELY, "likely"), (0.0, "possible"))
"""(least confidence, word for it)"""
_LAST_WORD = re.compile(r"(\w+)\W*$")
MOST_EDGES = 2_000
"""Edges of one name that are judged; a name such as `get` has more."""
MOST_NAMESAKES = 200
"""Definitions of one name that are compared with the one in question."""
MAX_FILES_READ = 100
"""Files whose imports are read for one answer, for wildcards and re-exports."""


@dataclass(frozen=True, slots=True)
class UsageSite:
    """A reference, and how sure it is that the definition is meant (0 to 1)."""

    reference: Reference
    confidence: float
    through: str = ""
    """The method of a base or interface that the reference names, if not the definition itself."""


def _likeness(receiver: str, owner: str) -> int:
    """Return 2 for a receiver with the name of a class, 1 for one like it (`test_client`), or 0."""
    match = _LAST_WORD.search(receiver.removesuffix("()"))
    word, owner = name_key(match[1]) if match else "", name_key(owner)
    if word and word in (owner, owner + "s"):
        return 2
    alike = owner.endswith(word) or (owner and word.endswith(owner))
    return 1 if alike and len(word) >= 3 else 0


class Surroundings:
    """The facts that decide how surely references of the name `name` mean `unit`."""

    # Each fact is worked out here once, for thousands of references are judged by them.
    def __init__(
        self, tables: Tables, unit: Unit, name: str, edges: Sequence[Reference], heirs: bool = True
    ) -> None:
        self._tables, self._unit = tables, unit
        self._owner = last_word(unit.class_name)
        of_class = unit.kind in METHOD_KINDS and bool(unit.class_name)
        self._is_member = of_class and unit.kind != "constructor"
        """True if the unit is reached through its class or an object of it."""
        extension = language_called(unit.language).extension
        self._extends = bool(extension and re.search(extension, unit.signature))
        # Read file by file, for wildcards and re-exports.
        self.imports = cache(self._imports)
        self.is_called_like = cache(self._is_called_like)  # one receiver stands at many references
        self._files_read = 0
        namesakes = same_named(tables, name, MOST_NAMESAKES)
        namesakes = [other for other in namesakes if related(other.language, unit.language)]
        self.rivals = len({(other.path, other.qualified_name) for other in namesakes}) or 1
        """Definitions of that name in languages that could be meant, this one included."""
        self.rival_owners: set[str] = set()
        """Names of the classes that have a member of that name, but for the unit's own class."""
        self.siblings: set[str] = set()
        """Ids of the other definitions of the unit's qualified name in its file (overloads)."""
        owners: set[tuple[str, str]] = set()
        for other in namesakes:
            owners.add((other.path, other.class_name))
            if (other.path, other.class_name) != (unit.path, unit.class_name):
                self.rival_owners.add(last_word(other.class_name))
            if _is_overload(other, unit):
                self.siblings.add(other.id)
        self.enclosed = _is_in_function(tables, unit)
        """True if the unit is defined inside a function, where no import reaches."""
        self.own_module = _own_module(tables, unit.language)
        outer = unit.class_name.replace("::", ".").split(".", 1)[0] or name
        names = [outer, made := f"{outer}()"]
        carriers = edges if outer == name else tables.references(name=names, limit=MOST_EDGES)
        follow = partial(Exports, tables, carriers, leads=self.leads, imports=self.imports)
        self.exports = follow(outer, {unit.path})
        exporters = self._exporters(carriers) | self.exports.paths
        self.objects = follow(made, exporters)
        """The names of what a file makes of the class and exports: `store = Store()`."""
        self.exporters = (exporters | self.objects.paths) - {unit.path}
        renamed = self.exports.renamed(MOST_EDGES)
        self._references = [*edges, *(renamed if outer == name else ())]
        self._subclasses: set[tuple[str, str]] = set()
        """(path, qualified name) of classes that inherit the member, directly or not."""
        self._overriding: set[tuple[str, str]] = set()
        """(path, qualified name) of classes that override the member."""
        if heirs and of_class:
            self._find_heirs(owners, [edge for edge in renamed if self._by_other_name(edge)])
        self.overriding = [u for u in namesakes if (u.path, u.class_name) in self._overriding]
        """The methods that override the unit, in the nearest heirs."""
        files = {path for path, _ in self._subclasses | self._overriding}
        ids = [edge.unit_id for edge in edges if edge.path in files and edge.unit_id]
        self._owners = {inner.id: inner.class_name for inner in tables.by_ids(ids)}
        """Unit id → the class that this unit belongs to."""

    def judged(self) -> dict[Reference, UsageSite]:
        """Return the references that are taken for a use of the unit."""
        sites: dict[Reference, UsageSite] = {}
        for reference in self._references:
            confidence = self._evidence(reference) if self._speaks(reference) else NONE
            if confidence >= LEAST_CONFIDENCE:
                sites[reference] = UsageSite(reference, round(confidence, 2))
        return sites

    def _evidence(self, reference: Reference) -> float:
        if reference.kind == "import" and reference.receiver:
            reference = replace(reference, receiver="")
        if reference.target:
            if reference.target == self._unit.id:
                return reference.confidence
            is_sibling = reference.target in self.siblings
            return min(reference.confidence, OVERLOADED) if is_sibling else NONE
        if not self._is_member and self.exports.sources(reference):
            return self._by_other_name(reference)
        module, mark, known_class = reference.module.rpartition(CLASS_MARK)
        if mark and known_class.isidentifier():
            return self._of_class(reference, module, known_class)
        if reference.module and resolves_imports(language_name(reference.path)):
            confidence = self._imported(reference, self._unit.path) or self._passed_on(reference)
            if confidence:
                return confidence
            tail = split_address(reference.module)[1]
            if self._is_member and self.is_heir(tail):
                return SUBCLASS
            # Else the file says that another module's name is meant, unless it imports both.
            bare = "" if reference.receiver else reference.name
            named = tail if self._is_member else bare
            both = named == self.exports.name and reference.path in self.exporters
            return ONE_OF_MANY if both and not self.enclosed else NONE
        if reference.kind == "import" and not reference.module:
            return NONE
        rate = self._received if reference.receiver else self._unqualified
        confidence = rate(reference)
        of_tests = self._unit.role == "test" and role_of(reference.path) == "source"
        return min(confidence, OTHER_CLASS) if of_tests else confidence

    def _by_other_name(self, reference: Reference) -> float:
        paths = self.exports.sources(reference)
        if reference.module:
            return max((self.leads(reference, reference.module, p) for p in paths), default=NONE)
        here = reference.path in paths and reference.kind != "import"
        return TYPED if here and not reference.receiver else NONE

    def _imported(self, reference: Reference, path: str) -> float:
        """Rate the evidence that the import leads to `path`, and there to the unit."""
        head, tail = split_address(reference.module)
        names = {self._owner}
        for exports in (self.exports, self.objects):
            names |= exports.exported(path) | exports.local(reference.path)
        if self._owner and tail in names:
            confidence = self.leads(reference, head, path)
            if confidence:
                own = reference.receiver in ("", *names)
                return confidence if own else min(confidence, TYPED)
        confidence = self.leads(reference, reference.module, path)
        if not confidence or self.enclosed:
            return NONE
        if not self._is_member or not names.isdisjoint((tail, last_word(reference.receiver))):
            return confidence
        # Without a receiver it is a function of that module, not a member of its class.
        # Where one word is the whole specifier, it names a file or folder, never the class in it.
        language = language_called(language_name(reference.path))
        whole = reference.receiver and not language.import_separator
        return min(confidence, ITS_MODULE) if whole else NONE

    def _passed_on(self, reference: Reference) -> float:
        """Rate the evidence through a file that imports the definition and is itself imported."""
        for exporter in self.exporters:
            confidence = NONE if exporter == reference.path else self._imported(reference, exporter)
            if confidence:
                return min(confidence, TYPED)
        return NONE

    def _of_class(self, reference: Reference, module: str, known_class: str) -> float:
        """Rate the evidence of a receiver whose class is known by name."""
        if not self._is_member:
            return NONE
        spread = known_class == self._owner and language_called(self._unit.language).spread_classes
        if reference.receiver in SELF_NAMES and not spread:
            return self._received(reference)
        if known_class in self.exports.local(reference.path):
            known_class = self._owner
        if known_class != self._owner:
            if self.is_heir(known_class):
                return SUBCLASS
            if self._extends:
                return self._by_name(1.0)
            return NONE if known_class in self.rival_owners else OTHER_CLASS
        if not module:
            near = PurePosixPath(reference.path).parent == PurePosixPath(self._unit.path).parent
            return TYPED if near or self._owner not in self.rival_owners else ONE_OF_MANY
        paths = {self._unit.path} | self.exporters
        return TYPED if any(self.leads(reference, module, path) for path in paths) else NONE

    def _received(self, reference: Reference) -> float:
        if reference.receiver in SELF_NAMES or reference.receiver.startswith("super("):
            inherited = self.is_in_heir(reference, of_base=reference.receiver not in OWN_NAMES)
            return SUBCLASS if inherited else NONE  # another class's own member
        if not self._unit.class_name:
            return self._by_name(0.5)
        if self.is_called_like(reference.receiver):
            return RECEIVER_NAME
        if reference.kind == "use":  # perhaps a field, of which other classes have as many
            return max(self._by_name(0.5), LEAST_CONFIDENCE)
        return self._by_name(1.0)

    def _is_called_like(self, receiver: str) -> bool:
        """Return whether `receiver` is more like the owner's name than like its rivals' names."""
        rivals = (_likeness(receiver, rival) for rival in self.rival_owners)
        return _likeness(receiver, self._owner) > max(rivals, default=0)

    def _unqualified(self, reference: Reference) -> float:
        if self._is_member:
            return SUBCLASS if self.is_in_heir(reference) else OTHER_CLASS / self.rivals
        same_folder = PurePosixPath(reference.path).parent == PurePosixPath(self._unit.path).parent
        if same_folder and language_called(self._unit.language).folder_is_package:
            return TYPED
        for edge in self.imports(reference.path):
            if edge.name == edge.module and self.leads(reference, edge.module, self._unit.path):
                return TYPED
        needs_import = resolves_imports(language_name(reference.path))
        return self._by_name(0.5 if needs_import else 1.0)

    def _by_name(self, factor: float) -> float:
        if self.rivals > 1:
            return factor * ONE_OF_MANY / self.rivals
        name = self._unit.name
        short = len(name) < SHORT_NAME or (name.islower() and len(name) <= 6)
        return factor * (ONLY_ONE_SHORT if short else ONLY_ONE)

    def _speaks(self, reference: Reference) -> bool:
        """Return whether the reference's language may mean the unit, and its kind fits it."""
        if self._unit.kind in METHOD_KINDS and reference.kind == "inherits":
            return False
        if self._unit.kind == "constructor" and reference.kind != "call":
            return False
        return related(language_name(reference.path), self._unit.language)

    def leads(self, reference: Reference, module: str, path: str) -> float:
        """Rate how surely `module`, imported where `reference` is, is the file `path`."""
        language = language_name(reference.path)
        return import_evidence(language, reference.path, module, path, self.own_module)

    def is_heir(self, name: str) -> bool:
        """Return whether a class called `name` inherits from the owner."""
        return any(name == last_word(heir) for _, heir in self._subclasses)

    def is_in_heir(self, reference: Reference, *, of_base: bool = False) -> bool:
        """Return whether the class around it inherits, or `of_base` overrides, the member."""
        owner = (reference.path, self._owners.get(reference.unit_id, ""))
        return owner in self._subclasses or (of_base and owner in self._overriding)

    def _imports(self, path: str) -> list[Reference]:
        """Return the import edges of a file; none once `MAX_FILES_READ` files were read."""
        self._files_read += 1
        if self._files_read > MAX_FILES_READ:
            return []
        return [edge for edge in self._tables.references(path=[path]) if edge.kind == "import"]

    def _exporters(self, carriers: Sequence[Reference]) -> set[str]:
        """Return the files that import the definition or its class, and so hand it on.

        They import it by name, or are packages around its file that import all of it.
        """
        unit = self._unit
        files: set[str] = set()
        for edge in carriers:
            is_import = edge.kind == "import" and edge.module
            if is_import and self.leads(edge, edge.module, unit.path):
                files.add(edge.path)
        folder = PurePosixPath(unit.path).parent
        indexed = self._tables.catalogue().paths
        for around in (folder, *folder.parents):
            paths = {str(around / name) for name in language_called(unit.language).package_files}
            for path in sorted(paths & indexed):
                whole = (edge for edge in self.imports(path) if edge.name == edge.module)
                if any(self.leads(edge, edge.module, unit.path) for edge in whole):
                    files.add(path)
        return files

    def _find_heirs(self, overriding: Set[tuple[str, str]], renamed: Sequence[Reference]) -> None:
        """Note the classes below the owner, each level by name; `renamed` may name it otherwise.

        It ends at those that have a member of their own: `overriding`, (path, qualified name).
        """
        waiting, seen = [self._owner], {self._owner}
        while waiting and len(seen) - len(waiting) <= MAX_CLASSES_FOLLOWED:
            edges = self._tables.references(name=[waiting.pop()], limit=MOST_EDGES)
            edges = [edge for edge in (*edges, *renamed) if edge.kind == "inherits"]
            ids = [edge.unit_id for edge in edges if edge.unit_id]
            for heir in self._tables.by_ids(ids):
                key = (heir.path, heir.qualified_name)
                if key in overriding:
                    self._overriding.add(key)
                    continue
                self._subclasses.add(key)
                if heir.name not in seen:
                    seen.add(heir.name)
                    waiting.append(heir.name)


def _own_module(tables: Tables, language: str) -> str:
    """Read the address that the repository gives itself in that language (`go.mod`), else ''."""
    declared = language_called(language).own_module
    if not declared:
        return ""
    file, form = declared
    text = "\n".join(part.source_code for part in tables.in_file(file))
    name = re.search(form, text)
    return name[1] if name else ""


def sureness(confidence: float) -> str:
    """Return `confidence` as a word."""
    return next(word for least, word in SURENESS if confidence >= least)


def _is_in_function(tables: Tables, unit: Unit) -> bool:
    holder = holder_name(unit)
    if holder == unit.class_name:
        return False
    units = tables.in_file(unit.path)
    return any(other.kind in METHOD_KINDS and other.qualified_name == holder for other in units)


def _is_overload(other: Unit, unit: Unit) -> bool:
    """Return whether `other` defines the qualified name of `unit` once more in its file."""
    if other.path != unit.path or other.id == unit.id:
        return False
    if other.kind == unit.kind and other.kind in ("lambda", "class"):
        return False  # those are bound twice, and each has its own uses
    return other.qualified_name in (unit.qualified_name, unit.class_name)
