"""What a file imports, where it calls, uses or inherits a name, and what it alone decides of that.

Confidence of a target, from what the file shows; a name that merely looks alike gets none:

- 1.0 a definition inside the function that the place stands in;
- 0.95 a definition at the top level of the file, a member of the enclosing class through
  its receiver, a member through the name of a class of this file (a parameter or an
  override in a subclass could still come before it);
- 0.9 a member of a base class in this file;
- 0.85 a member of the class that the receiver's variable was given in this function;
- at most 0.8 where the file defines the name several times (overloads, platform variants);
- at most 0.5 where a bare word, passed as a value, is named as a member of the enclosing
  class: as often a parameter of that name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from codeqa.languages import Language
from codeqa.parsing.definitions import Definition, clean_name
from codeqa.parsing.source import CONSTANT, FILE, NAMESPACE, SCOPE, Source
from codeqa.text.tokens import last_word
from codeqa.types import METHOD_KINDS, Reference

if TYPE_CHECKING:
    import tree_sitter

    from codeqa.parsing.definitions import Captures

WILDCARD = "*"
_PLACES = ("import.name", "import.path", "import.wildcard", "import.module", "import.alias")
"""Captures, of which the first that is there says where an import stands."""

ENCLOSED, SAME_FILE, INHERITED, TYPED, OVERLOADED = 1.0, 0.95, 0.9, 0.85, 0.8
BARE_MEMBER = 0.5

MAX_BASES = 100
"""Base classes that are looked through for one inherited name; a chain of thousands is made up
to take time."""

CLASS_MARK = "#"
"""Before the class of a receiver, in `module`, where the address alone does not name it:
`./http#Client`, or `#Client` for a class that the file neither defines nor imports."""

MAX_RECEIVER = 80
"""Bytes of a receiver that are kept; longer ones are expressions, written `…`."""

FoundName = tuple[int, int, "tree_sitter.Node | None", str]
"""Rank, end offset, receiver node and kind of a reference, by its start offset."""

TypedName = tuple["tree_sitter.Node", "tree_sitter.Node", bool]
"""A variable, its type, and whether it belongs to the class around it, by its start offset."""

_TYPE_PARAMETER = re.compile(r"[A-Z]{1,2}[0-9]?")
"""`T`, `K2`, `TT`: unless the file defines or imports it, a parameter of a type."""

_ADDRESS_QUOTES = "\"'`<>"
_NAME_QUOTES = ("`", '"', "[")
"""What a quoted identifier begins with (SQL, Kotlin, Swift)."""

_BASES = frozenset({"super", "super()", "base", "parent"})
"""Receivers among `self_names` that mean what the class inherits."""


class Import(NamedTuple):
    """One imported name: `name` of `module`, known here as `local`."""

    offset: int
    """Byte offset of the name, or of the module when the whole module is imported."""
    module: str
    name: str
    """'' for the module itself, `*` for everything in it."""
    local: str


def find_imports(source: Source, matches: Iterable[Captures]) -> Iterator[Import]:
    """Every import of the matches with the modules of the groups around it, in source order."""
    separator = source.language.import_separator
    groups: list[tuple[int, int, str]] = []
    found: dict[int, tuple[int, str, str, str]] = {}
    for captures in matches:
        text = {
            key: source.text_of(nodes[0])
            for key, nodes in captures.items()
            if key not in ("import", "import.group")
        }
        if len(modules := captures.get("import.module", ())) > 1:  # Scala: one node per word
            text["import.module"] = separator.join(map(source.text_of, modules))
        module = "".join(text.get("import.module", "").split()).strip(_ADDRESS_QUOTES)
        if group := captures.get("import.group"):
            groups.append((group[0].start_byte, group[0].end_byte, module))
            continue
        name = text.get("import.name", "").strip(_ADDRESS_QUOTES)
        alias = text.get("import.alias", "")
        if path := "".join(text.get("import.path", "").split()):
            module, _, name = path.rpartition(separator or ".")
        if "import.wildcard" in captures:
            name = WILDCARD
        node = next((captures[key][0] for key in _PLACES if key in captures), None)
        if node is None or not (module or name):
            continue
        start = node.start_byte
        if "import.path" in captures and name:
            start = node.end_byte - len(name.encode())
        known = found.get(start)
        if known is None or (alias and not known[3]) or (name and not known[2]):
            found[start] = (start, module, name, alias)
    waiting = deque(sorted(groups))
    around: list[tuple[int, str]] = []
    """End and prefix of the groups that are open, outer before inner."""
    for start, module, name, alias in sorted(found.values()):
        while waiting and waiting[0][0] <= start:
            around.append(waiting.popleft()[1:])
        around = [one for one in around if one[0] > start]
        parts = [prefix for _, prefix in around]
        if name in ("self", "this") and parts and not module:  # Rust: `use a::{self}`
            module, _, name = separator.join(parts).rpartition(separator)
        else:
            module = separator.join([*parts, module] if module else parts) or module
        local = alias or name or _last_word(module, separator)
        yield Import(start, module, name, local)


class Resolver:
    """What one file knows about its own names, and about those that it imports."""

    def __init__(
        self,
        language: Language,
        imports: Sequence[Import],
        definitions: Sequence[Definition],
        top: Mapping[str, list[Definition]],
    ) -> None:
        self.language = language
        self.top = top
        """The definitions of the top level, by name."""
        self.names = {definition.name for definition in definitions}
        self.owned: dict[str, dict[str, list[Definition]]] = {}
        """The members of each owner, by name, wherever in the file they stand."""
        for definition in definitions:
            if definition.class_name and not definition.is_scope:
                members = self.owned.setdefault(definition.class_name, {})
                members.setdefault(definition.name, []).append(definition)
        self.bound: dict[str, tuple[str, str]] = {}
        """Name that an import binds → module and original name, or ''."""
        self.roots: set[str] = set()
        """What modules begin with that are written out: `a` after `import a.b`."""
        join = language.import_separator
        for imported in imports:
            if imported.name == WILDCARD or imported.local == "_":
                continue
            if imported.local:
                self.bound[imported.local] = (imported.module, imported.name)
            else:
                # Where modules are addresses (`require("../")`) there are no parts, only the whole.
                self.roots.add(imported.module.split(join, 1)[0] if join else imported.module)
        self.bases: dict[str, list[str]] = {}
        """Class → what it inherits, as far as the file has been read."""
        self.types: dict[tuple[int | str, str], str] = {}
        """Function or class (`_type_key`) and variable in it → its type, likewise."""
        self.place = 0
        """Offset of the name that is looked at."""

    def owner_id(self, scope: Definition | None) -> str:
        """Return the id of the class that a scope extends (`impl X` of `struct X`), or ''."""
        if scope is not None and scope.kind == SCOPE:
            for found in self.top.get(scope.inner_name, ()):
                if found.kind not in METHOD_KINDS:
                    return found.id
        return ""

    def bare(
        self, name: str, scope: Definition | None, kind: str = ""
    ) -> tuple[str, str, Definition | None, float]:
        """(original name, module, target, confidence) of a name without a receiver."""
        known = name in self.names
        around, inside = scope, True
        own = BARE_MEMBER if kind == "value" else SAME_FILE
        while known and around is not None:
            if around.kind in METHOD_KINDS:
                if found := _suited(around.members.get(name), kind):
                    return (name, "", *self._pick(self._seen(found), ENCLOSED))
                if around.owner and self.language.implicit_self:  # C++: `void Foo::bar() {…}`
                    members = self.owned.get(around.class_name, {})
                    if found := _suited(members.get(name), kind):
                        return (name, "", *self._pick(found, own))
                inside = False
            elif inside or self.language.implicit_self or around.kind in ("module", NAMESPACE):
                members = self.owned.get(around.inner_name) or around.members
                if found := _suited(members.get(name) or around.members.get(name), kind):
                    sure = around.kind in ("module", NAMESPACE) or inside
                    return (name, "", *self._pick(found, SAME_FILE if sure else own))
            around = around.parent
        if bound := self.bound.get(name):
            return (bound[1] or name, bound[0], None, 0.0)
        if known:
            if found := _suited(self.top.get(name), kind):
                return (name, "", *self._pick(self._seen(found), SAME_FILE))
            if self.language.implicit_self and (owner := _owner_of(scope)):
                return (name, "", *self._inherited(owner, name))
        return (name, "", None, 0.0)

    def member(
        self, name: str, receiver: str, scope: Definition | None
    ) -> tuple[str, Definition | None, float]:
        """(module, target, confidence) of a name after a receiver."""
        if receiver in self.language.self_names or _is_self(receiver, scope):
            owner = _owner_of(scope)
            found = self.owned.get(owner, {}).get(name) if receiver not in _BASES else None
            if not owner:
                return ("", None, 0.0)
            if found:
                return ("", *self._pick(found, SAME_FILE))
            target, confidence = self._inherited(owner, name)
            if target is not None or receiver in _BASES:
                return ("", target, confidence)
            return (CLASS_MARK + last_word(owner), None, 0.0)
        if name in self.names and (found := self.owned.get(receiver, {}).get(name)):
            return ("", *self._pick(found, SAME_FILE))
        if type_name := self._type_of(receiver, scope):
            if found := self.owned.get(type_name, {}).get(name):
                return ("", *self._pick(found, TYPED))
            return (self._place_of(type_name), None, 0.0)
        return (self._address(receiver), None, 0.0)

    def _place_of(self, type_name: str) -> str:
        """Return where a receiver's class comes from, so that other files can tell it."""
        module = self._address(type_name)
        if module and self.language.import_separator:
            return module
        return f"{module}{CLASS_MARK}{last_word(type_name)}"

    def _type_of(self, receiver: str, scope: Definition | None) -> str:
        types = self.types
        root, _, rest = receiver.partition(".")
        if rest:
            if root in self.language.self_names or _is_self(root, scope):
                return types.get((_owner_of(scope), rest), "")
            return ""
        while scope is not None:
            if found := types.get((_type_key(scope), receiver)):
                return found
            scope = scope.parent
        return types.get(("", receiver), "")

    def _inherited(self, owner: str, name: str) -> tuple[Definition | None, float]:
        if name not in self.names:
            return (None, 0.0)
        waiting, seen = deque(self.bases.get(owner, ())), {owner}
        while waiting and len(seen) <= MAX_BASES:
            base = waiting.popleft()
            if base in seen:
                continue
            seen.add(base)
            if found := self.owned.get(base, {}).get(name):
                return self._pick(found, INHERITED)
            waiting.extend(self.bases.get(base, ()))
        return (None, 0.0)

    def _seen(self, found: list[Definition]) -> list[Definition]:
        """Of what is bound to one name in several blocks, the last before the place."""
        if len(found) > 1 and all(one.kind in ("lambda", "class") for one in found):
            return [one for one in found if one.start <= self.place][-1:] or found
        return found

    def _pick(self, found: list[Definition], confidence: float) -> tuple[Definition, float]:
        if len(found) > 1:  # a declaration gives way to what has a body
            found = [one for one in found if one.body >= 0] or found
        if len(found) == 1:
            return found[0], confidence
        chosen = found[-1] if self.language.last_definition_wins else found[0]
        return chosen, min(confidence, OVERLOADED)

    def _address(self, receiver: str) -> str:
        """Return the imported address that a receiver stands for, or ''.

        `np.linalg` after `import numpy as np` is `numpy.linalg`; `Client` after
        `from a import Client` is `a.Client`.
        """
        separator = self.language.import_separator or "."
        root, _, rest = receiver.partition(separator)
        bound = self.bound.get(root)
        if bound is None:
            return receiver if root in self.roots else ""
        module, name = bound
        if not self.language.import_separator:
            return module
        if name:
            return f"{module}{self.language.import_separator}{name}" if module else name
        return f"{module}{self.language.import_separator}{rest}" if rest else module


# One walk over the names in source order: every step needs the scopes and types seen so far.
def references(
    source: Source,
    found: dict[int, FoundName],
    variables: dict[int, TypedName],
    definitions: list[Definition],
    top: Mapping[str, list[Definition]],
    imports: list[Import],
    unit_at: dict[int, str],
) -> list[Reference]:
    """All references of the file in source order.

    `definitions` are outer before inner, `top` those of the top level by name; `unit_at` gives the
    id of the unit that holds a line outside every definition.
    """
    resolver = Resolver(source.language, imports, definitions, top)
    for definition in definitions:
        if definition.kind == SCOPE:  # `impl X`, `new X() {…}`: X is mentioned
            continue
        found.pop(definition.name_start, None)
        if definition.is_scope:  # `namespace a.b.c` mentions nothing
            for offset in range(definition.name_start, definition.name_end):
                found.pop(offset, None)
    for imported in imports:
        found.pop(imported.offset, None)
    by_offset = {imported.offset: imported for imported in imports}
    meaning = {*resolver.bound, *resolver.names}  # what this file alone can decide
    result: list[Reference] = []
    stack: list[Definition] = []
    around = [one for one in definitions if one.kind != CONSTANT]  # which nothing else lies in
    following = iter(sorted(around, key=lambda d: (d.lead, -d.end)))
    upcoming = next(following, None)
    target: Definition | None
    for start in sorted({*found, *variables, *by_offset}):
        while upcoming is not None and upcoming.lead <= start:
            while stack and stack[-1].end <= upcoming.lead:
                stack.pop()
            stack.append(upcoming)
            upcoming = next(following, None)
        while stack and stack[-1].end <= start:
            stack.pop()
        scope = stack[-1] if stack else None
        resolver.place = start
        if start in variables:
            variable, held, member = variables[start]
            place = _owner_of(scope) if member else _type_key(scope)
            resolver.types[place, source.text_of(variable)] = source.text_of(held)
        receiver, module, target, confidence, quoted = "", "", None, 0.0, False
        if start in found:
            _, end, receiver_node, kind = found[start]
            name = source.slice(start, end)
            if quoted := name[:1] in _NAME_QUOTES:
                name = clean_name(name)
            if receiver_node is not None:
                first, last = receiver_node.start_byte, receiver_node.end_byte
                receiver = source.slice(first, last) if last - first <= MAX_RECEIVER else "\n"
                if "\n" in receiver:
                    receiver = "…"
                else:
                    module, target, confidence = resolver.member(name, receiver, scope)
            else:
                if kind == "inherits" and scope is not None:
                    resolver.bases.setdefault(scope.inner_name, []).append(name)
                if name in meaning:
                    name, module, target, confidence = resolver.bare(name, scope, kind)
            if target is None and (
                (kind == "value" and module[:1] in ("", CLASS_MARK))
                or (not module and name in source.language.builtins and receiver_node is None)
                or (kind == "type" and not module and _TYPE_PARAMETER.fullmatch(name))
            ):
                continue
            kind = "use" if kind in ("type", "value") else kind
        elif start in by_offset:
            imported = by_offset[start]
            module, kind = imported.module, "import"
            name = module if imported.name in ("", WILDCARD) else imported.name
        else:
            continue
        line = source.line_of(start)
        column = len(source.slice(source.line_starts[line - 1], start)) + 1 + quoted
        unit = scope.unit if scope is not None else None
        unit_id = unit.id if unit is not None else unit_at.get(line) or resolver.owner_id(scope)
        target_id = target.id if target is not None else ""
        result.append(Reference(
            source.path, line, column, name, kind, unit_id, receiver, module, target_id, confidence
        ))  # fmt: skip
    return result


def _suited(found: list[Definition] | None, kind: str) -> list[Definition]:
    """Candidates that a bare name may mean: no function is a type, no constructor a value."""
    if not found or kind == "call":
        return found or []
    if kind == "value":
        return [one for one in found if one.kind != "constructor"]
    return [one for one in found if one.kind not in METHOD_KINDS or kind == "use"]


def _is_self(receiver: str, scope: Definition | None) -> bool:
    while scope is not None:
        if scope.self_name:
            return scope.self_name == receiver
        scope = scope.parent
    return False


def _owner_of(scope: Definition | None) -> str:
    """Return the name of the class around a place, as its members have it; '' for none."""
    while scope is not None:
        if scope.kind in METHOD_KINDS and scope.class_name:
            return scope.class_name
        if scope.kind not in METHOD_KINDS and scope.kind not in (NAMESPACE, FILE):
            return scope.inner_name
        scope = scope.parent
    return ""


def _type_key(scope: Definition | None) -> int | str:
    """Say where a variable lives: the function's offset, the class's name, '' for the file."""
    if scope is None:
        return ""
    return scope.start if scope.kind in METHOD_KINDS else scope.inner_name


def _last_word(module: str, separator: str) -> str:
    """Return the word by which a module is known when nothing else names it.

    '' for a module of several words in a language that writes them all (`import a.b`).
    """
    if separator:
        return "" if separator in module else module
    parts = [part for part in module.split("/") if part]
    if len(parts) > 1 and parts[-1][0] == "v" and parts[-1][1:].isdigit():  # Go: …/jwt/v5
        parts.pop()
    return parts[-1].split(".", 1)[0] if parts else module
