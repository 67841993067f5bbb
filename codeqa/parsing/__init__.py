"""Parse a file of a repository once, from its bytes to units and references.

The tree of a source file is read by one query; its matches are sorted into kinds, nested by
their byte spans, and turned into units and edges. Nothing here recurses, so that nesting is
bounded by memory alone, and nothing is kept between files but the compiled grammars.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from codeqa.languages import Language, detect, language_called, languages, query_text
from codeqa.parsing.branches import join_branches
from codeqa.parsing.comments import docstring_text
from codeqa.parsing.definitions import find_definitions, named_within, nest
from codeqa.parsing.documents import parse_document
from codeqa.parsing.item_macros import ItemMacro, find_macros, holds_items
from codeqa.parsing.recovery import is_broken, without_broken_blocks
from codeqa.parsing.references import FoundName, TypedName, exports, find_imports, references
from codeqa.parsing.source import ATTRIBUTE, COMMENT, Source
from codeqa.parsing.units import build_units
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.text import as_utf8
from codeqa.types import ParsedFile, Reference, Unit

if TYPE_CHECKING:
    import tree_sitter

    from codeqa.parsing.definitions import Captures

SECONDS_PER_FILE = 3.0
"""Processor time after which a grammar gives up on a file: a megabyte takes 0.2 s, and five
kilobytes of `-|` in TypeScript never end."""

MAX_BROKEN_CHILDREN = 20_000
"""Children of a broken node (`((((…` without an end) beyond which no query is run.

The query's cursor looks through all later siblings at each of them: 20,000 take 0.3 s,
200,000 take 30 s.
"""

MAX_PATTERNS = 1000
"""More than the patterns of any query: those of a rare one count as being before them."""

KEPT = 0.9
"""Share of the definitions that must remain where blocks that cannot be read are left out."""

_READ_BYTES = 1 << 12
"""Bytes handed to the parser at a time. The predicates of a query read again for every node, so
larger parts cost more there than they save here."""

_FAMILIES = {"definition", "scope", "reference", "import", "export", "variable", "outer"}
_FAMILIES |= {COMMENT, ATTRIBUTE}
"""First words of captures that say what their pattern is for."""

REFERENCE_RANKS = {"inherits": 0, "call": 2, "type": 4, "use": 4, "value": 6}
"""When several patterns match one identifier the lowest rank names its kind."""

MAX_ROUNDS = 4
"""Parses of a file with misleading macros before all of them are left as they are."""

_WORD = re.compile(rb"(?s)\w+|(?:@|context\s*\().+")
_CALLED = re.compile(rb"\s*([A-Z_][A-Z0-9_]*)(?=\s*\(|\s*\Z)")
_GAP = re.compile(rb"\s*")
_MARK = re.compile(rb"@(?:\w+:)?(\w+)|(\w+)::class")
"""A name in a blanked annotation."""
_OTHER_CELL = re.compile(r"%%(?!time|capture|prun)")
"""What a notebook's cell in another language than the notebook's begins with."""
_REST_BLANK = re.compile(rb"[ \t]{0,500}\r?(?:\n|\Z)")
_STATEMENT = re.compile(rb"[^\n;]*;")
_CAPTURE = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|@([A-Za-z_][\w.-]*)')
"""A string, a comment, or a capture, whose name is the group."""


Masks = tuple[tuple[tuple[bytes, ...], re.Pattern[bytes], tuple[bytes, ...]], ...]
"""Words without which an expression cannot match, the expression, what overwrites its groups."""


class Pattern(NamedTuple):
    """The purpose of one pattern of a query."""

    family: str = ""
    """One of `_FAMILIES`, `doc`, or '' for a pattern that only its predicates need."""
    capture: str = ""
    """The capture on the node that matters (`definition.class`, `reference.call`)."""
    kind: str = ""
    rank: int = 0


Queries = tuple["tree_sitter.Query", tuple[Pattern, ...]]
"""A query, and what each of its patterns is for."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language that can be parsed."""

    language: Language
    grammar: tree_sitter.Language
    masks: Masks = ()
    repairs: Masks = ()
    code: re.Pattern[bytes] | None = None
    rare_queries: tuple[tuple[str, tuple[bytes, ...]], ...] = ()
    """Names of queries, and words of which a file must hold one for each to be used."""


class TooSlowError(Exception):
    """The grammar cannot read the file in bounded time."""


@cache
def grammar(key: str) -> Grammar:
    """Load the grammar of a language by its key.

    Raises KeyError for an unknown language, ValueError for one without a grammar and
    tree_sitter.QueryError for a query that does not fit its grammar.
    """
    language = languages()[key]
    if not language.grammar:
        raise ValueError(f"{key} has no grammar")
    masks, repairs = _masks(language.masks), _masks(language.repairs)
    code = re.compile(language.code.encode()) if language.code else None
    rare = tuple((name, _encoded(words)) for name, *words in language.rare_queries)
    return Grammar(language, _compiled(language.grammar), masks, repairs, code, rare)


@cache
def _compiled(address: str) -> tree_sitter.Language:
    """Load a grammar by its module and function, which languages share."""
    import tree_sitter

    module, function = address.split(":")
    return tree_sitter.Language(getattr(import_module(module), function)())


def _masks(rules: Iterable[list[Any]]) -> Masks:
    masks = []
    for rule in rules:
        words, expression, *fills = rule if isinstance(rule[0], list) else [[], *rule]
        masks.append((_encoded(words), re.compile(expression.encode()), _encoded(fills)))
    return tuple(masks)


def _encoded(texts: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def holds_word(words: Sequence[bytes], data: bytes) -> bool:
    """Return whether one of some words is in a file; without words always."""
    return not words or any(word in data for word in words)


@cache
def query(key: str, name: str = "") -> Queries:
    """Compile the query of a language, or one of those that few of its files need, by its name.

    Raises as `grammar` does.
    """
    language = languages()[key]
    return _compile(language.grammar, query_text(language, name))


@cache
def _compile(address: str, text: str) -> Queries:
    import tree_sitter

    query = tree_sitter.Query(_compiled(address), text)
    return query, tuple(_patterns(query, text))


def _code_of(grammar: Grammar, text: bytes) -> bytes:
    """Overwrite with line ends what is not code."""
    if grammar.code is None:
        return text
    buffer = bytearray(b"\n" * len(text))
    for match in grammar.code.finditer(text):
        for first, last in match.regs[1:]:
            if first >= 0:
                buffer[first:last] = text[first:last]
    return bytes(buffer)


def readable(masks: Masks, data: bytes, blanks: list[tuple[int, int]]) -> bytes:
    """Mask what the grammar cannot read; add the spans of overwritten words to `blanks`."""
    output = data
    for words, rule, fills in masks:
        if not holds_word(words, data):
            continue
        buffer = bytearray(output)
        for match in rule.finditer(output):
            for group, fill in enumerate(fills, min(rule.groups, 1)):
                first, last = match.span(group)
                size = last - first
                buffer[first:last] = fill * size if len(fill) == 1 else fill.ljust(size)[:size]
                if fill == b" " and _WORD.fullmatch(data, first, last):
                    blanks.append((first, last))
                elif fill in (b" ", b"int(") and (word := _CALLED.match(data, first, last)):
                    blanks.append(word.span(1))
        output = bytes(buffer)
    return output


def parse_masked(
    grammar: Grammar, text: bytes, blanks: list[tuple[int, int]]
) -> tuple[bytes, tree_sitter.Tree, list[ItemMacro]]:
    """Return what `parse` does, before it the text as it was parsed; add blanked words to `blanks`.

    Raises TooSlowError.
    """
    data = readable(grammar.masks, _code_of(grammar, text), blanks)
    tree, macros = parse(grammar, data)
    if grammar.repairs and tree.root_node.has_error:
        repaired = readable(grammar.repairs, join_branches(data), blanks)
        if repaired != data:
            data = repaired
            tree, macros = parse(grammar, data)
    return data, tree, macros


def parse(grammar: Grammar, data: bytes) -> tuple[tree_sitter.Tree, list[ItemMacro]]:
    """Return the syntax tree of UTF-8 bytes, and the macros left out of it, which hold items.

    Raises TooSlowError.
    """
    macros = find_macros(data) if grammar.language.item_macros else []
    for _ in range(MAX_ROUNDS):
        if not macros:
            break
        buffer = bytearray(data)
        for macro in macros:
            buffer[macro.start : macro.body] = b" " * (macro.body - macro.start)
            buffer[macro.end] = ord(" ")
        tree = _tree(grammar, bytes(buffer))
        item_macros = [macro for macro in macros if holds_items(tree.root_node, macro)]
        if len(item_macros) == len(macros):
            return tree, macros
        macros = item_macros
    return _tree(grammar, data), []


def _tree(grammar: Grammar, data: bytes) -> tree_sitter.Tree:
    import tree_sitter

    limit = time.thread_time() + SECONDS_PER_FILE

    def read(offset: int, _point: object) -> bytes:
        return data[offset : offset + _READ_BYTES]

    try:
        # The progress callback is heeded only when the parser reads through a function.
        tree = tree_sitter.Parser(grammar.grammar).parse(
            read, progress_callback=lambda _offset, _error: time.thread_time() > limit
        )
    except ValueError as error:  # "Parsing failed": the callback ended it
        raise TooSlowError from error
    if tree is None or (tree.root_node.has_error and _is_too_wide(tree.root_node)):
        raise TooSlowError
    return tree


def _is_too_wide(root: tree_sitter.Node) -> bool:
    """Return whether a broken node has so many children that a query over it would not end."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.child_count > MAX_BROKEN_CHILDREN:
            return True
        stack.extend(child for child in node.children if child.has_error)
    return False


def _patterns(query: tree_sitter.Query, text: str) -> Iterator[Pattern]:
    data = text.encode("utf-8")
    for index in range(query.pattern_count):
        span = data[query.start_byte_for_pattern(index) : query.end_byte_for_pattern(index)]
        captures = _CAPTURE.findall(span.decode("utf-8"))
        for capture in captures:
            family, _, kind = capture.partition(".")
            if family in _FAMILIES:
                rank = REFERENCE_RANKS[kind] if family == "reference" else 0
                yield Pattern(family, capture, kind, rank)
                break
        else:
            yield Pattern("doc" if "doc" in captures else "")


def recover(
    grammar: Grammar, data: bytes, tree: tree_sitter.Tree, macros: list[ItemMacro]
) -> tuple[bytes, tree_sitter.Tree, list[ItemMacro]]:
    """Leave out the blocks that break the braces of a tree, if nearly all definitions remain."""
    if tree.root_node.has_error and is_broken(tree.root_node):
        with suppress(TooSlowError):
            rest = without_broken_blocks(data, lambda part: parse(grammar, part)[0].root_node)
            other, other_macros = parse(grammar, rest)
            if _definitions(grammar, other) >= KEPT * _definitions(grammar, tree):
                return rest, other, other_macros
    return data, tree, macros


def _definitions(grammar: Grammar, tree: tree_sitter.Tree) -> int:
    """Return how many definitions are in a tree."""
    import tree_sitter

    compiled, patterns = query(grammar.language.key)
    matches = tree_sitter.QueryCursor(compiled).matches(tree.root_node)
    return sum(patterns[index].family == "definition" for index, _ in matches)


# One file.


def parse_file(path: str, data: bytes, role: str = "source") -> ParsedFile:
    """Parse one file in one read; raise nothing because of its content.

    Bytes that are not UTF-8 become U+FFFD and are counted; secret-looking strings become
    asterisks. A file that its grammar cannot read in bounded time, or finds nothing in, is
    cut into chunks like one without a grammar.
    """
    data = as_utf8(data)
    language = detect(path, data)
    data, masked = mask_secret_bytes(data)
    text = data.decode("utf-8", "replace")
    replaced = len(data) - len(data.decode("utf-8", "ignore").encode("utf-8"))
    name = language.name if language is not None else "text"
    parsed = ParsedFile(path, name, (), (), replaced_bytes=replaced, masked=masked)
    if language is not None and language.grammar:
        try:
            file = extract(path, text.encode("utf-8"), language.key, role)
            parsed = replace(file, replaced_bytes=replaced, masked=masked)
        except TooSlowError:
            parsed = replace(parsed, has_errors=True)
    if parsed.units:
        return parsed
    parsed = replace(parsed, units=parse_document(path, text, name, role))
    return _with_cells(parsed, role) if language and language.cell_language else parsed


def _with_cells(notebook: ParsedFile, role: str) -> ParsedFile:
    """Add the definitions and references of a notebook's cells, at the lines of the file."""
    texts: dict[tuple[int, int], tuple[str, str]] = {}
    """Line of the file, with a number where it holds several of the code → cell's id, text."""
    language = language_called(language_called(notebook.language).cell_language)
    for unit in notebook.units:
        if unit.language != language.name or _OTHER_CELL.match(unit.source_code):
            continue
        lines = unit.source_code.split("\n")
        aligned = len(lines) == unit.end_line - unit.start_line + 1
        for number, text in enumerate([*lines, ""]):
            place = (unit.start_line + number, 0) if aligned else (unit.start_line, len(texts))
            texts[place] = unit.id, "" if text.lstrip()[:1] in ("%", "!", "?") else text
    places = sorted(texts)
    code = "\n".join(texts[place][1] for place in places)
    try:
        file = extract(notebook.path, code.encode("utf-8"), language.key, role)
    except TooSlowError:
        return replace(notebook, has_errors=True)
    definitions: list[Unit] = []
    for unit in filter(lambda unit: unit.is_definition, file.units):
        first, last = places[unit.start_line - 1][0], places[unit.end_line - 1][0]
        definitions.append(replace(unit, start_line=first, end_line=last))
    ids = {unit.id for unit in definitions}
    edges: list[Reference] = []
    for edge in file.references:
        place = places[edge.line - 1]
        around = edge.unit_id if edge.unit_id in ids else texts[place][0]
        edges.append(replace(edge, line=place[0], unit_id=around))
    units = [*notebook.units, *definitions]
    units.sort(key=lambda unit: (unit.start_line, -unit.end_line))
    errors = file.has_errors
    return replace(notebook, units=tuple(units), references=tuple(edges), has_errors=errors)


def _queries_for(grammar: Grammar, text: bytes) -> Iterator[str]:
    yield ""
    for name, words in grammar.rare_queries:
        if holds_word(words, text):
            yield name


def extract(path: str, text: bytes, language: str, role: str = "source") -> ParsedFile:
    """Extract units and references of one file.

    `text` is UTF-8 with `\\n` line ends, `language` the key of a language with a grammar.
    Raises TooSlowError when the grammar cannot read the file in bounded time.
    """
    import tree_sitter

    spec = grammar(language)
    blanks: list[tuple[int, int]] = []
    data, tree, macros = parse_masked(spec, text, blanks)
    has_errors = tree.root_node.has_error
    data, tree, macros = recover(spec, data, tree, macros)
    source = Source(path, text, spec.language, role)
    matches = _Matches(source)
    for number, name in enumerate(_queries_for(spec, text)):
        compiled, patterns = query(language, name)
        # No progress callback: with one, `matches` of tree-sitter 0.26.1 crashes.
        for index, captures in tree_sitter.QueryCursor(compiled).matches(tree.root_node):
            matches.add(index - number * MAX_PATTERNS, patterns[index], captures)
    for start, end in blanks:
        if _REST_BLANK.match(data, end):
            if not _STATEMENT.match(text, end):  # `EXPORT_API` on its own line belongs to the next
                source.add_leading(ATTRIBUTE, start, end)
        elif text.startswith((b"@", b"context"), start) and (gap := _GAP.match(data, end)):
            matches.outer[gap.end()] = start
        for word in _MARK.finditer(text, start, end):
            begin, stop = word.span(word.lastindex or 0)
            matches.names.setdefault(begin, (REFERENCE_RANKS["type"], stop, None, "use"))
        if text[end : end + 1] == b"(" and spec.repairs:
            matches.names.setdefault(start, (REFERENCE_RANKS["call"], end, None, "call"))
    names = matches.names
    for macro in macros:
        names[macro.name] = (REFERENCE_RANKS["call"], macro.name_end, None, "call")
    definitions = find_definitions(source, matches.definitions, matches.outer)
    top = nest(definitions, source)
    units, unit_at = build_units(source, definitions, matches.module_doc)
    imports = list(find_imports(source, matches.imports))
    edges = references(source, names, matches.variables, definitions, top, imports, unit_at)
    edges += exports(source, matches.exports)
    return ParsedFile(path, spec.language.name, units, tuple(edges), has_errors=has_errors)


_CAPITALS = frozenset(range(ord("A"), ord("Z") + 1))


class _Matches:
    """The matches of a file's query, sorted by what their patterns are for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.definitions: list[tuple[int, str, str, Captures]] = []
        self.imports: list[Captures] = []
        self.exports: list[tuple[int, str, str]] = []
        self.outer: dict[int, int] = {}
        self.names: dict[int, FoundName] = {}
        self.variables: dict[int, TypedName] = {}
        self.module_doc = ""

    def add(self, index: int, pattern: Pattern, captures: Captures) -> None:
        family, capture, kind, rank = pattern
        if family == "reference":
            self._add_reference(captures[capture][0], captures.get("receiver"), kind, rank)
        elif family in (COMMENT, ATTRIBUTE):
            node = captures[family][0]
            self._source.add_leading(family, node.start_byte, node.end_byte)
        elif family in ("definition", "scope"):
            if within := captures.get("name.within"):
                captures = captures | named_within(within[0], kind == "function")
            self.definitions.append((index, kind or "scope", capture, captures))
        elif family == "outer":
            self.outer[captures["inner"][0].start_byte] = captures["outer"][0].start_byte
        elif family == "import":
            self.imports.append(captures)
        elif family in ("export", "variable"):
            (self._add_variable if family == "variable" else self._add_export)(captures)
        elif family == "doc":
            first, last = captures["doc"][0], captures["doc"][-1]
            self.module_doc = docstring_text(self._source.slice(first.start_byte, last.end_byte))

    def _add_reference(
        self,
        node: tree_sitter.Node,
        receivers: Sequence[tree_sitter.Node] | None,
        kind: str,
        rank: int,
    ) -> None:
        start, receiver = node.start_byte, receivers[0] if receivers else None
        if start not in self.names or rank + (not receivers) < self.names[start][0]:
            self.names[start] = (rank + (not receivers), node.end_byte, receiver, kind)
        if receiver is None or receiver.child_count:
            return
        start, end = receiver.start_byte, receiver.end_byte
        if self._source.data[start] in _CAPITALS:  # a class
            self.names.setdefault(start, (REFERENCE_RANKS["value"] + 1, end, None, "value"))

    def _add_export(self, captures: Captures) -> None:
        name = captures["export.name"][0]
        known_as = captures.get("export.alias", [name])[0]
        words = self._source.text_of(name), self._source.text_of(known_as)
        self.exports.append((name.start_byte, *words))

    def _add_variable(self, captures: Captures) -> None:
        types, member = captures.get("variable.type"), captures.get("variable.member")
        variable, value = member or captures.get("variable"), types or captures["variable.copied"]
        if variable and (types or variable[0].start_byte not in self.variables):
            typed_name = (variable[0], value[0], member is not None, types is None)
            self.variables[variable[0].start_byte] = typed_name
