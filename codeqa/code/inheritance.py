"""Follow inheritance in both directions: bases, heirs, and the methods that override one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from codeqa.code.imports import import_evidence, split_address
from codeqa.code.names import (
    MOST_NAMED,
    TYPES,
    holder_name,
    language_name,
    related,
    same_named,
    types_called,
)
from codeqa.languages import language_called
from codeqa.parsing.references import CLASS_MARK
from codeqa.store import Tables
from codeqa.text.tokens import last_word, name_key
from codeqa.types import Reference, Unit

MAX_CLASSES_FOLLOWED = 30
"""Classes whose bases or heirs are looked up for one answer."""
_METHOD = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\])?\(")
"""The name in a method's declaration."""
_ABSTRACT = re.compile(r"\b(?:raise NotImplementedError|abstractmethod|abstract )\b")


def overridden(tables: Tables, unit: Unit) -> list[tuple[Unit, Unit]]:
    """Return the methods of bases and interfaces that the method `unit` overrides or implements.

    The nearest come first, each with its class.
    """
    if not _may_be_overridden(unit):
        return []
    types = [other for other in tables.in_file(unit.path) if other.kind in TYPES]
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
    """Return whether a method has no code of its own, or only code that says so."""
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
        types = tables.named(sorted({name_key(owner) for _, owner in owners}), MOST_NAMED)
        types = [base for base in types if (base.path, base.qualified_name) in owners]
        return [base for base in types if unit in with_all_methods(tables, base)]
    classes: list[Unit] = []
    for reference in tables.references(path=[unit.path]):
        if reference.kind == "inherits" and reference.unit_id == unit.id:
            classes += _base_named(tables, reference)
    return [base for base in classes if base.id != unit.id]


def members(tables: Tables, owner: Unit) -> list[Unit]:
    """Return the methods of a class in its file, but for constructors."""
    methods = [unit for unit in tables.in_file(owner.path) if unit.is_method]
    methods = [method for method in methods if method.kind != "constructor"]
    return [method for method in methods if holder_name(method) == owner.qualified_name]


def _base_named(tables: Tables, reference: Reference) -> list[Unit]:
    """Return the class that is named as a base, [] where that cannot be said."""
    if reference.target:
        return tables.by_ids([reference.target])
    language, module = language_name(reference.path), reference.module.partition(CLASS_MARK)[0]
    types = types_called(tables, reference.name)
    types = [unit for unit in types if related(unit.language, language)]
    if module:
        leads = partial(import_evidence, language, reference.path)
        head = split_address(module)[0]
        imports = [base for base in types if leads(module, base.path) or leads(head, base.path)]
        types = imports or types
    return types if len(types) == 1 else []


def _may_be_overridden(unit: Unit) -> bool:
    """Return whether it is a method of a class: no constructor, no function in a method."""
    if not unit.is_method or unit.kind == "constructor" or not unit.class_name:
        return False
    return holder_name(unit) == unit.class_name


def heirs_at(tables: Tables, references: Iterable[Reference]) -> list[tuple[Unit, str, int]]:
    """Return the types that say at `references` what they inherit, each with the file and line."""
    heirs, references = list[tuple[Unit, str, int]](), list(references)
    units = tables.by_ids([reference.unit_id for reference in references])
    around = {unit.id: unit for unit in units}
    for reference in references:
        if unit := around.get(reference.unit_id):
            heirs.append((_type_at(tables, reference, unit), reference.path, reference.line))
    return heirs


def _type_at(tables: Tables, reference: Reference, unit: Unit) -> Unit:
    """Return the type that inherits something at `reference`, which lies in `unit`.

    Some say it outside of the type, of several in one module: `impl Read for Buffer`.
    """
    form = language_called(unit.language).implemented_for
    if not form or unit.kind in TYPES:
        return unit
    lines = unit.source_code.split("\n")[reference.line - unit.start_line :]
    match = re.match(form, "\n".join(lines[:3]))
    if match is None:
        return unit
    name = last_word(match[1])
    elsewhere = replace(unit, id=f"{unit.id} {name}", qualified_name=name, kind="type")
    types = types_called(tables, name)
    types.sort(key=lambda owner: (owner.path != reference.path, owner.language != unit.language))
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
    types = [owner for owner in types if owner.kind in TYPES - {"interface"}]
    return [owner for owner in types if (_folder(owner), owner.qualified_name) in whole]


def _folder(unit: Unit) -> str:
    return unit.path.rpartition("/")[0]
