"""The text of a source file, its definitions and scopes, nested as they stand, and the units that
they, the file's head and the code between them make.

A line ends at `\\n` and nowhere else, for every part of CodeQA: a `\\r` stays at the end of
its line, and form feeds or Unicode's separators end none. So a line number means the same
in the index, in the file panel and in tree-sitter. The empty piece after a final newline is
no line of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from inspect import cleandoc
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codeqa.languages import Language
from codeqa.text.tokens import last_word
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Unit

if TYPE_CHECKING:
    import tree_sitter

    Captures = dict[str, list[tree_sitter.Node]]

COMMENT, ATTRIBUTE, CONSTANT = "comment", "attribute", "constant"

CHUNK_SIZE = 50
"""Lines in one chunk."""
OVERLAP = 5
"""Lines that a chunk shares with the one before."""
MAX_CHARACTERS = 20_000
"""Characters in one chunk: 50 lines of 400, beyond which lines are data."""

_MARKED = re.compile(r"/\*\*(?!/)|///(?!/)|//!|/\*!|--\[=*\[|---(?!-)")
"""How languages mark a comment as documentation; an unmarked neighbour is then left out."""

_OPEN = re.compile(
    r"^\s*(?:/\*[*!]*(?!/)|//[/!]*<?|#[#!:|]*|--\[=*\[|--+\|?|;+|<!--|\{-\|?|\(\*\*?|%+)[ \t]?"
)
_CLOSE = re.compile(r"(?:\*+/|\]=*\]|-->|-\}|\*\))$")
_LONGEST_CLOSE = 80
"""Characters at the end of a comment in which its closing mark is looked for."""
_DIRECTIVE = re.compile(
    r"^(?:go:\w+|\+build|nolint|noqa|type:\s*ignore|eslint-|@ts-|prettier-ignore|pylint:|mypy:"
    r"|fmt:|clang-format|NOLINT|istanbul|c8 |v8 |rubocop:|shellcheck |biome-ignore"
    r"|frozen_string_literal:|warn_indent:|typed:|-\*-|vim:|swiftlint:|swift-format|phpcs:|sqlfluff"
    r"|[-=*#/~_+]{3,}\s*$|!/)"
)
"""A line of a comment that speaks to a tool rather than to a reader, or a mere rule."""
_LICENCE = re.compile(
    r"copyright|licen[sc]e|\bSPDX\b|all rights reserved|permission is hereby granted", re.I
)
"""What a notice of rights at the head of a file holds."""
_STRING = re.compile(r"""^[A-Za-z]{0,3}(\"\"\"|'''|"|')(.*?)(?:\1)?$""", re.DOTALL)

_XML_DOC = re.compile(r"<(?:summary|remarks|returns|param|inheritdoc|value|exception)\b")
_XML_VALUE = re.compile(r'<(?:see|seealso|paramref|typeparamref|inheritdoc)\s+\w+="([^"]*)"\s*/?>')
_XML_NAMED = re.compile(r'<(?:param|typeparam|exception)\s+\w+="([^"]*)"\s*>')
_XML_TAG = re.compile(
    r"</?(?:summary|remarks|returns|param|typeparam|exception|value|example|para|see|seealso|c|code"
    r"|list|listheader|item|term|description|inheritdoc|br)\b[^<>]*>"
)
"""Documentation in XML (C#): tags that mean nothing to a reader."""

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


class Source:
    """UTF-8 bytes, decoded once; tree-sitter speaks of bytes, units of lines."""

    def __init__(self, path: str, data: bytes, language: Language, role: str) -> None:
        self.path = path
        self.language = language
        self.role = role
        self.data = data
        self.text = data.decode("utf-8")
        self.ascii = len(self.text) == len(data)
        self.lines = split_lines(self.text)
        self.line_starts = [0, *(newline.end() for newline in re.finditer(b"\n", data))]
        """Byte offset of every line, and of the end after a final newline."""
        self.comment_spans: list[tuple[int, int]] = []
        """Byte spans of all comments, wherever they stand."""
        self._leading: dict[int, tuple[int, str, int, int]] = {}
        """Comments and attributes that begin their line, by the line on which they end."""

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end] if self.ascii else self.data[start:end].decode("utf-8")

    def text_of(self, node: tree_sitter.Node) -> str:
        return self.slice(node.start_byte, node.end_byte)

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return bisect_right(self.line_starts, offset)

    def span(self, first: int, last: int) -> str:
        return "\n".join(self.lines[first - 1 : last])

    def add_leading(self, kind: str, start: int, end: int) -> None:
        """Take in a comment or an attribute of byte span `start`..`end`."""
        if kind == COMMENT:
            self.comment_spans.append((start, end))
        starts = self.line_starts
        first = last = bisect_right(starts, start)
        begin = starts[first - 1]
        if begin != start and not self.data[begin:start].isspace():
            return
        while end > start + 1 and self.data[end - 1] in b"\r\n":
            end -= 1  # some grammars count the newline to the comment
        if first < len(starts) and end > starts[first]:
            last = bisect_right(starts, end - 1)
        known = self._leading.get(last)
        if known is None or first < known[0]:  # an attribute inside another one
            self._leading[last] = (first, kind, start, end)

    def above(self, line: int, floor: int = 0) -> tuple[int, list[tuple[int, int]]]:
        """First line of what stands directly above `line`, and its comments' byte spans.

        Nothing above or on line `floor` is taken.
        """
        comments: list[tuple[int, int]] = []
        block = self._leading.get(line - 1)
        while block is not None and block[0] > floor:
            line = block[0]
            if block[1] == COMMENT:
                comments.append((block[2], block[3]))
            block = self._leading.get(line - 1)
        comments.reverse()
        return line, comments

    def without_comments(self, start: int, end: int) -> str:
        """Text between two offsets without the comments in it."""
        kept, spans = "", self.comment_spans
        for index in range(bisect_left(spans, (start, 0)), len(spans)):
            first, last = spans[index]
            if first >= end:
                break
            kept += self.slice(start, first) + ("\n" if "\n" in self.slice(first, last) else " ")
            start = max(start, min(last, end))
        return kept + self.slice(start, end)

    def leading_comments(self) -> list[tuple[int, int, int]]:
        """(first line, start, end) of every comment that begins its line, in order."""
        return sorted((b[0], b[2], b[3]) for b in self._leading.values() if b[1] == COMMENT)


# Lines.


def split_lines(text: str) -> list[str]:
    """The lines of `text`, without their `\\n`."""
    return text.removesuffix("\n").split("\n") if text else []


def line_spans(lines: list[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Spans (first line, last line) of `CHUNK_SIZE` lines that cover every line of `first`..`last`
    that is not blank, and overlap by `OVERLAP`.

    A span ends early rather than exceed `MAX_CHARACTERS`, unless it is a single line. Blank lines
    at its ends are cut off; one inside the one before it, or with nothing but blanks, is dropped.
    """
    covered = first - 1
    start = first
    while start <= last:
        end, characters = start, len(lines[start - 1])
        while end < min(start + CHUNK_SIZE - 1, last):
            characters += len(lines[end]) + 1
            if characters > MAX_CHARACTERS:
                break
            end += 1
        trimmed = trim(lines, start, end)
        if trimmed is not None and trimmed[1] > covered:
            covered = trimmed[1]
            yield trimmed
        # A short span of long lines overlaps by proportionally less.
        start = end + 1 - (end + 1 - start) * OVERLAP // CHUNK_SIZE


def trim(lines: list[str], first: int, last: int) -> tuple[int, int] | None:
    """The span without the blank lines at its ends; None when all are blank."""
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= last else None


# What comments say.


def comment_text(parts: list[str]) -> str:
    """Text of adjacent comments without their markers; only the marked ones if any is."""
    parts = [part for part in parts if not part.startswith("#!/")]
    marked = [part for part in parts if _MARKED.match(part)]
    text = "\n".join(line for part in marked or parts for line in _bare_lines(part))
    if "<" in text and _XML_DOC.search(text):
        text = _XML_TAG.sub("", _XML_NAMED.sub(r"\1: ", _XML_VALUE.sub(r"\1", text)))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def docstring_text(literal: str) -> str:
    """Text of a string literal or comment inside a body, without quotes and indentation."""
    match = _STRING.match(literal)
    return cleandoc(match.group(2)).strip() if match else comment_text([literal])


def _bare_lines(comment: str) -> list[str]:
    block = comment.lstrip().startswith(("/*", "--[", "<!--", "{-", "(*"))
    if block:
        comment = comment.rstrip()
        head, tail = comment[:-_LONGEST_CLOSE], comment[-_LONGEST_CLOSE:]
        comment = (head + _CLOSE.sub("", tail)).rstrip()
    lines = comment.split("\n")
    bare = [_OPEN.sub("", lines[0])]
    starred = False
    for line in lines[1:]:
        if block:
            text = line.lstrip()
            if text.startswith("*") and not text.startswith("*/"):
                starred = True
                line = text[2:] if text[1:2] in (" ", "\t") else text[1:]
            bare.append(line)
        else:
            bare.append(_OPEN.sub("", line))
    if block and len(bare) > 1 and not starred:
        bare = [bare[0], *cleandoc("\n" + "\n".join(bare[1:])).split("\n")]
    return [line for line in bare if not _DIRECTIVE.match(line.strip())]


# Definitions.


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
    known: dict[tuple[int, int, int, bool], Definition] = {}
    for pattern, kind, capture, captures in matches:
        if not (names := captures.get("name")):
            continue
        node, name = captures[capture][0], names[0]
        span = (node.start_byte, node.end_byte, name.start_byte)
        key = (*span, kind == CONSTANT)
        definition = known.get(key)
        if definition is None or pattern < definition.pattern:
            definition = Definition(pattern, kind, *span, name.end_byte)
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
                if nodes[-1].end_byte > definition.end:  # below a constant of Python
                    definition.body, definition.end = nodes[0].start_byte, nodes[-1].end_byte
            elif part == "owner":
                definition.owner = source.language.separator.join(map(source.text_of, nodes))
            elif part == "self":
                definition.self_name = source.text_of(nodes[0])
    for definition in known.values():
        while definition.start in outer:
            definition.start = definition.begin = outer[definition.start]
    found = sorted(known.values(), key=lambda d: (d.start, -d.end, d.name_start))
    if max(map(len, source.lines), default=0) > MAX_LINE:
        found = [d for d in found if len(source.lines[source.line_of(d.start) - 1]) <= MAX_LINE]
    end = len(source.data)
    for definition in reversed(found):
        if definition.kind == FILE:
            definition.end, end = end, definition.start
    found = _without_prototypes(found) if source.language.prototypes else found
    return _with_constants(found, source)


def _with_constants(found: list[Definition], source: Source) -> list[Definition]:
    """Leave out constants that say too little to be searched for, and those that hold definitions.

    What stays lies in source code outside of functions and has a comment, MIN_CHUNK_LINES lines or
    a name in capitals. A name that is bound to an object with functions in it owns these.
    """
    starts = [d.start for d in found if not d.is_scope and d.kind != CONSTANT]
    kept, inside = [], 0
    for definition in found:
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
        kept.append(definition)
    return kept


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
        if definition.class_name and inside not in METHOD_KINDS and definition.kind != CONSTANT:
            members.setdefault(definition.class_name, []).append(definition)
    units = [_unit(source, d, members) for d in solid]
    unit_at: dict[int, str] = {}
    values = {(d.first_line, d.last_line): d.id for d in solid if d.kind == CONSTANT}
    for unit in _top_level(source, solid, module_doc, new_id):
        same = values.get((unit.start_line, unit.end_line)) if unit.kind == "chunk" else None
        if not same:  # else a constant has these lines already, and a name
            units.append(unit)
        unit_at.update(dict.fromkeys(range(unit.start_line, unit.end_line + 1), same or unit.id))
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
    if parts and source.line_of(spans[0][0]) <= 3 and _LICENCE.search(parts[0]):
        parts = [part for part in parts if not _LICENCE.search(part)]
    return comment_text(parts)


def _top_level(
    source: Source, definitions: list[Definition], module_doc: str, new_id: Callable[[str], str]
) -> Iterator[Unit]:
    """The file's head as a `module` and further gaps between definitions as `chunk`s."""
    name = PurePosixPath(source.path).name
    stem = name.split(".", 1)[0] or name
    part = 0
    for first, last in _gaps(source, [d for d in definitions if d.kind != CONSTANT]):
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
        if first <= last and (first <= 2 or first - 1 in noted or _LICENCE.search(text)):
            noted.update(range(first, source.line_of(max(start, end - 1)) + 1))
    lines = source.lines
    if not any(_LICENCE.search(lines[line - 1]) for line in noted):
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
    return "" if _LICENCE.search(text) else text
