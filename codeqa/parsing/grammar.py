"""Grammars and queries, compiled once per process, and one bounded run of them.

Grammars and queries do not pickle, so each worker process compiles its own.

To Rust's grammar the braces of a macro hold words only, also where they hold items:
`cfg_rt! { pub fn spawn() {} }`. So the name and the braces of a macro that looks as if it held some
are overwritten with spaces before the file is parsed, and the tree says whether it did: where not,
that macro is left as it is. One that spoils the tree for others takes them along; none does in
1,194 files of tokio, axum and ripgrep.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from codeqa.languages import Language, languages, query_text

if TYPE_CHECKING:
    import tree_sitter

    Captures = dict[str, list[tree_sitter.Node]]

SECONDS_PER_FILE = 3.0
"""Of the processor, after which a file counts as one that its grammar cannot read: a megabyte takes
0.2 s, and five kilobytes of `-|` in TypeScript have no end."""

MAX_BROKEN_CHILDREN = 20_000
"""Children of a broken node (`((((…` without an end) beyond which no query is run.

The query's cursor looks through all later siblings at each of them: 20,000 take 0.3 s,
200,000 take 30 s.
"""

_READ_BYTES = 1 << 12
"""Bytes handed to the parser at a time. The predicates of a query read anew for every node,
so that larger pieces cost more there than they save here."""

_FAMILIES = frozenset(
    {"definition", "scope", "reference", "import", "variable", "comment", "attribute", "outer"}
)
"""First words of captures that say what their pattern is for."""

REFERENCE_RANKS = {"inherits": 0, "call": 2, "type": 4, "use": 4, "value": 6}
"""When several patterns match one identifier the lowest rank names its kind."""

MAX_ROUNDS = 4
"""Parses of a file whose macros deceive before all of them are left as they are."""

MAX_HEAD = 200
"""Bytes of the line before a macro's `!`."""

_BRACE = re.compile(rb"![ \t]*\{")
_HEAD = re.compile(rb"([ \t]*)(?:\w+::)*(\w+)")
_BODY = re.compile(
    rb"(?>\s+|//[^\n]*\n)*+"
    rb"(?:#!?\[|(?:pub|fn|impl|mod|use|struct|enum|trait|type|const|static|async|unsafe|extern"
    rb"|union|macro_rules)\b|(?:\w+::)*\w+![ \t]*\{)"
)
"""How items begin, behind the opening brace."""

_ITEM = re.compile(r"\w+_item|\w+_definition|\w+_comment|(?:use|extern_crate)_declaration")
_MACRO = "macro_invocation"
_CLOSING = ord("}")
_HOLDERS = frozenset({"source_file", "declaration_list"})

_WORD = re.compile(rb"\w+")
_CAPTURE = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|@([A-Za-z_][\w.-]*)')
"""A string, a comment, or a capture, whose name is the group."""


class Pattern(NamedTuple):
    """What one pattern of a query is for."""

    family: str = ""
    """One of `_FAMILIES`, `doc`, or '' for a pattern that only its predicates need."""
    capture: str = ""
    """The capture on the node that matters (`definition.class`, `reference.call`)."""
    kind: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language that can be parsed."""

    language: Language
    grammar: tree_sitter.Language
    query: tree_sitter.Query
    patterns: tuple[Pattern, ...]
    masks: tuple[tuple[re.Pattern[bytes], bytes], ...] = ()


class ItemMacro(NamedTuple):
    """Byte offsets of a macro."""

    start: int
    name: int
    name_end: int
    body: int
    """Behind the opening brace."""
    end: int
    """The closing brace."""


class TooSlowError(Exception):
    """The grammar cannot read the file in bounded time."""


@cache
def grammar(key: str) -> Grammar:
    """The grammar of a language by its key.

    Raises KeyError for an unknown language, ValueError for one without a grammar and
    tree_sitter.QueryError for a query that does not fit its grammar.
    """
    import tree_sitter

    language = languages()[key]
    if not language.grammar:
        raise ValueError(f"{key} has no grammar")
    module, function = language.grammar.split(":")
    compiled = tree_sitter.Language(getattr(import_module(module), function)())
    text = query_text(language)
    query = tree_sitter.Query(compiled, text)
    masks = tuple((re.compile(rule.encode()), fill.encode()) for rule, fill in language.masks)
    return Grammar(language, compiled, query, tuple(_patterns(query, text)), masks)


def readable(grammar: Grammar, data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes that the grammar is given, and the words that are blanked in them."""
    given, blanked = data, []
    for rule, fill in grammar.masks:
        changed = bytearray(given)
        for match in rule.finditer(given):
            first, last = match.span(1 if rule.groups else 0)
            changed[first:last] = fill * (last - first)
            if fill == b" " and _WORD.fullmatch(data, first, last):
                blanked.append((first, last))
        given = bytes(changed)
    return given, blanked


def parse(grammar: Grammar, data: bytes) -> tuple[tree_sitter.Tree, list[ItemMacro]]:
    """Syntax tree of UTF-8 bytes, and the macros that it lacks, for what they hold are items.

    Raises TooSlowError.
    """
    macros = _candidates(data) if grammar.language.item_macros else []
    for _ in range(MAX_ROUNDS):
        if not macros:
            break
        opened = bytearray(data)
        for macro in macros:
            opened[macro.start : macro.body] = b" " * (macro.body - macro.start)
            opened[macro.end] = ord(" ")
        tree = _tree(grammar, bytes(opened))
        held = [macro for macro in macros if _holds_items(tree.root_node, macro)]
        if len(held) == len(macros):
            return tree, macros
        macros = held
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
    """Whether some broken node has so many children that a query over it would not end."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.child_count > MAX_BROKEN_CHILDREN:
            return True
        waiting.extend(child for child in node.children if child.has_error)
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


def _candidates(data: bytes) -> list[ItemMacro]:
    """Macros that begin a line and may hold items.

    The closing brace is taken to end the same line, or to be the next that is indented as the
    macro is; where that is wrong, the tree will not be one of items.
    """
    found: dict[int, ItemMacro] = {}
    closing: dict[bytes, int] = {}
    for brace in _BRACE.finditer(data):
        mark, body = brace.span()
        line = data.rfind(b"\n", max(0, mark - MAX_HEAD), mark) + 1
        head = _HEAD.fullmatch(data, line, mark)
        if head is None or not _BODY.match(data, body):
            continue
        end = _end_of_line(data, body)
        if data[end] != _CLOSING:
            indent = head[1]
            end = closing.get(indent, 0)
            if 0 <= end < body:
                at = data.find(b"\n" + indent + b"}", body)
                end = closing[indent] = at + len(indent) + 1 if at >= 0 else -1
        if end >= 0:
            macro = ItemMacro(head.end(1), *head.span(2), body, end)
            found[end] = macro  # the nearest before its brace
    return list(found.values())


def _end_of_line(data: bytes, body: int) -> int:
    """Offset of the last character, before blanks, of the line on which `body` lies."""
    end = data.find(b"\n", body)
    end = len(data) if end < 0 else end
    return body + len(data[body:end].rstrip()) - 1


def _holds_items(root: tree_sitter.Node, macro: ItemMacro) -> bool:
    """Whether whole items without errors, where items may stand, are between the braces."""
    holder = root.descendant_for_byte_range(macro.start, macro.end) or root
    if holder.type not in _HOLDERS:
        return False
    cursor = holder.walk()
    more = cursor.goto_first_child_for_byte(macro.start) is not None
    while more and (node := cursor.node) is not None and node.start_byte < macro.end:
        if node.has_error or node.start_byte < macro.start or node.end_byte > macro.end:
            return False
        if node.type == "expression_statement" and node.named_child_count == 1:
            node = node.named_children[0]
        if node.type != _MACRO and not _ITEM.fullmatch(node.type) and node.type != ";":
            return False
        more = cursor.goto_next_sibling()
    return True
