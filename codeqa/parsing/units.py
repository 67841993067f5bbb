"""Make units of a file's definitions, its head and the code between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath

from codeqa.parsing.comments import comment_text, docstring_text
from codeqa.parsing.definitions import Definition
from codeqa.parsing.source import CHUNK_SIZE, CONSTANT, MIN_CHUNK_LINES, Source, trim
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Unit

_LICENCE = re.compile(
    r"copyright|licen[sc]e|\bSPDX\b|all rights reserved|permission is hereby granted", re.I
)
"""Words of a notice of rights at the head of a file."""

MAX_SIGNATURE = 1000
"""Characters of a signature; a longer one is data rather than a declaration."""

_ATTRIBUTES = re.compile(
    r"\s*(?:@(?!interface\b)[\w.]+(?:\([^()]*\))?|#\[[^\]]*\]|\[(?:\w+:\s*)?[A-Z][^\]]*\])(?=\s)"
)
_STATEMENT = re.compile(r"(?:[\w\])>] *:?=(?![=>])|\w\().*[^\s{(\[]\s*$")
_ATTRIBUTE_MARKS = ("@", "#", "[")
_PAST_SIGNATURE = " \t\n{:=(;\\"


def unit_ids(path: str) -> Callable[[str], str]:
    """Return a function that makes ids of one file's units from their qualified names, in order.

    An id has 16 hexadecimal digits, and stays the same as long as the file's path, the name and the
    order among units of that name do.
    """
    counts: Counter[str] = Counter()

    def new_id(qualified_name: str) -> str:
        key = f"{path}\0{qualified_name}\0{counts[qualified_name]}"
        counts[qualified_name] += 1
        return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    return new_id


def build_units(
    source: Source, definitions: list[Definition], module_doc: str
) -> tuple[tuple[Unit, ...], dict[int, str]]:
    """Return the units in source order, and line → unit id for lines outside every definition.

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
    constants = {(d.first_line, d.last_line): d.id for d in solid if d.kind == CONSTANT}
    for unit in _top_level(source, solid, module_doc, new_id):
        lines = (unit.start_line, unit.end_line)
        id_ = constants.get(lines) if unit.kind == "chunk" else None
        if not id_:  # else a constant has these lines already, and a name
            units.append(unit)
        unit_at.update(dict.fromkeys(range(lines[0], lines[1] + 1), id_ or unit.id))
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
    """Return the declaration without attributes and body, on one line; computed once."""
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
    """Yield the file's head as a `module` and further gaps between definitions as `chunk`s."""
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
    """Yield line spans outside every definition, without blank lines at their ends."""
    lines = source.lines
    spans = sorted((d.first_line, d.last_line) for d in definitions if not _is_part(d, source))
    free = 1
    spans.append((len(lines) + 1, len(lines) + 1))
    for first, last in spans:
        if gap := trim(lines, free, first - 1):
            yield (1 if free == 1 else gap[0]), gap[1]
        free = max(free, last + 1)


def _is_part(definition: Definition, source: Source) -> bool:
    """Return whether it is inside a statement that is no definition: `{"a": lambda: 1}`."""
    indented = source.lines[definition.first_line - 1][:1] in (" ", "\t")
    return indented and definition.kind == "lambda" and definition.parent is None


def _pieces(source: Source, first: int, last: int, head: bool) -> Iterator[tuple[int, int]]:
    """Cut a gap into spans of at most `CHUNK_SIZE` lines, at blank lines if possible."""
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
    """Return the first of the lines 1..`last` after a notice of rights; `last` + 1 for none.

    The notice would be a hit for every question with the word "software".
    """
    notice: set[int] = set()
    for first, start, end in source.leading_comments():
        text = source.slice(start, end)
        if first <= last and (first <= 2 or first - 1 in notice or _LICENCE.search(text)):
            notice.update(range(first, source.line_of(max(start, end - 1)) + 1))
    lines = source.lines
    if not any(_LICENCE.search(lines[line - 1]) for line in notice):
        notice = set()
    code = (n for n in range(1, last + 1) if n not in notice and lines[n - 1].strip())
    return next(code, last + 1)


def _module_comment(source: Source, last: int) -> str:
    """Return the first block of comments of a file that is not a notice of rights."""
    block: list[tuple[int, int]] = []
    expected = 0
    """The line after the block."""
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
