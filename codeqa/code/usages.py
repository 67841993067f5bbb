"""Where a definition is used: the edges of its name, ranked by the evidence for each.

Edges name what they refer to; across files the definition is decided here, when it is asked
for, so that editing one file never rewrites another's rows. A name that merely looks alike is
kept with a low confidence, never presented as certain.

The evidence of one place is a confidence from 0 to 1. Each number below is named after what it
stands for; only their order is meant, they are no frequencies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from codeqa.code.imports import NONE, RESOLVED_LANGUAGES, split_address
from codeqa.code.inheritance import is_abstract, overridden
from codeqa.code.surroundings import CANDIDATES, Surroundings, language_name, related
from codeqa.parsing.references import CLASS_MARK
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, ROLES, TEXT_KINDS, Reference, Unit

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
ITS_MODULE = 0.5
"""On a receiver of unknown class that comes from the definition's file or package."""
RECEIVER_NAME = 0.6
"""The receiver is called like the owner, and like no other class with such a member."""
ONLY_ONE = 0.6
"""Nothing but the name, which only one definition of the repository has."""
ONLY_ONE_SHORT = 0.3
"""The same for names that every library has (`get`, `run`, `close`)."""
OTHER_CLASS = 0.15
"""On an object of another class without a member of that name: an interface, perhaps."""
BARE_METHOD = 0.15
"""A method's name without a receiver."""
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
WHOLE_SPECIFIERS = frozenset({"javascript", "typescript", "go"})
"""An import names a file or folder there, never the class in it."""
SPREAD_LANGUAGES = frozenset({"go", "rust", "csharp", "ruby", "swift", "kotlin", "cpp"})
"""A class may have members in several files."""
PACKAGE_LANGUAGES = frozenset({"go", "java", "kotlin", "scala", "csharp", "swift"})
OWN_NAMES = frozenset({"self", "this", "cls", "Self"})
SELF_NAMES = OWN_NAMES | {"super", "super()", "base", "parent"}
LIKELY = 0.6
SURENESS = ((0.9, "certain"), (LIKELY, "likely"), (0.0, "possible"))
"""Confidence from which a place is called so."""
_LAST_WORD = re.compile(r"(\w+)\W*$")


@dataclass(frozen=True, slots=True)
class UsageSite:
    """One place, and how sure it is that the definition is meant (0 to 1)."""

    reference: Reference
    confidence: float
    through: str = ""
    """The method of a base or interface that is named there, where that is not the definition."""

    @property
    def sureness(self) -> str:
        return next(word for least, word in SURENESS if self.confidence >= least)


@dataclass(frozen=True, slots=True)
class Usages:
    """The surest uses of a definition, best first, and how many there are in all."""

    references: tuple[UsageSite, ...]
    total: int
    """Places taken for a use, `references` included."""


def usages(tables: Tables, unit: Unit, limit: int = 50, *, alone: bool = False) -> Usages:
    """Where `unit` is used: at most `limit` places, surest first, source before tests.

    A method counts together with those of bases and interfaces that it overrides, and with those
    that override it, for the object decides which of them runs; `alone`, without them.
    """
    if unit.kind in TEXT_KINDS or not unit.name:
        return Usages((), 0)
    # A constructor is called by the name of its class.
    of_class = unit.kind == "constructor" and unit.class_name
    name = last_word(unit.class_name) if of_class else unit.name
    tables = tables.around(unit.path)
    places = tables.references_named(name, CANDIDATES)
    around = Surroundings(tables, unit, name, places)
    found = _judged(unit, places, around)
    for one, owner in () if alone or not places else _related(tables, unit, around):
        most = THROUGH_BASE if owner else THROUGH_HEIR if is_abstract(unit) else HEIR_OF_CONCRETE
        near = Surroundings(tables, one, name, places, heirs=False)
        for place, site in _judged(one, places, near).items():
            sure, known = min(site.confidence, most), found.get(place)
            if _may_mean_other(place, owner) and not (known and known.confidence >= sure):
                found[place] = UsageSite(place, sure, one.qualified_name)
    sites = sorted(found.values(), key=_order)
    return Usages(tuple(sites[:limit]), len(sites))


def _related(tables: Tables, unit: Unit, around: Surroundings) -> list[tuple[Unit, Unit | None]]:
    """The methods that count together with `unit`, those of bases with their class."""
    heirs = [(one, None) for one in around.overriding[:MOST_RELATED]]
    return [*overridden(tables, unit)[:MOST_RELATED], *heirs]


def _judged(
    unit: Unit, places: Sequence[Reference], around: Surroundings
) -> dict[Reference, UsageSite]:
    """Those of `places` that are taken for a use of `unit`."""
    found = {}
    for place in places:
        confidence = _evidence(unit, place, around) if _speaks(unit, place) else NONE
        if confidence >= LEAST:
            found[place] = UsageSite(place, round(confidence, 2))
    return found


def _may_mean_other(place: Reference, owner: Unit | None) -> bool:
    """Whether a call of a related method may be one of the unit's: `super()` names its class, and
    `self` the class around it, of which only that of a base, `owner`, has other objects."""
    if place.receiver in SELF_NAMES - OWN_NAMES or place.receiver.startswith("super("):
        return False
    if place.receiver not in OWN_NAMES:
        return True
    at = (owner.start_line, owner.end_line) if owner and owner.path == place.path else (0, 0)
    return at[0] <= place.line <= at[1]


def _order(usage: UsageSite) -> tuple[float, int, int, str, int, int]:
    place = usage.reference
    return (
        -usage.confidence,
        place.kind == "import",
        ROLES.index(role_of(place.path)),
        place.path,
        place.line,
        place.column,
    )


def _evidence(unit: Unit, place: Reference, around: Surroundings) -> float:
    if place.target:
        if place.target == unit.id:
            return place.confidence
        return min(place.confidence, OVERLOADED) if place.target in around.siblings else NONE
    module, mark, known_class = place.module.rpartition(CLASS_MARK)
    if mark and known_class.isidentifier():
        return _of_class(unit, place, module, known_class, around)
    if place.module and language_name(place.path) in RESOLVED_LANGUAGES:
        if sure := _imported(unit, place, unit.path, around) or _passed_on(unit, place, around):
            return sure
        of_heir = _is_member(unit) and around.is_heir(split_address(place.module)[1])
        return SUBCLASS if of_heir else NONE  # the file says that another module's name is meant
    if place.kind == "import" and not place.module:
        return NONE
    return _received(unit, place, around) if place.receiver else _unqualified(unit, place, around)


def _imported(unit: Unit, place: Reference, path: str, around: Surroundings) -> float:
    """Evidence that the place's import leads to `path`, and there to the unit."""
    owner = last_word(unit.class_name)
    head, tail = split_address(place.module)
    if owner and tail == owner and (sure := around.leads(place, head, path)):
        return sure if place.receiver in ("", owner) else min(sure, TYPED)
    sure = around.leads(place, place.module, path)
    if not sure or around.enclosed:
        return NONE
    if not _is_member(unit) or tail == owner or last_word(place.receiver) == owner:
        return sure
    # Without a receiver it is a function of that module, not a member of its class.
    whole = place.receiver and language_name(place.path) in WHOLE_SPECIFIERS
    return min(sure, ITS_MODULE) if whole else NONE


def _passed_on(unit: Unit, place: Reference, around: Surroundings) -> float:
    """Evidence through one file that imports the definition and is itself imported."""
    others = (one for one in around.exporters if one != place.path)
    found = (_imported(unit, place, exporter, around) for exporter in others)
    return min(next(filter(None, found), NONE), RE_EXPORTED)


def _of_class(
    unit: Unit, place: Reference, module: str, known_class: str, around: Surroundings
) -> float:
    """Evidence from a receiver whose class is known by name."""
    owner = last_word(unit.class_name)
    if not _is_member(unit):
        return NONE
    spread = known_class == owner and unit.language in SPREAD_LANGUAGES
    if place.receiver in SELF_NAMES and not spread:
        return _received(unit, place, around)
    if known_class != owner:
        if around.is_heir(known_class):
            return SUBCLASS
        return NONE if known_class in around.rival_owners else OTHER_CLASS
    if not module:
        near = PurePosixPath(place.path).parent == PurePosixPath(unit.path).parent
        return TYPED if near or owner not in around.rival_owners else ONE_OF_MANY
    leads = any(around.leads(place, module, path) for path in (unit.path, *around.exporters))
    return TYPED if leads else NONE


def _received(unit: Unit, place: Reference, around: Surroundings) -> float:
    if place.receiver in SELF_NAMES or place.receiver.startswith("super("):
        inherited = around.is_in_heir(place, of_base=place.receiver not in OWN_NAMES)
        return SUBCLASS if inherited else NONE  # another class's own member
    if not unit.class_name:
        return _by_name(unit, around, 0.5)
    rivals = (_likeness(place.receiver, one) for one in around.rival_owners)
    if _likeness(place.receiver, last_word(unit.class_name)) > max(rivals, default=0):
        return RECEIVER_NAME
    return _by_name(unit, around, 1.0)


def _unqualified(unit: Unit, place: Reference, around: Surroundings) -> float:
    if _is_member(unit):
        return SUBCLASS if around.is_in_heir(place) else BARE_METHOD / around.rivals
    same_folder = PurePosixPath(place.path).parent == PurePosixPath(unit.path).parent
    if same_folder and unit.language in PACKAGE_LANGUAGES:
        return SAME_PACKAGE
    for edge in around.imports(place.path):
        if edge.name == edge.module and around.leads(place, edge.module, unit.path):
            return WILDCARD
    needs_import = language_name(place.path) in RESOLVED_LANGUAGES
    return _by_name(unit, around, 0.5 if needs_import else 1.0)


def _by_name(unit: Unit, around: Surroundings, factor: float) -> float:
    if around.rivals > 1:
        return factor * ONE_OF_MANY / around.rivals
    short = len(unit.name) < SHORT_NAME or (unit.name.islower() and len(unit.name) <= 6)
    return factor * (ONLY_ONE_SHORT if short else ONLY_ONE)


def _speaks(unit: Unit, place: Reference) -> bool:
    """The place's language could mean the unit, and its kind fits what the unit is."""
    if unit.kind in METHOD_KINDS and place.kind == "inherits":
        return False
    if unit.kind == "constructor" and place.kind != "call":
        return False
    return related(language_name(place.path), unit.language)


def _is_member(unit: Unit) -> bool:
    """Whether it is reached through its class or an object of it."""
    return unit.kind in METHOD_KINDS and bool(unit.class_name) and unit.kind != "constructor"


@lru_cache(maxsize=65_536)  # of one receiver and all classes with such a member, at many places
def _likeness(receiver: str, owner: str) -> int:
    """2 for a receiver with the name of a class, 1 for one like it (`test_client`), else 0."""
    word = _LAST_WORD.search(receiver.removesuffix("()"))
    called, owner = name_key(word.group(1)) if word else "", name_key(owner)
    if called in (owner, owner + "s"):
        return 2 if called else 0
    alike = owner.endswith(called) or (owner and called.endswith(owner))
    return 1 if alike and len(called) >= 3 else 0
