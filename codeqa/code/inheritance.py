"""What inherits from what: bases and heirs of classes, and methods that override one another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from codeqa.code.imports import import_evidence, split_address
from codeqa.code.surroundings import MAX_CLASSES_FOLLOWED, language_name, related
from codeqa.parsing.references import CLASS_MARK
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import CLASS_KINDS, Reference, Unit

MOST_NAMED = 20_000
_TYPES = CLASS_KINDS - {"module"}
_METHOD = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\])?\(")
"""The name in a method's declaration."""
_ABSTRACT = re.compile(r"\b(?:raise NotImplementedError|abstractmethod|abstract )\b")
_IMPLEMENTED_FOR = re.compile(r"[^{;]*?\bfor\s+(?:&(?:'\w+\s+)?)?(?:mut\s+|dyn\s+)?([\w:]+)")


def overridden(tables: Tables, unit: Unit) -> list[tuple[Unit, Unit]]:
    """The methods of bases and interfaces that the method `unit` overrides or implements, the
    nearest first, each with its class."""
    if not _is_member(unit):
        return []
    waiting = [one for one in tables.in_file(unit.path) if _is_type(one, unit.class_name)]
    seen, found = {one.id for one in waiting}, list[tuple[Unit, Unit]]()
    for one in waiting:  # which grows
        for base in bases(tables, one, unit.name):
            if base.id not in seen and len(seen) < MAX_CLASSES_FOLLOWED:
                seen.add(base.id)
                waiting.append(base)
                found += [(method, base) for method in members(tables, base, unit.name)]
    return found


def overrides(tables: Tables, unit: Unit) -> list[Unit]:
    """The methods of heirs that override or implement the method `unit`."""
    if not _is_member(unit):
        return []
    named = tables.named([name_key(unit.name)], MOST_NAMED)
    rivals = [one for one in named if one.name == unit.name and _is_member(one)]
    above = (unit.path, unit.qualified_name)
    return [
        one
        for one in rivals[:MAX_CLASSES_FOLLOWED]
        if one.id != unit.id
        and related(one.language, unit.language)
        and above in [(base.path, base.qualified_name) for base, _ in overridden(tables, one)]
    ]


def is_abstract(unit: Unit) -> bool:
    """Whether a method has no code of its own, but what says so."""
    body = unit.source_code.removeprefix(unit.signature).strip(" ;\n")
    return unit.is_stub or not body or _ABSTRACT.search(unit.source_code) is not None


def bases(tables: Tables, unit: Unit, method: str = "") -> list[Unit]:
    """The classes and interfaces of this repository that the class `unit` names as its bases; in
    Go, where none says so, the interfaces with that `method` whose methods it all has."""
    if unit.language == "go" and method and unit.kind != "interface":
        named = tables.named([name_key(method)], MOST_NAMED)
        owners = {(one.path, one.class_name) for one in named if one.language == "go"}
        paths = {path for path, _ in owners}
        types = [one for path in sorted(paths) for one in tables.in_file(path)]
        types = [one for one in types if (one.path, one.qualified_name) in owners]
        return [one for one in types if unit in with_all_methods(tables, one)]
    places = tables.references_in(unit.path)
    inherited = [one for one in places if one.kind == "inherits" and one.unit_id == unit.id]
    return [one for place in inherited for one in _meant(tables, place) if one.id != unit.id]


def members(tables: Tables, owner: Unit, name: str) -> list[Unit]:
    """The methods called `name` of a class, in its file."""
    held = tables.in_file(owner.path)
    return [
        one
        for one in held
        if one.name == name and one.class_name == owner.qualified_name and _is_member(one)
    ]


def _meant(tables: Tables, place: Reference) -> list[Unit]:
    """The class that is named as a base, [] where that cannot be said."""
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


def _is_member(unit: Unit) -> bool:
    """Whether it is a method of a class: no constructor, and no function inside of a method."""
    holder = unit.qualified_name.removesuffix(unit.name).rstrip(".:")
    named = unit.is_method and unit.kind != "constructor" and unit.class_name != ""
    return named and holder == unit.class_name


def _is_type(unit: Unit, name: str) -> bool:
    return unit.kind in _TYPES and unit.qualified_name == name


def types_called(tables: Tables, name: str) -> list[Unit]:
    named = tables.named([name_key(name)], MOST_NAMED)
    return [unit for unit in named if unit.name == name and unit.kind in _TYPES]


def heirs_at(tables: Tables, places: Iterable[Reference]) -> list[tuple[Unit, str, int]]:
    """The types that say at `places` what they inherit or implement, each with the file and line.
    Rust says it outside of the type, of several in one module: `impl Read for Buffer`."""
    found, places = list[tuple[Unit, str, int]](), list(places)
    ids = dict.fromkeys(place.unit_id for place in places if place.unit_id)
    around = {unit.id: unit for unit in tables.by_ids(list(ids))}
    for place in (one for one in places if one.unit_id in around):
        one = around[place.unit_id]
        code = "\n".join(one.source_code.split("\n")[place.line - one.start_line :][:3])
        outside = one.language == "rust" and one.kind not in _TYPES
        meant = _IMPLEMENTED_FOR.match(code) if outside else None
        if meant:
            name = last_word(meant[1])
            types = types_called(tables, name)
            types.sort(key=lambda unit: (unit.path != place.path, unit.language != one.language))
            elsewhere = replace(one, id=f"{one.id} {name}", qualified_name=name, kind="type")
            one = types[0] if types else elsewhere
        found.append((one, place.path, place.line))
    return found


def with_all_methods(tables: Tables, unit: Unit) -> list[Unit]:
    """The types that have every method of the Go interface `unit`: none says that it implements
    one."""
    names = {found[1] for one in unit.method_declarations if (found := _METHOD.search(one))}
    if unit.language != "go" or unit.kind != "interface" or not names:
        return []
    having = Counter(
        {
            (one.path.rpartition("/")[0], one.class_name, one.name)
            for one in tables.named([name_key(name) for name in names], MOST_NAMED)
            if one.name in names and one.language == "go" and one.is_method
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
