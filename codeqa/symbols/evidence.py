"""What speaks for a place that names a definition to mean that very definition.

The evidence of one place is a confidence from 0 to 1 and the reason in words. Each number
below is named after what it stands for; only their order is meant, they are no frequencies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from codeqa.languages import detect
from codeqa.parsing.references import CLASS_MARK
from codeqa.symbols.imports import NONE, RESOLVED_LANGUAGES, import_evidence
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, Reference, Unit

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
OTHER_CLASS = 0.15
"""On an object of another class without a member of that name: an interface, perhaps."""
BARE_METHOD = 0.15
"""A method's name without a receiver."""
ONE_OF_MANY = 0.5
"""Shared among the definitions of that name."""
LEAST = 0.05
"""Below this a place is not taken for a use."""
OVERLOADED = 0.8
"""The file decides for one of several definitions of that qualified name."""
SHORT_NAME = 5
WHOLE_SPECIFIERS = frozenset({"javascript", "typescript", "go"})
"""An import names a file or folder there, never the class in it."""
SPREAD_LANGUAGES = frozenset({"go", "rust", "csharp", "ruby", "swift", "kotlin", "cpp"})
"""A class may have members in several files."""
PACKAGE_LANGUAGES = frozenset({"go", "java", "kotlin", "scala", "csharp", "swift"})
SELF_NAMES = frozenset({"self", "this", "cls", "super", "super()", "Self", "base", "parent"})
FAMILIES = (
    frozenset({"javascript", "typescript"}),
    frozenset({"c", "cpp"}),
    frozenset({"java", "kotlin", "scala"}),
)
"""Languages that call each other's definitions by name."""
_LAST_WORD = re.compile(r"(\w+)\W*$")


@dataclass(frozen=True, slots=True)
class UsageSite:
    """One place, how sure it is that the definition is meant (0 to 1), and why."""

    reference: Reference
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the index says beside the places themselves."""

    rivals: int
    """Definitions of that name in languages that could be meant, this one included."""
    rival_owners: frozenset[str]
    """Names of the classes that have a member of that name, but for the unit's own class."""
    siblings: frozenset[str]
    """Ids of the other definitions of the unit's qualified name in its file (overloads)."""
    subclasses: frozenset[tuple[str, str]]
    """(path, qualified name) of classes that inherit from the owner, directly or not."""
    owners: dict[str, str]
    """Unit id → the class that this unit belongs to."""
    exporters: frozenset[str]
    """Files that import the definition (or its class) from its file, and so hand it on."""
    go_module: str
    imports: Callable[[str], list[Reference]]
    """The import edges of a file."""

    def is_heir(self, name: str) -> bool:
        """Whether a class called `name` inherits from the owner."""
        return any(name == last_word(heir) for _, heir in self.subclasses)

    def heir_around(self, place: Reference) -> str:
        """The class around `place` if it inherits from the owner, else ''."""
        owner = self.owners.get(place.unit_id, "")
        return owner if (place.path, owner) in self.subclasses else ""


def judge(unit: Unit, places: Sequence[Reference], around: Surroundings) -> list[UsageSite]:
    """The places of the unit's name that are uses of it, each with its evidence."""
    found = []
    for place in places:
        if not _speaks(unit, place):
            continue
        confidence, reason = _evidence(unit, place, around)
        if confidence >= LEAST:
            found.append(UsageSite(place, round(confidence, 2), reason))
    return found


def _evidence(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    if place.target:
        if place.target == unit.id:
            return place.confidence, "defined in the same file"
        if place.target in around.siblings:
            return min(place.confidence, OVERLOADED), "one of several definitions in its file"
        return NONE, ""
    module, mark, known_class = place.module.rpartition(CLASS_MARK)
    if mark and known_class.isidentifier():
        return _of_class(unit, place, module, known_class, around)
    if place.module and language_name(place.path) in RESOLVED_LANGUAGES:
        tail, owner = _split(place.module)[1], last_word(unit.class_name)
        if _is_member(unit) and tail != owner and around.is_heir(tail):
            reason = f"{place.receiver or place.name} is of type {tail}"
            return SUBCLASS, f"{reason}, which inherits from {owner}"
        # Otherwise the file says that another module's name is meant.
        return _imported(unit, place, unit.path, around) or _passed_on(unit, place, around)
    if place.kind == "import" and not place.module:
        return NONE, ""
    return _received(unit, place, around) if place.receiver else _unqualified(unit, place, around)


def _imported(
    unit: Unit, place: Reference, path: str, around: Surroundings
) -> tuple[float, str] | None:
    """Evidence that the place's import leads to `path`, and there to the unit."""
    language, owner = language_name(place.path), last_word(unit.class_name)

    def leads(module: str) -> float:
        return import_evidence(language, place.path, module, path, around.go_module)

    head, tail = _split(place.module)
    if owner and tail == owner and (sure := leads(head)):
        if place.receiver in ("", owner):
            return sure, f"imported from {head}"
        return min(sure, TYPED), f"{place.receiver} is of type {owner}, imported from {head}"
    sure = leads(place.module)
    if not sure:
        return None
    reason = f"imported from {place.module}"
    if not _is_member(unit) or tail == owner or last_word(place.receiver) == owner:
        return sure, reason
    if not place.receiver:
        return None  # a function of that module, not a member of its class
    if _alike(place.receiver, owner):
        return min(sure, TYPED), f"{place.receiver} is called like {owner} and {reason}"
    if language in WHOLE_SPECIFIERS:
        return min(sure, ITS_MODULE), f"{place.receiver} comes from {place.module}"
    return None


def _of_class(
    unit: Unit, place: Reference, module: str, known_class: str, around: Surroundings
) -> tuple[float, str]:
    """Evidence from a receiver whose class is known by name."""
    owner = last_word(unit.class_name)
    if not _is_member(unit):
        return NONE, ""
    itself = place.receiver in SELF_NAMES
    if itself and not (known_class == owner and unit.language in SPREAD_LANGUAGES):
        return _received(unit, place, around)
    reason = f"{place.receiver} is of type {known_class}"
    if known_class != owner:
        if around.is_heir(known_class):
            return SUBCLASS, f"{reason}, which inherits from {owner}"
        if known_class in around.rival_owners:
            return NONE, ""
        return OTHER_CLASS, f"{reason}, perhaps a supertype"
    if not module:
        near = PurePosixPath(place.path).parent == PurePosixPath(unit.path).parent
        return (TYPED if near or owner not in around.rival_owners else RECEIVER_NAME), reason
    language = language_name(place.path)
    for path in (unit.path, *around.exporters):
        if import_evidence(language, place.path, module, path, around.go_module):
            return TYPED, f"{reason}, imported from {module}"
    return NONE, ""


def _passed_on(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    """Evidence through one file that imports the definition and is itself imported."""
    for exporter in around.exporters:
        if exporter != place.path and (match := _imported(unit, place, exporter, around)):
            return min(match[0], RE_EXPORTED), f"{match[1]}, through {exporter}"
    return NONE, ""


def _received(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    if place.receiver in SELF_NAMES or place.receiver.startswith("super("):
        if heir := around.heir_around(place):
            return SUBCLASS, f"called in {heir}, which inherits from {last_word(unit.class_name)}"
        return NONE, ""  # another class's own member
    if not unit.class_name:
        return _by_name(unit, around, 0.5)
    owner = last_word(unit.class_name)
    if _alike(place.receiver, owner):
        return RECEIVER_NAME, f"{place.receiver} is called like {owner}"
    return _by_name(unit, around, 1.0)


def _unqualified(unit: Unit, place: Reference, around: Surroundings) -> tuple[float, str]:
    same_folder = PurePosixPath(place.path).parent == PurePosixPath(unit.path).parent
    if _is_member(unit):
        if heir := around.heir_around(place):
            return SUBCLASS, f"called in {heir}, which inherits from {last_word(unit.class_name)}"
        return BARE_METHOD / around.rivals, "only the name is the same, without a receiver"
    if same_folder and unit.language in PACKAGE_LANGUAGES:
        return SAME_PACKAGE, "in the same package"
    for edge in around.imports(place.path):
        if edge.name == edge.module and import_evidence(
            language_name(place.path), place.path, edge.module, unit.path, around.go_module
        ):
            return WILDCARD, f"everything of {edge.module} is imported"
    needs_import = language_name(place.path) in RESOLVED_LANGUAGES
    return _by_name(unit, around, 0.5 if needs_import else 1.0)


def _by_name(unit: Unit, around: Surroundings, factor: float) -> tuple[float, str]:
    if around.rivals == 1:
        short = len(unit.name) < SHORT_NAME or (unit.name.islower() and len(unit.name) <= 6)
        sure = ONLY_ONE_SHORT if short else ONLY_ONE
        return sure * factor, "the only definition of that name here"
    share = ONE_OF_MANY / around.rivals
    return share * factor, f"one of {around.rivals} definitions of that name"


def _speaks(unit: Unit, place: Reference) -> bool:
    """The place's language could mean the unit, and its kind fits what the unit is."""
    if unit.kind in METHOD_KINDS and place.kind == "inherits":
        return False
    if unit.kind == "constructor" and place.kind != "call":
        return False
    return related(language_name(place.path), unit.language)


def related(one: str, other: str) -> bool:
    return one == other or any(one in family and other in family for family in FAMILIES)


def language_name(path: str) -> str:
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
