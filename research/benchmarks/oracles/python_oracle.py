"""What Python's `ast` and `symtable` say is defined and called: `python_oracle.py FOLDER`.

Reads paths from the standard input and writes JSON lines, as told in `oracles.py` one folder up. A
call is decided where the language leaves one answer: names by symtable's scopes, imports followed
through the folder, members of classes along their bases, variables that are given one object,
annotated parameters. All else is undecided, and a subclass may still override what is called.
"""

from __future__ import annotations

import ast
import json
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
DEPTH = 12
"""Imports and variables that are followed for one name."""


@dataclass(eq=False)
class Scope:
    """A module, class or function, and what its names are bound to."""

    path: str
    node: Any
    table: Any = None
    outer: Scope | None = None
    bound: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)
    """Name → (def, import, value, annotation or other; the node)."""
    inner: dict[int, Scope] = field(default_factory=dict)
    """Id of the node of a definition → its scope."""
    made: bool = False
    """Stands for an object of the class."""

    def qualified(self) -> str:
        above = self.outer.qualified() if self.outer else ""
        return f"{above}.{self.node.name}".lstrip(".") if self.outer else ""

    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef) and not self.made

    def object(self) -> Scope:
        return Scope(self.path, self.node, self.table, self.outer, self.bound, self.inner, True)


OUTSIDE = Scope("", None)
modules: dict[str, Scope] = {}


def meaning(node: ast.AST, scope: Scope, depth: int) -> Scope | None:
    """What an expression in `scope` means, None where that is not certain."""
    if depth < 0:
        return None
    if isinstance(node, ast.Constant):
        return OUTSIDE
    if isinstance(node, ast.Name):
        return named(node.id, scope, depth - 1)
    if isinstance(node, ast.Call):
        called = meaning(node.func, scope, depth - 1)
        return called.object() if called and called.is_class() else None
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()":
        around = method_around(scope)
        return member(around[0], node.attr, depth - 1, above=True) if around else None
    held = meaning(node.value, scope, depth - 1)
    if held is None or held is OUTSIDE:
        return held
    if isinstance(held.node, ast.Module):
        return exported(held, node.attr, depth - 1)
    return member(held, node.attr, depth - 1) if isinstance(held.node, ast.ClassDef) else None


def named(name: str, scope: Scope, depth: int) -> Scope | None:
    at: Scope | None = scope
    while at is not None and at.outer is not None:
        symbol = at.table.lookup(name) if name in at.table.get_identifiers() else None
        if symbol is not None and symbol.is_global():
            break
        if symbol is not None and symbol.is_local():
            return binding(at, name, depth)
        at = at.outer
        while at is not None and isinstance(at.node, ast.ClassDef):
            at = at.outer  # the names of a class are not seen in its methods
    module = modules[scope.path]
    if name in module.bound:
        return binding(module, name, depth)
    return None if "*" in module.bound else OUTSIDE  # a builtin


def binding(scope: Scope, name: str, depth: int) -> Scope | None:
    found = scope.bound.get(name, [])
    around = method_around(scope)
    if around and name == around[1] and not found:
        return around[0].object()
    if found and all(kind == "def" for kind, _ in found):
        return scope.inner[id(found[-1][1])]
    if len(found) != 1:
        return None
    kind, node = found[0]
    if kind == "import":
        return imported(scope, node, name, depth)
    if kind == "value":
        return meaning(node, scope, depth)
    meant = meaning(node, scope.outer or scope, depth) if kind == "annotation" else None
    return meant.object() if meant and meant.is_class() else None


def imported(scope: Scope, node: Any, name: str, depth: int) -> Scope | None:
    if isinstance(node, ast.Import):
        whole = next((alias.name for alias in node.names if alias.asname == name), name)
        return module_at(scope.path, whole, 0)
    held = module_at(scope.path, node.module or "", node.level)
    original = next((a.name for a in node.names if (a.asname or a.name) == name), name)
    return held if held is None or held is OUTSIDE else exported(held, original, depth - 1)


def module_at(path: str, address: str, level: int) -> Scope | None:
    """The file of a module; absolute ones are looked for from every folder around."""
    words = [word for word in address.split(".") if word]
    folder = PurePosixPath(path).parent
    if level:
        return file_of(folder.parents[level - 2] if level > 1 else folder, words)
    for base in (PurePosixPath(), PurePosixPath("src"), folder, *folder.parents):
        if (found := file_of(base, words)) is not None:
            return found
    known = {part.removesuffix(".py") for one in modules for part in PurePosixPath(one).parts}
    return None if words and words[0] in known else OUTSIDE


def file_of(base: PurePosixPath, words: list[str]) -> Scope | None:
    address = base.joinpath(*words)
    return modules.get(str(address / "__init__.py")) or modules.get(f"{address}.py")


def exported(module: Scope, name: str, depth: int) -> Scope | None:
    if depth < 0 or ("__getattr__" in module.bound and name not in module.bound):
        return None
    if name in module.bound:
        return binding(module, name, depth)
    if module.path.endswith("__init__.py"):
        return file_of(PurePosixPath(module.path).parent, [name])
    return None


def member(owner: Scope, name: str, depth: int, *, above: bool = False) -> Scope | None:
    """A member of a class, or of the first of its bases that has it."""
    for one in ancestors(owner, depth)[above:]:
        if one is None or one is OUTSIDE:
            return None  # a class that is not known may have it
        if name in one.bound:
            return binding(one, name, depth) if one.bound[name][0][0] == "def" else None
    return None


def ancestors(owner: Scope, depth: int) -> list[Scope | None]:
    """The class and its bases, depth first; None where one is not known, or inherited twice."""
    result: list[Scope | None] = [owner]
    for base in owner.node.bases if depth > 0 else [None]:
        node = base.value if isinstance(base, ast.Subscript) else base
        found = meaning(node, owner.outer or owner, depth - 1) if node else None
        if isinstance(node, ast.Name) and node.id in ("object", "Generic", "Protocol"):
            continue
        result += ancestors(found, depth - 1) if found and found.is_class() else [None]
    return result if len({*result}) == len(result) else [owner, None]


def fill(scope: Scope) -> None:
    """Bind the names of `scope` and make the scopes inside."""
    tables = {(one.get_name(), one.get_lineno()): one for one in tables_in(scope.table)}

    def bind(name: str, kind: str, node: Any, where: Scope = scope) -> None:
        where.bound.setdefault(name, []).append((kind, node))

    if isinstance(scope.node, FUNCTIONS):
        given = scope.node.args
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if one.annotation is not None:
                bind(one.arg, "annotation", one.annotation)
    seen = set()
    for one in own_nodes(scope.node):
        if isinstance(one, DEFINITIONS):
            bind(one.name, "def", one)
            first = one.decorator_list[0].lineno if one.decorator_list else one.lineno
            table = tables.get((one.name, one.lineno)) or tables[one.name, first]
            scope.inner[id(one)] = Scope(scope.path, one, table, scope)
            fill(scope.inner[id(one)])
        elif isinstance(one, ast.Import | ast.ImportFrom):
            for alias in one.names:
                whole = isinstance(one, ast.Import) and not alias.asname
                name = alias.name.split(".")[0] if whole else alias.asname or alias.name
                bind(name, "import", one)
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            plain = isinstance(one, ast.Assign)
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                if isinstance(target, ast.Name):
                    seen.add(id(target))
                    kind, held = ("value", one.value) if plain else ("annotation", one.annotation)
                    bind(target.id, kind, held)
                elif (around := method_around(scope)) and isinstance(target, ast.Attribute):
                    bind(target.attr, "other", one, around[0])  # self.name = …
        elif isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            if id(one) not in seen:
                bind(one.id, "other", one)
        elif isinstance(one, ast.Global):
            for name in one.names:
                bind(name, "other", one, modules[scope.path])
        elif isinstance(one, ast.ExceptHandler) and one.name:
            bind(one.name, "other", one)


def tables_in(table: Any) -> Iterator[Any]:
    """Tables of the definitions directly inside, past lambdas and type parameters."""
    for child in table.get_children():
        yield child
        if str(child.get_type()) not in ("function", "class") or child.get_name() == "lambda":
            yield from tables_in(child)


def own_nodes(node: Any) -> Iterator[ast.AST]:
    """The nodes of a scope in the order of the text, without what is inside of other scopes."""
    waiting = list(reversed(node.body))
    while waiting:
        yield (one := waiting.pop())
        if not isinstance(one, DEFINITIONS):
            inside = [c for c in ast.iter_child_nodes(one) if not isinstance(c, ast.Lambda)]
            waiting.extend(reversed(inside))


def calls(module: Scope) -> Iterator[tuple[Scope, ast.Call, frozenset[str]]]:
    """Each call, the scope that it stands in, and names that a lambda or comprehension binds."""
    waiting: list[tuple[Any, Scope, frozenset[str]]] = [(module.node, module, frozenset())]
    while waiting:
        node, scope, shadowed = waiting.pop()
        if isinstance(node, ast.Call):
            yield scope, node, shadowed
        if isinstance(node, ast.Lambda):
            shadowed |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        elif hasattr(node, "generators"):
            targets = [one for part in node.generators for one in ast.walk(part.target)]
            shadowed |= {one.id for one in targets if isinstance(one, ast.Name)}
        body = {id(one) for one in node.body} if isinstance(node, DEFINITIONS) else ()
        for child in ast.iter_child_nodes(node):
            waiting.append((child, scope.inner[id(node)] if id(child) in body else scope, shadowed))


def method_around(scope: Scope) -> tuple[Scope, str] | None:
    """The class of the method that `scope` is, and how it calls its object."""
    node, outer = scope.node, scope.outer
    if not isinstance(node, FUNCTIONS) or outer is None or not outer.is_class():
        return None
    given = [*node.args.posonlyargs, *node.args.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    return (outer, given[0].arg) if given and not static else None


def put(kind: str, row: Any) -> None:
    print(json.dumps({kind: row}))


def tell_definitions(scope: Scope) -> None:
    for inner in scope.inner.values():
        node, group = inner.node, "class" if inner.is_class() else "function"
        put("definition", [inner.path, node.lineno, node.end_lineno, inner.qualified(), group])
        tell_definitions(inner)


def tell_calls(module: Scope) -> None:
    for scope, call, shadowed in calls(module):
        called = call.func
        if isinstance(called, ast.Name | ast.Attribute):
            name = called.id if isinstance(called, ast.Name) else called.attr
            names = {one.id for one in ast.walk(called) if isinstance(one, ast.Name)}
            found = None if shadowed & names else meaning(called, scope, DEPTH)
            place = [scope.path, called.end_lineno, name]
            if found is None or found.made or isinstance(found.node, ast.Module):
                put("call", [*place, None, 0])
            elif found is OUTSIDE or found.outer is None:
                put("call", [*place, "", 0])
            else:  # overloads are one definition
                for kind, one in found.outer.bound[found.node.name]:
                    if kind == "def":
                        put("call", [*place, found.path, one.lineno])


def main() -> None:
    for path in sys.stdin.read().split("\n"):
        try:
            text = Path(sys.argv[1], path).read_text("utf-8")
            modules[path] = Scope(path, ast.parse(text), symtable.symtable(text, path, "exec"))
        except (SyntaxError, ValueError):
            put("failed", path)
    for module in modules.values():
        fill(module)
    for module in modules.values():
        tell_definitions(module)
        tell_calls(module)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
