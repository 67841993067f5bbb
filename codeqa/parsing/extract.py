"""From the bytes of one source file to its units and references, in one parse.

The tree is read by one query; its matches are sorted into kinds, nested by their byte
spans, and turned into units and edges. Nothing here recurses, so that nesting is bounded
by memory alone, and nothing is kept between files but the compiled grammars.
"""

from __future__ import annotations

from codeqa.languages import Language
from codeqa.parsing import grammar as grammars
from codeqa.parsing.definitions import Collector as Definitions
from codeqa.parsing.definitions import nest, owned_members, without_prototypes
from codeqa.parsing.docs import ATTRIBUTE, COMMENT, Leading, docstring_text
from codeqa.parsing.imports import Bindings
from codeqa.parsing.imports import Collector as Imports
from codeqa.parsing.references import Collector as References
from codeqa.parsing.references import Resolver, references
from codeqa.parsing.source import Source
from codeqa.parsing.units import build_units
from codeqa.types import ParsedFile


def extract(path: str, text: bytes, language: str, role: str = "source") -> ParsedFile:
    """Units and references of one file.

    `text` is UTF-8 with `\\n` line ends, `language` the key of a language with a grammar.
    Raises `grammar.TooSlowError` when the grammar cannot read the file in bounded time.
    """
    grammar = grammars.grammar(language)
    given, blanked = grammars.readable(grammar, text)
    tree = grammars.parse(grammar, given)
    source = Source(text)
    found = _collect(grammar, grammars.matches(grammar, tree), source)
    for start, end in blanked:  # `EXPORT_API` on a line of its own belongs to what follows
        found.leading.add(ATTRIBUTE, start, end)
    definitions = found.definitions.definitions()
    if grammar.language.prototypes:
        definitions = without_prototypes(definitions, source)
    top = nest(definitions, source, found.leading, grammar.language)
    units, unit_at = build_units(
        path, source, grammar.language, role, definitions, found.leading, found.doc
    )
    imports = list(found.imports.imports())
    resolver = Resolver(
        source,
        grammar.language,
        Bindings(imports, grammar.language),
        top,
        owned_members(definitions),
        definitions,
    )
    edges = references(path, source, found.references, definitions, imports, resolver, unit_at)
    return ParsedFile(
        path, grammar.language.name, units, tuple(edges), has_errors=tree.root_node.has_error
    )


class _Found:
    """What the matches of one file yield, by kind."""

    __slots__ = ("definitions", "doc", "imports", "leading", "references")

    def __init__(self, source: Source, language: Language) -> None:
        self.definitions = Definitions(source, language.separator)
        self.references = References()
        self.imports = Imports(source, language)
        self.leading = Leading(source)
        self.doc = ""


def _collect(
    grammar: grammars.Grammar, matches: list[tuple[int, grammars.Captures]], source: Source
) -> _Found:
    found = _Found(source, grammar.language)
    patterns, places, leading = grammar.patterns, found.references.found, found.leading
    reference, comment = grammars.REFERENCE, grammars.COMMENT
    for index, captures in matches:
        role, capture, kind, rank = patterns[index]
        if role == reference:
            node = captures[capture][0]
            start = node.start_byte
            receiver = None
            if "receiver" in captures:
                receiver = captures["receiver"][0]
            else:
                rank += 1
            if start not in places or rank < places[start][0]:
                places[start] = (rank, node.end_byte, receiver, kind)
        elif role == comment:
            node = captures["comment"][0]
            leading.add(COMMENT, node.start_byte, node.end_byte)
        elif role == grammars.ATTRIBUTE:
            node = captures["attribute"][0]
            leading.add(ATTRIBUTE, node.start_byte, node.end_byte)
        elif role == grammars.DEFINITION:
            found.definitions.add(index, kind, capture, captures)
        elif role == grammars.SCOPE:
            found.definitions.add(index, kind or "scope", capture, captures)
        elif role == grammars.OUTER:
            found.definitions.widen(captures)
        elif role == grammars.IMPORT:
            found.imports.add(captures)
        elif role == grammars.VARIABLE:
            held, member = captures.get("variable.type"), captures.get("variable.member")
            variable = member or captures.get("variable")
            if variable and held:
                found.references.variables[variable[0].start_byte] = (
                    variable[0], held[0], member is not None
                )  # fmt: skip
        elif role == grammars.DOC and "doc" in captures:
            nodes = captures["doc"]
            found.doc = docstring_text(source.slice(nodes[0].start_byte, nodes[-1].end_byte))
    return found
