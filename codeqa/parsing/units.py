"""The definitions and scopes of a source file, nested as they stand, and the units that they, its
head and the code between them make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codeqa.languages import Language
from codeqa.parsing.source import CHUNK_SIZE, Source, comment_text, docstring_text, is_licence, trim
from codeqa.text.tokens import last_word
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Unit

if TYPE_CHECKING:
    from codeqa.parsing.grammar import Captures

SCOPE, NAMESPACE, FILE = "scope", "namespace", "file"
"""Kinds of what holds members without being a unit: an owner, a mere prefix of names,
a prefix that reaches to the end of the file."""

MAX_LINE = 5000
"""Characters of a line beyond which what begins on it is no unit: a unit is whole lines, and
hundreds of definitions on one line of packed code would each repeat all of it."""

MIN_CHUNK_LINES = 3
"""A gap between definitions with fewer lines that are not blank is no unit, unless one of
them assigns or calls something: `LIMIT = 10` is worth finding, a closing brace is not."""

MAX_SIGNATURE = 1000
"""Characters of a signature; a longer one is data rather than a declaration."""

_ATTRIBUTES = re.compile(
    r"\s*(?:@(?!interface\b)[\w.]+(?:\([^()]*\))?|#\[[^\]]*\]|\[(?:\w+:\s*)?[A-Z][^\]]*\])(?=\s)"
)
_STATEMENT = re.compile(r"(?:[\w\])>] *:?=(?![=>])|\w\().*[^\s{(\[]\s*$")
_ATTRIBUTE_MARKS = ("@", "#", "[")
_PAST_SIGNATURE = " \t\n{:=(;\\"

_NAME_QUOTES = ('""', "''", "``", "[]")
"""Quotes of property names, and the brackets around SQL Server's names."""

_WORDS = re.compile(rb"\s*(?:[a-zA-Z_]\w*\s+)*")


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
    """Where the signature begins: words before the node (`export`) join it."""
    body: int = -1
    doc: str = ""
    owner: str = ""
    self_name: str = ""
    name: str = ""
    lead: int = 0
    """Where the first line begins, leading comments and attributes included."""
    first_line: int = 0
    last_line: int = 0
    comments: Sequence[tuple[int, int]] = ()
    parent: Definition | None = None
    unit: Definition | None = None
    """The definition itself, or for a scope the nearest unit around it."""
    members: dict[str, list[Definition]] = field(default_factory=dict)
    qualified_name: str = ""
    inner_name: str = ""
    """The qualified name without namespaces: what members call their owner."""
    class_name: str = ""
    signature: str = ""
    id: str = ""

    @property
    def is_scope(self) -> bool:
        return self.kind in (SCOPE, NAMESPACE, FILE)


def find_definitions(
    source: Source, matches: Iterable[tuple[int, str, str, Captures]], outer: Mapping[int, int]
) -> list[Definition]:
    """What the matches define, outer before inner, in source order.

    A match is the number of its pattern, a kind, the name of the capture of the whole node, and
    all captures. `outer` leads from where a definition begins to where what wraps it does.
    """
    known: dict[tuple[int, int, int], Definition] = {}
    for pattern, kind, capture, captures in matches:
        if not (names := captures.get("name")):
            continue
        node, name = captures[capture][0], names[0]
        key = (node.start_byte, node.end_byte, name.start_byte)
        definition = known.get(key)
        if definition is None or pattern < definition.pattern:
            definition = Definition(pattern, kind, *key, name.end_byte)
            definition.begin = definition.lead = definition.start
            definition.name = source.text_of(name)
            known[key] = definition
        elif pattern > definition.pattern:
            continue
        for part, nodes in captures.items():
            if part == "body":
                definition.body = nodes[0].start_byte
            elif part == "doc":
                definition.doc = source.slice(nodes[0].start_byte, nodes[-1].end_byte)
            elif part == "owner":
                definition.owner = source.language.separator.join(map(source.text_of, nodes))
            elif part == "self":
                definition.self_name = source.text_of(nodes[0])
    for definition in known.values():
        while definition.start in outer:
            definition.start = definition.begin = outer[definition.start]
    found = sorted(known.values(), key=lambda d: (d.start, -d.end, d.name_start))
    if max(map(len, source.lines)) > MAX_LINE:
        found = [d for d in found if len(source.lines[source.line_of(d.start) - 1]) <= MAX_LINE]
    end = len(source.data)
    for definition in reversed(found):
        if definition.kind == FILE:
            definition.end, end = end, definition.start
    return _without_prototypes(found) if source.language.prototypes else found


def nest(definitions: list[Definition], source: Source) -> dict[str, list[Definition]]:
    """Fill in lines, parents, kinds and qualified names; return the top level's members."""
    language = source.language
    top: dict[str, list[Definition]] = {}
    stack: list[Definition] = []
    for definition in definitions:
        start, end = definition.start, definition.end
        while stack and (
            stack[-1].end <= start or (stack[-1].start == start and stack[-1].end == end)
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


def _without_prototypes(definitions: list[Definition]) -> list[Definition]:
    """Leave out functions without a body where they only announce one.

    That is so inside a function, and outside of classes when the file has the body too.
    """
    defined = {d.name for d in definitions if d.kind == "function" and d.body >= 0}
    kept: list[Definition] = []
    stack: list[Definition] = []
    for definition in definitions:
        while stack and stack[-1].end <= definition.start:
            stack.pop()
        if definition.kind == "function" and definition.body < 0 and not definition.owner:
            around = stack[-1].kind if stack else FILE
            here = definition.name in defined and around in (FILE, NAMESPACE)
            if here or around in METHOD_KINDS:
                continue
        kept.append(definition)
        stack.append(definition)
    return kept


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
    """A name as one word: quotes of string keys, generics and line breaks removed."""
    if len(name) > 1 and name[0] + name[-1] in _NAME_QUOTES:
        name = name[1:-1]
    if not name.isidentifier():
        name = " ".join(name.split())
    return name[:200]


def unit_ids(path: str) -> Callable[[str], str]:
    """A function that makes the ids of one file's units of their qualified names, in order.

    16 hexadecimal digits, the same as long as the file's path, the name and the order among
    namesakes are.
    """
    seen: Counter[str] = Counter()

    def new_id(qualified_name: str) -> str:
        key = f"{path}\0{qualified_name}\0{seen[qualified_name]}"
        seen[qualified_name] += 1
        return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    return new_id


def build_units(
    source: Source, definitions: list[Definition], module_doc: str
) -> tuple[tuple[Unit, ...], dict[int, str]]:
    """Units in source order, and line → unit id for the lines outside every definition.

    Sets the `id` of each definition.
    """
    new_id = unit_ids(source.path)
    solid = [definition for definition in definitions if not definition.is_scope]
    members: dict[str, list[Definition]] = {}
    for definition in solid:
        definition.id = new_id(definition.qualified_name)
        inside = definition.parent.kind if definition.parent is not None else ""
        if definition.class_name and inside not in METHOD_KINDS:
            members.setdefault(definition.class_name, []).append(definition)
    units = [_unit(source, d, members) for d in solid]
    unit_at: dict[int, str] = {}
    for unit in _top_level(source, solid, module_doc, new_id):
        units.append(unit)
        unit_at.update(dict.fromkeys(range(unit.start_line, unit.end_line + 1), unit.id))
    units.sort(key=lambda unit: (unit.start_line, -unit.end_line))
    return tuple(units), unit_at


def _unit(source: Source, definition: Definition, members: dict[str, list[Definition]]) -> Unit:
    above = definition.comments
    doc = docstring_text(definition.doc) if definition.doc else _comments(source, above)
    head_end, constructor = 0, ""
    methods: dict[str, None] = {}  # distinct: one `attr_accessor` makes several alike
    if definition.kind not in METHOD_KINDS:
        own = members.get(definition.inner_name, ())
        declared = {member.name for member in own if not member.owner}
        for member in own:
            if member.owner and member.name in declared:
                continue  # C++: the body of what the class declares
            around = member.parent
            if not (member.owner or around is definition or around is None or around.is_scope):
                continue  # of another part of the class (Ruby, C# `partial`)
            if definition.start < member.start < definition.end and not head_end:
                head_end = max(member.first_line - 1, definition.first_line)
            if member.kind in METHOD_KINDS:
                signature = _signature(source, member)
                if member.kind == "constructor":
                    constructor = constructor or signature
                else:
                    methods[signature] = None
    return Unit(
        source.path, source.language.name, definition.kind, definition.name,
        definition.qualified_name,
        source.span(definition.first_line, definition.last_line),
        definition.first_line, definition.last_line, definition.class_name,
        _signature(source, definition), doc, head_end, constructor, tuple(methods), source.role,
        definition.id,
    )  # fmt: skip


def _signature(source: Source, definition: Definition) -> str:
    """Declaration without attributes and body, on one line; worked out once."""
    if definition.signature:
        return definition.signature
    end = definition.body if definition.body >= 0 else definition.end
    text = source.without_comments(definition.begin, end)
    if definition.body < 0 and text.count("\n") > 3:
        text = text.split("\n", 1)[0]
    if text[:1] in _ATTRIBUTE_MARKS and definition.kind not in TEXT_KINDS:
        while match := _ATTRIBUTES.match(text):
            text = text[match.end() :]
    text = " ".join(text.split())
    if not text.endswith("=>"):
        text = text.rstrip(_PAST_SIGNATURE)
    definition.signature = text[:MAX_SIGNATURE]
    return definition.signature


def _comments(source: Source, spans: Sequence[tuple[int, int]]) -> str:
    parts = [source.slice(start, end) for start, end in spans]
    if parts and source.line_of(spans[0][0]) <= 3 and is_licence(parts[0]):
        parts = [part for part in parts if not is_licence(part)]
    return comment_text(parts)


def _top_level(
    source: Source, definitions: list[Definition], module_doc: str, new_id: Callable[[str], str]
) -> Iterator[Unit]:
    """The file's head as a `module` and further gaps between definitions as `chunk`s."""
    name = PurePosixPath(source.path).name
    stem = name.split(".", 1)[0] or name
    part = 0
    for first, last in _gaps(source, definitions):
        head = first == 1
        if head:
            first = _after_notice(source, last)
            if first > last:
                continue
        top = first
        for begin, end in _pieces(source, first, last, head):
            doc = ""
            if head and begin == top:
                kind, label = "module", stem
                doc = module_doc or _module_comment(source, end)
            else:
                part += 1
                kind, label = "chunk", f"{name} (part {part})"
            yield Unit(
                source.path, source.language.name, kind, label, label,
                source.span(begin, end), begin, end,
                doc_comment=doc, role=source.role, id=new_id(label),
            )  # fmt: skip


def _gaps(source: Source, definitions: list[Definition]) -> Iterator[tuple[int, int]]:
    """Line spans outside every definition, blank lines at both ends dropped."""
    lines = source.lines
    spans = sorted((d.first_line, d.last_line) for d in definitions if not _is_part(d, source))
    free = 1
    for first, last in [*spans, (len(lines) + 1, len(lines) + 1)]:
        if gap := trim(lines, free, first - 1):
            yield (1 if free == 1 else gap[0]), gap[1]
        free = max(free, last + 1)


def _is_part(definition: Definition, source: Source) -> bool:
    """Whether it stands inside a statement that is no definition: `{"a": lambda: 1}`."""
    indented = source.lines[definition.first_line - 1][:1] in (" ", "\t")
    return indented and definition.kind == "lambda" and definition.parent is None


def _pieces(source: Source, first: int, last: int, head: bool) -> Iterator[tuple[int, int]]:
    """Cut a gap into pieces of at most `CHUNK_SIZE`, at a blank line when there is one."""
    lines = source.lines
    rest: tuple[int, int] | None = (first, last)
    while rest is not None:
        first = rest[0]
        end = min(first + CHUNK_SIZE - 1, last)
        if end < last:
            end = next((n for n in range(end, first + 20, -1) if not lines[n - 1].strip()), end)
        stop = (trim(lines, first, end) or rest)[1]
        if head or _is_worth_a_unit(lines[first - 1 : stop]):
            yield first, stop
        head = False
        rest = trim(lines, end + 1, last)


def _is_worth_a_unit(lines: list[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    return len(filled) >= MIN_CHUNK_LINES or any(_STATEMENT.search(line) for line in filled)


def _after_notice(source: Source, last: int) -> int:
    """First of the lines 1..`last` behind a notice of rights; `last` + 1 when that is all.

    The notice would answer every question with the word "software" in it.
    """
    noted: set[int] = set()
    for first, start, end in source.leading_comments():
        text = source.slice(start, end)
        if first <= last and (first <= 2 or first - 1 in noted or is_licence(text)):
            noted.update(range(first, source.line_of(max(start, end - 1)) + 1))
    lines = source.lines
    if not any(is_licence(lines[line - 1]) for line in noted):
        noted = set()
    code = (n for n in range(1, last + 1) if n not in noted and lines[n - 1].strip())
    return next(code, last + 1)


def _module_comment(source: Source, last: int) -> str:
    """The first block of comments of a file that is not a notice of rights."""
    block: list[tuple[int, int]] = []
    expected = 0
    """The line behind the block."""
    for first, start, end in source.leading_comments():
        if first > last:
            break
        if first != expected:
            text = _block_text(source, block)
            if text or any(source.lines[n - 1].strip() for n in range(expected or first, first)):
                return text
            block = []
        block.append((start, end))
        expected = source.line_of(max(start, end - 1)) + 1
    return _block_text(source, block)


def _block_text(source: Source, block: list[tuple[int, int]]) -> str:
    text = comment_text([source.slice(start, end) for start, end in block])
    return "" if is_licence(text) else text
