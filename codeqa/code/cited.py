"""What every section of a quoted answer is made of: Markdown, and the lines that it cites."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from codeqa.code.documentation import first_sentence, leading_doc
from codeqa.text.citation_format import ShownLines
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_span
from codeqa.types import TEXT_KINDS, Unit


@dataclass(frozen=True, slots=True)
class Cited:
    """Markdown, and the lines that it cites."""

    text: str = ""
    lines: tuple[ShownLines, ...] = ()

    def holds(self, unit: Unit) -> bool:
        """Whether it cites a place in `unit`."""
        starts = [one.start for one in self.lines if one.path == unit.path]
        return any(unit.start_line <= start <= unit.end_line for start in starts)


NOTHING = Cited()


def together(parts: Iterable[Cited], between: str = "\n\n") -> Cited:
    """Those of `parts` that say something, one after another."""
    said = [part for part in parts if part.text]
    lines = chain.from_iterable(part.lines for part in said)
    return Cited(between.join(part.text for part in said), tuple(lines))


def cited_list(title: str, items: Iterable[Cited], more: int = 0, note: str = "") -> Cited:
    """`items` below their title, nothing for none; `more` are left out, `note` says which."""
    listed = together(items, "\n")
    left = [Cited(f"- and {more:,} more{note}")] if more else []
    return together([Cited(title), together([listed, *left], "\n")]) if listed.text else NOTHING


def line_item(path: str, line: int, told: str, name: str = "") -> Cited:
    """An item of a list that is one line of a file; `name` is the definition around it."""
    return Cited(f"- {cite(path, line, line)}{told}", (ShownLines(path, line, line, name),))


def cite_unit(unit: Unit) -> Cited:
    """Where a unit stands."""
    place = ShownLines(unit.path, unit.start_line, unit.end_line, unit.qualified_name)
    return Cited(cite(unit.path, unit.start_line, unit.end_line), (place,))


def named(unit: Unit) -> Cited:
    """A unit's name and place."""
    place = cite_unit(unit)
    return Cited(f"{code_span(unit.qualified_name)} {place.text}", place.lines)


def unit_title(unit: Unit) -> str:
    """What a unit is called, as Markdown; the head of a file is called as its file."""
    if unit.kind in TEXT_KINDS:
        return inline(" ".join((unit.qualified_name or unit.name or unit.path).split()))
    if unit.kind == "module" and unit.signature == "":
        return code_span(unit.path)
    return code_span(unit.qualified_name or unit.name)


def unit_item(unit: Unit, note: str = "") -> Cited:
    """An item of a list that is one unit, in a line: its title, place and first sentence."""
    told = inline(first_sentence(leading_doc(unit)))
    if not told and unit.kind in TEXT_KINDS and unit.start_line == unit.end_line:
        told = code_span(textwrap.shorten(unit.source_code, 80, placeholder=" …"))
    title, place = unit_title(unit), cite_unit(unit)
    called = "" if title == code_span(unit.path) else f"{title} "  # the place says the path
    return Cited(f"- {called}{place.text}{f': {told}' if told else ''}{note}", place.lines)
