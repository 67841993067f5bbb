"""Where a definition is used: the edges of its name, ranked by the evidence for each; and what
inherits from what, for a method counts together with those that it overrides.

Edges name what they refer to; across files the definition is decided here, when it is asked
for, so that editing one file never rewrites another's rows. A name that merely looks alike is
kept with a low confidence, never presented as certain.

The evidence of one place is a confidence from 0 to 1. Each number below is named after what it
stands for; only their order is meant, they are no frequencies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache
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
"""At most, for a call of a method that overrides it, where it has no code of its own; and where it
has some, which then need not run."""
HEIR_OF_CONCRETE = 0.4
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
"""Edges of one name that are looked at; of a name as common as `get` the rest is left out."""
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

    A method counts together with those of bases and interfaces that it overrides, and with those
    that override it, for the object decides which of them runs; `alone`, without them.
    """
    if unit.kind in TEXT_KINDS or not unit.name:
        return []
    # A constructor is called by the name of its class.
    of_class = unit.kind == "constructor" and unit.class_name
    name = last_word(unit.class_name) if of_class else unit.name
    tables = tables.around(unit.path)
    places = tables.references(name=[name], limit=CANDIDATES)
    around = Surroundings(tables, unit, name, places)
    found = around.judged()
    together: list[tuple[Unit, Unit | None]] = []
    if places and not alone:
        together += overridden(tables, unit)[:MOST_RELATED]
        together += [(one, None) for one in around.overriding[:MOST_RELATED]]
    for one, owner in together:
        most = THROUGH_BASE if owner else THROUGH_HEIR if is_abstract(unit) else HEIR_OF_CONCRETE
        for place, site in Surroundings(tables, one, name, places, heirs=False).judged().items():
            sure, known = min(site.confidence, most), found.get(place)
            if _may_mean_other(place, owner) and not (known and known.confidence >= sure):
                found[place] = UsageSite(place, sure, one.qualified_name)
    return sorted(found.values(), key=_order)


def _may_mean_other(place: Reference, owner: Unit | None) -> bool:
    """Tell whether a call of a related method may be one of the unit's: `super()` names its class,
    and `self` the class around it, of which only that of a base, `owner`, has other objects."""
    if place.receiver in SELF_NAMES - OWN_NAMES or place.receiver.startswith("super("):
        return False
    if place.receiver not in OWN_NAMES:
        return True
    at = (owner.start_line, owner.end_line) if owner and owner.path == place.path else (0, 0)
    return at[0] <= place.line <= at[1]


def _order(usage: UsageSite) -> tuple[float, int, int, str, int, int]:
    place = usage.reference
    role = ROLES.index(role_of(place.path))
    at = place.path, place.line, place.column
    return -usage.confidence, place.kind == "import", role, *at


def _likeness(receiver: str, owner: str) -> int:
    """2 for a receiver with the name of a class, 1 for one like it (`test_client`), else 0."""
    word = _LAST_WORD.search(receiver.removesuffix("()"))
    called, owner = name_key(word.group(1)) if word else "", name_key(owner)
    if called in (owner, owner + "s"):
        return 2 if called else 0
    alike = owner.endswith(called) or (owner and called.endswith(owner))
    return 1 if alike and len(called) >= 3 else 0


class Surroundings:
    """How surely places of the name `name` mean `unit`, and all that decides that."""

    # Every fact about the name is worked out here once, for thousands of places are judged by them.
    def __init__(
        self, tables: Tables, unit: Unit, name: str, places: Sequence[Reference], heirs: bool = True
    ) -> None:
        self._tables, self._unit, self._places = tables, unit, places
        self._owner = last_word(unit.class_name)
        of_class = unit.kind in METHOD_KINDS and bool(unit.class_name)
        self._is_member = of_class and unit.kind != "constructor"
        """Whether it is reached through its class or an object of it."""
        # Of one file after another, for wildcards and re-exports.
        self.imports = cache(self._imports)
        self.is_called_like = cache(self._is_called_like)  # one receiver stands at many places
        self._files_read = 0
        namesakes = [
            one
            for one in tables.named([name_key(name)])
            if one.name == name and one.is_definition and related(one.language, unit.language)
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
        self.enclosed = _holder(unit) != unit.class_name and any(
            one.kind in METHOD_KINDS and one.qualified_name == _holder(unit)
            for one in tables.in_file(unit.path)
        )
        """Whether it is defined inside of a function, where no import reaches."""
        self.own_module = _own_module(tables, unit.language)
        overriding = {(one.path, one.class_name) for one in namesakes}
        self._subclasses: set[tuple[str, str]] = set()
        """(path, qualified name) of classes that inherit the member, directly or not."""
        self._overriding: set[tuple[str, str]] = set()
        """The same of classes that inherit it, and have one of their own."""
        if heirs and of_class:
            self._find_heirs(overriding)
        self.overriding = [o for o in namesakes if (o.path, o.class_name) in self._overriding]
        """The methods that override the unit, in the nearest heirs."""
        inside = {path for path, _ in self._subclasses | self._overriding}
        ids = [place.unit_id for place in places if place.path in inside and place.unit_id]
        self._owners = {one.id: one.class_name for one in tables.by_ids(ids)}
        """Unit id → the class that this unit belongs to."""
        outer = unit.class_name.replace("::", ".").split(".", 1)[0] or name
        carriers = places if outer == name else tables.references(name=[outer], limit=CANDIDATES)
        self.exporters = self._exporters(carriers)

    def judged(self) -> dict[Reference, UsageSite]:
        """Return the places that are taken for a use of the unit."""
        found = {}
        for place in self._places:
            confidence = self._evidence(place) if self._speaks(place) else NONE
            if confidence >= LEAST:
                found[place] = UsageSite(place, round(confidence, 2))
        return found

    def _evidence(self, place: Reference) -> float:
        if place.target:
            if place.target == self._unit.id:
                return place.confidence
            return min(place.confidence, OVERLOADED) if place.target in self.siblings else NONE
        module, mark, known_class = place.module.rpartition(CLASS_MARK)
        if mark and known_class.isidentifier():
            return self._of_class(place, module, known_class)
        if place.module and resolves_imports(language_name(place.path)):
            if sure := self._imported(place, self._unit.path) or self._passed_on(place):
                return sure
            of_heir = self._is_member and self.is_heir(split_address(place.module)[1])
            # Else the file says that another module's name is meant.
            return SUBCLASS if of_heir else NONE
        if place.kind == "import" and not place.module:
            return NONE
        return self._received(place) if place.receiver else self._unqualified(place)

    def _imported(self, place: Reference, path: str) -> float:
        """Evidence that the place's import leads to `path`, and there to the unit."""
        head, tail = split_address(place.module)
        if self._owner and tail == self._owner and (sure := self.leads(place, head, path)):
            return sure if place.receiver in ("", self._owner) else min(sure, TYPED)
        sure = self.leads(place, place.module, path)
        if not sure or self.enclosed:
            return NONE
        if not self._is_member or tail == self._owner or last_word(place.receiver) == self._owner:
            return sure
        # Without a receiver it is a function of that module, not a member of its class.
        # Where one word is the whole specifier, it names a file or folder, never the class in it.
        whole = place.receiver and not language_called(language_name(place.path)).import_separator
        return min(sure, ITS_MODULE) if whole else NONE

    def _passed_on(self, place: Reference) -> float:
        """Evidence through one file that imports the definition and is itself imported."""
        others = (one for one in self.exporters if one != place.path)
        found = (self._imported(place, exporter) for exporter in others)
        return min(next(filter(None, found), NONE), TYPED)

    def _of_class(self, place: Reference, module: str, known_class: str) -> float:
        """Evidence from a receiver whose class is known by name."""
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
        """Tell whether `receiver` is called like the owner, and less like all other classes that
        have such a member."""
        rivals = (_likeness(receiver, one) for one in self.rival_owners)
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
        at = (place.path, self._owners.get(place.unit_id, ""))
        return at in self._subclasses or (of_base and at in self._overriding)

    def _imports(self, path: str) -> list[Reference]:
        """The import edges of a file; none once `MAX_FILES_READ` files were read."""
        self._files_read += 1
        if self._files_read > MAX_FILES_READ:
            return []
        return [edge for edge in self._tables.references(path=[path]) if edge.kind == "import"]

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
        known = self._tables.catalogue().paths
        for around in (folder, *folder.parents):
            paths = {str(around / one) for one in language_called(unit.language).package_files}
            for path in sorted(paths & known):
                whole = (edge for edge in self.imports(path) if edge.name == edge.module)
                if any(self.leads(edge, edge.module, unit.path) for edge in whole):
                    found.add(path)
        return found - {unit.path}

    def _find_heirs(self, overriding: Set[tuple[str, str]]) -> None:
        """Note the classes below the owner, each level by name, down to those that have a member
        of their own in its place."""
        waiting, seen = [self._owner], {self._owner}
        while waiting and len(seen) - len(waiting) <= MAX_CLASSES_FOLLOWED:
            places = self._tables.references(name=[waiting.pop()], limit=CANDIDATES)
            ids = [place.unit_id for place in places if place.kind == "inherits" and place.unit_id]
            for heir in self._tables.by_ids(ids):
                at = (heir.path, heir.qualified_name)
                if at in overriding:
                    self._overriding.add(at)
                    continue
                self._subclasses.add(at)
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
    """Return the definitions that `name` in a line of a file may mean, the likeliest first, each
    with how sure that is (0 to 1); only likely ones where there are any, [] for what is defined
    elsewhere."""
    tables, language = tables.around(path), language_name(path)
    places = [one for one in tables.references(path=[path]) if (one.line, one.name) == (line, name)]
    if decided := tables.by_ids([one.target for one in places if one.target]):
        return [(unit, 1.0) for unit in decided]
    if not places:  # it is defined there, or a name that is no reference, as a variable's
        held = (one for one in tables.in_file(path) if one.name == name and one.is_definition)
        if around := smallest_around(held, line):
            return [(around, 1.0)]
    named = tables.named([name_key(name)], MOST_NAMED)
    alike = [one for one in named if one.name == name and one.is_definition]
    found = []
    for unit in [one for one in alike if related(one.language, language)][:MOST_JUDGED]:
        sites = Surroundings(tables, unit, name, places).judged().values() if places else ()
        sure = max((site.confidence for site in sites), default=NONE if places else LEAST)
        found.append((unit, sure))
    least = LIKELY if any(sure >= LIKELY for _, sure in found) else LEAST
    found = [(unit, sure) for unit, sure in found if sure >= least]
    return sorted(found, key=lambda one: (-one[1], ROLES.index(one[0].role), one[0].is_stub))


def sureness(confidence: float) -> str:
    """`confidence` as a word."""
    return next(word for least, word in SURENESS if confidence >= least)


def related(one: str, other: str) -> bool:
    """Tell whether code in the language `one` may call definitions in `other`."""
    family = language_called(one).family
    return one == other or (family != "" and family == language_called(other).family)


@lru_cache(maxsize=4_096)  # a name stands many times in a file
def language_name(path: str) -> str:
    found = detect(path)
    return found.name if found is not None else ""


# Inheritance.


def overridden(tables: Tables, unit: Unit) -> list[tuple[Unit, Unit]]:
    """Return the methods of bases and interfaces that the method `unit` overrides or implements,
    the nearest first, each with its class."""
    if not _may_be_overridden(unit):
        return []
    types = [one for one in tables.in_file(unit.path) if one.kind in _TYPES]
    waiting = [one for one in types if one.qualified_name == unit.class_name]
    seen, found = {one.id for one in waiting}, list[tuple[Unit, Unit]]()
    for one in waiting:  # which grows
        for base in bases(tables, one, unit.name):
            if base.id not in seen and len(seen) < MAX_CLASSES_FOLLOWED:
                seen.add(base.id)
                waiting.append(base)
                alike = (o for o in members(tables, base) if o.name == unit.name)
                found += [(method, base) for method in alike if _may_be_overridden(method)]
    return found


def overrides(tables: Tables, unit: Unit) -> list[Unit]:
    """Return the methods of heirs that override or implement the method `unit`."""
    if not _may_be_overridden(unit):
        return []
    named = tables.named([name_key(unit.name)], MOST_NAMED)
    rivals = [one for one in named if one.name == unit.name and _may_be_overridden(one)]
    above = (unit.path, unit.qualified_name)
    return [
        one
        for one in rivals[:MAX_CLASSES_FOLLOWED]
        if one.id != unit.id
        and related(one.language, unit.language)
        and above in [(base.path, base.qualified_name) for base, _ in overridden(tables, one)]
    ]


def is_abstract(unit: Unit) -> bool:
    """Tell whether a method has no code of its own, but what says so."""
    body = unit.source_code.removeprefix(unit.signature).strip(" ;\n")
    return unit.is_stub or not body or _ABSTRACT.search(unit.source_code) is not None


def bases(tables: Tables, unit: Unit, method: str = "") -> list[Unit]:
    """Return the classes and interfaces of this repository that the class `unit` names as its
    bases; where none says so, the interfaces with that `method` whose methods it all has."""
    implicit = language_called(unit.language).implicit_interfaces
    if implicit and method and unit.kind != "interface":
        named = tables.named([name_key(method)], MOST_NAMED)
        owners = {(one.path, one.class_name) for one in named if one.language == unit.language}
        paths = {path for path, _ in owners}
        types = [one for path in sorted(paths) for one in tables.in_file(path)]
        types = [one for one in types if (one.path, one.qualified_name) in owners]
        return [one for one in types if unit in with_all_methods(tables, one)]
    places = tables.references(path=[unit.path])
    inherited = [one for one in places if one.kind == "inherits" and one.unit_id == unit.id]
    return [one for place in inherited for one in _meant(tables, place) if one.id != unit.id]


def members(tables: Tables, owner: Unit) -> list[Unit]:
    """Return the methods of a class in its file, but for constructors."""
    held = tables.in_file(owner.path)
    methods = [one for one in held if one.is_method and one.kind != "constructor"]
    return [one for one in methods if _holder(one) == owner.qualified_name]


def _holder(unit: Unit) -> str:
    """Return what it is defined in: its class, or the function around it."""
    return unit.qualified_name.removesuffix(unit.name).rstrip(".:")


def _meant(tables: Tables, place: Reference) -> list[Unit]:
    """Return the class that is named as a base, [] where that cannot be said."""
    if place.target:
        return tables.by_ids([place.target])
    language, module = language_name(place.path), place.module.partition(CLASS_MARK)[0]
    types = [one for one in types_called(tables, place.name) if related(one.language, language)]
    leading = (module, split_address(module)[0]) if module else ()
    imported = [
        one
        for one in types
        if any(import_evidence(language, place.path, address, one.path) for address in leading)
    ]
    found = imported or types
    return found if len(found) == 1 else []


def _may_be_overridden(unit: Unit) -> bool:
    """Tell whether it is a method of a class: no constructor, no function in a method."""
    named = unit.is_method and unit.kind != "constructor" and unit.class_name != ""
    return named and _holder(unit) == unit.class_name


def types_called(tables: Tables, name: str) -> list[Unit]:
    named = tables.named([name_key(name)], MOST_NAMED)
    return [unit for unit in named if unit.name == name and unit.kind in _TYPES]


def heirs_at(tables: Tables, places: Iterable[Reference]) -> list[tuple[Unit, str, int]]:
    """Return the types that say at `places` what they inherit or implement, each with the file and
    line. Some say it outside of the type, of several in one module: `impl Read for Buffer`."""
    found, places = list[tuple[Unit, str, int]](), list(places)
    ids = [place.unit_id for place in places]
    around = {unit.id: unit for unit in tables.by_ids(ids)}
    for place in (one for one in places if one.unit_id in around):
        one = around[place.unit_id]
        code = "\n".join(one.source_code.split("\n")[place.line - one.start_line :][:3])
        form = language_called(one.language).implemented_for
        meant = re.match(form, code) if form and one.kind not in _TYPES else None
        if meant:
            name = last_word(meant[1])
            types = types_called(tables, name)
            types.sort(key=lambda unit: (unit.path != place.path, unit.language != one.language))
            elsewhere = replace(one, id=f"{one.id} {name}", qualified_name=name, kind="type")
            one = types[0] if types else elsewhere
        found.append((one, place.path, place.line))
    return found


def with_all_methods(tables: Tables, unit: Unit) -> list[Unit]:
    """Return the types that have every method of the interface `unit`, in a language where none
    says that it implements one."""
    names = {found[1] for one in unit.method_declarations if (found := _METHOD.search(one))}
    implicit = language_called(unit.language).implicit_interfaces
    if not implicit or unit.kind != "interface" or not names:
        return []
    having = Counter(
        {
            (one.path.rpartition("/")[0], one.class_name, one.name)
            for one in tables.named([name_key(name) for name in names], MOST_NAMED)
            if one.name in names and one.language == unit.language and one.is_method
        }
    )
    owners = Counter((folder, owner) for folder, owner, _ in having)
    whole = {owner for owner, number in owners.items() if number == len(names)}
    types = tables.named([name_key(owner) for _, owner in whole], MOST_NAMED)
    return [
        one
        for one in types
        if (one.path.rpartition("/")[0], one.qualified_name) in whole
        and one.kind in _TYPES - {"interface"}
    ]
