"""Find what a file imports, and where it calls, uses or inherits a name, and resolve these names.

Confidence of a target within the file; a name that merely looks alike gets none:

- 1.0 a definition inside the function around the place;
- 0.95 a definition at the top level of the file, a member of the enclosing class through
  its receiver, a member through the name of a class of this file (a parameter or an
  override in a subclass could still come before it);
- 0.9 a member of a base class in this file;
- 0.85 a member of the class that the receiver's variable was given in this function;
- at most 0.8 where the file defines the name several times (overloads, platform variants);
- at most 0.5 where a bare word, passed as a value, has the name of a member of the enclosing
  class: it is as often a parameter.
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
"""Captures that say where an import is; the first one present counts."""

ENCLOSED, SAME_FILE, INHERITED, TYPED, OVERLOADED = 1.0, 0.95, 0.9, 0.85, 0.8
BARE_MEMBER = 0.5

MAX_BASES = 100
"""Base classes that are searched for one inherited name; a chain of thousands is an attack."""

CLASS_MARK = "#"
"""Before the class of a receiver, in `module`, where the address alone does not name it:
`./http#Client`, or `#Client` for a class that the file neither defines nor imports."""

MAX_RECEIVER = 80
"""Bytes of a receiver that are kept; longer ones are expressions, written `…`."""

FoundName = tuple[int, int, "tree_sitter.Node | None", str]
"""Rank, end offset, receiver node and kind of a reference, by its start offset."""

TypedName = tuple["tree_sitter.Node", "tree_sitter.Node", bool, bool]
"""A variable, its type, whether it belongs to the class around it, and whether instead of the type
another variable is given, by its start offset."""

_TYPE_PARAMETER = re.compile(r"[A-Z]{1,2}[0-9]?")
"""`T`, `K2`, `TT`: unless the file defines or imports it, a parameter of a type."""

_DECLARED = re.compile(r"[*&\s]*(\w+)\s*[=({\[]|[*&\s]+(\w+)")
"""A variable with what C++ writes around it: `*a`, `& a`, `a(1)`."""

_WRITTEN_TYPE = re.compile(
    r"""[*&?"']*(?:'\w+\ )?(?:(?:const|mut|dyn|impl)\s+)*(?:::|\\)?(?:\w+(?:<[^<>]*>)?::)*
    (?:(?:(?:\w+[.])*(?:\w*(?:[pP]tr|Pointer|[oO]ptional)|Annotated|Arc|Box|ClassVar|Final|Rc)|\w+(?=<dyn\s))
       [<\[]\s*["']?(?:(?:const|dyn)\s+)?(?:::)?(?:\w+::)*(?P<held>(?:\w+[.])*\w+)\b.*
    |(?!(?:Union|Literal|[tT]ype)\[)(?P<name>(?:\w+[.\\])*\w+)
      \s*(?:(?:::)?<.*>|\[\w.*\])?[?*&"'\s]*(?:\|\s*None["']?)?)""",
    re.DOTALL | re.VERBOSE,
)
"""A type as it is written: what `std::unique_ptr<A>` or `Optional[A]` holds, else its name."""

_MADE = re.compile(r"\(?(?:new ([\w.]+)|((?:\w+[.])*[A-Z]\w*))\((?:[^()]|\([^()]*\))*\)\)?")
"""A receiver that is made there: `new Client(url)`, `Client(url)`."""

_LAST_STRING = re.compile(r"""(?:["'}]|\$\w+)([^"'{}$]+)["']\)*\Z""")
"""The last string of an address: `__DIR__.'/file.php'`, `"$folder/file.php"`."""
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
    alias: str = ""
    """`local` where it is written as another name, `*` for everything."""


def find_imports(source: Source, matches: Iterable[Captures]) -> Iterator[Import]:
    """Yield every import of the matches in source order, with the modules of groups around it."""
    separator = source.language.import_separator
    groups: list[tuple[int, int, str]] = []
    by_start: dict[int, tuple[int, str, str, str]] = {}
    for captures in matches:
        start, module, name, alias = _import_of(source, captures)
        if group := captures.get("import.group"):
            groups.append((group[0].start_byte, group[0].end_byte, module))
        elif start >= 0 and (module or name):
            other = by_start.get(start)
            if other is None or (alias and not other[3]) or (name and not other[2]):
                by_start[start] = (start, module, name, alias)
    later_groups = deque(sorted(groups))
    around: list[tuple[int, str]] = []
    """End and prefix of the groups that are open, outer before inner."""
    for start, module, name, alias in sorted(by_start.values()):
        while later_groups and later_groups[0][0] <= start:
            around.append(later_groups.popleft()[1:])
        around = [(end, prefix) for end, prefix in around if end > start]
        parts = [prefix for _, prefix in around]
        if name in ("self", "this") and parts and not module:  # Rust: `use a::{self}`
            module, _, name = separator.join(parts).rpartition(separator)
        else:
            module = separator.join(parts + [module] if module else parts) or module
        local = alias or name or _last_word(module, separator)
        yield Import(start, module, name, local, WILDCARD if name == WILDCARD else alias)


def _import_of(source: Source, captures: Captures) -> tuple[int, str, str, str]:
    """Return the offset (-1 for none), module, name and alias of one match."""
    separator = source.language.import_separator
    text = {
        key: source.text_of(nodes[0])
        for key, nodes in captures.items()
        if key not in ("import", "import.group")
    }
    if len(modules := captures.get("import.module", ())) > 1:  # Scala: one node per word
        text["import.module"] = separator.join(map(source.text_of, modules))
    module = "".join(text.get("import.module", "").split())
    quoted = _LAST_STRING.search(module)
    module = quoted[1] if quoted else module.strip(_ADDRESS_QUOTES)
    name = text.get("import.name", "").strip(_ADDRESS_QUOTES)
    if path := "".join(text.get("import.path", "").split()):
        module, _, name = path.rpartition(separator or ".")
    if "import.wildcard" in captures:
        name = WILDCARD
    node = next((captures[key][0] for key in _PLACES if key in captures), None)
    start = node.start_byte if node is not None else -1
    if node is not None and "import.path" in captures and name:
        start = node.end_byte - len(name.encode())
    return start, module, name, text.get("import.alias", "")


class Resolver:
    """Resolves names by what one file defines and imports."""

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
        """The members of each owner, by name, from anywhere in the file."""
        for definition in definitions:
            if definition.class_name and not definition.is_scope:
                members = self.owned.setdefault(definition.class_name, {})
                members.setdefault(definition.name, []).append(definition)
        self.bound: dict[str, tuple[str, str]] = {}
        """Name that an import binds → module and original name, or ''."""
        self.roots: set[str] = set()
        """First words of modules that are written out: `a` after `import a.b`."""
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
        """Class → its base classes, up to the current name."""
        self.types: dict[tuple[int | str, str], str] = {}
        """Function or class (`_type_key`) and variable in it → its type, up to the current name."""
        self.objects: list[tuple[int, str, str]] = []
        """What the file makes of a class and may export: offset, `Client()` and the variable."""
        self.place = 0
        """Offset of the current name."""

    def owner_id(self, scope: Definition | None) -> str:
        """Return the id of the class that a scope extends (`impl X` of `struct X`), or ''."""
        if scope is not None and scope.kind == SCOPE:
            for definition in self.top.get(scope.inner_name, ()):
                if definition.kind not in METHOD_KINDS:
                    return definition.id
        return ""

    def bare(
        self, name: str, scope: Definition | None, kind: str = ""
    ) -> tuple[str, str, Definition | None, float]:
        """Return (original name, module, target, confidence) of a name without a receiver."""
        if name in self.names and (match := self._enclosing(name, scope, kind)):
            return (name, "", *match)
        if bound := self.bound.get(name):
            return (bound[1] or name, bound[0], None, 0.0)
        if name in self.names:
            if candidates := _suited(self.top.get(name), kind):
                return (name, "", *self._pick(self._visible(candidates), SAME_FILE))
            if self.language.implicit_self and (owner := _owner_of(scope)):
                return (name, "", *self._inherited(owner, name))
            if scope is None and self.language.code:  # markup names what a component's object has
                owners = [members[name] for members in self.owned.values() if name in members]
                if len(owners) == 1:
                    return (name, "", *self._pick(owners[0], INHERITED))
        return (name, "", None, 0.0)

    def _enclosing(
        self, name: str, scope: Definition | None, kind: str
    ) -> tuple[Definition, float] | None:
        """Return the target of a bare name in the functions and classes around it, if any."""
        around, inside = scope, True
        own = BARE_MEMBER if kind == "value" else SAME_FILE
        while around is not None:
            if around.kind in METHOD_KINDS:
                if candidates := _suited(around.members.get(name), kind):
                    return self._pick(self._visible(candidates), ENCLOSED)
                if around.owner and self.language.implicit_self:  # C++: `void Foo::bar() {…}`
                    members = self.owned.get(around.class_name, {})
                    if candidates := _suited(members.get(name), kind):
                        return self._pick(candidates, own)
                inside = False
            elif inside or self.language.implicit_self or around.kind in ("module", NAMESPACE):
                members = self.owned.get(around.inner_name) or around.members
                if candidates := _suited(members.get(name) or around.members.get(name), kind):
                    sure = around.kind in ("module", NAMESPACE) or inside
                    return self._pick(candidates, SAME_FILE if sure else own)
            around = around.parent
        return None

    def member(
        self, name: str, receiver: str, scope: Definition | None, static: bool
    ) -> tuple[str, Definition | None, float]:
        """Return (module, target, confidence) of a name after a receiver, `static` after `::`."""
        if receiver in self.language.self_names or _is_self(receiver, scope):
            owner = _owner_of(scope)
            if not owner:
                return ("", None, 0.0)
            candidates = self.owned.get(owner, {}).get(name)
            if candidates and receiver not in _BASES:
                return ("", *self._pick(candidates, SAME_FILE))
            target, confidence = self._inherited(owner, name)
            if target is not None or receiver in _BASES:
                return ("", target, confidence)
            return (CLASS_MARK + last_word(owner), None, 0.0)
        if name in self.names and (candidates := self.owned.get(receiver, {}).get(name)):
            return ("", *self._pick(candidates, SAME_FILE))
        if not static and (type_name := self._type_of(receiver, scope)):
            if candidates := self.owned.get(type_name, {}).get(name):
                return ("", *self._pick(candidates, TYPED))
            return (self._place_of(type_name), None, 0.0)
        return (self._address(receiver), None, 0.0)

    def _place_of(self, type_name: str) -> str:
        """Return where a receiver's class comes from, so that other files can tell it."""
        module = self._address(type_name)
        if module and self.language.import_separator:
            return module
        return f"{module}{CLASS_MARK}{last_word(type_name)}"

    def learn(self, source: Source, typed_name: TypedName, scope: Definition | None) -> None:
        """Note the type of a variable."""
        variable, node, member, copied = typed_name
        type_name, name = source.text_of(node), source.text_of(variable)
        if match := _DECLARED.match(name):
            name = match[1] or match[2]
        if copied:
            type_name = self._type_of(type_name, scope)
        elif not type_name.isidentifier():
            match = _WRITTEN_TYPE.fullmatch(type_name)
            type_name = (match["held"] or match["name"]) if match else ""
        # What `self.Cart` holds is known where the file defines a `Cart`.
        own, _, word = type_name.rpartition(".")
        is_own = own in self.language.self_names
        is_known = self._is_known(word if is_own else type_name)
        if type_name and (is_known or not (is_own or _TYPE_PARAMETER.fullmatch(type_name))):
            place = _owner_of(scope) if member else _type_key(scope)
            self.types[place, name] = type_name
            if scope is None and self._is_known(type_name):
                made = self.bound.get(type_name, ("", ""))[1] or last_word(type_name)
                self.objects.append((variable.start_byte, f"{made}()", name))

    def _is_known(self, name: str) -> bool:
        return name in self.names or name.partition(".")[0] in self.bound

    def _type_of(self, receiver: str, scope: Definition | None) -> str:
        types, receiver = self.types, receiver.replace("->", ".").rstrip("!?")
        made = _MADE.fullmatch(receiver) if receiver[-1:] == ")" else None
        if made and (made[1] or self._is_known(made[2])):
            return made[1] or made[2]
        if not types:
            return ""
        root, _, rest = receiver.partition(".")
        if rest:
            if root in self.language.self_names or _is_self(root, scope):
                return types.get((_owner_of(scope), rest), "")
            return ""
        around = scope
        while around is not None:
            if type_name := types.get((_type_key(around), receiver)):
                return type_name
            around = around.parent
        # The last is that of a method outside of its class: C++ `void Foo::bar() {…}`.
        implicit = self.language.implicit_self
        member = types.get((_owner_of(scope), receiver), "") if implicit else ""
        return member or types.get(("", receiver), "")

    def _inherited(self, owner: str, name: str) -> tuple[Definition | None, float]:
        if name not in self.names:
            return (None, 0.0)
        queue, visited = deque(self.bases.get(owner, ())), {owner}
        while queue and len(visited) <= MAX_BASES:
            base = queue.popleft()
            if base in visited:
                continue
            visited.add(base)
            if candidates := self.owned.get(base, {}).get(name):
                return self._pick(candidates, INHERITED)
            queue.extend(self.bases.get(base, ()))
        return (None, 0.0)

    def _visible(self, candidates: list[Definition]) -> list[Definition]:
        """Return the last candidate before the place, if a name is bound in several blocks."""
        if len(candidates) > 1 and all(d.kind in ("lambda", "class") for d in candidates):
            return [d for d in candidates if d.start <= self.place][-1:] or candidates
        return candidates

    def _pick(self, candidates: list[Definition], confidence: float) -> tuple[Definition, float]:
        if len(candidates) > 1:  # a definition with a body comes before a declaration
            candidates = [d for d in candidates if d.body >= 0] or candidates
        if len(candidates) == 1:
            return candidates[0], confidence
        target = candidates[-1] if self.language.last_definition_wins else candidates[0]
        return target, min(confidence, OVERLOADED)

    def _address(self, receiver: str) -> str:
        """Return the imported address that a receiver stands for, or ''.

        `np.linalg` after `import numpy as np` is `numpy.linalg`; `Client` after
        `from a import Client` is `a.Client`.
        """
        separator = self.language.import_separator or "."
        root, _, rest = receiver.partition(separator)
        bound = self.bound.get(receiver) or self.bound.get(root)
        if bound is None:
            return receiver if root in self.roots else ""
        module, name = bound
        if not self.language.import_separator:
            return module
        # The receiver is a part of an imported class, or what a function of a module returns.
        rest = "" if name[:1].isupper() else rest.partition("(")[0]
        first = [module + name] if module.endswith(separator) else [module, name]
        return separator.join(filter(None, [*first, rest]))


def references(
    source: Source,
    names: dict[int, FoundName],
    variables: dict[int, TypedName],
    definitions: list[Definition],
    top: Mapping[str, list[Definition]],
    imports: list[Import],
    unit_at: dict[int, str],
) -> list[Reference]:
    """Return all references of the file in source order.

    `definitions` are outer before inner, `top` those of the top level by name; `unit_at` gives the
    id of the unit that holds a line outside every definition.
    """
    resolver = Resolver(source.language, imports, definitions, top)
    _drop_definitions(names, definitions, imports)
    by_offset = {imported.offset: imported for imported in imports}
    result: list[Reference] = []
    # A class's fields are known in all of it, and so in each of two rounds. For the rest in source
    # order: every name needs the scopes and types before it.
    scopes = _Scopes(definitions)
    for start in sorted(variables):
        resolver.learn(source, variables[start], scopes.at(start))
    scopes = _Scopes(definitions)
    for start in sorted(names.keys() | variables.keys() | by_offset.keys()):
        scope = scopes.at(start)
        resolver.place = start
        if start in variables:
            resolver.learn(source, variables[start], scope)
        if start in names:
            if (resolved := _resolved(source, resolver, start, names[start], scope)) is None:
                continue
            name, kind, receiver, module, target, confidence, quoted = resolved
            target_id = target.id if target is not None else ""
        elif start in by_offset:
            imported = by_offset[start]
            module, kind = imported.module, "import"
            name = module if imported.name in ("", WILDCARD) else imported.name
            receiver, target_id, confidence, quoted = imported.alias, "", 0.0, False
        else:
            continue
        line = source.line_of(start)
        column = len(source.slice(source.line_starts[line - 1], start)) + 1 + quoted
        unit = scope.unit if scope is not None else None
        unit_id = unit.id if unit is not None else unit_at.get(line) or resolver.owner_id(scope)
        result.append(Reference(
            source.path, line, column, name, kind, unit_id, receiver, module, target_id, confidence
        ))  # fmt: skip
    return result + exports(source, resolver.objects)


def exports(source: Source, names: Iterable[tuple[int, str, str]]) -> list[Reference]:
    """Return an import without a module for each name of the file and the one it is exported as."""
    edges: list[Reference] = []
    for start, name, known_as in dict.fromkeys(names):
        line = source.line_of(start)
        column = len(source.slice(source.line_starts[line - 1], start)) + 1
        edges.append(Reference(source.path, line, column, name, "import", receiver=known_as))
    return edges


def _drop_definitions(
    names: dict[int, FoundName], definitions: list[Definition], imports: list[Import]
) -> None:
    """Remove the names that a definition or an import introduces."""
    for definition in definitions:
        if definition.kind == SCOPE:  # `impl X`, `new X() {…}`: X is mentioned
            continue
        names.pop(definition.name_start, None)
        if definition.is_scope:  # `namespace a.b.c` mentions nothing
            for offset in range(definition.name_start, definition.name_end):
                names.pop(offset, None)
    for imported in imports:
        names.pop(imported.offset, None)


class _Scopes:
    """Finds the definition around an offset, for offsets in ascending order."""

    def __init__(self, definitions: list[Definition]) -> None:
        around = [d for d in definitions if d.kind != CONSTANT]  # nothing is nested in a constant
        self._following = iter(sorted(around, key=lambda d: (d.lead, -d.end)))
        self._upcoming = next(self._following, None)
        self._stack: list[Definition] = []

    def at(self, start: int) -> Definition | None:
        stack = self._stack
        while (upcoming := self._upcoming) is not None and upcoming.lead <= start:
            while stack and stack[-1].end <= upcoming.lead:
                stack.pop()
            stack.append(upcoming)
            self._upcoming = next(self._following, None)
        while stack and stack[-1].end <= start:
            stack.pop()
        return stack[-1] if stack else None


def _resolved(
    source: Source, resolver: Resolver, start: int, found_name: FoundName, scope: Definition | None
) -> tuple[str, str, str, str, Definition | None, float, bool] | None:
    """Return name, kind, receiver, module, target, confidence and whether the name is quoted.

    None for a value, type or builtin that is no reference.
    """
    _, end, receiver_node, kind = found_name
    receiver, module, confidence = "", "", 0.0
    target: Definition | None = None
    name = source.slice(start, end)
    prefix = source.language.name_prefix
    if quoted := name[:1] in _NAME_QUOTES or (prefix != "" and name.startswith(prefix)):
        name = clean_name(name).removeprefix(prefix)
    if receiver_node is not None:
        first, last = receiver_node.start_byte, receiver_node.end_byte
        receiver = source.slice(first, last) if last - first <= MAX_RECEIVER else "\n"
        if "\n" in receiver:
            receiver = "…"
        else:
            static = source.language.separator == "::" and source.data.startswith(b"::", last)
            module, target, confidence = resolver.member(name, receiver, scope, static)
    else:
        if kind == "inherits" and scope is not None:
            resolver.bases.setdefault(scope.inner_name, []).append(name)
        if name in resolver.bound or name in resolver.names:  # else the file decides nothing
            name, module, target, confidence = resolver.bare(name, scope, kind)
    if target is None and (
        (kind == "value" and module[:1] in ("", CLASS_MARK))
        or (not module and name in source.language.builtins and receiver_node is None)
        or (kind == "type" and not module and _TYPE_PARAMETER.fullmatch(name))
    ):
        return None
    kind = "use" if kind in ("type", "value") else kind
    return name, kind, receiver, module, target, confidence, quoted


def _suited(candidates: list[Definition] | None, kind: str) -> list[Definition]:
    """Return what a bare name may mean: no function is a type, no constructor a value."""
    if not candidates or kind == "call":
        return candidates or []
    if kind == "value":
        return [d for d in candidates if d.kind != "constructor"]
    return [d for d in candidates if d.kind not in METHOD_KINDS or kind == "use"]


def _is_self(receiver: str, scope: Definition | None) -> bool:
    while scope is not None:
        if scope.self_name:
            return scope.self_name == receiver
        scope = scope.parent
    return False


def _owner_of(scope: Definition | None) -> str:
    """Return the name of the class around a place, as its members use it; '' for none."""
    while scope is not None:
        if scope.kind in METHOD_KINDS and scope.class_name:
            return scope.class_name
        if scope.kind not in METHOD_KINDS and scope.kind not in (NAMESPACE, FILE):
            return scope.inner_name
        scope = scope.parent
    return ""


def _type_key(scope: Definition | None) -> int | str:
    """Return where a variable lives: the function's offset, the class's name, '' for the file."""
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
