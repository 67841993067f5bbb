"""What a file of a repository holds: from its bytes to units and references, in one parse.

The tree of a source file is read by one query; its matches are sorted into kinds, nested by
their byte spans, and turned into units and edges. Nothing here recurses, so that nesting is
bounded by memory alone, and nothing is kept between files but the compiled grammars.
"""

from __future__ import annotations

from dataclasses import replace

from codeqa.languages import detect
from codeqa.parsing import grammar as grammars
from codeqa.parsing.documents import parse_document
from codeqa.parsing.references import FoundName, TypedName, find_imports, references
from codeqa.parsing.source import ATTRIBUTE, COMMENT, Source, docstring_text
from codeqa.parsing.units import build_units, find_definitions, nest
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.types import ParsedFile

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""UTF-8's, which belongs to no line."""


def parse_file(path: str, data: bytes, role: str = "source") -> ParsedFile:
    """Everything that one read of a file yields; raises nothing because of its content.

    Bytes that are not UTF-8 become U+FFFD and are counted; secret-looking strings become
    asterisks. A file that its grammar cannot read in bounded time, or finds nothing in, is
    cut into chunks like one without a grammar.
    """
    language = detect(path, data)
    data, masked = mask_secret_bytes(data)
    data, replaced = _utf8(data.removeprefix(_BYTE_ORDER_MARK))
    name = language.name if language is not None else "text"
    parsed = ParsedFile(path, name, (), ())
    if language is not None and language.grammar:
        try:
            parsed = extract(path, data, language.key, role)
        except grammars.TooSlowError:
            parsed = replace(parsed, has_errors=True)
    if not parsed.units:
        units = parse_document(path, data.decode("utf-8"), name, role)
        parsed = replace(parsed, units=units)
    if replaced or masked:
        parsed = replace(parsed, replaced_bytes=replaced, masked=masked)
    return parsed


def _utf8(data: bytes) -> tuple[bytes, int]:
    """`data` as valid UTF-8, and how many of its bytes were not."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        kept = len(data.decode("utf-8", "ignore").encode("utf-8"))
        return data.decode("utf-8", "replace").encode("utf-8"), len(data) - kept
    return data, 0


def extract(path: str, text: bytes, language: str, role: str = "source") -> ParsedFile:
    """Units and references of one file.

    `text` is UTF-8 with `\\n` line ends, `language` the key of a language with a grammar.
    Raises `grammar.TooSlowError` when the grammar cannot read the file in bounded time.
    """
    import tree_sitter

    grammar = grammars.grammar(language)
    given, blanked = grammars.readable(grammar, text)
    spec = grammar.language
    tree, opened = grammars.parse(grammar, given)
    source = Source(path, text, spec, role)
    defining: list[tuple[int, str, str, grammars.Captures]] = []
    importing: list[grammars.Captures] = []
    outer: dict[int, int] = {}
    found: dict[int, FoundName] = {}
    variables: dict[int, TypedName] = {}
    module_doc = ""
    # No progress callback: with one, `matches` of tree-sitter 0.26.1 crashes.
    for index, captures in tree_sitter.QueryCursor(grammar.query).matches(tree.root_node):
        family, capture, kind, rank = grammar.patterns[index]
        if family == "reference":
            node = captures[capture][0]
            start, receiver = node.start_byte, None
            if "receiver" in captures:
                receiver = captures["receiver"][0]
            else:
                rank += 1
            if start not in found or rank < found[start][0]:
                found[start] = (rank, node.end_byte, receiver, kind)
        elif family in (COMMENT, ATTRIBUTE):
            node = captures[family][0]
            source.add_leading(family, node.start_byte, node.end_byte)
        elif family in ("definition", "scope"):
            defining.append((index, kind or "scope", capture, captures))
        elif family == "outer":
            outer[captures["inner"][0].start_byte] = captures["outer"][0].start_byte
        elif family == "import":
            importing.append(captures)
        elif family == "variable":
            held, member = captures.get("variable.type"), captures.get("variable.member")
            variable = member or captures.get("variable")
            if variable and held:
                variables[variable[0].start_byte] = (variable[0], held[0], member is not None)
        elif family == "doc":
            nodes = captures["doc"]
            module_doc = docstring_text(source.slice(nodes[0].start_byte, nodes[-1].end_byte))
    for start, end in blanked:  # `EXPORT_API` on a line of its own belongs to what follows
        source.add_leading(ATTRIBUTE, start, end)
    for macro in opened:
        found[macro.name] = (grammars.REFERENCE_RANKS["call"], macro.name_end, None, "call")
    definitions = find_definitions(source, defining, outer)
    top = nest(definitions, source)
    units, unit_at = build_units(source, definitions, module_doc)
    imports = list(find_imports(source, importing))
    edges = references(source, found, variables, definitions, top, imports, unit_at)
    return ParsedFile(path, spec.name, units, tuple(edges), has_errors=tree.root_node.has_error)
