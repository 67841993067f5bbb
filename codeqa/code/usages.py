"""Find where a definition is used: the edges of its name, ranked by the evidence for each.

Inheritance belongs to it, for a method counts together with those that it overrides. Edges have
only a name. Which definition in another file it means is decided here, at the time of a question,
so that editing one file never rewrites another's rows. A name that merely looks alike has a low
confidence and is never presented as certain.

The evidence of one place is a confidence from 0 to 1. Each number below is named after what it
stands for. Their order matters; they are no frequencies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import PurePosixPath

from codeqa.code.imports import NONE, import_evidence, resolves_imports, split_address
from codeqa.languages import detect, language_called
from codeqa.parsing.references import CLASS_MARK
from codeqa.repository.classify import role_of
from codeqa.search.mentions import smallest_around
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import CLASS_KINDS, METHOD_KINDS, ROLES, TEXT_KINDS, Reference, Unit

TYPED = 0.85
"""The import gives the class of the receiver, or the receiver is called like that class; or
unqualified, in the same folder, in a language whose folders are packages, or in a file that imports
everything of the definition's file; or imported from a module that itself imports it."""
SUBCLASS = 0.8
"""Called on `self` inside a class that inherits from the owner; it may override it."""
ITS_MODULE = 0.5
"""On a receiver of unknown class that comes from the definition's file or package."""
RECEIVER_NAME = 0.6
"""The receiver is called like the owner, and like no other class with such a member."""
ONLY_ONE = 0.6
"""Nothing but the name, which only one definition of the repository has."""
ONLY_ONE_SHORT = 0.3
"""The same for names that every library has (`get`, `run`, `close`)."""
OTHER_CLASS = 0.15
"""On an object of another class without a member of that name, an interface perhaps; or a method's
name without a receiver."""
ONE_OF_MANY = 0.5
"""Shared among the definitions of that name."""
LEAST = 0.05
"""Below this a place is not taken for a use."""
THROUGH_BASE = 0.7
"""At most, for a call of the method that it overrides or implements: which of them runs is decided
by the object."""
THROUGH_HEIR = 0.6
"""At most, for a call of a method that overrides it, where it has no code of its own."""
HEIR_OF_CONCRETE = 0.4
"""The same where it has some code, which then need not run."""
MOST_RELATED = 8
"""Methods of bases, and of heirs, that count together with one."""
OVERLOADED = 0.8
"""The file decides for one of several definitions of that qualified name."""
SHORT_NAME = 5
OWN_NAMES = frozenset({"self", "this", "cls", "Self"})
SELF_NAMES = OWN_NAMES | {"super", "super()", "base", "parent"}
LIKELY = 0.6
SURENESS = ((0.9, "certain"), (LIKELY, "likely"), (0.0, "possible"))
"""Confidence from which a place is called so."""
_LAST_WORD = re.compile(r"(\w+)\W*$")

CANDIDATES = 2_000
"""Edges of one name that are looked at; those beyond, of a name such as `get`, are left out."""
NAMESAKES = 200
"""Definitions of one name that are compared with one."""
MAX_FILES_READ = 100
"""Files whose imports are read for one answer, for wildcards and re-exports."""
MAX_CLASSES_FOLLOWED = 30
"""Classes whose heirs are looked up for one answer."""
MOST_NAMED = 20_000
MOST_JUDGED = 40
"""Definitions of one name that are weighed for one place."""
_TYPES = CLASS_KINDS - {"module"}
_METHOD = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\])?\(")
"""The name in a method's declaration."""
_ABSTRACT = re.compile(r"\b(?:raise NotImplementedError|abstractmethod|abstract )\b")


@dataclass(frozen=True, slots=True)
class UsageSite:
    """One place, and how sure it is that the definition is meant (0 to 1)."""

    reference: Reference
    confidence: float
    through: str = ""
    """The method of a base or interface that is named there, where that is not the definition."""


def usages(tables: Tables, unit: Unit, *, alone: bool = False) -> list[UsageSite]:
    """Find where `unit` is used, the surest first, source before tests.

    Unless `alone`, a method counts together with those of bases and interfaces that it overrides,
    and with those that override it, for the object decides which of them runs.
    """
    if unit.kind in TEXT_KINDS or not unit.name:
        return []
    # A constructor is called by the name of its class.
    of_class = unit.kind == "constructor" and unit.class_name
    name = last_word(unit.class_name) if of_class else unit.name
    tables = tables.around(unit.path)
    places = tables.references(name=[name], limit=CANDIDATES)
    around = Surroundings(tables, unit, name, places)
    sites = around.judged()
    relatives: list[tuple[Unit, Unit | None, float]] = []
    if places and not alone:
        most = THROUGH_HEIR if is_abstract(unit) else HEIR_OF_CONCRETE
        methods = overridden(tables, unit)[:MOST_RELATED]
        relatives += [(method, base, THROUGH_BASE) for method, base in methods]
        relatives += [(method, None, most) for method in around.overriding[:MOST_RELATED]]
    for method, base, most in relatives:
        others = Surroundings(tables, method, name, places, heirs=False).judged()
        for place, site in others.items():
            confidence, own = min(site.confidence, most), sites.get(place)
            surer = own is None or own.confidence < confidence
            if surer and _may_mean_other(place, base):
                sites[place] = UsageSite(place, confidence, method.qualified_name)
    return sorted(sites.values(), key=_order)


def _may_mean_other(place: Reference, owner: Unit | None) -> bool:
    """Tell whether a call of a related method may be a call of the unit's.

    `super()` names its class, and `self` the class around it, of which only that of a base,
    `owner`, has other objects.
    """
    if place.receiver in SELF_NAMES - OWN_NAMES or place.receiver.startswith("super("):
        return False
    if place.receiver not in OWN_NAMES:
        return True
    if owner is None or owner.path != place.path:
        return False
    return owner.start_line <= place.line <= owner.end_line


def _order(usage: UsageSite) -> tuple[float, int, int, str, int, int]:
    place = usage.reference
    role = ROLES.index(role_of(place.path))
    is_import = place.kind == "import"
    return -usage.confidence, is_import, role, place.path, place.line, place.column


def _likeness(receiver: str, owner: str) -> int:
    """Return 2 for a receiver with the name of a class, 1 for one like it (`test_client`), or 0."""
    match = _LAST_WORD.search(receiver.removesuffix("()"))
    word, owner = name_key(match[1]) if match else "", name_key(owner)
    if word and word in (owner, owner + "s"):
        return 2
    alike = owner.endswith(word) or (owner and word.endswith(owner))
    return 1 if alike and len(word) >= 3 else 0


class Surroundings:
    """The facts by which places of the name `name` are judged: how surely do they mean `unit`?"""

    # Each fact is worked out here once, for thousands of places are judged by them.
    def __init__(
        self, tables: Tables, unit: Unit, name: str, places: Sequence[Reference], heirs: bool = True
    ) -> None:
        self._tables, self._unit, self._places = tables, unit, places
        self._owner = last_word(unit.class_name)
        of_class = unit.kind in METHOD_KINDS and bool(unit.class_name)
        self._is_member = of_class and unit.kind != "constructor"
        """Whether it is reached through its class or an object of it."""
        # Read file by file, for wildcards and re-exports.
        self.imports = cache(self._imports)
        self.is_called_like = cache(self._is_called_like)  # one receiver stands at many places
        self._files_read = 0
        namesakes = same_named(tables, name, NAMESAKES)
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
        """Whether it is defined inside of a function, where no import reaches."""
        self.own_module = _own_module(tables, unit.language)
        self._subclasses: set[tuple[str, str]] = set()
        """(path, qualified name) of classes that inherit the member, directly or not."""
        self._overriding: set[tuple[str, str]] = set()
        """The same of classes that inherit it, and have one of their own."""
        if heirs and of_class:
            self._find_heirs(owners)
        self.overriding = [u for u in namesakes if (u.path, u.class_name) in self._overriding]
        """The methods that override the unit, in the nearest heirs."""
        files = {path for path, _ in self._subclasses | self._overriding}
        ids = [place.unit_id for place in places if place.path in files and place.unit_id]
        self._owners = {inner.id: inner.class_name for inner in tables.by_ids(ids)}
        """Unit id → the class that this unit belongs to."""
        outer = unit.class_name.replace("::", ".").split(".", 1)[0] or name
        carriers = places if outer == name else tables.references(name=[outer], limit=CANDIDATES)
        self.exporters = self._exporters(carriers)

    def judged(self) -> dict[Reference, UsageSite]:
        """Return the places that are taken for a use of the unit."""
        sites: dict[Reference, UsageSite] = {}
        for place in self._places:
            confidence = self._evidence(place) if self._speaks(place) else NONE
            if confidence >= LEAST:
                sites[place] = UsageSite(place, round(confidence, 2))
        return sites

    def _evidence(self, place: Reference) -> float:
        if place.target:
            if place.target == self._unit.id:
                return place.confidence
            return min(place.confidence, OVERLOADED) if place.target in self.siblings else NONE
        module, mark, known_class = place.module.rpartition(CLASS_MARK)
        if mark and known_class.isidentifier():
            return self._of_class(place, module, known_class)
        if place.module and resolves_imports(language_name(place.path)):
            confidence = self._imported(place, self._unit.path) or self._passed_on(place)
            if confidence:
                return confidence
            of_heir = self._is_member and self.is_heir(split_address(place.module)[1])
            # Else the file says that another module's name is meant.
            return SUBCLASS if of_heir else NONE
        if place.kind == "import" and not place.module:
            return NONE
        return self._received(place) if place.receiver else self._unqualified(place)

    def _imported(self, place: Reference, path: str) -> float:
        """Rate the evidence that the place's import leads to `path`, and there to the unit."""
        head, tail = split_address(place.module)
        if self._owner and tail == self._owner and (confidence := self.leads(place, head, path)):
            own = place.receiver in ("", self._owner)
            return confidence if own else min(confidence, TYPED)
        confidence = self.leads(place, place.module, path)
        if not confidence or self.enclosed:
            return NONE
        if not self._is_member or self._owner in (tail, last_word(place.receiver)):
            return confidence
        # Without a receiver it is a function of that module, not a member of its class.
        # Where one word is the whole specifier, it names a file or folder, never the class in it.
        whole = place.receiver and not language_called(language_name(place.path)).import_separator
        return min(confidence, ITS_MODULE) if whole else NONE

    def _passed_on(self, place: Reference) -> float:
        """Rate the evidence through a file that imports the definition and is itself imported."""
        for exporter in self.exporters:
            confidence = NONE if exporter == place.path else self._imported(place, exporter)
            if confidence:
                return min(confidence, TYPED)
        return NONE

    def _of_class(self, place: Reference, module: str, known_class: str) -> float:
        """Rate the evidence of a receiver whose class is known by name."""
        if not self._is_member:
            return NONE
        spread = known_class == self._owner and language_called(self._unit.language).spread_classes
        if place.receiver in SELF_NAMES and not spread:
            return self._received(place)
        if known_class != self._owner:
            if self.is_heir(known_class):
                return SUBCLASS
            return NONE if known_class in self.rival_owners else OTHER_CLASS
        if not module:
            near = PurePosixPath(place.path).parent == PurePosixPath(self._unit.path).parent
            return TYPED if near or self._owner not in self.rival_owners else ONE_OF_MANY
        leads = any(self.leads(place, module, path) for path in (self._unit.path, *self.exporters))
        return TYPED if leads else NONE

    def _received(self, place: Reference) -> float:
        if place.receiver in SELF_NAMES or place.receiver.startswith("super("):
            inherited = self.is_in_heir(place, of_base=place.receiver not in OWN_NAMES)
            return SUBCLASS if inherited else NONE  # another class's own member
        if not self._unit.class_name:
            return self._by_name(0.5)
        return RECEIVER_NAME if self.is_called_like(place.receiver) else self._by_name(1.0)

    def _is_called_like(self, receiver: str) -> bool:
        """Tell whether `receiver` is more like the owner's name than like its rivals' names."""
        rivals = (_likeness(receiver, rival) for rival in self.rival_owners)
        return _likeness(receiver, self._owner) > max(rivals, default=0)

    def _unqualified(self, place: Reference) -> float:
        if self._is_member:
            return SUBCLASS if self.is_in_heir(place) else OTHER_CLASS / self.rivals
        same_folder = PurePosixPath(place.path).parent == PurePosixPath(self._unit.path).parent
        if same_folder and language_called(self._unit.language).folder_is_package:
            return TYPED
        for edge in self.imports(place.path):
            if edge.name == edge.module and self.leads(place, edge.module, self._unit.path):
                return TYPED
        needs_import = resolves_imports(language_name(place.path))
        return self._by_name(0.5 if needs_import else 1.0)

    def _by_name(self, factor: float) -> float:
        if self.rivals > 1:
            return factor * ONE_OF_MANY / self.rivals
        name = self._unit.name
        short = len(name) < SHORT_NAME or (name.islower() and len(name) <= 6)
        return factor * (ONLY_ONE_SHORT if short else ONLY_ONE)

    def _speaks(self, place: Reference) -> bool:
        """Tell whether the place's language may mean the unit, and its kind fits it."""
        if self._unit.kind in METHOD_KINDS and place.kind == "inherits":
            return False
        if self._unit.kind == "constructor" and place.kind != "call":
            return False
        return related(language_name(place.path), self._unit.language)

    def leads(self, place: Reference, module: str, path: str) -> float:
        """Rate how surely `module`, imported where `place` is, is the file `path`."""
        language = language_name(place.path)
        return import_evidence(language, place.path, module, path, self.own_module)

    def is_heir(self, name: str) -> bool:
        """Tell whether a class called `name` inherits from the owner."""
        return any(name == last_word(heir) for _, heir in self._subclasses)

    def is_in_heir(self, place: Reference, *, of_base: bool = False) -> bool:
        """Tell whether the class around `place` inherits, or `of_base` overrides, the member."""
        owner = (place.path, self._owners.get(place.unit_id, ""))
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
        return files - {unit.path}

    def _find_heirs(self, overriding: Set[tuple[str, str]]) -> None:
        """Note the classes below the owner, each level by name.

        It ends at those that have a member of their own: `overriding`, (path, qualified name).
        """
        waiting, seen = [self._owner], {self._owner}
        while waiting and len(seen) - len(waiting) <= MAX_CLASSES_FOLLOWED:
            places = self._tables.references(name=[waiting.pop()], limit=CANDIDATES)
            ids = [place.unit_id for place in places if place.kind == "inherits" and place.unit_id]
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


def meant_at(tables: Tables, path: str, line: int, name: str) -> list[tuple[Unit, float]]:
    """Return the definitions that `name` in a line of a file may mean, the likeliest first.

    Each has a confidence from 0 to 1. If some are likely, only these; [] for what is defined
    elsewhere.
    """
    tables, language = tables.around(path), language_name(path)
    places = [place for place in tables.references(path=[path]) if place.name == name]
    places = [place for place in places if place.line == line]
    if decided := tables.by_ids([place.target for place in places if place.target]):
        return [(unit, 1.0) for unit in decided]
    if not places:  # it is defined there, or a name that is no reference, as a variable's
        units = [unit for unit in tables.in_file(path) if unit.name == name and unit.is_definition]
        if around := smallest_around(units, line):
            return [(around, 1.0)]
    rated: list[tuple[Unit, float]] = []
    namesakes = [unit for unit in same_named(tables, name) if related(unit.language, language)]
    for unit in namesakes[:MOST_JUDGED]:
        confidence = LEAST
        if places:
            sites = Surroundings(tables, unit, name, places).judged().values()
            confidence = max((site.confidence for site in sites), default=NONE)
        rated.append((unit, confidence))
    least = LIKELY if any(confidence >= LIKELY for _, confidence in rated) else LEAST
    rated = [pair for pair in rated if pair[1] >= least]
    return sorted(rated, key=lambda pair: (-pair[1], ROLES.index(pair[0].role), pair[0].is_stub))


def same_named(tables: Tables, name: str, limit: int = MOST_NAMED) -> list[Unit]:
    """Return the definitions that are called exactly `name`."""
    units = tables.named([name_key(name)], limit)
    return [unit for unit in units if unit.name == name and unit.is_definition]


def sureness(confidence: float) -> str:
    """Return `confidence` as a word."""
    return next(word for least, word in SURENESS if confidence >= least)


def related(language: str, other: str) -> bool:
    """Tell whether code in `language` may call definitions in the language `other`."""
    family = language_called(language).family
    return language == other or (family != "" and family == language_called(other).family)


@lru_cache(maxsize=4_096)  # a name stands many times in a file
def language_name(path: str) -> str:
    """Return the language of a path, '' for none."""
    language = detect(path)
    return language.name if language is not None else ""


# Inheritance.


def overridden(tables: Tables, unit: Unit) -> list[tuple[Unit, Unit]]:
    """Return the methods of bases and interfaces that the method `unit` overrides or implements.

    The nearest come first, each with its class.
    """
    if not _may_be_overridden(unit):
        return []
    types = [other for other in tables.in_file(unit.path) if other.kind in _TYPES]
    waiting = [other for other in types if other.qualified_name == unit.class_name]
    seen, methods = {owner.id for owner in waiting}, list[tuple[Unit, Unit]]()
    for heir in waiting:  # which grows
        for base in bases(tables, heir, unit.name):
            if base.id in seen or len(seen) >= MAX_CLASSES_FOLLOWED:
                continue
            seen.add(base.id)
            waiting.append(base)
            for method in members(tables, base):
                if method.name == unit.name and _may_be_overridden(method):
                    methods.append((method, base))
    return methods


def overrides(tables: Tables, unit: Unit) -> list[Unit]:
    """Return the methods of heirs that override or implement the method `unit`."""
    if not _may_be_overridden(unit):
        return []
    rivals = [other for other in same_named(tables, unit.name) if _may_be_overridden(other)]
    methods: list[Unit] = []
    for rival in rivals[:MAX_CLASSES_FOLLOWED]:
        if rival.id == unit.id or not related(rival.language, unit.language):
            continue
        above = {(base.path, base.qualified_name) for base, _ in overridden(tables, rival)}
        if (unit.path, unit.qualified_name) in above:
            methods.append(rival)
    return methods


def is_abstract(unit: Unit) -> bool:
    """Tell whether a method has no code of its own, or only code that says so."""
    body = unit.source_code.removeprefix(unit.signature).strip(" ;\n")
    return unit.is_stub or not body or _ABSTRACT.search(unit.source_code) is not None


def bases(tables: Tables, unit: Unit, method: str = "") -> list[Unit]:
    """Return the classes and interfaces of this repository that the class `unit` names as bases.

    In a language where no class names its interfaces, return those with that `method` of which
    the class has all methods.
    """
    implicit = language_called(unit.language).implicit_interfaces
    if implicit and method and unit.kind != "interface":
        named = tables.named([name_key(method)], MOST_NAMED)
        named = [other for other in named if other.language == unit.language]
        owners = {(other.path, other.class_name) for other in named}
        types: list[Unit] = []
        for path in sorted({path for path, _ in owners}):
            types += tables.in_file(path)
        types = [base for base in types if (base.path, base.qualified_name) in owners]
        return [base for base in types if unit in with_all_methods(tables, base)]
    classes: list[Unit] = []
    for place in tables.references(path=[unit.path]):
        if place.kind == "inherits" and place.unit_id == unit.id:
            classes += _base_named(tables, place)
    return [base for base in classes if base.id != unit.id]


def members(tables: Tables, owner: Unit) -> list[Unit]:
    """Return the methods of a class in its file, but for constructors."""
    methods = [unit for unit in tables.in_file(owner.path) if unit.is_method]
    methods = [method for method in methods if method.kind != "constructor"]
    return [method for method in methods if _holder(method) == owner.qualified_name]


def _holder(unit: Unit) -> str:
    """Return what it is defined in: its class, or the function around it."""
    return unit.qualified_name.removesuffix(unit.name).rstrip(".:")


def _is_in_function(tables: Tables, unit: Unit) -> bool:
    holder = _holder(unit)
    if holder == unit.class_name:
        return False
    units = tables.in_file(unit.path)
    return any(other.kind in METHOD_KINDS and other.qualified_name == holder for other in units)


def _is_overload(other: Unit, unit: Unit) -> bool:
    """Tell whether `other` defines the qualified name of `unit` once more in its file."""
    if other.path != unit.path or other.id == unit.id:
        return False
    if other.kind == unit.kind and other.kind in ("lambda", "class"):
        return False  # those are bound twice, in two places that see one each
    return other.qualified_name in (unit.qualified_name, unit.class_name)


def _base_named(tables: Tables, place: Reference) -> list[Unit]:
    """Return the class that is named as a base, [] where that cannot be said."""
    if place.target:
        return tables.by_ids([place.target])
    language, module = language_name(place.path), place.module.partition(CLASS_MARK)[0]
    types = [unit for unit in types_called(tables, place.name) if related(unit.language, language)]
    if module:
        leads = partial(import_evidence, language, place.path)
        head = split_address(module)[0]
        imports = [base for base in types if leads(module, base.path) or leads(head, base.path)]
        types = imports or types
    return types if len(types) == 1 else []


def _may_be_overridden(unit: Unit) -> bool:
    """Tell whether it is a method of a class: no constructor, no function in a method."""
    if not unit.is_method or unit.kind == "constructor" or not unit.class_name:
        return False
    return _holder(unit) == unit.class_name


def types_called(tables: Tables, name: str) -> list[Unit]:
    """Return the classes, interfaces and other types of exactly that name."""
    return [unit for unit in same_named(tables, name) if unit.kind in _TYPES]


def heirs_at(tables: Tables, places: Iterable[Reference]) -> list[tuple[Unit, str, int]]:
    """Return the types that say at `places` what they inherit, each with the file and line."""
    heirs, places = list[tuple[Unit, str, int]](), list(places)
    units = tables.by_ids([place.unit_id for place in places])
    around = {unit.id: unit for unit in units}
    for place in places:
        if unit := around.get(place.unit_id):
            heirs.append((_type_at(tables, place, unit), place.path, place.line))
    return heirs


def _type_at(tables: Tables, place: Reference, unit: Unit) -> Unit:
    """Return the type that inherits something at `place`, which lies in `unit`.

    Some say it outside of the type, of several in one module: `impl Read for Buffer`.
    """
    form = language_called(unit.language).implemented_for
    if not form or unit.kind in _TYPES:
        return unit
    lines = unit.source_code.split("\n")[place.line - unit.start_line :]
    match = re.match(form, "\n".join(lines[:3]))
    if match is None:
        return unit
    name = last_word(match[1])
    elsewhere = replace(unit, id=f"{unit.id} {name}", qualified_name=name, kind="type")
    types = types_called(tables, name)
    types.sort(key=lambda owner: (owner.path != place.path, owner.language != unit.language))
    return types[0] if types else elsewhere


def with_all_methods(tables: Tables, unit: Unit) -> list[Unit]:
    """Return the types that have every method of the interface `unit`.

    This is for languages where no type names the interfaces that it implements.
    """
    if not language_called(unit.language).implicit_interfaces or unit.kind != "interface":
        return []
    names = {match[1] for match in map(_METHOD.search, unit.method_declarations) if match}
    if not names:
        return []
    methods: dict[tuple[str, str], set[str]] = {}
    for method in tables.named([name_key(name) for name in names], MOST_NAMED):
        if method.name in names and method.language == unit.language and method.is_method:
            methods.setdefault((_folder(method), method.class_name), set()).add(method.name)
    whole = [owner for owner, own in methods.items() if own == names]
    types = tables.named([name_key(owner) for _, owner in whole], MOST_NAMED)
    types = [owner for owner in types if owner.kind in _TYPES - {"interface"}]
    return [owner for owner in types if (_folder(owner), owner.qualified_name) in whole]


def _folder(unit: Unit) -> str:
    return unit.path.rpartition("/")[0]
