"""Find the definitions and scopes of a source file, and how they are nested."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codeqa.languages import Language
from codeqa.parsing.source import (
    CONSTANT,
    FILE,
    MAX_LINE,
    MIN_CHUNK_LINES,
    NAMESPACE,
    SCOPE,
    Source,
)
from codeqa.text.tokens import last_word
from codeqa.types import METHOD_KINDS

if TYPE_CHECKING:
    import tree_sitter

    Captures = dict[str, list[tree_sitter.Node]]

_ONE_BODY = METHOD_KINDS | {"class"}
"""Kinds of which one body is one definition; C's `typedef struct a {} b;` are two."""

_WORDS = re.compile(rb"\s*(?:[a-zA-Z_]\w*\s+)*")

_STATEMENTS = frozenset({"catch", "for", "if", "return", "sizeof", "switch", "while"})
"""Words of C taken for functions where a macro stands before them."""

_WHOLE_NAMES = frozenset({"destructor_name", "operator_cast", "operator_name"})
"""Nodes of C++ that are names though they hold others."""

_NAME_QUOTES = ('""', "''", "``", "[]")
"""Quotes of property names, and the brackets around SQL Server's names."""


@dataclass(slots=True, eq=False)
class Definition:
    """One definition or scope while its file is being read; offsets are bytes."""

    pattern: int
    kind: str
    start: int
    end: int
    name_start: int
    name_end: int
    begin: int = 0
    """Start of the signature: words before the node (`export`) belong to it."""
    body: int = -1
    doc: str = ""
    owner: str = ""
    self_name: str = ""
    name: str = ""
    lead: int = 0
    """Start of the first line, with leading comments and attributes."""
    first_line: int = 0
    last_line: int = 0
    comments: Sequence[tuple[int, int]] = ()
    parent: Definition | None = None
    unit: Definition | None = None
    """The definition itself, or for a scope the nearest unit around it."""
    members: dict[str, list[Definition]] = field(default_factory=dict)
    qualified_name: str = ""
    inner_name: str = ""
    """The qualified name without namespaces, as members name their owner."""
    class_name: str = ""
    signature: str = ""
    id: str = ""

    @property
    def is_scope(self) -> bool:
        return self.kind in (SCOPE, NAMESPACE, FILE)


def find_definitions(
    source: Source, matches: Iterable[tuple[int, str, str, Captures]], outer: Mapping[int, int]
) -> list[Definition]:
    """Return what the matches define, outer before inner, in source order.

    A match is the number of its pattern, a kind, the name of the capture of the whole node, and
    all captures. `outer` leads from the start of a definition to the start of what wraps it.
    """
    by_span: dict[tuple[int, int, int, bool], Definition] = {}
    for pattern, kind, capture, captures in matches:
        if not (names := captures.get("name")):
            continue
        node, name = captures[capture][0], names[0]
        span = (node.start_byte, node.end_byte, name.start_byte)
        key = (*span, kind == CONSTANT)
        definition = by_span.get(key)
        if definition is None or pattern < definition.pattern:
            definition = Definition(pattern, kind, *span, name.end_byte)
            definition.begin = definition.lead = definition.start
            definition.name = _name(captures, source)
            by_span[key] = definition
        elif pattern > definition.pattern:
            continue
        _fill(definition, captures, source)
    for definition in by_span.values():
        while definition.start in outer:
            definition.start = definition.begin = outer[definition.start]
    definitions = sorted(by_span.values(), key=lambda d: (d.start, -d.end, d.name_start))
    definitions = _without_doubles(definitions)
    lines = source.lines
    if max(map(len, lines), default=0) > MAX_LINE:
        definitions = [
            d for d in definitions if len(lines[source.line_of(d.start) - 1]) <= MAX_LINE
        ]
    end = len(source.data)
    for definition in reversed(definitions):
        if definition.kind == FILE:
            definition.end, end = end, definition.start
    return _with_constants(_without_prototypes(definitions, source), source)


def named_within(node: tree_sitter.Node, function: bool) -> Captures:
    """Return the name in a declarator with the owners before it; {} if a `function` has none.

    What wraps them says where it goes on: `*(Foo<T>::name[2])(int)`.
    """
    owners: list[tree_sitter.Node] = []
    called = not function
    inner: tree_sitter.Node | None = node
    while inner is not None:
        node, field = inner, inner.child_by_field_name
        called = called or node.type in ("function_declarator", "parenthesized_declarator")
        if node.type in _WHOLE_NAMES:
            break
        if scope := field("scope"):
            owners.append(scope.child_by_field_name("name") or scope)
        inner = field("declarator") or field("name") or next(iter(node.named_children), None)
    captures = {"owner": owners} if owners else {}
    if node.type == "operator_cast" and (before := node.child_by_field_name("declarator")):
        return captures | {"name": node.children[:1], "name.before": [before]}
    return captures | {"name": [node]} if called else {}


def _without_doubles(definitions: list[Definition]) -> list[Definition]:
    """Leave out definitions whose body is another one's: `const load = function read() {}`.

    The outer one stays; of those of one node the one whose pattern is first.
    """
    bodies: dict[int, Definition] = {}
    for definition in definitions:
        if definition.body >= 0 and definition.kind in _ONE_BODY:
            first = bodies.setdefault(definition.body, definition)
            if definition.start == first.start and definition.pattern < first.pattern:
                bodies[definition.body] = definition
    return [d for d in definitions if d.kind not in _ONE_BODY or bodies.get(d.body, d) is d]


def _name(captures: Captures, source: Source) -> str:
    """Return the name, of several parts, or up to a bracket (`operator int(`)."""
    names = captures["name"]
    if before := captures.get("name.before"):
        end = source.data.find(b"(", before[0].start_byte)
        return source.slice(names[0].start_byte, end)
    return source.language.separator.join(map(source.text_of, names))


def _fill(definition: Definition, captures: Captures, source: Source) -> None:
    """Take body, doc, owner and the name of the receiver from the captures."""
    for part, nodes in captures.items():
        if part == "body":
            definition.body = nodes[0].start_byte
        elif part == "doc":
            definition.doc = source.slice(nodes[0].start_byte, nodes[-1].end_byte)
            if nodes[-1].end_byte > definition.end:  # below a constant of Python
                definition.body, definition.end = nodes[0].start_byte, nodes[-1].end_byte
        elif part == "owner":
            definition.owner = source.language.separator.join(map(source.text_of, nodes))
        elif part == "self":
            definition.self_name = source.text_of(nodes[0])


def _with_constants(definitions: list[Definition], source: Source) -> list[Definition]:
    """Leave out constants that say too little to be searched for, and those that hold definitions.

    A constant stays if it is source code outside of functions with a comment, MIN_CHUNK_LINES lines
    or a name in capitals. A name that is bound to an object with functions in it owns these.
    """
    starts = [d.start for d in definitions if not d.is_scope and d.kind != CONSTANT]
    result, inside = [], 0
    for definition in definitions:
        start, end = definition.start, definition.end
        if definition.kind in METHOD_KINDS:
            inside = max(inside, end)
        if definition.kind == CONSTANT:
            first, last = source.line_of(start), source.line_of(max(start, end - 1))
            above = source.above(first)[1]
            beside = bisect_left(source.comment_spans, (end, 0))
            for begin, stop in source.comment_spans[beside : beside + 1]:
                if not (above or definition.doc) and source.line_of(begin) == last:
                    definition.doc = source.slice(begin, stop)
            holds = bisect_left(starts, end) > bisect_left(starts, start)
            long = last - first + 1 >= MIN_CHUNK_LINES
            capitals = len(definition.name) > 1 and definition.name.isupper()
            says = above or definition.doc or long or capitals
            if holds or start < inside or source.role != "source" or not says:
                continue
        result.append(definition)
    return result


def nest(definitions: list[Definition], source: Source) -> dict[str, list[Definition]]:
    """Fill in lines, parents, kinds and qualified names; return the top level's members."""
    language = source.language
    top: dict[str, list[Definition]] = {}
    stack: list[Definition] = []
    for definition in definitions:
        start, end = definition.start, definition.end
        while stack and (
            stack[-1].end <= start
            or (stack[-1].start == start and stack[-1].end == end)
            or stack[-1].kind == CONSTANT
        ):
            stack.pop()
        parent = stack[-1] if stack else None
        stack.append(definition)
        definition.parent = parent
        definition.name = clean_name(definition.name).removeprefix(language.name_prefix)
        _set_lines(definition, parent, source)
        _set_kind(definition, parent, language)
        _set_names(definition, parent, language.separator)
        siblings = top if parent is None else parent.members
        if not (definition.is_scope or definition.owner):
            siblings.setdefault(definition.name, []).append(definition)
        if definition.kind == FILE or definition.kind == NAMESPACE:
            definition.members = siblings  # what a namespace holds is visible around it
    return top


def _without_prototypes(definitions: list[Definition], source: Source) -> list[Definition]:
    """Leave out functions without a body that only declare one, and macros taken for functions.

    The first are those inside a function, and outside of classes if the file has the body too;
    macros are in capitals without a type, inside a function (`EACH(x) {`) or without a body.
    """
    if not source.language.prototypes:
        return definitions
    bodies = {d.name for d in definitions if d.kind == "function" and d.body >= 0}
    result: list[Definition] = []
    stack: list[Definition] = []
    for definition in definitions:
        while stack and stack[-1].end <= definition.start:
            stack.pop()
        if definition.kind in METHOD_KINDS and not definition.owner:
            around, owner = (stack[-1].kind, stack[-1].name) if stack else (FILE, "")
            inside, declared = around in METHOD_KINDS, definition.body < 0
            here = definition.name in bodies and around in (FILE, NAMESPACE)
            head = source.data[definition.start : definition.name_start]
            macro = definition.name.isupper() and not head and definition.name.strip("~") != owner
            macro = macro or definition.name in _STATEMENTS
            if (declared and (here or macro)) or (inside and (declared or macro or b"(" in head)):
                continue
        result.append(definition)
        stack.append(definition)
    return result


def _set_lines(definition: Definition, parent: Definition | None, source: Source) -> None:
    line = definition.first_line = source.line_of(definition.start)
    end = definition.end
    while end > definition.start + 1 and source.data[end - 1] in b" \t\r\n":
        end -= 1  # indented blocks and directives reach to the next token
    definition.last_line = max(line, source.line_of(max(end - 1, definition.start)))
    before = source.data[source.line_starts[line - 1] : definition.start]
    if before and not _WORDS.fullmatch(before):
        return  # something else begins on this line: what stands above belongs to that
    floor = source.line_of(parent.start) if parent is not None else 0
    if line > floor:
        definition.begin = definition.start - len(before.lstrip())
        definition.lead = definition.begin
        definition.first_line, definition.comments = source.above(line, floor)
        if definition.first_line < line:
            definition.lead = source.line_starts[definition.first_line - 1]


def _set_kind(definition: Definition, parent: Definition | None, language: Language) -> None:
    if definition.is_scope:
        definition.unit = parent.unit if parent is not None else None
        return
    definition.unit = definition
    inside = parent is not None and (parent.kind == SCOPE or parent.kind in language.class_like)
    if definition.kind == "function" and (definition.owner or inside):
        definition.kind = "method"
    if definition.kind == "method":
        owner = definition.owner or (parent.name if parent else "")
        if definition.name in language.constructor_names or (
            language.class_named_constructors and owner and definition.name == last_word(owner)
        ):
            definition.kind = "constructor"


def _set_names(definition: Definition, parent: Definition | None, separator: str) -> None:
    def below(prefix: str, word: str) -> str:
        return f"{prefix}{separator}{word}" if prefix else word

    name, owner = definition.name, clean_name(definition.owner)
    outer = inner = class_name = ""
    if parent is not None:
        outer, inner = parent.qualified_name, parent.inner_name
        functions = parent.kind in METHOD_KINDS or parent.kind in (NAMESPACE, FILE)
        class_name = parent.class_name if functions else inner
    if owner:
        outer, inner, class_name = (below(prefix, owner) for prefix in (outer, inner, class_name))
    definition.qualified_name = below(outer, name)
    definition.class_name = class_name
    definition.inner_name = inner if definition.kind in (NAMESPACE, FILE) else below(inner, name)


def clean_name(name: str) -> str:
    """Write a name as one word: quotes of string keys, generics and line breaks removed."""
    if len(name) > 1 and name[0] + name[-1] in _NAME_QUOTES:
        name = name[1:-1]
    if not name.isidentifier():
        name = " ".join(name.split()).replace("::inline ", "::")
    return name[:200]
